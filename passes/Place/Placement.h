//===- Placement.h - views under which an op moves nothing ------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An op's loops are divided over the mesh, one product for each factor of its
// rule. From a division follow the views that its operands must have and its
// results get:
//
//     linear [M, K] x [N, K] -> [M, N],  K = did(tp) * _
//       operands  [_, did(tp) * _], [_, did(tp) * _]
//       result    [_, _], partial = [tp : sum]
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLACE_PLACEMENT_H
#define TESSERA_PLACE_PLACEMENT_H

#include "TensorView/TensorView.h"

#include <map>
#include <optional>
#include <vector>

namespace tessera::tv {

/// A sub-axis along which operands are partial while the op runs.
struct Delay {
  layout::SubAxis axis;
  llvm::SmallVector<std::optional<layout::Combiner>> operands;
  llvm::SmallVector<std::optional<layout::Combiner>> results;
};

/// How an op's loops are divided over the mesh.
struct Division {
  /// One product for each factor of the rule.
  std::vector<layout::Product> products;
  /// Instead of `products`: for a pointwise op the dimensions of all its
  /// tensors, needed for flat(k); for an op with windows those of its whole,
  /// needed where they are split through a box. The boxes follow.
  std::optional<std::vector<layout::Dim>> dims;
  std::vector<Delay> delays;
};

/// The views of an op's operands and results, `alloc` undecided.
struct Placement {
  std::vector<layout::View> operands;
  std::vector<layout::View> results;

  bool operator==(const Placement &other) const = default;
};

/// A view without its allocation: where each element is.
layout::View placesOf(layout::View view);
inline layout::View placesOf(mlir::Value value) {
  return placesOf(getView(value).getView());
}

/// An op with a rule whose operands and results have views.
class PlacedOp {
public:
  /// `op` with operands that come and results that must lie as `actual`.
  PlacedOp(ShardingRuleOpInterface op, Placement actual);

  const layout::Rule &getRule() const { return rule; }
  const layout::Mesh &getMesh() const { return mesh; }
  const Placement &getActual() const { return actual; }

  /// The views under which the op runs as divided; an error says why it cannot.
  Result<Placement> place(const Division &division) const;

  /// The division that the views show: for each factor the first split product
  /// that an operand, then a result has; and all delays. With `first` that of
  /// operands alone, this one before the others.
  Division getDivision(std::optional<size_t> first = {}) const;

  /// Success if the op moves nothing under these views.
  Status checkLocal() const;

  /// The view of the whole of an op with windows if it splits a dimension that
  /// boxes do not span, or merges dimensions; else null.
  const layout::View *getSplitWhole() const;

  /// Whether a flat(k) is one dimension to the op.
  bool isPointwise() const { return op->hasTrait<mlir::OpTrait::Pointwise>(); }

  /// The products of a dimension's factors when the dimension lies as
  /// `product`; nothing when digits straddle their borders.
  std::optional<std::vector<layout::Product>>
  getFactorProducts(const layout::DimFactors &factors,
                    const layout::Product &product) const;

  /// Which operands, when they are partial as they are along `axis`, the op
  /// accepts: as they are, or with more of them made partial.
  std::optional<Delay> getDelay(layout::SubAxis axis) const;

private:
  using States = llvm::SmallVector<std::optional<layout::Combiner>>;
  /// How the operands that the op reads are partial along `axis`.
  States getStates(layout::SubAxis axis) const;
  /// Whether the result of an op with windows is its whole.
  bool isWholeResult() const { return windows.getWhole() == op->getResult(0); }
  layout::Dim composeDim(const layout::DimFactors &factors,
                         const Division &division) const;

  mutable ShardingRuleOpInterface
      op; // A handle, which MLIR does not call const.
  mutable WindowOpInterface windows; ///< the op if it is one, or null
  Placement actual;
  const layout::Mesh &mesh;
  layout::Rule rule;
  std::vector<layout::Shape> operandShapes, resultShapes;
};

/// Whether `op` needs no data of other devices under its own views. Knows ops
/// with a rule, reinterpretations, reshards and terminators; an error for
/// others.
Status checkLocal(mlir::Operation *op);

/// What an op looks like: its name, attributes and types, and which operands
/// are one value. A region is not looked at.
using Looks = std::vector<uintptr_t>;
Looks looksOf(mlir::Operation *op);

/// `checkLocal` of many ops: those that look alike are asked once.
class LocalChecks {
public:
  Status check(mlir::Operation *op);

private:
  std::map<Looks, Status> known;
};

/// The views that follow from those of operands, that of operand `first` before
/// the others; an error if there are none.
Result<Placement> followOperands(mlir::Operation *op, const Placement &actual,
                                 size_t first);

/// The result's view of an op that gives the same elements other indices, when
/// the operand lies as `view`; places only.
Result<layout::View> reinterpret(ReinterpretOpInterface op,
                                 const layout::View &view,
                                 const layout::Mesh &mesh);

/// Whether `op` gives all elements of its one operand other indices, and does
/// nothing else: a reshape, a transpose.
bool givesSameElements(mlir::Operation *op);

/// The operand's view that makes the result of such an op, or of one that
/// computes each element from one, lie as `view`; places only. Nothing if there
/// is none, or for another op.
std::optional<layout::View> getOperandView(mlir::Operation *op,
                                           const layout::View &view);

} // namespace tessera::tv

#endif // TESSERA_PLACE_PLACEMENT_H
