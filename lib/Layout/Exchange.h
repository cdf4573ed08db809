//===- Exchange.h - which devices have what other devices need ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What expandTransfers and the planner share; no header of others includes it.
//
// The dimensions of the two views of a move are joined to *groups*: the
// smallest sets of adjacent tensor dimensions that are a whole number of view
// dimensions on both sides. Over the row-major number of a group each side is
// one product. An element has one digit tuple in a product, so in each group it
// belongs to one *part* of the source, and a device needs one part of the
// destination. All sets of elements are products over groups, so counts are
// too.
//
// Devices that agree on all digits but those that change place form a *class*;
// data never leaves it. A tensor-parallel move on an 8 x 8 mesh thus looks at 8
// devices, not at 64.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LAYOUT_EXCHANGE_H
#define TESSERA_LAYOUT_EXCHANGE_H

#include "Layout/View.h"

#include <functional>
#include <span>
#include <unordered_map>

namespace tessera::layout {

//===----------------------------------------------------------------------===//
// Sets of sub-axes
//===----------------------------------------------------------------------===//

/// Whether every digit of `part` is one of `whole`.
bool contains(const SubAxis &whole, const SubAxis &part);
bool contains(const std::vector<SubAxis> &whole, const SubAxis &part);
/// The digits of `subs` that are not in `gone`. A sub-axis that overlaps one of
/// `gone` at no digit's border has none.
std::vector<SubAxis> subtract(std::vector<SubAxis> subs,
                              const std::vector<SubAxis> &gone);
/// Sorted, neighbouring digits joined.
std::vector<SubAxis> merged(std::vector<SubAxis> subs);
/// The digits of the mesh that are not in `used`.
std::vector<SubAxis> unusedAxes(const Mesh &mesh,
                                const std::vector<SubAxis> &used);
/// The sub-axes cut at each other's borders, or nothing when these borders do
/// not divide each other.
std::optional<std::vector<SubAxis>> refineAxes(std::vector<SubAxis> subs);

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// A digit of the common refinement of two products: each is Stored or Device.
struct AlignedDigit {
  int64_t size;
  Factor from, to;
};

struct Group {
  size_t fromBegin, fromEnd; ///< view dims of the source
  size_t toBegin, toEnd;     ///< and of the destination
  Product from, to;          ///< over the row-major number of the group
  int64_t bound;

  bool changed() const { return from != to; }
};

/// Both views are canonical and of `shape`.
std::vector<Group> joinGroups(const View &from, const View &to,
                              const Shape &shape);

/// Both products as digits at the same places, outermost first; nothing when
/// one does not fill its bound exactly or borders do not divide each other.
std::optional<std::vector<AlignedDigit>>
alignDigits(const Product &from, const Product &to, int64_t bound);

/// At least as many contiguous runs as comparing the two products looks at.
int64_t boundOnRuns(const Group &group);

/// The digit tuples of a product's device factors, numbered row-major.
struct Parts {
  std::vector<SubAxis> subs;
  int64_t count = 1;

  Parts() = default;
  explicit Parts(const Product &product);
  int64_t partAt(const Mesh &mesh, const Coords &coords) const;
  Coords coordsOf(const Mesh &mesh, int64_t part) const;
};

/// How the parts of a group's two products overlap. A digit that is on the same
/// axis on both sides never lets data cross it, so it is left out of the parts
/// unless it is to be kept.
struct Overlap {
  Parts from, to;
  /// A part of the destination that has elements in common with one of the
  /// source.
  struct Meeting {
    int64_t to, elements;
    int64_t fromEnd, toEnd; ///< local indices behind the last of them
  };
  /// Those of a part of the source, in order of `to`: of many parts few meet.
  std::span<const Meeting> meetingsOf(int64_t fromPart) const {
    return std::span(meetings).subspan(firstMeetings[fromPart],
                                       firstMeetings[fromPart + 1] -
                                           firstMeetings[fromPart]);
  }
  /// Whether some part of that side meets more than one of the other, and then
  /// whether each piece is contiguous in its local index.
  bool fromCut = false, toCut = false;
  bool fromContiguous = true, toContiguous = true;

  Overlap(const Group &group, const Mesh &mesh, bool keepShared);
  /// Elements in common.
  int64_t at(int64_t fromPart, int64_t toPart) const;

private:
  std::vector<Meeting> meetings; ///< one list: parts may be very many
  std::vector<int64_t> firstMeetings;
  std::vector<int64_t> table; ///< elements by both parts, where these are few
};

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

/// The class of the device at given coordinates. Counts are of elements over
/// the changed groups only. `to` has the partial states of `from`, and may have
/// new ones: of a part of `to` the devices along their axes, a *team*, have
/// each element once. The first of a team that has a shard keeps it, and what
/// none has they take in even parts.
class Exchange {
public:
  struct Member {
    int32_t rank;
    int32_t shard = 0; ///< `has` as one number
    int32_t copy = 0;  ///< of its shard: the digits that `has` has not
    int32_t team = 0;  ///< without new states each device is one
    int32_t place = 0; ///< in its team
    // By changed group; many devices have no memory of their own each.
    const int32_t *has;    ///< part of the source
    const int32_t *needs;  ///< part of the destination
    const int32_t *digits; ///< of the class' digits
  };

  /// What a device gives to another, or keeps.
  struct Share {
    int64_t giver, taker; ///< indices of members
    int64_t elements;
    /// All that the giver has and the taker needs; or where several holders
    /// serve one taker, of what they have in common in the changed group
    /// `along` only what is at [begin, end), and of the others all.
    struct Range {
      size_t along;
      int64_t begin, end;
    };
    std::optional<Range> range = std::nullopt;
  };

  Exchange(const View &from, const View &to, const Shape &shape,
           const Mesh &mesh, const Coords &at);
  Exchange(Exchange &&) = default; // members look into it

  std::vector<Group> groups;
  std::vector<size_t> changed;   ///< indices of changed groups
  std::vector<Overlap> overlaps; ///< by changed group
  std::vector<SubAxis> active;   ///< the class' digits
  std::vector<Member> members;   ///< in order of position
  int64_t numShards = 1;
  /// Who has a shard, as indices of members in order.
  std::span<const int32_t> holdersOf(int64_t shard) const {
    return std::span(holders).subspan(
        firstHolders[shard], firstHolders[shard + 1] - firstHolders[shard]);
  }
  int64_t self = 0; ///< index of the device at the given coordinates

  /// Elements that `member` needs of what `holder` has.
  int64_t common(const Member &holder, const Member &member) const;
  /// Whether it keeps what it has of its part of `to`.
  bool isKeeper(size_t member) const {
    return keeperOf(members[member].team, members[member].shard) ==
           int32_t(member);
  }
  /// What of its part of `to` none of a team has, where that is most, and how
  /// many devices a team has.
  int64_t mostLacking = 0, teamSize = 1;
  /// Visits who gives what of `shard`: who has it keeps it (of a team one),
  /// others take it from its holders, each pair once. No holder gives more than
  /// its fair share or than some device of the class receives, whichever is
  /// more, but for less than one position of a range.
  void forShares(int64_t shard,
                 const std::function<void(const Share &)> &visit) const;

private:
  int64_t distance(const Member &a, const Member &b) const;
  void makeTeams(const std::vector<SubAxis> &entering, const Mesh &mesh);
  /// The member of the team that keeps the shard; -1 where none has it.
  int32_t keeperOf(int32_t team, int64_t shard) const;
  /// What `taker` takes of a shard that none of its team has, of so many
  /// elements that it needs of it; nothing where others take all of these.
  std::optional<Share> takenBy(size_t taker, int64_t shard,
                               int64_t elements) const;
  /// The changed group in which a piece is cut into `parts`.
  size_t findCut(const Member &holder, const Member &taker,
                 int64_t parts) const;

  std::vector<int32_t> numbers; ///< of all members
  std::vector<int32_t> holders, firstHolders;
  int64_t keyOf(int32_t team, int64_t shard) const {
    return team * numShards + shard;
  }
  // By team and shard.
  std::unordered_map<int64_t, int32_t> keepers;
  std::unordered_map<int64_t, int64_t> taken; ///< of those before it
  /// The holder of `shard` that differs from `member` in the fewest digits.
  size_t nearest(int64_t shard, const Member &member) const;
  /// Whether the class' digits are apart from all others. Then a shard's
  /// holders are in order of their copies, and none is missing.
  bool isApart = true;
  int64_t mostReceived = 0; ///< by a member
};

} // namespace tessera::layout

#endif // TESSERA_LAYOUT_EXCHANGE_H
