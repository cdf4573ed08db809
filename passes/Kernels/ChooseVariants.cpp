//===- ChooseVariants.cpp - each variant of a product has groups ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels/Grouping.h"
#include "Kernels/LoopKernels.h"
#include "Kernels/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_CHOOSEVARIANTS
#include "Kernels/Passes.h.inc"
} // namespace tessera

/// The group's values by the library: its product with what it does as well,
/// and a group of the rest.
static SmallVector<Value> addLibrary(plan::GroupOp group, StringRef variant,
                                     OpBuilder &builder) {
  // Its ops in the program again, from where they make groups.
  IRMapping copies;
  Grouping of;
  SmallVector<Operation *> all, taken, rest;
  Operation *product = group.getProduct();
  bool follows = group.getEpilogue().has_value();
  for (Operation &op : group.getOps()) {
    Operation *copy = builder.clone(op, copies);
    of.placeOf[copy] = all.size();
    all.push_back(copy);
    const bool isEpilogue =
        follows && isa<tv::CompositeOpInterface>(op) &&
        llvm::is_contained(op.getOperands(), product->getResult(0));
    follows &= !isEpilogue;
    if (&op == product || isEpilogue) {
      taken.push_back(copy);
    } else if (!isFree(copy)) {
      rest.push_back(copy);
      of.loops.insert(copy);
    }
  }
  llvm::SetVector<Value> read;
  for (Operation *op : rest)
    read.insert_range(getReadValues(op));
  read = getMemoryRead(std::move(read), of.copied);
  auto yielded = llvm::map_to_vector(
      group.getYielded(), [&](Value value) { return copies.lookup(value); });
  auto outputsOf = [&](ArrayRef<Operation *> ops) {
    SmallVector<Value> outputs;
    llvm::copy_if(yielded, std::back_inserter(outputs), [&](Value value) {
      return llvm::is_contained(ops, value.getDefiningOp());
    });
    return outputs;
  };
  SmallVector<Value> outputs = outputsOf(taken);
  for (Operation *op : taken)
    if (read.contains(op->getResult(0)) &&
        !llvm::is_contained(outputs, op->getResult(0)))
      outputs.push_back(op->getResult(0));
  SmallVector<Value> values(yielded);
  auto add = [&](ArrayRef<Operation *> ops, ArrayRef<Value> outputs) {
    auto made = makeGroup(builder, ops, outputs, of);
    for (auto [output, result] : llvm::zip_equal(outputs, made.getResults()))
      llvm::replace(values, output, Value(result));
    return made;
  };
  auto library = add(taken, outputs);
  library.setVariantsAttr(builder.getStrArrayAttr(variant));
  library.setEpilogueAttr(group.getEpilogueAttr());
  if (!rest.empty())
    add(rest, outputsOf(rest));
  for (Operation *op : llvm::reverse(all))
    if (isFree(op) && op->getBlock() == group->getBlock())
      op->erase();
  return values;
}

static void choose(plan::GroupOp group) {
  OpBuilder builder(group);
  ArrayAttr names = group.getVariantsAttr();
  DictionaryAttr without = group.getWithoutAttr();
  group.removeWithoutAttr();
  SmallVector<Value> values;
  for (auto name : names.getAsRange<StringAttr>()) {
    if (names.size() == 1)
      break;
    if (name != kOwnProduct) {
      llvm::append_range(values, addLibrary(group, name, builder));
      continue;
    }
    auto own = cast<plan::GroupOp>(builder.clone(*group));
    own.setVariantsAttr(builder.getStrArrayAttr(name.getValue()));
    own.removeEpilogueAttr();
    llvm::append_range(values, own.getResults());
  }
  if (names.size() == 1 && !without)
    return;
  // One that is alone leaves nothing to choose, but perhaps a reason.
  builder.setInsertionPointAfter(group);
  Operation *product = group.getProduct();
  auto choice = plan::ChooseOp::create(
      builder, product->getLoc(),
      values.empty() ? TypeRange() : TypeRange(group.getResultTypes()),
      "matmul", names, values, without, getSource(product),
      /*problem=*/StringAttr());
  if (names.size() == 1)
    return;
  group.replaceAllUsesWith(choice);
  group.erase();
}

namespace {
struct ChooseVariants
    : public tessera::impl::ChooseVariantsBase<ChooseVariants> {
  void runOnContract() override {
    bool changed = false;
    for (auto group : llvm::make_early_inc_range(
             getOperation().getBody().getOps<plan::GroupOp>()))
      if (group.getVariants()) {
        choose(group);
        changed = true;
      }
    if (!changed)
      markAllAnalysesPreserved(); // and nothing is verified again
  }
};
} // namespace
