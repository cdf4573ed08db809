//===- Choose.cpp - variants of an op -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The text and checks of plan.choose, and which ops its variants own. There are
// no regions: what a variant owns follows from uses, so passes move, fuse and
// share ops as everywhere else.
//
//===----------------------------------------------------------------------===//

#include "Plan/Plan.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::plan;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

// "kind" of "name"(%values), ... without {...} from "source" on "problem"
//   attr-dict : types

ParseResult ChooseOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &b = parser.getBuilder();
  Properties &properties = result.getOrAddProperties<Properties>();
  SmallVector<Attribute> names;
  SmallVector<SmallVector<OpAsmParser::UnresolvedOperand>> values;
  auto parseVariant = [&]() -> ParseResult {
    StringAttr name;
    if (parser.parseAttribute(name, b.getNoneType()) ||
        parser.parseOperandList(values.emplace_back(),
                                OpAsmParser::Delimiter::Paren))
      return failure();
    names.push_back(name);
    return success();
  };
  if (parser.parseAttribute(properties.kind, b.getNoneType()) ||
      parser.parseKeyword("of") || parser.parseCommaSeparatedList(parseVariant))
    return failure();
  properties.variants = b.getArrayAttr(names);
  if (succeeded(parser.parseOptionalKeyword("without")) &&
      parser.parseAttribute(properties.without))
    return failure();
  if (parser.parseKeyword("from") ||
      parser.parseAttribute(properties.source, b.getNoneType()) ||
      (succeeded(parser.parseOptionalKeyword("on")) &&
       parser.parseAttribute(properties.problem, b.getNoneType())) ||
      parser.parseOptionalAttrDict(result.attributes))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalColon()) &&
      parser.parseTypeList(result.types))
    return failure();
  for (auto &group : values)
    if (parser.resolveOperands(group, result.types, loc, result.operands))
      return failure();
  return success();
}

void ChooseOp::print(OpAsmPrinter &printer) {
  printer << " " << getKindAttr() << " of ";
  llvm::interleaveComma(llvm::seq<unsigned>(0, getVariants().size()), printer,
                        [&](unsigned variant) {
                          printer << getVariants()[variant] << "("
                                  << getValuesOf(variant) << ")";
                        });
  if (DictionaryAttr without = getWithoutAttr())
    printer << " without " << without;
  printer << " from " << getSourceAttr();
  if (StringAttr problem = getProblemAttr())
    printer << " on " << problem;
  printer.printOptionalAttrDict((*this)->getAttrs(),
                                {getKindAttrName(), getVariantsAttrName(),
                                 getWithoutAttrName(), getSourceAttrName(),
                                 getProblemAttrName()});
  if (getNumResults())
    printer << " : " << getResultTypes();
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

LogicalResult ChooseOp::verify() {
  if (getKind().empty() || getVariants().empty())
    return emitOpError() << "needs a kind and a variant that there is";
  llvm::StringSet<> names;
  for (Attribute name : getVariants())
    if (cast<StringAttr>(name).empty() ||
        !names.insert(cast<StringAttr>(name).getValue()).second)
      return emitOpError() << "has two variants " << name << ", or one without "
                           << "a name";
  if (DictionaryAttr without = getWithoutAttr())
    for (NamedAttribute missing : without) {
      auto reason = dyn_cast<StringAttr>(missing.getValue());
      if (!reason || reason.empty() || names.contains(missing.getName()))
        return emitOpError() << "variant " << missing.getName()
                             << " is there, or is missing without a reason";
    }
  if (getNumOperands() != getVariants().size() * getNumResults())
    return emitOpError() << "each variant needs a value for each result";
  if (getNumResults() == 0 && getVariants().size() > 1)
    return emitOpError() << "several variants need values to choose from";
  for (unsigned variant = 0; variant < getVariants().size(); ++variant)
    if (getValuesOf(variant).getTypes() != getResultTypes())
      return emitOpError() << "the values of variant " << getVariants()[variant]
                           << " must have the results' types";
  return success();
}

void ChooseOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  // What has no results would otherwise be dead.
  if (getNumResults() == 0)
    effects.emplace_back(MemoryEffects::Write::get());
}

//===----------------------------------------------------------------------===//
// What belongs to a variant
//===----------------------------------------------------------------------===//

/// The variant that a use leads to.
static Variant getUser(OpOperand &use, Block &block,
                       const llvm::DenseMap<Operation *, Variant> &variants) {
  if (auto choice = dyn_cast<ChooseOp>(use.getOwner())) {
    if (choice.getVariants().size() == 1)
      return {};
    return {choice, use.getOperandNumber() / choice.getNumResults()};
  }
  return variants.lookup(block.findAncestorOpInBlock(*use.getOwner()));
}

llvm::DenseMap<Operation *, Variant> plan::getVariants(Block &block) {
  llvm::DenseMap<Operation *, Variant> variants;
  // Uses come after definitions.
  for (Operation &op : llvm::reverse(block)) {
    if (isa<ChooseOp>(op) || op.use_empty())
      continue;
    Variant variant = getUser(*op.use_begin(), block, variants);
    if (variant && llvm::all_of(op.getUses(), [&](OpOperand &use) {
          return getUser(use, block, variants) == variant;
        }))
      variants[&op] = variant;
  }
  return variants;
}

bool plan::isOwnMemory(OpOperand &value,
                       const llvm::DenseMap<Operation *, Variant> &variants) {
  auto choice = cast<ChooseOp>(value.getOwner());
  Operation *step = value.get().getDefiningOp();
  if (!step || isa<AliasOp, ConstantOp, ChooseOp>(step))
    return false;
  if (choice.getVariants().size() == 1)
    return value.get().hasOneUse();
  unsigned number = value.getOperandNumber() / choice.getNumResults();
  return variants.lookup(step) == Variant{choice, number} &&
         llvm::count(choice.getValues(), value.get()) == 1;
}

/// Whether one of the variants runs for sure: all of some choice are there.
static bool isAlwaysNeeded(ArrayRef<Variant> variants) {
  return llvm::any_of(variants, [&](const Variant &variant) {
    return llvm::count_if(variants, [&](const Variant &other) {
             return other.choice == variant.choice;
           }) == int64_t(ChooseOp(variant.choice).getVariants().size());
  });
}

void plan::separateVariants(Block &block) {
  llvm::DenseMap<Operation *, Variant> variants;
  for (Operation &op : llvm::reverse(block)) {
    if (isa<ChooseOp>(op) || op.use_empty())
      continue;
    SmallVector<Variant> users;
    for (OpOperand &use : op.getUses())
      if (Variant user = getUser(use, block, variants);
          !llvm::is_contained(users, user))
        users.push_back(user);
    if (!llvm::all_of(users, [](const Variant &user) { return bool(user); }))
      continue;
    // What has no operands is a constant, or computed where it is used.
    if (users.size() > 1 &&
        (isAlwaysNeeded(users) || !isMemoryEffectFree(&op) ||
         op.getNumOperands() == 0))
      continue;
    variants[&op] = users.front();
    for (const Variant &user : ArrayRef(users).drop_front()) {
      Operation *own = op.clone();
      block.getOperations().insertAfter(op.getIterator(), own);
      variants[own] = user;
      for (auto [from, to] :
           llvm::zip_equal(op.getResults(), own->getResults()))
        from.replaceUsesWithIf(to, [&](OpOperand &use) {
          return getUser(use, block, variants) == user;
        });
    }
  }
}
