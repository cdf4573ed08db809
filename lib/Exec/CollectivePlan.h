//===- CollectivePlan.h - what one rank does in a collective --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A collective as lists of copies, messages and reductions between places of
// memory, the same for every kind of device. What runs them is of a backend.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_EXEC_COLLECTIVEPLAN_H
#define TESSERA_EXEC_COLLECTIVEPLAN_H

#include "Exec/Strided.h"
#include "Exec/Work.h"

namespace tessera {

struct CollectivePlan {
  struct Copy {
    CopyLoop loop;
    Place to, from;
  };
  /// to = members[0] + members[1] + ..., in this order, `count` elements.
  struct Fold {
    DType dtype;
    std::vector<Place> members;
    int64_t count;
    Place to;
  };
  struct Message {
    int peer; ///< a rank
    Place place;
    int64_t bytes;
  };
  /// First the copies, then all messages as one group, then the reductions,
  /// then the other copies. No message is empty.
  struct Phase {
    std::vector<Copy> before;
    std::vector<Message> sends, receives;
    std::vector<Fold> folds;
    std::vector<Copy> after;
  };
  /// One value in all elements of a box; the source's strides are 0.
  struct Fill {
    DType dtype;
    CopyLoop loop;
    Place to;
    std::array<std::byte, 8> value;
  };
  /// A collective of a library over `group`: every member has `count`
  /// contiguous elements at `source`, and `target` is
  ///   AllGather      the members' elements in the group's order,
  ///   ReduceScatter  the member's part of n * count elements at `source`,
  ///   AllReduce      all of the sum.
  /// Source and target do not overlap, but where the library's in-place form
  /// has them.
  struct Native {
    layout::Step::Kind kind;
    DType dtype;
    int64_t count; ///< of the smaller side
    Place source, target;
  };
  layout::Combiner combiner{};
  std::vector<Phase> phases;
  /// Before the last copies: where a rank holds no addend of a new partial
  /// state.
  std::vector<Fill> fills;
  /// The ranks that differ from this one along the collective's axes only, this
  /// one included, first axis outermost.
  std::vector<int> group;
  /// All that the phases do, one for each tensor; or none. As this rank alone
  /// sees it: whether all of the group see the same is for `nativeOnAll` to
  /// say.
  std::vector<Native> natives;
  Traffic traffic;
  int64_t scratchBytes = 0; ///< of the phases

  /// Plans what the rank of `tensors` does. Several tensors go together: phase
  /// by phase their messages are one group.
  static Result<CollectivePlan> create(const fb::CollectiveT &collective,
                                       const std::vector<layout::SubAxis> &axes,
                                       Tensors &tensors);

  /// Of one phase.
  size_t mostMessages() const;
};

/// The messages of a phase, with addresses.
struct BoundMessages {
  BoundMessages(const CollectivePlan::Phase &phase, const Bases &bases);
  std::vector<SendMessage> sends;
  std::vector<ReceiveMessage> receives;
};

/// The members of `axes` around `rank`, first axis outermost.
std::vector<int> groupAlong(const std::vector<layout::SubAxis> &axes,
                            const layout::Mesh &mesh, int rank);

/// Whether every rank of the plan's group has the same native form: planned
/// here for each of them, so that all answer alike without asking.
Result<bool> nativeOnAll(const CollectivePlan &plan,
                         const fb::CollectiveT &collective,
                         const std::vector<layout::SubAxis> &axes,
                         const Tensors &tensors);

} // namespace tessera

#endif // TESSERA_EXEC_COLLECTIVEPLAN_H
