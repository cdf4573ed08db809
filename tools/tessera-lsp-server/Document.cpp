//===- Document.cpp - what is known of a program's text -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Document.h"
#include "Compiler/Pipeline.h"
#include "Compiler/Register.h"
#include "Compiler/VerifyInput.h"
#include "Describe.h"
#include "TensorView/Contract.h"
#include "TensorView/ExtentAnalysis.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::lsp;
namespace protocol = llvm::lsp;

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerDialects(registry);
  return registry;
}

Document::Document(const protocol::URIForFile &uri, StringRef text)
    : uri(uri), context(makeRegistry(), MLIRContext::Threading::DISABLED) {
  context.printOpOnDiagnostic(false);
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(text, uri.file()), SMLoc());
  ScopedDiagnosticHandler handler(
      &context, [&](Diagnostic &diagnostic) { add(diagnostic); });
  Block block;
  if (failed(parseAsmSourceFile(
          sources, &block, ParserConfig(&context, /*verifyAfterParse=*/false),
          &names))) {
    names = AsmParserState(); // what it points to is gone
    return;
  }
  program = mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(
      &block, &context, FileLineColLoc::get(&context, uri.file(), 1, 1));
  if (program && succeeded(verifyInput(*program)) && isSource())
    compile();
}

/// Whether the pipeline can start here: the program has views, and is of the
/// whole machine yet.
bool Document::isSource() {
  bool hasViews = false, isSource = true;
  AttrTypeWalker walker;
  walker.addWalk([&](tv::ViewAttr) { hasViews = true; });
  walker.addWalk([&](tv::LocalAttr) { isSource = false; });
  program->walk([&](Operation *op) {
    walker.walk(op->getAttrDictionary());
    for (Type type : op->getResultTypes())
      walker.walk(type);
    isSource &= !isa_and_present<tv::LocalDialectInterface>(op->getDialect());
  });
  return hasViews && isSource;
}

namespace {
/// Calls `record` once views are propagated, before composites are divided.
class AfterPropagation : public PassInstrumentation {
public:
  explicit AfterPropagation(std::function<void(func::FuncOp)> record)
      : record(std::move(record)) {}
  void runAfterPass(Pass *pass, Operation *op) override {
    if (pass->getArgument() == "tv-propagate-shardings" &&
        seen.insert(op).second)
      record(cast<func::FuncOp>(op));
  }

private:
  std::function<void(func::FuncOp)> record;
  llvm::DenseSet<Operation *> seen;
};
} // namespace

void Document::compile() {
  OwningOpRef<ModuleOp> copy = program->clone();
  PipelineOptions options;
  options.explain = true;
  for (const Phase &phase : getPipeline()) {
    PassManager passes(&context);
    passes.addInstrumentation(std::make_unique<AfterPropagation>(
        [&](func::FuncOp function) { record(function); }));
    phase.build(passes, options);
    if (failed(passes.run(*copy)) || phase.name == "planned")
      return;
  }
}

SmallVector<Place> Document::getPlaces(Location location) {
  SmallVector<Place> places;
  location->walk([&](Location inner) {
    if (auto file = dyn_cast<FileLineColLoc>(inner);
        file && file.getFilename() == uri.file())
      places.push_back({file.getLine(), file.getColumn()});
    return WalkResult::advance();
  });
  return places;
}

void Document::record(func::FuncOp function) {
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
  FailureOr<tv::ExtentAnalysis> extents = tv::ExtentAnalysis::run(function);
  if (failed(extents))
    return; // a later pass says why
  auto lyingsOf = [&](ValueRange values) {
    SmallVector<Lying> lyings;
    for (Value value : values)
      if (tv::getView(value))
        lyings.push_back({cast<RankedTensorType>(value.getType()),
                          extents->getMaximumShape(value)});
    return lyings;
  };
  arguments[function.getName()] = lyingsOf(function.getArguments());
  for (Operation &op : function.getBody().front()) {
    SmallVector<Place> places = getPlaces(op.getLoc());
    if (!places.empty())
      ops.insert({places.front(),
                  {op.getName(), SmallVector<Place>(llvm::drop_begin(places)),
                   lyingsOf(op.getResults())}});
  }
}

void Document::add(Diagnostic &diagnostic) {
  SmallVector<Place> places = getPlaces(diagnostic.getLocation());
  auto rangeOf = [&](ArrayRef<Place> places) {
    if (places.empty())
      return protocol::Range();
    SMLoc loc = sources.FindLocForLineAndColumn(
        sources.getMainFileID(), places.front().first, places.front().second);
    return loc.isValid() ? getRange(AsmParserState::convertIdLocToRange(loc))
                         : protocol::Range();
  };
  if (diagnostic.getSeverity() == DiagnosticSeverity::Remark) {
    if (!places.empty())
      remarks[places.front()] += "- " + diagnostic.str() + "\n";
    return;
  }
  protocol::Diagnostic said;
  said.range = rangeOf(places);
  said.severity = diagnostic.getSeverity() == DiagnosticSeverity::Error
                      ? protocol::DiagnosticSeverity::Error
                      : protocol::DiagnosticSeverity::Warning;
  said.source = "tessera";
  said.message = diagnostic.str();
  std::vector<protocol::DiagnosticRelatedInformation> related;
  for (Diagnostic &note : diagnostic.getNotes()) {
    SmallVector<Place> where = getPlaces(note.getLocation());
    if (where.empty() || where == places)
      said.message += "\n" + note.str();
    else
      related.emplace_back(protocol::Location(uri, rangeOf(where)), note.str());
  }
  if (!related.empty())
    said.relatedInformation = std::move(related);
  diagnostics.push_back(std::move(said));
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

void Document::findLyings(Value value, std::optional<Place> caller,
                          SmallVectorImpl<Lying> &lyings, Asked &asked) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !asked.emplace(value.getAsOpaquePointer(), caller).second)
    return;
  auto add = [&](Lying lying) {
    // Of an op's name and place may be more, as gradients are. A function for
    // any size has `?` where its calls have extents.
    if (lying.type.getElementType() == type.getElementType() &&
        succeeded(verifyCompatibleShape(lying.type, type)) &&
        !llvm::is_contained(lyings, lying))
      lyings.push_back(lying);
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    if (!function)
      return;
    if (auto it = arguments.find(function.getName()); it != arguments.end()) {
      if (argument.getArgNumber() < it->second.size())
        add(it->second[argument.getArgNumber()]);
      return;
    }
    program->walk([&](CallOpInterface call) {
      if (call.resolveCallable() == function &&
          (!caller || caller == getPlaces(call.getLoc()).front()))
        findLyings(call.getArgOperands()[argument.getArgNumber()], {}, lyings,
                   asked);
    });
    return;
  }
  auto result = cast<OpResult>(value);
  SmallVector<Place> places = getPlaces(result.getOwner()->getLoc());
  if (places.empty())
    return;
  if (auto call = dyn_cast<CallOpInterface>(result.getOwner())) {
    auto callee = dyn_cast_or_null<func::FuncOp>(call.resolveCallable());
    if (!callee || callee.isExternal())
      return;
    findLyings(callee.getBody().front().getTerminator()->getOperand(
                   result.getResultNumber()),
               places.front(), lyings, asked);
    return;
  }
  auto [first, last] = ops.equal_range(places.front());
  for (const auto &[place, op] : llvm::make_range(first, last))
    if (op.name == result.getOwner()->getName() &&
        result.getResultNumber() < op.results.size() &&
        (!caller || llvm::is_contained(op.callers, *caller)))
      add(op.results[result.getResultNumber()]);
}

std::string Document::describe(ValueRange values, SMRange name) {
  std::string text;
  llvm::raw_string_ostream os(text);
  std::set<Place> places;
  for (Value value : values) {
    Operation *op = value.getDefiningOp();
    os << "**`"
       << StringRef(name.Start.getPointer(),
                    name.End.getPointer() - name.Start.getPointer());
    if (values.size() > 1)
      os << "#" << cast<OpResult>(value).getResultNumber();
    os << "`** ";
    if (auto tensor = dyn_cast<RankedTensorType>(value.getType())) {
      for (int64_t extent : tensor.getShape())
        os << (ShapedType::isDynamic(extent) ? "?" : std::to_string(extent))
           << "x";
      os << tensor.getElementType();
    } else {
      os << value.getType();
    }
    os << ", "
       << (op ? "of `" + op->getName().getStringRef().str() + "`"
              : "an argument")
       << "\n\n";
    SmallVector<Lying> lyings;
    // What follows from calls that do not inline is not asked.
    if (Asked asked; !arguments.empty())
      findLyings(value, std::nullopt, lyings, asked);
    if (lyings.empty())
      os << "No view is known"
         << (diagnostics.empty() ? "" : ": the program has errors") << "\n\n";
    for (const Lying &lying : lyings)
      os << lsp::describe(lying.type, lying.extents) << "\n";
    for (Place place : getPlaces(value.getLoc()))
      places.insert(place);
  }
  // Why they lie so, and what moves.
  for (Place place : places)
    if (auto it = remarks.find(place); it != remarks.end())
      os << it->second;
  return text;
}

std::optional<Document::Name> Document::find(protocol::Position position) {
  const SMLoc at = getLoc(position);
  auto holds = [&](SMRange range) {
    return range.isValid() && range.Start.getPointer() <= at.getPointer() &&
           at.getPointer() <= range.End.getPointer();
  };
  auto rangeIn = [&](const AsmParserState::SMDefinition &definition) {
    if (holds(definition.loc))
      return std::optional(definition.loc);
    const SMRange *use = llvm::find_if(definition.uses, holds);
    return use == definition.uses.end() ? std::nullopt : std::optional(*use);
  };
  auto print = [](auto value) {
    std::string text;
    llvm::raw_string_ostream(text) << "```mlir\n" << value << "\n```\n";
    return text;
  };
  for (const auto &def : names.getOpDefs()) {
    for (auto [i, group] : llvm::enumerate(def.resultGroups)) {
      auto range = rangeIn(group.definition);
      if (!range)
        continue;
      unsigned end = i + 1 < def.resultGroups.size()
                         ? def.resultGroups[i + 1].startIndex
                         : def.op->getNumResults();
      ValueRange values =
          def.op->getResults().slice(group.startIndex, end - group.startIndex);
      return Name{*range, group.definition.loc,
                  describe(values, group.definition.loc)};
    }
    if (const SMRange *use = llvm::find_if(def.symbolUses, holds);
        use != def.symbolUses.end())
      return Name{*use, def.loc, ""};
  }
  for (const auto &def : names.getBlockDefs())
    for (auto [i, argument] : llvm::enumerate(def.arguments))
      if (auto range = rangeIn(argument))
        return Name{
            *range, argument.loc,
            describe(ValueRange(def.block->getArgument(i)), argument.loc)};
  for (const auto &def : names.getAttributeAliasDefs())
    if (auto range = rangeIn(def.definition))
      return Name{*range, def.definition.loc, print(def.value)};
  for (const auto &def : names.getTypeAliasDefs())
    if (auto range = rangeIn(def.definition))
      return Name{*range, def.definition.loc, print(def.value)};
  return std::nullopt;
}

std::optional<protocol::Hover> Document::getHover(protocol::Position position) {
  std::optional<Name> name = find(position);
  if (!name || name->text.empty())
    return std::nullopt;
  protocol::Hover hover(getRange(name->range));
  hover.contents.value = std::move(name->text);
  return hover;
}

std::optional<protocol::Location>
Document::getDefinition(protocol::Position position) {
  std::optional<Name> name = find(position);
  if (!name)
    return std::nullopt;
  return protocol::Location(uri, getRange(name->definition));
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

/// The units of UTF-16 of the character that a byte of UTF-8 begins.
static int unitsOf(char byte) {
  auto bits = uint8_t(byte);
  return (bits & 0xc0) == 0x80 ? 0 : bits >= 0xf0 ? 2 : 1;
}

protocol::Position Document::getPosition(SMLoc loc) {
  auto [line, column] = sources.getLineAndColumn(loc);
  int units = 0;
  for (char byte : StringRef(loc.getPointer() - (column - 1), column - 1))
    units += unitsOf(byte);
  return protocol::Position(line - 1, units);
}

protocol::Range Document::getRange(SMRange range) {
  return protocol::Range(getPosition(range.Start), getPosition(range.End));
}

SMLoc Document::getLoc(protocol::Position position) {
  StringRef text =
      sources.getMemoryBuffer(sources.getMainFileID())->getBuffer();
  for (int line = 0; line < position.line; ++line)
    text = text.drop_front(std::min(text.find('\n'), text.size() - 1) + 1);
  const char *at = text.begin();
  for (int units = 0; at < text.end() && *at != '\n'; ++at)
    if ((units += unitsOf(*at)) > position.character)
      break;
  return SMLoc::getFromPointer(at);
}
