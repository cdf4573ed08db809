//===- Exchange.cpp - which devices have what other devices need ----------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Overlaps are counted by one sweep over the runs of both sides, on a product
// made small first: a digit that is stored on both sides only multiplies the
// counts, so the sweep sees it with radix 2 (enough to see a gap), or not at
// all when it is innermost.
//
//===----------------------------------------------------------------------===//

#include "Layout/Exchange.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace tessera::layout {

//===----------------------------------------------------------------------===//
// Sets of sub-axes
//===----------------------------------------------------------------------===//

static int64_t endOf(const SubAxis &sub) { return sub.pre * sub.size; }

bool contains(const SubAxis &whole, const SubAxis &part) {
  return whole.axis == part.axis && part.pre % whole.pre == 0 &&
         endOf(whole) % endOf(part) == 0;
}

bool contains(const std::vector<SubAxis> &whole, const SubAxis &part) {
  return std::any_of(whole.begin(), whole.end(),
                     [&](const SubAxis &sub) { return contains(sub, part); });
}

std::vector<SubAxis> subtract(std::vector<SubAxis> subs,
                              const std::vector<SubAxis> &gone) {
  for (const SubAxis &cut : gone) {
    std::vector<SubAxis> left;
    for (const SubAxis &sub : subs) {
      if (!overlap(sub, cut)) {
        left.push_back(sub);
        continue;
      }
      auto keep = [&](int64_t begin, int64_t end) {
        if (begin < end && end % begin == 0 && begin % sub.pre == 0 &&
            endOf(sub) % end == 0)
          left.push_back({sub.axis, begin, end / begin});
      };
      keep(sub.pre, cut.pre);
      keep(endOf(cut), endOf(sub));
    }
    subs = std::move(left);
  }
  return subs;
}

std::vector<SubAxis> merged(std::vector<SubAxis> subs) {
  std::sort(subs.begin(), subs.end());
  std::vector<SubAxis> result;
  for (const SubAxis &sub : subs) {
    if (!result.empty() && result.back().axis == sub.axis &&
        endOf(result.back()) == sub.pre)
      result.back().size *= sub.size;
    else
      result.push_back(sub);
  }
  return result;
}

std::vector<SubAxis> unusedAxes(const Mesh &mesh,
                                const std::vector<SubAxis> &used) {
  std::vector<SubAxis> all;
  for (size_t axis = 0; axis < mesh.axes.size(); ++axis)
    if (mesh.axes[axis].size > 1)
      all.push_back({int(axis), 1, mesh.axes[axis].size});
  return subtract(std::move(all), used);
}

std::optional<std::vector<SubAxis>> refineAxes(std::vector<SubAxis> subs) {
  std::vector<SubAxis> result;
  for (const SubAxis &sub : subs) {
    std::vector<int64_t> borders = {sub.pre, endOf(sub)};
    for (const SubAxis &other : subs) {
      if (other.axis != sub.axis)
        continue;
      for (int64_t border : {other.pre, endOf(other)})
        if (border > sub.pre && border < endOf(sub))
          borders.push_back(border);
    }
    std::sort(borders.begin(), borders.end());
    for (size_t i = 1; i < borders.size(); ++i) {
      if (borders[i] == borders[i - 1])
        continue;
      if (borders[i] % borders[i - 1])
        return std::nullopt;
      result.push_back({sub.axis, borders[i - 1], borders[i] / borders[i - 1]});
    }
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  for (size_t i = 1; i < result.size(); ++i)
    if (overlap(result[i - 1], result[i]))
      return std::nullopt;
  return result;
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// The number of values of a plain digit; nothing for a group.
static std::optional<int64_t> radixOf(const Factor &factor) {
  if (factor.kind == Factor::Kind::Stored)
    return factor.size;
  if (factor.kind == Factor::Kind::Device)
    return factor.sub.size;
  return std::nullopt;
}

/// Whether the product is plain and reaches `bound` exactly.
static bool fills(const Product &product, int64_t bound) {
  int64_t reach = 1;
  for (const Factor &factor : product) {
    std::optional<int64_t> radix = radixOf(factor);
    if (!radix)
      return false;
    reach *= *radix;
  }
  return reach == bound;
}

/// View dims [begin, end) as one product over their row-major number.
static Product flatten(const View &view, size_t begin, size_t end,
                       const Shape &shape) {
  if (end - begin == 1)
    return view.dims[begin].product;
  Product result;
  for (size_t dim = begin; dim < end; ++dim) {
    const Product &product = view.dims[dim].product;
    int64_t bound = boundOf(view, dim, shape);
    if (fills(product, bound))
      result.insert(result.end(), product.begin(), product.end());
    else
      result.push_back(Factor::group(product, 0, bound));
  }
  return result;
}

std::vector<Group> joinGroups(const View &from, const View &to,
                              const Shape &shape) {
  std::vector<Group> groups;
  size_t fromDim = 0, toDim = 0, tensorDim = 0;
  while (fromDim < from.dims.size() && toDim < to.dims.size()) {
    Group group;
    group.fromBegin = fromDim;
    group.toBegin = toDim;
    int64_t fromSpan = from.dims[fromDim++].span;
    int64_t toSpan = to.dims[toDim++].span;
    while (fromSpan != toSpan) {
      if (fromSpan < toSpan)
        fromSpan += from.dims[fromDim++].span;
      else
        toSpan += to.dims[toDim++].span;
    }
    group.fromEnd = fromDim;
    group.toEnd = toDim;
    group.bound = 1;
    for (int64_t i = 0; i < fromSpan; ++i)
      group.bound *= shape[tensorDim++];
    // Nothing of an empty group can be in another place.
    if (group.bound) {
      group.from = flatten(from, group.fromBegin, fromDim, shape);
      group.to = flatten(to, group.toBegin, toDim, shape);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

/// Cuts off the outermost `outer` values' digit of `factor`.
static Factor splitOuter(Factor &factor, int64_t outer) {
  Factor result = factor;
  if (factor.kind == Factor::Kind::Stored) {
    result.size = outer;
    factor.size /= outer;
  } else {
    result.sub.size = outer;
    factor.sub.pre *= outer;
    factor.sub.size /= outer;
  }
  return result;
}

std::optional<std::vector<AlignedDigit>>
alignDigits(const Product &from, const Product &to, int64_t bound) {
  if (!fills(from, bound) || !fills(to, bound))
    return std::nullopt;
  std::vector<AlignedDigit> digits;
  Product left = from, right = to;
  for (size_t l = 0, r = 0; l < left.size() && r < right.size();) {
    int64_t a = *radixOf(left[l]), b = *radixOf(right[r]);
    int64_t size = std::min(a, b);
    if (std::max(a, b) % size)
      return std::nullopt;
    if (size > 1)
      digits.push_back(
          {size, splitOuter(left[l], size), splitOuter(right[r], size)});
    l += a == size;
    r += b == size;
  }
  return digits;
}

Parts::Parts(const Product &product) : subs(axesOf(product)) {
  for (const SubAxis &sub : subs)
    count *= sub.size;
}

int64_t Parts::partAt(const Mesh &mesh, const Coords &coords) const {
  int64_t part = 0;
  for (const SubAxis &sub : subs)
    part = part * sub.size + sub.digit(mesh, coords);
  return part;
}

Coords Parts::coordsOf(const Mesh &mesh, int64_t part) const {
  Coords coords(mesh.axes.size(), 0);
  for (size_t i = subs.size(); i-- > 0;) {
    int64_t rest = mesh.axes[subs[i].axis].size / endOf(subs[i]);
    coords[subs[i].axis] += part % subs[i].size * rest;
    part /= subs[i].size;
  }
  return coords;
}

namespace {
struct OwnedRun {
  Run run;
  int64_t part;
};

/// A group's products with fewer values and the same gaps; counts of the small
/// one times num / den are counts of the whole. Without digits that are on the
/// same axis on both sides, unless these are to be kept.
struct Reduced {
  Product from, to;
  int64_t bound;
  int64_t num = 1, den = 1;

  Reduced(const Group &group, bool keepShared);
};
} // namespace

Reduced::Reduced(const Group &group, bool keepShared)
    : from(group.from), to(group.to), bound(group.bound) {
  if (!from.empty() && !to.empty() &&
      from.back().kind == Factor::Kind::Stored &&
      to.back().kind == Factor::Kind::Stored) {
    int64_t inner = std::gcd(from.back().size, to.back().size);
    if (bound % inner == 0) {
      for (Product *product : {&from, &to})
        if ((product->back().size /= inner) == 1)
          product->pop_back();
      bound /= inner;
      num *= inner;
    }
  }
  auto digits = alignDigits(from, to, bound);
  if (!digits)
    return;
  from.clear();
  to.clear();
  bound = 1;
  bool wasStored = false;
  for (AlignedDigit &digit : *digits) {
    if (digit.from.kind == Factor::Kind::Device && digit.from == digit.to &&
        !keepShared)
      continue;
    bool stored = digit.from.kind == Factor::Kind::Stored &&
                  digit.to.kind == Factor::Kind::Stored;
    if (stored) {
      num *= digit.size;
      if (wasStored)
        continue;
      digit.size = digit.from.size = digit.to.size = 2;
      den *= 2;
    }
    wasStored = stored;
    bound *= digit.size;
    from.push_back(digit.from);
    to.push_back(digit.to);
  }
}

static int64_t runLength(const Product &product) {
  if (product.empty())
    return 1;
  const Factor &inner = product.back();
  return inner.kind == Factor::Kind::Group    ? runLength(inner.product)
         : inner.kind == Factor::Kind::Stored ? inner.size
                                              : 1;
}

int64_t boundOnRuns(const Group &group) {
  Reduced small(group, /*keepShared=*/false);
  return small.bound /
         std::max<int64_t>(std::min(runLength(small.from), runLength(small.to)),
                           1);
}

static std::vector<OwnedRun> ownedRuns(const Parts &parts,
                                       const Product &product, int64_t bound,
                                       const Mesh &mesh) {
  std::vector<OwnedRun> runs;
  for (int64_t part = 0; part < parts.count; ++part) {
    const std::vector<Run> own =
        localRuns(product, bound, mesh, parts.coordsOf(mesh, part));
    if (part == 0)
      runs.reserve(own.size() * parts.count); // others have as many, or fewer
    for (const Run &run : own)
      runs.push_back({run, part});
  }
  std::sort(runs.begin(), runs.end(), [](const OwnedRun &a, const OwnedRun &b) {
    return a.run.global < b.run.global;
  });
  return runs;
}

/// Where a meeting with `part` is among those of a part, or would be.
template <typename Meetings>
static auto find(Meetings begin, Meetings end, int64_t part) {
  return std::lower_bound(begin, end, part,
                          [](const Overlap::Meeting &meeting, int64_t part) {
                            return meeting.to < part;
                          });
}

/// Pairs of parts for which there is a table.
static constexpr int64_t kMaxTable = 1 << 10;

int64_t Overlap::at(int64_t fromPart, int64_t toPart) const {
  if (!table.empty())
    return table[fromPart * to.count + toPart];
  std::span<const Meeting> all = meetingsOf(fromPart);
  auto meeting = find(all.begin(), all.end(), toPart);
  return meeting == all.end() || meeting->to != toPart ? 0 : meeting->elements;
}

/// Calls `visit(a, b, begin, end)` for what runs of both sides have in common.
template <typename Visit>
static void forEachCommon(const std::vector<OwnedRun> &from,
                          const std::vector<OwnedRun> &to, Visit visit) {
  for (size_t f = 0, t = 0; f < from.size() && t < to.size();) {
    const Run &a = from[f].run, &b = to[t].run;
    const int64_t aEnd = a.global + a.length, bEnd = b.global + b.length;
    const int64_t begin = std::max(a.global, b.global),
                  end = std::min(aEnd, bEnd);
    if (begin < end)
      visit(from[f], to[t], begin, end);
    f += aEnd == end;
    t += bEnd == end;
  }
}

Overlap::Overlap(const Group &group, const Mesh &mesh, bool keepShared) {
  Reduced small(group, keepShared);
  from = Parts(small.from);
  to = Parts(small.to);
  const std::vector<OwnedRun> fromRuns =
      ownedRuns(from, small.from, small.bound, mesh);
  const std::vector<OwnedRun> toRuns =
      ownedRuns(to, small.to, small.bound, mesh);

  // Room for the meetings of each part, more if one comes again after another.
  std::vector<int64_t> fromMeets(from.count, -1), toMeets(to.count, -1);
  firstMeetings.assign(from.count + 1, 0);
  forEachCommon(fromRuns, toRuns,
                [&](const OwnedRun &a, const OwnedRun &b, int64_t, int64_t) {
                  int64_t &fromMet = fromMeets[a.part],
                          &toMet = toMeets[b.part];
                  firstMeetings[a.part + 1] += fromMet != b.part;
                  fromCut |= fromMet >= 0 && fromMet != b.part;
                  toCut |= toMet >= 0 && toMet != a.part;
                  fromMet = b.part;
                  toMet = a.part;
                });
  std::partial_sum(firstMeetings.begin(), firstMeetings.end(),
                   firstMeetings.begin());
  meetings.resize(firstMeetings.back());

  std::vector<int64_t> ends(firstMeetings.begin(), firstMeetings.end() - 1);
  forEachCommon(
      fromRuns, toRuns,
      [&](const OwnedRun &a, const OwnedRun &b, int64_t begin, int64_t end) {
        const int64_t fromLocal = a.run.local + begin - a.run.global,
                      toLocal = b.run.local + begin - b.run.global;
        const auto last = meetings.begin() + ends[a.part];
        auto meeting =
            find(meetings.begin() + firstMeetings[a.part], last, b.part);
        if (meeting == last || meeting->to != b.part) {
          std::move_backward(meeting, last, last + 1);
          *meeting = {b.part, 0, fromLocal, toLocal};
          ++ends[a.part];
        } else {
          fromContiguous &= meeting->fromEnd == fromLocal;
          toContiguous &= meeting->toEnd == toLocal;
        }
        meeting->fromEnd = fromLocal + end - begin;
        meeting->toEnd = toLocal + end - begin;
        meeting->elements += end - begin;
      });
  int64_t used = 0;
  if (from.count <= kMaxTable / to.count)
    table.assign(from.count * to.count, 0);
  for (int64_t part = 0; part < from.count; ++part) {
    const int64_t begin = std::exchange(firstMeetings[part], used);
    for (int64_t i = begin; i < ends[part]; ++i) {
      Meeting &kept = meetings[used++] = meetings[i];
      kept.elements = kept.elements * small.num / small.den;
      if (!table.empty())
        table[part * to.count + kept.to] = kept.elements;
    }
  }
  firstMeetings.back() = used;
  meetings.resize(used);
}

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

Exchange::Exchange(const View &from, const View &to, const Shape &shape,
                   const Mesh &mesh, const Coords &at)
    : groups(joinGroups(from, to, shape)) {
  std::vector<SubAxis> partial, entering;
  for (const Partial &state : from.partial)
    partial.insert(partial.end(), state.axes.begin(), state.axes.end());
  for (const Partial &state : to.partial)
    entering.insert(entering.end(), state.axes.begin(), state.axes.end());
  entering = subtract(std::move(entering), partial);
  // The digits of the class, cut so that all other digits are apart from them.
  // Where that cannot be, the class is the whole mesh and no digit is left out.
  std::vector<SubAxis> used = partial;
  used.insert(used.end(), entering.begin(), entering.end());
  for (const Group &group : groups) {
    for (const Product *product : {&group.from, &group.to}) {
      std::vector<SubAxis> subs = axesOf(*product);
      used.insert(used.end(), subs.begin(), subs.end());
    }
  }
  // What a team takes may be cut where nothing changes, too.
  size_t longest = groups.size();
  for (size_t i = 0; i < groups.size() && !entering.empty(); ++i)
    if (!groups[i].changed() && fills(groups[i].from, groups[i].bound) &&
        (longest == groups.size() || groups[i].bound > groups[longest].bound))
      longest = i;
  auto compare = [&](bool all) {
    changed.clear();
    overlaps.clear();
    overlaps.reserve(groups.size());
    for (size_t i = 0; i < groups.size(); ++i) {
      if (!groups[i].changed() && !all && i != longest)
        continue;
      changed.push_back(i);
      overlaps.emplace_back(groups[i], mesh, /*keepShared=*/all);
    }
  };
  compare(/*all=*/false);
  active = entering;
  for (const Overlap &overlap : overlaps) {
    for (const Parts *parts : {&overlap.from, &overlap.to}) {
      active.insert(active.end(), parts->subs.begin(), parts->subs.end());
      used.insert(used.end(), parts->subs.begin(), parts->subs.end());
    }
  }
  isApart = bool(refineAxes(used));
  if (isApart) {
    active = *refineAxes(active);
  } else {
    compare(/*all=*/true);
    active.clear();
    for (size_t axis = 0; axis < mesh.axes.size(); ++axis)
      active.push_back({int(axis), 1, mesh.axes[axis].size});
  }
  for (const Overlap &overlap : overlaps)
    numShards *= overlap.from.count;

  Parts digits;
  digits.subs = active;
  for (const SubAxis &sub : active)
    digits.count *= sub.size;
  // The coordinates with the class' digits cleared.
  Coords base = at;
  Coords own = digits.coordsOf(mesh, digits.partAt(mesh, at));
  for (size_t axis = 0; axis < base.size(); ++axis)
    base[axis] -= own[axis];

  // The digits in which the holders of one shard differ.
  std::vector<SubAxis> sources, copies;
  for (const Overlap &overlap : overlaps)
    sources.insert(sources.end(), overlap.from.subs.begin(),
                   overlap.from.subs.end());
  for (const SubAxis &sub : active)
    if (!contains(sources, sub))
      copies.push_back(sub);

  firstHolders.assign(numShards + 1, 0);
  members.reserve(digits.count);
  numbers.reserve(digits.count * (active.size() + 2 * overlaps.size()));
  for (int64_t part = 0; part < digits.count; ++part) {
    Coords coords = digits.coordsOf(mesh, part);
    for (size_t axis = 0; axis < base.size(); ++axis)
      coords[axis] += base[axis];
    bool samePartial =
        std::all_of(partial.begin(), partial.end(), [&](const SubAxis &sub) {
          return sub.digit(mesh, coords) == sub.digit(mesh, at);
        });
    if (!samePartial)
      continue;
    const int32_t *own = numbers.data() + numbers.size();
    Member member{.rank = int32_t(mesh.rankOfCoords(coords)),
                  .has = own,
                  .needs = own + overlaps.size(),
                  .digits = own + 2 * overlaps.size()};
    for (const Overlap &overlap : overlaps) {
      numbers.push_back(int32_t(overlap.from.partAt(mesh, coords)));
      member.shard =
          int32_t(member.shard * overlap.from.count + numbers.back());
    }
    for (const Overlap &overlap : overlaps)
      numbers.push_back(int32_t(overlap.to.partAt(mesh, coords)));
    for (const SubAxis &sub : active)
      numbers.push_back(int32_t(sub.digit(mesh, coords)));
    for (const SubAxis &sub : copies)
      member.copy = int32_t(member.copy * sub.size + sub.digit(mesh, coords));
    ++firstHolders[member.shard + 1];
    if (coords == at)
      self = int64_t(members.size());
    members.push_back(member);
  }
  std::partial_sum(firstHolders.begin(), firstHolders.end(),
                   firstHolders.begin());
  holders.resize(members.size());
  std::vector<int32_t> next = firstHolders;
  for (size_t i = 0; i < members.size(); ++i)
    holders[next[members[i].shard]++] = int32_t(i);

  makeTeams(entering, mesh);
}

/// Of teams and shards, to say what each team takes in front of a shard;
/// beyond, its first devices may take more than others.
static constexpr int64_t kMaxLacks = 1 << 22;

void Exchange::makeTeams(const std::vector<SubAxis> &entering,
                         const Mesh &mesh) {
  Parts along;
  along.subs = entering;
  std::map<Coords, int32_t> teams; // by coordinates without these digits
  for (size_t i = 0; i < members.size(); ++i) {
    Member &member = members[i];
    member.team = int32_t(i);
    if (entering.empty())
      continue;
    Coords base = mesh.coordsOfRank(member.rank);
    member.place = int32_t(along.partAt(mesh, base));
    const Coords own = along.coordsOf(mesh, member.place);
    for (size_t axis = 0; axis < base.size(); ++axis)
      base[axis] -= own[axis];
    member.team =
        teams.try_emplace(std::move(base), int32_t(teams.size())).first->second;
    keepers.try_emplace(keyOf(member.team, member.shard), int32_t(i));
  }
  for (const SubAxis &sub : entering)
    teamSize *= sub.size;

  std::vector<std::vector<int64_t>> needed; // by overlap and part
  for (const Overlap &overlap : overlaps) {
    std::vector<int64_t> &sums = needed.emplace_back(overlap.to.count, 0);
    for (int64_t part = 0; part < overlap.from.count; ++part)
      for (const Overlap::Meeting &meeting : overlap.meetingsOf(part))
        sums[meeting.to] += meeting.elements;
  }
  std::vector<int64_t> lacking(members.size(), 0); // by team
  for (const Member &member : members) {
    int64_t count = 1;
    for (size_t i = 0; i < needed.size(); ++i)
      count *= needed[i][member.needs[i]];
    lacking[member.team] = count;
  }
  for (size_t i = 0; i < members.size(); ++i)
    if (isKeeper(i))
      lacking[members[i].team] -= common(members[i], members[i]);
  for (int64_t count : lacking)
    mostLacking = std::max(mostLacking, count);
  mostReceived = (mostLacking + teamSize - 1) / teamSize;

  if (teamSize == 1 || int64_t(teams.size()) * numShards > kMaxLacks)
    return;
  std::vector<int64_t> positions(teams.size(), 0);
  std::vector<bool> seen(teams.size(), false);
  for (const Member &member : members) {
    if (seen[member.team])
      continue;
    seen[member.team] = true;
    for (int64_t shard = 0; shard < numShards; ++shard) {
      if (holdersOf(shard).empty())
        continue;
      const Member &holder = members[holdersOf(shard).front()];
      if (!common(holder, member) || keeperOf(member.team, shard) >= 0)
        continue;
      const size_t along = findCut(holder, member, teamSize);
      taken[keyOf(member.team, shard)] = positions[member.team];
      positions[member.team] +=
          overlaps[along].at(holder.has[along], member.needs[along]);
    }
  }
}

int32_t Exchange::keeperOf(int32_t team, int64_t shard) const {
  if (teamSize == 1)
    return members[team].shard == shard ? team : -1;
  auto keeper = keepers.find(keyOf(team, shard));
  return keeper == keepers.end() ? -1 : keeper->second;
}

int64_t Exchange::common(const Member &holder, const Member &member) const {
  int64_t count = 1;
  for (size_t i = 0; i < overlaps.size() && count; ++i)
    count *= overlaps[i].at(holder.has[i], member.needs[i]);
  return count;
}

int64_t Exchange::distance(const Member &a, const Member &b) const {
  int64_t count = 0;
  for (size_t i = 0; i < active.size(); ++i)
    count += a.digits[i] != b.digits[i];
  return count;
}

size_t Exchange::nearest(int64_t shard, const Member &member) const {
  if (isApart)
    return size_t(member.copy);
  const std::span<const int32_t> from = holdersOf(shard);
  return std::min_element(from.begin(), from.end(),
                          [&](int64_t a, int64_t b) {
                            return distance(members[a], member) <
                                   distance(members[b], member);
                          }) -
         from.begin();
}

size_t Exchange::findCut(const Member &holder, const Member &taker,
                         int64_t parts) const {
  size_t along = 0;
  int64_t positions = 0;
  for (size_t i = 0; i < overlaps.size(); ++i) {
    const int64_t here = overlaps[i].at(holder.has[i], taker.needs[i]);
    if (parts && here % parts == 0)
      return i;
    if (here > positions) {
      along = i;
      positions = here;
    }
  }
  return along;
}

std::optional<Exchange::Share> Exchange::takenBy(size_t taker, int64_t shard,
                                                 int64_t elements) const {
  const Member &member = members[taker],
               &holder = members[holdersOf(shard).front()];
  Share share{-1, int64_t(taker), elements};
  if (teamSize == 1)
    return share;
  const size_t along = findCut(holder, member, teamSize);
  const int64_t positions =
      overlaps[along].at(holder.has[along], member.needs[along]);
  // What the members before it take of this shard, all positions that the team
  // takes being dealt out in turn.
  const auto before = taken.find(keyOf(member.team, shard));
  const int64_t first = before == taken.end() ? 0 : before->second;
  auto dealt = [&](int64_t all, int64_t places) {
    return all / teamSize * places +
           std::max<int64_t>(all % teamSize + places - teamSize, 0);
  };
  auto begin = [&](int64_t place) {
    return dealt(first + positions, place) - dealt(first, place);
  };
  share.range = {along, begin(member.place), begin(member.place + 1)};
  const int64_t count = share.range->end - share.range->begin;
  share.elements = share.elements / positions * count;
  return count ? std::optional(share) : std::nullopt;
}

void Exchange::forShares(
    int64_t shard, const std::function<void(const Share &)> &visit) const {
  const std::span<const int32_t> from = holdersOf(shard);
  if (from.empty())
    return;
  std::vector<Share> waiting; // for who gives it
  int64_t total = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const int64_t elements = common(members[from[0]], members[i]);
    if (!elements) // of most
      continue;
    const int32_t keeper = keeperOf(members[i].team, shard);
    if (keeper == int32_t(i)) {
      visit({keeper, keeper, elements});
    } else if (keeper < 0) {
      std::optional<Share> share = takenBy(i, shard, elements);
      if (!share)
        continue;
      if (from.size() == 1) {
        share->giver = from[0];
        visit(*share);
      } else {
        total += share->elements;
        waiting.push_back(*share);
      }
    }
  }

  // A fair share from the nearest holder.
  const int64_t count = int64_t(from.size());
  const int64_t fair = (total + count - 1) / count;
  std::vector<int64_t> load(from.size(), 0);
  auto give = [&](size_t holder, Share share) {
    load[holder] += share.elements;
    share.giver = from[holder];
    visit(share);
  };
  std::erase_if(waiting, [&](const Share &share) {
    const size_t near = nearest(shard, members[share.taker]);
    const bool isFree = load[near] + share.elements <= fair;
    if (isFree)
      give(near, share);
    return isFree;
  });

  // Who finds it busy goes to the least loaded one, the nearest of equals; and
  // to several where that would then send for longer than any device receives.
  const int64_t most = std::max(fair, mostReceived);
  for (const Share &wanted : waiting) {
    const Member &taker = members[wanted.taker];
    auto leastLoaded = [&] {
      size_t best = 0;
      for (size_t h = 1; h < from.size(); ++h)
        if (load[h] < load[best] ||
            (load[h] == load[best] && distance(members[from[h]], taker) <
                                          distance(members[from[best]], taker)))
          best = h;
      return best;
    };
    if (size_t best = leastLoaded(); load[best] + wanted.elements <= most) {
      give(best, wanted);
      continue;
    }
    // Cut where there are most positions.
    Share::Range all;
    if (wanted.range) {
      all = *wanted.range;
    } else {
      const Member &holder = members[from[0]];
      all.along = findCut(holder, taker, 0);
      all.begin = 0;
      all.end =
          overlaps[all.along].at(holder.has[all.along], taker.needs[all.along]);
    }
    const int64_t positions = all.end - all.begin;
    const int64_t unit = wanted.elements / positions;
    std::vector<int64_t> taken(from.size(), 0);
    for (int64_t left = positions; left;) {
      const size_t best = leastLoaded();
      const int64_t next =
          std::min(left, std::max<int64_t>((most - load[best]) / unit, 1));
      load[best] += next * unit;
      taken[best] += next;
      left -= next;
    }
    int64_t begin = all.begin;
    for (int64_t h = 0; h < count; ++h) {
      if (!taken[h])
        continue;
      Share share{from[h], wanted.taker, taken[h] * unit, wanted.range};
      if (taken[h] != positions)
        share.range = {all.along, begin, begin + taken[h]};
      visit(share);
      begin += taken[h];
    }
  }
}

} // namespace tessera::layout
