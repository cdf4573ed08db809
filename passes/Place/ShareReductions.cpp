//===- ShareReductions.cpp - what is reduced once is not reduced again ----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's own elimination of common subexpressions would share pointwise values
// too, and keep them from the forward of a training step to its backward. They
// cost nothing where they are used, and so are only known to be equal here.
//
//===----------------------------------------------------------------------===//

#include "Place/Passes.h"
#include "TensorView/TensorView.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_SHAREREDUCTIONSPASS
#include "Place/Passes.h.inc"
} // namespace tessera::tv

/// Whether the op makes much into little, or works much for what it makes.
static bool reduces(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  return ruled &&
         llvm::any_of(ruled.getShardingRule().factors,
                      [](const layout::IterationFactor &factor) {
                        return factor.kind ==
                               layout::IterationFactor::Kind::Reduction;
                      });
}

namespace {
struct ShareReductions : tv::impl::ShareReductionsPassBase<ShareReductions> {
  void runOnContract() override;

private:
  Value first(Value value) const {
    auto found = firsts.find(value);
    return found == firsts.end() ? value : found->second;
  }
  Operation *findEqual(Operation *op);

  llvm::DenseMap<Value, Value> firsts; ///< the first that equals a value
  llvm::DenseMap<size_t, SmallVector<Operation *, 1>> known; ///< by hash
};
} // namespace

/// An op before `op` that gives the same; null, and `op` is known, if none
/// does.
Operation *ShareReductions::findEqual(Operation *op) {
  constexpr auto flags = OperationEquivalence::IgnoreLocations;
  auto hash = OperationEquivalence::computeHash(
      op, [&](Value value) { return hash_value(first(value)); },
      OperationEquivalence::ignoreHashValue, flags);
  auto &alike = known[hash];
  for (Operation *other : alike) {
    llvm::DenseMap<Value, Value> inner; // of regions
    auto isEqual = [&](Value a, Value b) {
      auto found = inner.find(a);
      return success(found != inner.end() ? found->second == b
                                          : first(a) == first(b));
    };
    if (OperationEquivalence::isEquivalentTo(
            other, op, isEqual, [&](Value a, Value b) { inner[a] = b; }, flags))
      return other;
  }
  alike.push_back(op);
  return nullptr;
}

void ShareReductions::runOnContract() {
  bool changed = false;
  firsts.clear();
  known.clear();
  for (Block &block : getOperation().getBody()) {
    SmallPtrSet<Operation *, 16> dead;
    for (Operation &op : block) {
      if (op.getNumResults() == 0 || !isMemoryEffectFree(&op))
        continue;
      Operation *other = findEqual(&op);
      if (!other)
        continue;
      for (auto [from, to] :
           llvm::zip_equal(op.getResults(), other->getResults()))
        firsts[from] = first(to);
      if (reduces(&op)) {
        op.replaceAllUsesWith(other->getResults());
        dead.insert(&op);
      }
    }
    firsts.clear();
    known.clear();
    changed |= !dead.empty();
    // With what only they read.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (dead.contains(&op) || (!dead.empty() && isOpTriviallyDead(&op)))
        op.erase();
  }
  if (!changed)
    markAllAnalysesPreserved(); // and nothing is verified again
}
