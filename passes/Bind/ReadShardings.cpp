//===- ReadShardings.cpp - views by name, from a file ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bind/Passes.h"
#include "TensorView/TensorView.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_READSHARDINGSPASS
#include "Bind/Passes.h.inc"
} // namespace tessera::tv

namespace {
class ReadShardingsPass
    : public tv::impl::ReadShardingsPassBase<ReadShardingsPass> {
public:
  using ReadShardingsPassBase::ReadShardingsPassBase;
  void runOnOperation() override;

private:
  LogicalResult readLine(StringRef line, Location loc);
  LogicalResult setViews(StringRef pattern, ViewAttr view, Location loc);

  MeshAttr mesh;
};
} // namespace

LogicalResult ReadShardingsPass::setViews(StringRef pattern, ViewAttr view,
                                          Location loc) {
  llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern);
  if (!glob)
    return emitError(loc) << llvm::toString(glob.takeError());
  bool found = false;
  std::vector<StringRef> names;
  auto take = [&](StringAttr name, Type type, DictionaryAttr attributes,
                  auto set) -> LogicalResult {
    if (!name)
      return success();
    names.push_back(name);
    if (!glob->match(name))
      return success();
    found = true;
    if (getView(type) || attributes.contains(kUserViewAttr))
      return emitError(loc) << "'" << name.getValue()
                            << "' has a view already; one place may say it";
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        tensor && failed(view.verifyEncoding(
                      tensor.getShape(), tensor.getElementType(), [&] {
                        return emitError(loc)
                               << "does not fit '" << name.getValue() << "': ";
                      })))
      return failure();
    set();
    return success();
  };
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    FunctionType type = function.getFunctionType();
    for (unsigned i = 0; i < type.getNumInputs(); ++i)
      if (failed(take(function.getArgAttrOfType<StringAttr>(i, kNameAttr),
                      type.getInput(i), function.getArgAttrDict(i),
                      [&] { function.setArgAttr(i, kUserViewAttr, view); })))
        return failure();
    const SmallVector<BlockArgument> states = getStates(function);
    for (unsigned i = 0; i < type.getNumResults(); ++i)
      if (!states[i] && // which has that of the state
          failed(take(function.getResultAttrOfType<StringAttr>(i, kNameAttr),
                      type.getResult(i), function.getResultAttrDict(i),
                      [&] { function.setResultAttr(i, kUserViewAttr, view); })))
        return failure();
  }
  if (found)
    return success();
  return emitError(loc) << "no argument or result has a name like '" << pattern
                        << "'; there are " << llvm::join(names, ", ");
}

LogicalResult ReadShardingsPass::readLine(StringRef line, Location loc) {
  if (line.empty() || line.starts_with("#"))
    return success();
  if (line.consume_front("mesh ")) {
    if (mesh)
      return emitError(loc) << "a second mesh; views are on that of the first "
                               "line, "
                            << layout::toString(mesh.getMesh());
    Result<layout::Mesh> parsed = layout::parseMesh(line.trim());
    if (!parsed)
      return emitError(loc) << parsed.message();
    mesh = MeshAttr::getChecked([&] { return emitError(loc); }, &getContext(),
                                *parsed);
    return success(mesh != nullptr);
  }
  auto [pattern, text] = line.split(':');
  if (!mesh)
    return emitError(loc)
           << "the first line must be a mesh, as 'mesh <tp = 2>'";
  if (text.trim().empty())
    return emitError(loc) << "must be names with their view, as "
                             "'layers.*.wq: [did(tp) * _, _]'";
  Result<layout::View> view = layout::parseView(text.trim(), mesh.getMesh());
  if (!view)
    return emitError(loc) << view.message();
  return setViews(pattern.trim(), ViewAttr::get(&getContext(), mesh, *view),
                  loc);
}

void ReadShardingsPass::runOnOperation() {
  auto text = llvm::MemoryBuffer::getFile(file);
  if (!text) {
    emitError(UnknownLoc::get(&getContext()))
        << "cannot read the shardings '" << file
        << "': " << text.getError().message();
    return signalPassFailure();
  }
  for (llvm::line_iterator line(**text, /*SkipBlanks=*/true, '#');
       !line.is_at_end(); ++line)
    if (failed(
            readLine(line->trim(), FileLineColLoc::get(&getContext(), file,
                                                       line.line_number(), 1))))
      return signalPassFailure();
}
