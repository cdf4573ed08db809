//===- Comm.cpp - text and checks of the comm dialect ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Comm/Comm.h"
#include "Layout/PlanViews.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::comm;

#include "Comm/CommDialect.cpp.inc"
#include "Comm/CommInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "Comm/CommAttrs.cpp.inc"

void CommDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Comm/CommAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Comm/CommOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

/// `#m [tp, dp:(1)2]`
static ParseResult parseAxes(AsmParser &parser, AxesAttr &axes) {
  tv::MeshAttr mesh;
  if (parser.parseAttribute(mesh))
    return failure();
  tv::AsmTokenSource tokens(parser);
  Result<std::vector<layout::SubAxis>> parsed =
      layout::parseAxes(tokens, mesh.getMesh());
  if (!parsed)
    return tokens.emitError() << parsed.message();
  axes = AxesAttr::get(parser.getContext(), mesh, *parsed);
  return success();
}

static void printAxes(AsmPrinter &printer, AxesAttr axes) {
  printer.printAttribute(axes.getMesh());
  printer << " [";
  llvm::interleaveComma(
      axes.getAxes(), printer, [&](const layout::SubAxis &sub) {
        printer << layout::toString(sub, axes.getMesh().getMesh());
      });
  printer << "]";
}

static void printAxes(AsmPrinter &printer, Operation *, AxesAttr axes) {
  printAxes(printer, axes);
}

Attribute AxesAttr::parse(AsmParser &parser, Type) {
  AxesAttr axes;
  if (parser.parseLess() || parseAxes(parser, axes) || parser.parseGreater())
    return {};
  return axes;
}

void AxesAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printAxes(printer, *this);
  printer << ">";
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// The sub-axes along which `view` is partial with `combiner`.
static std::vector<layout::SubAxis> partialAxes(const layout::View &view,
                                                layout::Combiner combiner) {
  std::vector<layout::SubAxis> axes;
  for (const layout::Partial &partial : view.partial)
    if (partial.combiner == combiner)
      llvm::append_range(axes, partial.axes);
  return axes;
}

/// Checks one operand of a move against its result.
static LogicalResult verifyPair(CollectiveOpInterface op, unsigned index) {
  auto from = cast<RankedTensorType>(op->getOperand(index).getType());
  auto to = cast<RankedTensorType>(op->getResult(index).getType());
  auto source = dyn_cast_or_null<tv::LocalAttr>(from.getEncoding());
  auto target = dyn_cast_or_null<tv::LocalAttr>(to.getEncoding());
  if (!source || !target)
    return op->emitOpError() << "needs tensors with a #tv.local encoding, but "
                             << (source ? "result" : "operand") << " #" << index
                             << " has type " << (source ? to : from);
  if (from.getElementType() != to.getElementType() ||
      source.getExtents() != target.getExtents())
    return op->emitOpError()
           << "operand and result #" << index
           << " must be parts of one tensor, but are " << from << " and " << to;
  tv::MeshAttr mesh = op.getAxes().getMesh();
  if (source.getView().getMesh() != mesh || target.getView().getMesh() != mesh)
    return op->emitOpError() << "operand and result #" << index
                             << " must lie on the mesh of the op, " << mesh;

  std::vector<layout::SubAxis> gone, added;
  for (auto combiner :
       {layout::Combiner::Sum, layout::Combiner::Max, layout::Combiner::Min}) {
    auto before = partialAxes(source.getLayoutView(), combiner);
    auto after = partialAxes(target.getLayoutView(), combiner);
    llvm::append_range(gone, layout::subtract(before, after));
    llvm::append_range(added, layout::subtract(after, before));
  }
  bool reduces = op.getKind() == tv::StepKind::AllReduce ||
                 op.getKind() == tv::StepKind::ReduceScatter;
  bool slices = op.getKind() == tv::StepKind::Slice;
  if (!reduces && !slices && !(gone.empty() && added.empty()))
    return op->emitOpError() << "may not change the partial state of operand #"
                             << index << "; all_reduce and reduce_scatter do";
  if (slices && !gone.empty())
    return op->emitOpError()
           << "may not combine the partial states of operand #" << index
           << "; all_reduce does";
  // What vanishes is what the op names.
  if (reduces && (!added.empty() || layout::merged(gone) !=
                                        layout::merged(op.getAxes().getAxes())))
    return op->emitOpError() << "must combine operand #" << index
                             << " along exactly the axes it names, from "
                             << source.getView() << " to " << target.getView();
  return success();
}

std::optional<layout::Combiner> comm::getCombiner(Operation *op,
                                                  unsigned number) {
  auto viewOf = [](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return cast<tv::LocalAttr>(type.getEncoding()).getLayoutView();
  };
  return layout::changedCombiner(viewOf(op->getOperand(number)),
                                 viewOf(op->getResult(number)));
}

LogicalResult comm::verifyCollective(Operation *op) {
  if (op->getNumOperands() != op->getNumResults() || op->getNumOperands() == 0)
    return op->emitOpError()
           << "has " << op->getNumOperands() << " operands and "
           << op->getNumResults() << " results; each operand needs its result";
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    if (failed(verifyPair(cast<CollectiveOpInterface>(op), i)))
      return failure();
    if (getCombiner(op, i) != getCombiner(op))
      return op->emitOpError()
             << "has operands #0 and #" << i << " of different combiners";
  }
  return success();
}

#define GET_OP_CLASSES
#include "Comm/CommOps.cpp.inc"
