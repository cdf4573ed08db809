//===- Planner.h - how data moves from one view to another ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A move changes the view of a tensor on one mesh. The planner costs a fixed
// list of candidates and keeps the cheapest:
//
//     local slice | direct exchange
//     | [slice] x [reduce-scatter or all-reduce] x [exchange] x [all-gather]
//       x [to partial]
//
// each a chain of steps, every step ending in a view of its own.
// An exchange is classified where it is a permute, broadcast, all-gather or
// all-to-all.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LAYOUT_PLANNER_H
#define TESSERA_LAYOUT_PLANNER_H

#include "Layout/Machine.h"
#include "Layout/Transfers.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tessera::layout {

/// Figures for the device for which each is largest, summed over the steps.
/// Bytes of collectives are those of rings of p devices: an all-gather moves
/// (p-1)/p of its result, a reduce-scatter of its input, an all-reduce twice
/// that; a broadcast is a scatter and an all-gather inside.
struct Cost {
  int64_t phases = 0; ///< steps that communicate
  int64_t bytesSent = 0;
  int64_t bytesReceived = 0;
  /// Packing and unpacking copies. A side needs none if what goes to or comes
  /// from a peer is one contiguous piece of its buffer: at most one dim is cut,
  /// its outermost digits are, and the allocation has that dim outermost (an
  /// undecided one can be chosen so; a later pass does).
  int64_t copies = 0;
  int64_t peakBytes = 0; ///< source and result of a step; an all-reduce is in
                         ///< place, a slice a view
  double seconds = 0; ///< phases * latency + bytes / bandwidth + copied / copy

  /// Of steps that follow.
  Cost &operator+=(const Cost &other) {
    phases += other.phases;
    bytesSent += other.bytesSent;
    bytesReceived += other.bytesReceived;
    copies += other.copies;
    peakBytes = std::max(peakBytes, other.peakBytes);
    seconds += other.seconds;
    return *this;
  }
};

/// What a choice costs: time, and the bytes that move.
struct Price {
  double seconds = 0;
  int64_t bytes = 0;

  explicit Price(const Cost &cost)
      : seconds(cost.seconds),
        bytes(std::max(cost.bytesSent, cost.bytesReceived)) {}
  Price(double seconds = 0, int64_t bytes = 0)
      : seconds(seconds), bytes(bytes) {}
  Price &operator+=(const Price &other) {
    seconds += other.seconds;
    bytes += other.bytes;
    return *this;
  }
};

struct Candidate {
  std::vector<Step> steps;
  Cost cost;
  std::string text; ///< "reduce-scatter over [tp], then exchange"
};

struct Plan {
  Candidate chosen;               ///< no steps: nothing to move
  std::optional<Candidate> loser; ///< the cheapest of the others
};

/// Whether time `a` is less than `b`, whatever the order in which either was
/// added up.
inline bool isLess(double a, double b) { return a < b * (1 - 1e-12); }

/// A move of a tensor of `shape` (dynamic extents at their maximum) with
/// elements of `elementBytes`. Both views are canonical. States of several
/// combiners are reduced in the order of `from.partial`.
struct Move {
  Shape shape;
  int64_t elementBytes;
  View from;
  View to;
  /// Dimensions whose extent may be less; empty when there are none. Plans hold
  /// for all extents; figures are those of the maximum.
  std::vector<bool> dynamic = {};
  /// Where set, the plan is one step of this kind.
  std::optional<Step::Kind> step = {};
  /// Where an end lies on a mesh of the same axes that lists other devices. The
  /// plan is one exchange then.
  std::optional<Mesh> fromMesh = {}, toMesh = {};
};

/// What an exchange from one view to another does on the wire, in elements, and
/// whether a buffer must be packed at its ends.
struct Traffic {
  int64_t sent = 0, received = 0; ///< of the device for which it is largest
  bool permutation = false;       ///< each buffer goes as a whole to one device
  bool packFrom = false, packTo = false;
  bool dynamic =
      false; ///< a dynamic extent changes: figures are at its maximum
  std::vector<SubAxis> axes; ///< along which data moves
};

/// Of moves of one shape over one mesh, by their views.
using Traffics = std::map<std::pair<View, View>, Traffic>;

/// The cheapest candidate; of equals that with fewest phases, then fewest
/// bytes, then the first proposed. Candidates that need more memory at once
/// than both ends of the move together count only if all do.
Result<Plan> planMove(const Move &move, const Mesh &mesh,
                      const Machine &machine, Traffics &known);
inline Result<Plan> planMove(const Move &move, const Mesh &mesh,
                             const Machine &machine) {
  Traffics known;
  return planMove(move, mesh, machine, known);
}

/// What some device must receive in any plan, or those that alone have it must
/// send, each its share, in bytes. With partial states to combine: p addends of
/// an element take p - 1 receptions, each further device that needs it one
/// more. Of a new state the devices along its axes share what they lack
/// together. 0 when states are both combined and made. (No plan is chosen by
/// it.)
Result<int64_t> findLowerBound(const Move &move, const Mesh &mesh,
                               const Machine &machine, Traffics &known);

/// The candidates that count, the cheapest first: of `Plan` the chosen one, the
/// loser and all others.
Result<std::vector<Candidate>> rankCandidates(const Move &move,
                                              const Mesh &mesh,
                                              const Machine &machine,
                                              Traffics &known);

/// Has the texts of two candidates tell the views between their steps, too,
/// where both have the same steps.
void tellApart(Candidate &a, Candidate &b, const Mesh &mesh);

/// What the device with the most sends or receives in exchanges that go
/// together; nothing for many devices, which take long to look at.
std::optional<int64_t> busiestBytes(const std::vector<Move> &moves,
                                    const Mesh &mesh);

/// For people: "32 bytes, 5.001 us".
std::string describe(const Price &price);
/// ": 32 bytes, 5 us; otherwise 64 bytes, 10 us".
std::string describe(const Price &chosen, const Price &otherwise);

/// For people: "all-reduce over [tp], 512 bytes, 5.0 us".
std::string describe(const Candidate &candidate);

/// What was described, priced for this move; nothing if no candidate of the
/// move is that.
Result<std::optional<Candidate>> findDescribed(std::string_view description,
                                               const Move &move,
                                               const Mesh &mesh,
                                               const Machine &machine);

/// Plans of moves over one mesh, each made once.
class Plans {
public:
  explicit Plans(Mesh mesh, const Machine &machine = {})
      : mesh(std::move(mesh)), machine(machine) {}

  /// The plan for a tensor of `shape`, all of it known, for which the views
  /// need not be canonical.
  Result<const Plan *> get(const Shape &shape, int64_t elementBytes,
                           const View &from, const View &to,
                           std::optional<Step::Kind> step = {});
  /// All candidates of that plan, which are not kept.
  Result<std::vector<Candidate>> rank(const Shape &shape, int64_t elementBytes,
                                      const View &from, const View &to,
                                      std::optional<Step::Kind> step = {});
  Result<int64_t> lowerBound(const Shape &shape, int64_t elementBytes,
                             const View &from, const View &to);
  const Mesh &getMesh() const { return mesh; }
  const Machine &getMachine() const { return machine; }

private:
  Mesh mesh;
  Machine machine;
  using Key = std::tuple<Shape, int64_t, View, View, std::optional<Step::Kind>>;
  std::map<Key, Plan> plans;
  std::map<Shape, Traffics> traffics;
};

} // namespace tessera::layout

#endif // TESSERA_LAYOUT_PLANNER_H
