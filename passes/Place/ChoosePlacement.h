//===- ChoosePlacement.h - the cheapest views for an op ---------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLACE_CHOOSEPLACEMENT_H
#define TESSERA_PLACE_CHOOSEPLACEMENT_H

#include "Layout/AxisOrder.h"
#include "Place/Moves.h"
#include "Place/Placement.h"

#include <map>

namespace tessera::tv {

/// What an op and the moves around it cost on one device. Less is better: first
/// the time, then in the order of the other members.
struct MoveCost {
  double moves = 0;     ///< seconds of the moves, one after the other
  double work = 0;      ///< seconds of the op
  int64_t bytes = 0;    ///< of the moves; decides nothing
  int64_t weights = 0;  ///< weights that move
  int64_t elements = 0; ///< of operands that move
  int64_t reshards = 0;

  void add(const layout::Price &price) {
    moves += price.seconds;
    bytes += price.bytes;
  }
  double total() const { return moves + work; }
  bool operator<(const MoveCost &other) const {
    if (layout::isLess(total(), other.total()) ||
        layout::isLess(other.total(), total()))
      return total() < other.total();
    return std::tuple(weights, elements, reshards) <
           std::tuple(other.weights, other.elements, other.reshards);
  }
};

struct PricedPlacement {
  Placement placement;
  MoveCost cost;
};
struct Choice : PricedPlacement {
  std::optional<PricedPlacement> second; ///< of others, where asked for
};

/// Chooses for the ops of one function; for ops that look the same once.
class Choices {
public:
  /// With `explain` each has a second.
  explicit Choices(Moves &moves, bool explain = false)
      : moves(moves), explain(explain) {}
  /// The cheapest placement of `op`, whose operands come and whose results must
  /// lie as `actual`. Fails with a diagnostic.
  mlir::FailureOr<Choice> get(mlir::Operation *op, const Placement &actual);
  /// Leaves a remark at `op`, which has been placed so (Remarks.h).
  void remark(mlir::Operation *op, const Choice &choice) const;

private:
  /// Axes by where arguments of the function of `op` have them.
  const layout::AxisOrder &orderOf(mlir::Operation *op);

  Moves &moves;
  bool explain;
  std::optional<layout::AxisOrder> order;
  using Key = std::tuple<std::vector<int64_t>, std::vector<layout::View>,
                         std::vector<layout::View>>;
  std::map<Key, Choice> known;
};

/// The seconds that a device needs for the op when it lies as `placement`: for
/// its loops, or to read and write memory where that takes longer.
double getWork(mlir::Operation *op, const Placement &placement,
               const Moves &moves);

/// The own views of the op's operands and results, places only. Fails with a
/// diagnostic when one has no view.
mlir::FailureOr<Placement> getActualPlacement(mlir::Operation *op);

/// Whether `value` is an argument that is a weight, or only other indices of
/// one.
bool isWeight(mlir::Value value);

} // namespace tessera::tv

#endif // TESSERA_PLACE_CHOOSEPLACEMENT_H
