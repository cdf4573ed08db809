//===- MoveSimulation.h - moves on enumerated index sets ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the tests of transfers and plans share: a list of views to try on a
// small shape, and the steps of a plan run by definition on all devices at
// once. Which elements a device holds is found by enumeration, not by the
// algebra.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TEST_LAYOUT_MOVESIMULATION_H
#define TESSERA_TEST_LAYOUT_MOVESIMULATION_H

#include "Enumerate.h"
#include "Layout/PlanViews.h"
#include "Layout/Planner.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace tessera::layout::test {

inline View view(const char *text, const Shape &shape, const Mesh &mesh) {
  return canonicalize(makeView(text, mesh), shape, mesh);
}

inline int64_t sizeOf(const Shape &shape) {
  int64_t size = 1;
  for (int64_t extent : shape)
    size *= extent;
  return size;
}

//===----------------------------------------------------------------------===//
// Enumerated index sets
//===----------------------------------------------------------------------===//

/// Global row-major numbers of the elements of a device's local tensor, in its
/// row-major order, and the local extents.
struct Local {
  std::vector<int64_t> elements;
  Shape extents;
};

inline Local localOf(const View &view, const Shape &shape, const Mesh &mesh,
                     const Coords &coords) {
  Local local{heldElements(view, shape, mesh, coords), {}};
  for (size_t dim = 0; dim < view.dims.size(); ++dim)
    local.extents.push_back(
        int64_t(heldValues(view.dims[dim].product, boundOf(view, dim, shape),
                           mesh, coords)
                    .size()));
  return local;
}

/// A tensor on a mesh. What the devices hold under a view is enumerated once.
class Tensor {
public:
  Tensor(Shape shape, const Mesh &mesh) : shape(std::move(shape)), mesh(mesh) {
    for (int64_t rank = 0; rank < mesh.numDevices(); ++rank)
      coords.push_back(mesh.coordsOfRank(rank));
  }

  /// One for each rank.
  const std::vector<Local> &localsOf(const View &view) const {
    std::vector<Local> &found = locals[view.dims];
    if (found.empty())
      for (const Coords &at : coords)
        found.push_back(localOf(view, shape, mesh, at));
    return found;
  }

  const Shape shape;
  const Mesh mesh;
  std::vector<Coords> coords; ///< of each rank

private:
  mutable std::map<std::vector<Dim>, std::vector<Local>> locals;
};

//===----------------------------------------------------------------------===//
// Views to try
//===----------------------------------------------------------------------===//

struct Kinds {
  bool partial = true; ///< what axes are left over as a partial state
  bool flat = true;    ///< flat dimensions
  /// Values on a part of the mesh, where a dimension has one element.
  bool parts = false;
  Combiner combiner = Combiner::Sum;
  /// Partial states over two sub-axes: of `combiner`, and of it and another.
  bool twoStates = false;
  /// Every product of a pool of stored digits and sub-axes in place of those
  /// of up to two sub-axes; null for these.
  const Pool *pool = nullptr;
};

/// The sub-axes of a mesh: whole axes, and the parts of those of 4 and 6.
inline std::vector<SubAxis> subAxesOf(const Mesh &mesh) {
  std::vector<SubAxis> subs;
  for (size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    int64_t size = mesh.axes[axis].size;
    subs.push_back({int(axis), 1, size});
    for (int64_t pre : {1, 2, 3})
      for (int64_t part : {2, 3})
        if (part < size && size % (pre * part) == 0)
          subs.push_back({int(axis), pre, part});
  }
  return subs;
}

/// Each dimension whole or split over up to two sub-axes, in blocks, cyclically
/// or block-cyclically.
inline std::vector<Product> usualProducts(const std::vector<SubAxis> &subs) {
  std::vector<Product> products = {{Factor::rest()}};
  for (const SubAxis &a : subs) {
    Factor did = Factor::device(a), rest = Factor::rest();
    products.push_back({did, rest});
    products.push_back({rest, did});
    products.push_back({rest, did, Factor::stored(2)});
    for (const SubAxis &b : subs) {
      if (overlap(a, b))
        continue;
      products.push_back({did, Factor::device(b), rest});
      products.push_back({did, rest, Factor::device(b)});
    }
  }
  return products;
}

/// Every product of `pool`, a `_` outermost or innermost.
inline std::vector<Product> productsOf(const Mesh &mesh, const Pool &pool) {
  std::vector<Product> products;
  forEachProduct(mesh, pool, [&](const Product &product) {
    products.push_back(product);
    products.back().push_back(Factor::rest());
    products.push_back(product);
    products.back().insert(products.back().begin(), Factor::rest());
  });
  return products;
}

inline bool disjoint(const SubAxis &sub, const std::vector<SubAxis> &others) {
  return std::none_of(others.begin(), others.end(), [&](const SubAxis &other) {
    return overlap(sub, other);
  });
}

/// Canonical views of `shape`.
inline std::vector<View> viewsOf(const Shape &shape, const Mesh &mesh,
                                 const Kinds &kinds) {
  std::vector<SubAxis> subs = subAxesOf(mesh);
  std::vector<Product> products =
      kinds.pool ? productsOf(mesh, *kinds.pool) : usualProducts(subs);

  std::set<View> found;
  auto addPartial = [&](View view, std::vector<Partial> states) {
    view.partial = std::move(states);
    found.insert(canonicalize(view, shape, mesh));
  };
  auto close = [&](const View &view) {
    found.insert(canonicalize(view, shape, mesh));
    if (!kinds.partial)
      return;
    std::vector<SubAxis> used = axesOf(view);
    for (const SubAxis &a : subs) {
      if (!disjoint(a, used))
        continue;
      addPartial(view, {{{a}, kinds.combiner}});
      for (const SubAxis &b : subs) {
        if (!kinds.twoStates || !disjoint(b, used) || overlap(a, b))
          continue;
        addPartial(view, {{{a, b}, kinds.combiner}});
        addPartial(view, {{{a}, kinds.combiner},
                          {{b},
                           kinds.combiner == Combiner::Max ? Combiner::Sum
                                                           : Combiner::Max}});
      }
    }
  };
  std::function<void(View &, size_t)> extend = [&](View &view, size_t dim) {
    if (dim == shape.size()) {
      close(view);
      return;
    }
    for (int64_t span = 1;
         dim + span <= shape.size() && (kinds.flat || span == 1); ++span) {
      std::vector<Product> choices = products;
      // Whole heads of 2 elements on each device.
      if (span == 1 && shape[dim] % 2 == 0 && shape[dim] > 2)
        for (const SubAxis &sub : subs)
          choices.push_back(
              {Factor::group({Factor::device(sub), Factor::rest()}, 0,
                             shape[dim] / 2),
               Factor::stored(2)});
      if (span == 1 && shape[dim] == 1 && kinds.parts)
        for (const SubAxis &sub : subs)
          for (int64_t at = 1; at < sub.size; ++at)
            choices.push_back({Factor::group(
                {Factor::device(sub), Factor::stored(1)}, at, at + 1)});
      for (const Product &product : choices) {
        if (span > 1 && product.size() < 2)
          continue;
        std::vector<SubAxis> used = axesOf(view), more = axesOf(product);
        if (!std::all_of(more.begin(), more.end(), [&](const SubAxis &sub) {
              return disjoint(sub, used);
            }))
          continue;
        view.dims.push_back({product, span});
        extend(view, dim + span);
        view.dims.pop_back();
      }
    }
  };
  View start;
  extend(start, 0);
  return {found.begin(), found.end()};
}

//===----------------------------------------------------------------------===//
// Steps by definition
//===----------------------------------------------------------------------===//

/// Local contents of all ranks.
using Contents = std::vector<std::vector<int64_t>>;

/// Infinities are far from all values, and sums of them do not overflow.
inline int64_t identityOf(Combiner combiner) {
  switch (combiner) {
  case Combiner::Sum:
    return 0;
  case Combiner::Max:
    return -(int64_t(1) << 40);
  case Combiner::Min:
    return int64_t(1) << 40;
  }
  return 0;
}

inline int64_t combine(Combiner combiner, int64_t a, int64_t b) {
  switch (combiner) {
  case Combiner::Sum:
    return a + b;
  case Combiner::Max:
    return std::max(a, b);
  case Combiner::Min:
    return std::min(a, b);
  }
  return 0;
}

inline std::vector<int64_t> digitsOf(const std::vector<SubAxis> &subs,
                                     const Mesh &mesh, const Coords &coords) {
  std::vector<int64_t> digits;
  for (const SubAxis &sub : subs)
    digits.push_back(sub.digit(mesh, coords));
  return digits;
}

/// Whether devices differ in digits of `subs` only.
inline bool sameGroup(const std::vector<SubAxis> &subs, const Mesh &mesh,
                      Coords a, Coords b) {
  for (const SubAxis &sub : subs) {
    int64_t rest = mesh.axes[sub.axis].size / (sub.pre * sub.size);
    a[sub.axis] -= sub.digit(mesh, a) * rest;
    b[sub.axis] -= sub.digit(mesh, b) * rest;
  }
  return a == b;
}

/// For each rank those that differ from it in digits of `subs` only, itself
/// among them.
inline std::vector<std::vector<int64_t>>
groupsOf(const std::vector<SubAxis> &subs, const Tensor &tensor) {
  std::vector<std::vector<int64_t>> groups;
  for (const Coords &at : tensor.coords) {
    groups.emplace_back();
    for (size_t peer = 0; peer < tensor.coords.size(); ++peer)
      if (sameGroup(subs, tensor.mesh, at, tensor.coords[peer]))
        groups.back().push_back(int64_t(peer));
  }
  return groups;
}

/// Elements of a part of `to` that the devices along the axes of its new states
/// lack together, for the part for which they are most.
inline int64_t lackOfNewStates(const Tensor &tensor, const View &from,
                               const View &to) {
  std::vector<SubAxis> axes;
  for (const Partial &state : to.partial)
    axes.insert(axes.end(), state.axes.begin(), state.axes.end());
  for (const Partial &state : from.partial)
    axes = subtract(axes, state.axes);
  std::vector<std::vector<int64_t>> groups = groupsOf(axes, tensor);
  int64_t most = 0;
  for (size_t rank = 0; rank < groups.size(); ++rank) {
    std::set<int64_t> lacks(tensor.localsOf(to)[rank].elements.begin(),
                            tensor.localsOf(to)[rank].elements.end());
    for (int64_t peer : groups[rank])
      for (int64_t element : tensor.localsOf(from)[peer].elements)
        lacks.erase(element);
    most = std::max(most, int64_t(lacks.size()));
  }
  return most;
}

/// Elements that leave a device in any plan, for the one for which they are
/// most: what others lack of its part of `from`, shared with those that have
/// the same. Devices that differ in a state of `from` have other addends.
inline int64_t mostThatLeave(const Tensor &tensor, const View &from,
                             const View &to) {
  std::vector<SubAxis> states, added;
  for (const Partial &state : from.partial)
    states.insert(states.end(), state.axes.begin(), state.axes.end());
  for (const Partial &state : to.partial)
    added.insert(added.end(), state.axes.begin(), state.axes.end());
  added = subtract(added, states);
  const std::vector<std::vector<int64_t>> teams = groupsOf(added, tensor);
  std::map<std::vector<int64_t>, std::vector<int64_t>> bySums;
  for (size_t rank = 0; rank < tensor.coords.size(); ++rank)
    bySums[digitsOf(states, tensor.mesh, tensor.coords[rank])].push_back(
        int64_t(rank));
  int64_t most = 0;
  for (const auto &[digits, ranks] : bySums) {
    std::vector<bool> lacked(sizeOf(tensor.shape), false);
    std::vector<int64_t> holders(lacked.size(), 0);
    for (int64_t rank : ranks) {
      std::vector<bool> has(lacked.size(), false);
      for (int64_t peer : teams[rank])
        for (int64_t element : tensor.localsOf(from)[peer].elements)
          has[element] = true;
      for (int64_t element : tensor.localsOf(to)[rank].elements)
        lacked[element] = lacked[element] || !has[element];
      for (int64_t element : tensor.localsOf(from)[rank].elements)
        ++holders[element];
    }
    for (int64_t rank : ranks) {
      int64_t leaves = 0, sharing = 1;
      for (int64_t element : tensor.localsOf(from)[rank].elements)
        if (lacked[element]) {
          ++leaves;
          sharing = holders[element];
        }
      most = std::max(most, (leaves + sharing - 1) / sharing);
    }
  }
  return most;
}

/// Row-major positions in a local tensor of the elements of a box.
inline std::vector<int64_t> positionsOf(const Box &box, const Shape &extents) {
  std::vector<int64_t> positions = {0};
  EXPECT_EQ(box.offset.size(), extents.size());
  for (size_t dim = 0; dim < extents.size(); ++dim) {
    EXPECT_GE(box.offset[dim], 0);
    EXPECT_GT(box.size[dim], 0);
    EXPECT_LE(box.offset[dim] + box.size[dim], extents[dim]);
    std::vector<int64_t> next;
    for (int64_t position : positions)
      for (int64_t i = 0; i < box.size[dim]; ++i)
        next.push_back(position * extents[dim] + box.offset[dim] + i);
    positions = std::move(next);
  }
  return positions;
}

/// Whether some order of the local dims in memory makes what goes to or comes
/// from each peer one range, on all ranks.
inline bool someOrderIsContiguous(
    const std::vector<Local> &locals,
    const std::vector<const std::vector<PeerBoxes> *> &lists) {
  std::vector<int64_t> order(locals[0].extents.size());
  std::iota(order.begin(), order.end(), 0);
  auto contiguous = [&](const Shape &extents, const PeerBoxes &list) {
    std::vector<int64_t> strides(order.size());
    int64_t stride = 1;
    for (size_t i = order.size(); i-- > 0; stride *= extents[order[i]])
      strides[order[i]] = stride;
    int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
    for (const Box &box : list.boxes) {
      for (int64_t position : positionsOf(box, extents)) {
        int64_t place = 0;
        for (size_t dim = extents.size(); dim-- > 0; position /= extents[dim])
          place += position % extents[dim] * strides[dim];
        first = std::min(first, place);
        last = std::max(last, place);
      }
    }
    return last - first + 1 == list.elements;
  };
  do {
    bool all = true;
    for (size_t rank = 0; rank < locals.size(); ++rank)
      for (const PeerBoxes &list : *lists[rank])
        all = all && contiguous(locals[rank].extents, list);
    if (all)
      return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

struct Moved {
  Contents contents;
  int64_t sent = 0, received = 0; ///< elements, largest over the ranks
  int64_t copies = 0; ///< ends that no order of local dims makes contiguous
};

/// Of new states: the identity of the one that is combined last along whose new
/// axes the device is not the first; that of the only one.
inline int64_t identityOfNew(const Tensor &tensor, const View &from,
                             const View &to, const Coords &coords) {
  std::vector<SubAxis> before;
  for (const Partial &state : from.partial)
    before.insert(before.end(), state.axes.begin(), state.axes.end());
  int64_t value = 0, count = 0;
  for (const Partial &state : to.partial) {
    const std::vector<SubAxis> added = subtract(state.axes, before);
    count += !added.empty();
    for (const SubAxis &sub : added)
      if (count == 1 || sub.digit(tensor.mesh, coords) != 0)
        value = identityOf(state.combiner);
  }
  return value;
}

/// Runs what expandTransfers says on all ranks. Both sides must list the same
/// boxes, and each element of a destination be written once, or of new partial
/// states have the identity. Data may only go along `axes`, if given. The
/// destination may be on another mesh: `moved`.
inline Moved runTransfers(const Tensor &tensor, const View &from,
                          const View &to, const Contents &before,
                          const std::vector<SubAxis> *axes = nullptr,
                          const Tensor *moved = nullptr) {
  constexpr int64_t unset = std::numeric_limits<int64_t>::min();
  moved = moved ? moved : &tensor;
  const std::vector<Local> &source = tensor.localsOf(from);
  const std::vector<Local> &target = moved->localsOf(to);
  int64_t ranks = int64_t(tensor.coords.size());
  std::vector<Transfers> transfers;
  Moved result;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    transfers.push_back(expandTransfers(from, tensor.mesh, to, moved->mesh,
                                        tensor.shape, rank));
    result.contents.emplace_back(target[rank].elements.size(), unset);
  }
  auto copy = [&](int64_t giver, const PeerBoxes &gives, int64_t taker,
                  const PeerBoxes &takes) {
    ASSERT_EQ(gives.boxes.size(), takes.boxes.size());
    ASSERT_EQ(gives.elements, takes.elements);
    int64_t elements = 0, last = -1;
    for (size_t i = 0; i < gives.boxes.size(); ++i) {
      auto reads = positionsOf(gives.boxes[i], source[giver].extents);
      auto writes = positionsOf(takes.boxes[i], target[taker].extents);
      ASSERT_EQ(reads.size(), writes.size());
      int64_t first = source[giver].elements[reads[0]];
      ASSERT_GT(first, last) << "boxes out of order";
      last = first;
      elements += int64_t(reads.size());
      for (size_t j = 0; j < reads.size(); ++j) {
        int64_t &place = result.contents[taker][writes[j]];
        ASSERT_EQ(place, unset) << "written twice";
        place = before[giver][reads[j]];
      }
    }
    ASSERT_EQ(elements, gives.elements);
  };
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const Transfers &mine = transfers[rank];
    copy(rank, mine.keepFrom, rank, mine.keepTo);
    int64_t sent = 0, received = 0;
    for (const PeerBoxes &send : mine.sends) {
      sent += send.elements;
      EXPECT_NE(send.peer, rank);
      auto &lists = transfers[send.peer].receives;
      EXPECT_EQ(std::count_if(
                    lists.begin(), lists.end(),
                    [&](const PeerBoxes &list) { return list.peer == rank; }),
                1);
    }
    for (const PeerBoxes &receive : mine.receives) {
      received += receive.elements;
      EXPECT_GT(receive.elements, 0);
      if (axes)
        EXPECT_TRUE(sameGroup(*axes, tensor.mesh, tensor.coords[rank],
                              tensor.coords[receive.peer]));
      int64_t matches = 0;
      for (const PeerBoxes &send : transfers[receive.peer].sends) {
        if (send.peer != rank)
          continue;
        ++matches;
        copy(receive.peer, send, rank, receive);
      }
      EXPECT_EQ(matches, 1);
    }
    result.sent = std::max(result.sent, sent);
    result.received = std::max(result.received, received);
    for (int64_t &value : result.contents[rank]) {
      if (value == unset && from.partial != to.partial)
        value = identityOfNew(*moved, from, to, moved->coords[rank]);
      EXPECT_NE(value, unset) << "rank " << rank << " lacks an element";
    }
  }
  std::vector<const std::vector<PeerBoxes> *> sends, receives;
  for (const Transfers &mine : transfers) {
    sends.push_back(&mine.sends);
    receives.push_back(&mine.receives);
  }
  result.copies = !someOrderIsContiguous(source, sends) +
                  !someOrderIsContiguous(target, receives);
  return result;
}

/// The value that each rank's local tensor must hold: the combination of the
/// addends of `from` over the digits that are no longer partial.
inline int64_t addend(int64_t element, const std::vector<int64_t> &digits) {
  uint64_t value = uint64_t(element) + 1;
  for (int64_t digit : digits)
    value = value * 1000003 + uint64_t(digit) * 7919 + 17;
  return int64_t(value % 100003);
}

inline std::vector<SubAxis> partialAxesOf(const View &view) {
  std::vector<SubAxis> axes;
  for (const Partial &state : view.partial)
    axes.insert(axes.end(), state.axes.begin(), state.axes.end());
  return axes;
}

inline Contents sourceContents(const Tensor &tensor, const View &from) {
  Contents contents;
  std::vector<SubAxis> axes = partialAxesOf(from);
  const std::vector<Local> &locals = tensor.localsOf(from);
  for (size_t rank = 0; rank < locals.size(); ++rank) {
    std::vector<int64_t> digits =
        digitsOf(axes, tensor.mesh, tensor.coords[rank]);
    contents.emplace_back();
    for (int64_t element : locals[rank].elements)
      contents.back().push_back(addend(element, digits));
  }
  return contents;
}

/// One step on all ranks; of a reduction the contents only.
inline Moved runStep(const Tensor &tensor, const Step &step, const View &from,
                     const Contents &before) {
  switch (step.kind) {
  case Step::Kind::AllReduce:
  case Step::Kind::ReduceScatter: {
    const std::vector<Local> &source = tensor.localsOf(from);
    const std::vector<Local> &target = tensor.localsOf(step.to);
    std::vector<std::vector<int64_t>> groups = groupsOf(step.axes, tensor);
    size_t expected = 1;
    for (const SubAxis &sub : step.axes)
      expected *= sub.size;
    Moved after;
    for (size_t rank = 0; rank < target.size(); ++rank) {
      EXPECT_EQ(groups[rank].size(), expected);
      after.contents.emplace_back();
      for (int64_t element : target[rank].elements) {
        int64_t value = identityOf(step.combiner);
        for (int64_t peer : groups[rank]) {
          const std::vector<int64_t> &held = source[peer].elements;
          auto at = std::lower_bound(held.begin(), held.end(), element);
          if (at == held.end() || *at != element) {
            ADD_FAILURE() << "rank " << peer << " lacks an addend";
            continue;
          }
          value =
              combine(step.combiner, value, before[peer][at - held.begin()]);
        }
        after.contents.back().push_back(value);
      }
    }
    return after;
  }
  case Step::Kind::Slice: {
    std::vector<SubAxis> none;
    return runTransfers(tensor, from, step.to, before, &none);
  }
  default:
    return runTransfers(tensor, from, step.to, before, &step.axes);
  }
}

} // namespace tessera::layout::test

#endif // TESSERA_TEST_LAYOUT_MOVESIMULATION_H
