//===- Allocation.h - orders in memory and in-place collectives -*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tv-reorder-sharded-axis and tv-make-resharding-contiguous share. An
// order is a view's `alloc`: local dimensions, outermost in memory first.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_ALLOCATE_ALLOCATION_H
#define TESSERA_ALLOCATE_ALLOCATION_H

#include "TensorView/TensorView.h"

#include <optional>

namespace tessera::tv {

using Order = std::vector<int64_t>;

/// An all-gather or reduce-scatter step whose shards can be chunks of the
/// whole, one after the other in memory.
struct Chunked {
  mlir::Value shard; ///< the operand of the one, the result of the other
  mlir::Value whole;
  Order order; ///< that both ends need
};

/// The ends of such a step and the order that they need; nothing for other
/// steps, or when no order of dimensions makes chunks of the shards.
std::optional<Chunked> getChunked(ReshardOp step);

/// Row-major for the local dimensions of `value`.
Order getRowMajor(mlir::Value value);

/// The order that a value must have: that of its view, if decided; row-major
/// for arguments and results of the function; nothing for others.
std::optional<Order> getFixedOrder(mlir::Value value);

/// For a value in its source's memory: the source, and for each dimension of
/// the value that of the source.
struct SharedMemory {
  mlir::Value source;
  Order dims;
};
/// Nothing for a value with memory of its own.
std::optional<SharedMemory> getSharedMemory(mlir::Value value);

/// The order in which a value with memory of its own suits the ops that share
/// it: what a reshape behind transposes takes as it is. Nothing if none asks.
std::optional<Order> getWantedOrder(mlir::Value value);

/// Decides the order of `value`.
void setOrder(mlir::Value value, const Order &order);

} // namespace tessera::tv

#endif // TESSERA_ALLOCATE_ALLOCATION_H
