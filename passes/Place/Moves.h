//===- Moves.h - plans of the moves of one function -------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLACE_MOVES_H
#define TESSERA_PLACE_MOVES_H

#include "Layout/Planner.h"
#include "TensorView/ExtentAnalysis.h"
#include "TensorView/TensorView.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>

namespace tessera::tv {

/// A move of an operand of an op.
struct OperandMove {
  mlir::Value value;
  layout::View from, to;
};

/// Plans moves of values of one function, with dynamic extents at their
/// declared maximum, and remembers the plans.
class Moves {
public:
  static mlir::FailureOr<Moves> get(mlir::func::FuncOp function);

  /// The plan that moves `value` from the view `from` to `to`. Intermediate
  /// views are canonical for the value's shape at the maximum.
  /// With `step`, one step of that kind.
  Result<const layout::Plan *>
  plan(mlir::Value value, const layout::View &from, const layout::View &to,
       const layout::Mesh &mesh, std::optional<layout::Step::Kind> step = {});
  /// Of `value` between meshes of the same axes that may list other devices.
  Result<layout::Plan> planBetween(mlir::Value value, ViewAttr from,
                                   ViewAttr to) const;
  /// See layout::findLowerBound.
  Result<int64_t> lowerBound(mlir::Value value, const layout::View &from,
                             const layout::View &to, const layout::Mesh &mesh);
  /// All candidates of that plan, the cheapest first.
  Result<std::vector<layout::Candidate>>
  rank(mlir::Value value, const layout::View &from, const layout::View &to,
       const layout::Mesh &mesh, std::optional<layout::Step::Kind> step = {});
  /// Of the move at the typical shape.
  Result<layout::Price> price(mlir::Value value, const layout::View &from,
                              const layout::View &to, const layout::Mesh &mesh);
  /// Whether that is one step from peer to peer.
  bool isExchange(mlir::Value value, const layout::View &from,
                  const layout::View &to, const layout::Mesh &mesh);
  /// The seconds of that; 0 if nothing moves.
  Result<double> seconds(mlir::Value value, const layout::View &from,
                         const layout::View &to, const layout::Mesh &mesh);
  /// Whether a move of `value` is an exchange since it starts or ends on other
  /// devices than those of `mesh`, the program's: there is no other step there
  /// that is not local.
  bool isBetween(mlir::Value value, ViewAttr from, ViewAttr to, MeshAttr mesh);
  /// The seconds of a move that may be so.
  Result<double> seconds(mlir::Value value, ViewAttr from, ViewAttr to,
                         MeshAttr mesh);

  /// What small moves that go together have in common (tv-merge-reshards).
  using Kind = std::tuple<layout::Step::Kind, std::vector<layout::SubAxis>,
                          layout::Combiner>;
  /// Nothing for a move that waits for no others.
  std::optional<Kind> kindOf(mlir::Value value, const layout::View &from,
                             const layout::View &to, const layout::Mesh &mesh);
  /// The seconds less that moves for one op take, as small ones of a kind that
  /// are not from peer to peer have one latency.
  double savedByKinds(llvm::ArrayRef<OperandMove> together,
                      const layout::Mesh &mesh);

  /// Of moves for one op. Those from peer to peer go together, as
  /// tv-merge-reshards does it: one latency, and the device that sends much of
  /// one operand may send little of the next. Beyond `limit` seconds it is not
  /// exact.
  Result<layout::Price> price(llvm::ArrayRef<OperandMove> together,
                              const layout::Mesh &mesh, double limit);

  const layout::Machine &getMachine() const { return machine; }

  /// A pass made `made` by a copy of `known`'s op.
  void noteCopy(mlir::Value made, mlir::Value known) {
    extents.copy(made, known);
  }
  /// The value's shape, dynamic extents at their maximum.
  layout::Shape getMaxShape(mlir::Value value) const;
  /// What each extent is a multiple of.
  layout::Shape getMultiples(mlir::Value value) const;
  /// See ExtentAnalysis; while runs are `small`, dynamic sizes are a sixteenth
  /// of their maximum.
  layout::Shape getTypicalShape(mlir::Value value) const;
  void setSmall(bool value) { small = value; }

private:
  Moves(ExtentAnalysis extents, const layout::Machine &machine)
      : extents(std::move(extents)), machine(machine) {}
  layout::Plans &getPlans(const layout::Mesh &mesh);
  Result<layout::Plan> planBetween(mlir::Value value,
                                   const layout::Shape &shape, ViewAttr from,
                                   ViewAttr to) const;

  ExtentAnalysis extents;
  layout::Machine machine;
  bool small = false;
  std::optional<layout::Plans> plans; ///< over the last mesh
  /// Of exchanges over that mesh that go together, by shapes, elements and
  /// views.
  using Exchanges = std::vector<
      std::tuple<layout::Shape, int64_t, layout::View, layout::View>>;
  std::map<Exchanges, std::optional<int64_t>> busiest;
};

} // namespace tessera::tv

#endif // TESSERA_PLACE_MOVES_H
