//===- Traffic.h - what an exchange does on the wire ----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The planner's own; no header of others includes it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LAYOUT_TRAFFIC_H
#define TESSERA_LAYOUT_TRAFFIC_H

#include "Layout/PlanViews.h"
#include "Layout/Planner.h"

namespace tessera::layout {

/// Of an exchange from `from` to `to`, which has its partial states and may
/// have new ones.
Traffic computeTraffic(const View &from, const View &to,
                       const PlanViews &views);

/// The elements of a part of `to` that none of the devices has that have it
/// together, where they are most.
int64_t lackOf(const View &from, const View &to, const PlanViews &views);

/// What of its elements others lack that a device and those that have the same
/// cannot but send, each its share, where that is most; 0 of so many devices
/// that this takes long.
int64_t leavesOf(const View &from, const View &to, const PlanViews &views);

} // namespace tessera::layout

#endif // TESSERA_LAYOUT_TRAFFIC_H
