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

#include <map>
#include <tuple>

namespace tessera::tv {

/// Plans moves of values of one function, with dynamic extents at their
/// declared maximum, and remembers the plans.
class Moves {
public:
  static mlir::FailureOr<Moves> get(mlir::func::FuncOp function,
                                    const layout::Links &links = {});

  /// The plan that moves `value` from the view `from` to `to`. Intermediate
  /// views are canonical for the value's shape at the maximum.
  Result<const layout::Plan *> plan(mlir::Value value, const layout::View &from,
                                    const layout::View &to,
                                    const layout::Mesh &mesh);
  /// The most bytes that a device sends or receives in the plan for the typical
  /// shape.
  Result<int64_t> bytes(mlir::Value value, const layout::View &from,
                        const layout::View &to, const layout::Mesh &mesh);

  /// The value's shape, dynamic extents at their maximum.
  layout::Shape getMaxShape(mlir::Value value) const;
  /// What each extent is a multiple of.
  layout::Shape getMultiples(mlir::Value value) const;
  /// Dynamic extents at half of their maximum: what choices between values that
  /// grow with them and values that do not go by.
  layout::Shape getTypicalShape(mlir::Value value) const;

private:
  Moves(ExtentAnalysis extents, const layout::Links &links);
  Result<const layout::Plan *> plan(mlir::Value value, layout::Shape shape,
                                    const layout::View &from,
                                    const layout::View &to,
                                    const layout::Mesh &mesh);

  ExtentAnalysis extents;
  std::map<std::string, int64_t> typicalSizes;
  layout::Links links;
  using Key = std::tuple<layout::Shape, int64_t, layout::View, layout::View>;
  std::map<Key, layout::Plan> plans;
  /// The mesh that `plans` are for; they are dropped when it changes.
  layout::Mesh plannedMesh;
};

} // namespace tessera::tv

#endif // TESSERA_PLACE_MOVES_H
