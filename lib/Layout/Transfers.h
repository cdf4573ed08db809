//===- Transfers.h - the steps of a move, and what a rank does in one -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compiler plans a move as steps (Planner.h). A rank works out its part of
// one when a program is bound to its sizes.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LAYOUT_TRANSFERS_H
#define TESSERA_LAYOUT_TRANSFERS_H

#include "Layout/View.h"

namespace tessera::layout {

/// `view`, of a tensor whose dynamic extents are those of `shape` now: each `_`
/// is the number that its extent needs, and nothing else changes. The compiler
/// decides dimensions and digits once, for all extents, and kernels rely on
/// them; so the canonical form of a shape that is known only at run time is not
/// for the runtime, which is built without it.
View instantiate(const View &view, const Shape &shape);

struct Step {
  enum class Kind {
    /// Every device keeps a part of what it has. No bytes move. A value may
    /// become partial over `axes`, as in an exchange.
    Slice,
    AllGather,     ///< devices along `axes` join their shards
    AllReduce,     ///< partial along `axes` becomes whole
    ReduceScatter, ///< partial along `axes` becomes whole and split over them
    AllToAll,      ///< devices along `axes` exchange parts of what they hold
                   ///< together; the same axes split other digits after it
    Permute,       ///< every device's buffer goes to one device as it is
    Broadcast, ///< one coordinate of `axes` holds all; it goes to the others
    /// Any other change without a reduction: grouped sends and receives of
    /// index-set intersections. A value may become partial over axes: of its
    /// part of the result each device keeps what it has, of devices that have
    /// the same the first along these axes; what all of them lack they share;
    /// elsewhere they have the combiner's identity.
    Exchange,
    Fetch, ///< rows that indices name: no step from view to view
  };
  Kind kind;
  /// Data moves between devices that differ along these only; for a slice, the
  /// axes that split the result further.
  std::vector<SubAxis> axes;
  Combiner combiner = Combiner::Sum; ///< of a reduction
  View to;                           ///< canonical view after the step
};

const char *toString(Step::Kind kind);

/// Whether it goes from peer to peer: as an exchange, if it goes with others.
inline bool isFromPeerToPeer(Step::Kind kind) {
  return kind == Step::Kind::Permute || kind == Step::Kind::AllToAll ||
         kind == Step::Kind::Exchange;
}

//===----------------------------------------------------------------------===//
// What one rank does in an exchange-like step (AllGather, AllToAll, Permute,
// Broadcast, Exchange, Slice). Used by the runtime at load and the tests.
//===----------------------------------------------------------------------===//

/// A box of a local tensor: one run in each local dimension.
struct Box {
  Shape offset;
  Shape size;
};
/// The boxes sent to, or received from, one peer. Both sides list the same
/// boxes in the same order, that of their first elements in the global tensor;
/// the elements of a box come row-major in the view's dims on both sides,
/// whatever the allocations are.
struct PeerBoxes {
  int64_t peer; ///< rank
  std::vector<Box> boxes;
  int64_t elements; ///< of all boxes
};
struct Transfers {
  std::vector<PeerBoxes> sends;    ///< boxes of the source's local tensor
  std::vector<PeerBoxes> receives; ///< boxes of the destination's local tensor
  /// What stays on the device, box by box; `peer` is the rank itself.
  PeerBoxes keepFrom, keepTo;
};

/// What rank `rank` sends and receives, by increasing peer; a peer with nothing
/// to move is not listed. An element that several devices hold is taken from
/// itself if held, else from a holder chosen so that holders share the work and
/// the nearest coordinates serve first; that choice is the same on all ranks.
/// Several holders serve one rank where one would otherwise send for longer
/// than any rank receives.
/// Any legal views of the static `shape` will do; `to` has the partial states
/// of `from`, and an addend comes from a device with the same digits of these.
/// It may have new ones: what is in no box of this rank is their identity.
/// Boxes are given in each side's own local dims. They have equal sizes where
/// both views have the same spans; between flat and other dims they are boxes
/// on both sides that agree in their row-major order, and where a dimension of
/// one ends the other is cut into equal parts.
Transfers expandTransfers(const View &from, const View &to, const Shape &shape,
                          const Mesh &mesh, int64_t rank);

/// Two meshes of the same axes may list other devices. Whether each has the
/// same of `view`, which is canonical, on both.
bool liesAlike(const View &view, const Mesh &a, const Mesh &b);

/// The same between such meshes: each device sends what it has of `from` to who
/// needs it of `to`. Where only devices change, whole blocks go to those that
/// have another.
Transfers expandTransfers(const View &from, const Mesh &fromMesh,
                          const View &to, const Mesh &toMesh,
                          const Shape &shape, int64_t rank);

} // namespace tessera::layout

#endif // TESSERA_LAYOUT_TRANSFERS_H
