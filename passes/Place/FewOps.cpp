//===- FewOps.cpp - the best placement of few ops -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Place/FewOps.h"
#include "Place/OpPrice.h"
#include "Place/PlaceTogether.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

static constexpr double kNever = std::numeric_limits<double>::infinity();

namespace {
/// So many states go on. `latencies`: how much counts that of each move ahead;
/// the rest does once for those that wait for each other. `keepsParts`: a part
/// of a copy is another one, from which other kinds of moves may go on.
struct Run {
  size_t width;
  double latencies;
  bool keepsParts;
};
} // namespace

/// What one finds is a bound for the next.
static constexpr Run kRuns[] = {
    {8, 1, true}, {64, 0.5, true}, {64, 0.5, false}, {64, 0, true}};
/// As many more are tried for these.
static constexpr size_t kTries = 8;
/// So many views are tried by which a value goes on to another.
static constexpr size_t kMaxBy = 8;
/// What asking a way takes of a plan of a move.
static constexpr double kWay = 0.001;
/// A kind of moves that is none of Ways, which has -1 for none.
static constexpr int kExchange = -2;
/// The number of no kinds.
static constexpr int kNoKinds = 0;

FewOps::FewOps(Ways &ways, std::vector<Node> nodes, std::vector<Value> values)
    : ways(ways), nodes(std::move(nodes)), values(std::move(values)) {
  lastUse.assign(this->values.size(), 0);
  uses.resize(this->values.size());
  needs.resize(this->values.size());
  rest.assign(this->nodes.size(), 0);
  leastWork.assign(this->nodes.size(), kNever);
  for (auto [n, node] : llvm::enumerate(this->nodes)) {
    for (auto [i, source] : llvm::enumerate(node.sources)) {
      if (source < 0)
        continue;
      lastUse[source] = n;
      uses[source].emplace_back(n, i);
      for (const Way &way : node.ways)
        needs[source].insert(way.operands[i]);
    }
  }
  for (size_t n = this->nodes.size(); n-- > 0;) {
    for (const Way &way : this->nodes[n].ways)
      leastWork[n] = std::min(leastWork[n], way.work);
    if (n > 0)
      rest[n - 1] = rest[n] + leastWork[n];
  }
}

int FewOps::intern(Copies copies) {
  llvm::sort(copies.all,
             [](const Copy &a, const Copy &b) { return a.key() < b.key(); });
  std::vector<int> key = {copies.value};
  for (const Copy &copy : copies.all)
    key.insert(key.end(), {copy.view, copy.since, copy.behind});
  auto [number, isNew] =
      numbersOfSets.try_emplace(std::move(key), int(sets.size()));
  if (isNew)
    sets.push_back(std::move(copies));
  return number->second;
}

int FewOps::viewOf(const Node &node, const Way &way, int result) const {
  return node.results.size() == 1 ? way.result : ways.numberOf(values[result]);
}

/// What has the value's copies.
int FewOps::setFor(const State &state, int value) const {
  return *llvm::find_if(state.copies,
                        [&](int set) { return sets[set].value == value; });
}

/// How what lies as `view` may lie where `use` returns it.
SmallVector<int> FewOps::returned(int value, int view, const Use &use) {
  const Node &node = nodes[use.first];
  SmallVector<int> found = {node.ways[0].operands[use.second]};
  if (ArrayRef<Said> said = node.said[use.second]; !said.empty())
    llvm::append_range(found,
                       ways.returned(values[value], view, found[0], said));
  return found;
}

int FewOps::kindOf(const Move &move) {
  Value value = values[move.value];
  return ways.isExchange(value, move.from, move.to)
             ? kExchange
             : ways.kindOf(value, move.from, move.to);
}

/// Of those by one view whose last moves are of one kind that of the least time
/// stays.
void FewOps::addOption(std::vector<Option> &found, double seconds,
                       const Copy &from, ArrayRef<Move> moves) {
  Option option = {seconds, moves.back().to, {}, from.since, -1};
  for (const Move &move : moves)
    option.moves.emplace_back(move, kindOf(move));
  for (Option &other : found)
    if (other.moves.size() == option.moves.size() &&
        other.moves[0].first.to == option.moves[0].first.to &&
        other.moves.back().second == option.moves.back().second) {
      if (option.seconds < other.seconds)
        other = std::move(option);
      return;
    }
  found.push_back(std::move(option));
}

/// How a value that lies as `set` says comes to lie as `view`, or where it is
/// returned as `use` may have it.
const std::vector<FewOps::Option> &FewOps::options(int set, const Use &use,
                                                   int view) {
  const bool isReturned = !nodes[use.first].said.empty();
  auto [known, isNew] = optionsOfSets.try_emplace(
      {set, use.first, isReturned ? -1 - int(use.second) : view});
  std::vector<Option> &found = known->second;
  if (!isNew)
    return found;
  const Copies copies = sets[set];
  const int value = copies.value;
  double best = kNever;
  for (const Copy &copy : copies.all)
    for (int to : isReturned ? returned(value, copy.view, use)
                             : SmallVector<int>{view}) {
      if (to == copy.view) {
        found.assign(1, {0, to, {}, copy.since, copy.behind});
        return found;
      }
      const double most = best + ways.getLatency();
      if (ways.leastSeconds(values[value], copy.view, to) > most)
        continue;
      const double time = ways.seconds(values[value], copy.view, to);
      if (time == kNever || time > most)
        continue;
      best = std::min(best, time);
      addOption(found, time, copy, {{value, copy.view, to}});
    }
  if (!isReturned && use.first < lastUse[value])
    addOptionsBy(found, copies, use.first, view, best);
  return found;
}

/// Adds how it comes to lie as `view` by another one, in which uses after
/// `node` find it. Directly that takes `best`.
void FewOps::addOptionsBy(std::vector<Option> &found, const Copies &copies,
                          size_t node, int view, double best) {
  const int value = copies.value;
  SmallVector<int> views = {view};
  for (const Copy &copy : copies.all)
    views.push_back(copy.view);
  auto leastAhead = [&](ArrayRef<int> views, const Use &use) {
    double least = kNever;
    for (int view : views)
      least = std::min(least, ahead(value, view, use, kNoKinds).sum);
    return least;
  };
  SmallVector<std::pair<Use, double>> later;
  for (const Use &use : uses[value])
    if (use.first > node)
      later.emplace_back(use, leastAhead(views, use));
  SmallVector<std::tuple<double, int, const Copy *>> all;
  for (int by : needs[value]) {
    const double after = ways.leastSeconds(values[value], by, view);
    if (after >= best || llvm::is_contained(views, by))
      continue;
    double gain = 0;
    for (const auto &[use, least] : later)
      gain += std::max(least - ahead(value, by, use, kNoKinds).sum, 0.);
    for (const Copy &copy : copies.all) {
      const double time =
          ways.leastSeconds(values[value], copy.view, by) + after;
      if (time < best + gain)
        all.emplace_back(time - gain, by, &copy);
    }
  }
  llvm::sort(all);
  for (auto [about, by, copy] : ArrayRef(all).take_front(kMaxBy)) {
    const double first = ways.seconds(values[value], copy->view, by),
                 second = ways.seconds(values[value], by, view);
    if (first < kNever && second < best)
      addOption(found, first + second, *copy,
                {{value, copy->view, by}, {value, by, view}});
  }
}

void FewOps::finish(const State &state, int number, size_t node, const Way &way,
                    ArrayRef<const Option *> chosen) {
  const double latency = ways.getLatency();
  const Node &its = nodes[node];
  State then = {state.seconds + way.work, 0, number, {&way, {}, {}}, {}, {}};
  then.groups = state.groups;
  auto ended = [&](int kind) -> int & {
    for (auto &[other, when] : then.groups)
      if (other == kind)
        return when;
    return then.groups.emplace_back(kind, -1).second;
  };
  SmallVector<Move> together;
  SmallVector<int> behind;
  SmallVector<std::pair<int, Copy>> made; // by value
  for (auto [i, option] : llvm::enumerate(chosen)) {
    if (!option) {
      then.step.reads.push_back(-1);
      continue;
    }
    then.step.reads.push_back(option->view);
    auto isSame = [&](const Option *other) {
      return other == option && !option->moves.empty();
    };
    if (llvm::any_of(chosen.take_front(i), isSame))
      continue;
    then.seconds += option->seconds;
    if (option->behind >= 0) {
      together.push_back(exchanges[option->behind]);
      behind.push_back(option->behind);
    }
    int since = option->since;
    for (auto [m, move] : llvm::enumerate(option->moves)) {
      auto &[what, kind] = move;
      if (kind == kExchange && m + 1 == option->moves.size())
        together.push_back(what);
      if (kind >= 0) {
        int &end = ended(kind);
        const bool isAfter = m > 0 && option->moves[0].second == kind;
        if (end > since || (m > 0 && !isAfter && end == int(node)))
          then.seconds -= latency;
        else
          end = int(node);
      }
      made.push_back({what.value, {what.to, int(node), -1}});
      then.step.moves.push_back(what);
      since = int(node);
    }
  }
  const bool onTheWay = isOnTheWay(its.op) && its.results.size() == 1 &&
                        uses[its.results[0]].size() == 1 &&
                        uses[its.sources[0]].size() == 1;
  if (together.size() > 1)
    then.seconds -= ways.saved(
        llvm::to_vector(llvm::map_range(together, [&](const Move &move) {
          return Ways::MoveOf{values[move.value], move.from, move.to};
        })));
  if (then.seconds + rest[node] >= bound)
    return;
  // What is live from now on.
  for (int set : state.copies) {
    const int value = sets[set].value;
    if (lastUse[value] <= node)
      continue;
    Copies copies = sets[set];
    for (auto &[of, copy] : made)
      if (of == value && llvm::none_of(copies.all, [&](const Copy &other) {
            return other.view == copy.view ||
                   (!keepsParts &&
                    ways.leastSeconds(values[value], other.view, copy.view) <=
                        0 &&
                    ways.seconds(values[value], other.view, copy.view) <= 0);
          }))
        copies.all.push_back(copy);
    then.copies.push_back(intern(std::move(copies)));
  }
  for (int result : its.results) {
    if (lastUse[result] <= node)
      continue;
    const int view = viewOf(its, way, result);
    int waits = -1;
    if (onTheWay && !behind.empty()) {
      waits = behind[0];
    } else if (onTheWay && together.size() == 1) {
      const Move &move = together[0];
      auto [known, isNew] = numbersOfExchanges.try_emplace(
          {move.value, move.from, move.to}, int(exchanges.size()));
      if (isNew)
        exchanges.push_back(move);
      waits = known->second;
    }
    then.copies.push_back(intern({result, {{view, int(node), waits}}}));
  }
  llvm::sort(then.copies);
  // Groups that no move of what is live could have joined.
  int first = int(node);
  for (int set : then.copies)
    for (const Copy &copy : sets[set].all)
      first = std::min(first, copy.since);
  llvm::erase_if(then.groups,
                 [&](const auto &group) { return group.second <= first; });
  llvm::sort(then.groups);
  std::string key;
  auto append = [&](int number) {
    key.append(reinterpret_cast<const char *>(&number), sizeof(number));
  };
  llvm::for_each(then.copies, append);
  append(-1);
  for (auto [kind, when] : then.groups) {
    append(kind);
    append(when);
  }
  const Ahead after = ahead(then, node + 1);
  if (then.seconds + rest[node] + after.most >= bound)
    return;
  then.about = then.seconds + after.sum + (1 - latencies) * after.most;
  auto [other, isNew] = known.try_emplace(std::move(key), next.size());
  if (isNew)
    next.push_back(std::move(then));
  else if (then.seconds < next[other->second].seconds)
    next[other->second] = std::move(then);
}

//===----------------------------------------------------------------------===//
// What comes after a state
//===----------------------------------------------------------------------===//

/// The kinds of moves of which some were after node `since`, by number.
int FewOps::endedAfter(const State &state, int since) {
  std::vector<int> kinds;
  for (auto [kind, when] : state.groups)
    if (when > since)
      kinds.push_back(kind);
  auto [number, isNew] =
      numbersOfKinds.try_emplace(std::move(kinds), int(kindsEnded.size()));
  if (isNew)
    kindsEnded.push_back(number->first);
  return number->second;
}

/// What a move takes at the least that may go together with such as `ended`.
double FewOps::leastMove(const Move &move, int ended) {
  const double least =
      ways.leastSeconds(values[move.value], move.from, move.to);
  if (least < ways.getLatency() || kindsEnded[ended].empty() ||
      !llvm::is_contained(kindsEnded[ended], kindOf(move)))
    return least;
  return least - ways.getLatency();
}

double FewOps::leastReach(const State &state, int set, int view) {
  double least = kNever;
  for (size_t i = 0; i < sets[set].all.size(); ++i) {
    const Copy copy = sets[set].all[i];
    least = std::min(least, leastMove({sets[set].value, copy.view, view},
                                      endedAfter(state, copy.since)));
  }
  return least;
}

/// Of a move ahead, which may go together with others.
double FewOps::about(double least) const {
  const double latency = ways.getLatency();
  return least < latency ? least : least - (1 - latencies) * latency;
}

/// Of a node that lies so, and all after it.
FewOps::Ahead FewOps::wayAhead(size_t node, const Way &way) {
  Ahead after;
  for (int result : nodes[node].results)
    for (const Use &use : uses[result])
      after += ahead(result, viewOf(nodes[node], way, result), use, kNoKinds);
  return {way.work + after.sum, way.work - leastWork[node] + after.most};
}

/// By a use's view, of its node, all after it, and the moves there of what no
/// node makes; what makes the node's other operands has its part of that.
const FewOps::Table &FewOps::tableOf(const Use &use) {
  auto [known, isNew] = tables.try_emplace(use);
  if (!isNew)
    return known->second;
  const Node &node = nodes[use.first];
  llvm::SmallSetVector<int, 4> made, all;
  for (int source : node.sources)
    if (source >= 0)
      (start[source] < 0 ? made : all).insert(source);
  Table table;
  for (const Way &way : node.ways) {
    Ahead time = wayAhead(use.first, way);
    for (auto [i, source] : llvm::enumerate(node.sources))
      if (source >= 0 && start[source] >= 0 && !made.empty())
        time.sum += about(ways.leastSeconds(values[source], start[source],
                                            way.operands[i])) /
                    double(uses[source].size());
    time.sum /= double(made.empty() ? all.size() : made.size());
    auto [entry, isNew] = table.insert({way.operands[use.second], time});
    if (!isNew)
      entry->second.takeLess(time);
  }
  return tables[use] = std::move(table);
}

/// Until a use has a value that lies as `view`, and what follows from it. The
/// first move may go together with such as `ended`.
FewOps::Ahead FewOps::ahead(int value, int view, const Use &use, int ended) {
  auto known = aheadOfUses.find({use, view, ended});
  if (known != aheadOfUses.end())
    return known->second;
  Ahead least = {kNever, kNever};
  auto tryView = [&](int to, const Ahead &after) {
    if (after.sum >= least.sum && after.most >= least.most)
      return;
    const double move = leastMove({value, view, to}, ended);
    least.takeLess({after.sum + about(move), std::max(after.most, 0.) + move});
  };
  if (!nodes[use.first].said.empty())
    for (int to : returned(value, view, use))
      tryView(to, {});
  else
    for (auto [to, after] : tableOf(use))
      tryView(to, after);
  return aheadOfUses[{use, view, ended}] = least;
}

/// Of a value. What no node makes counts with what it becomes.
FewOps::Ahead FewOps::ahead(const State &state, int set, size_t next) {
  const Copies copies = sets[set];
  std::vector<int> key = {set, int(next)};
  for (const Copy &copy : copies.all)
    key.push_back(endedAfter(state, copy.since));
  auto known = aheadOfSets.find(key);
  if (known != aheadOfSets.end())
    return known->second;
  Ahead sum;
  for (const Use &use : uses[copies.value]) {
    if (use.first < next)
      continue;
    Ahead least = {kNever, kNever};
    for (auto [i, copy] : llvm::enumerate(copies.all))
      least.takeLess(ahead(copies.value, copy.view, use, key[2 + i]));
    sum += least;
  }
  if (start[copies.value] >= 0)
    sum.sum = 0;
  return aheadOfSets[std::move(key)] = sum;
}

/// Of a node that reads no other's results, and what follows from it.
double FewOps::aheadOfFirst(const State &state, size_t node) {
  const Node &its = nodes[node];
  std::vector<int> key = {int(node)};
  SmallVector<int> setOf;
  for (int source : its.sources) {
    setOf.push_back(source < 0 ? -1 : setFor(state, source));
    if (source < 0)
      continue;
    key.push_back(setOf.back());
    for (const Copy &copy : sets[setOf.back()].all)
      key.push_back(endedAfter(state, copy.since));
  }
  auto [known, isNew] = aheadOfFirsts.try_emplace(std::move(key), kNever);
  if (!isNew)
    return known->second;
  double least = kNever;
  for (const Way &way : its.ways) {
    double sum = wayAhead(node, way).sum;
    for (auto [i, set] : llvm::enumerate(setOf))
      if (set >= 0 && sum < least &&
          !llvm::is_contained(ArrayRef(its.sources).take_front(i),
                              its.sources[i]))
        sum += about(leastReach(state, set, way.operands[i]));
    least = std::min(least, sum);
  }
  return known->second = least;
}

/// Of all after a state: about, and at the least one value after the other,
/// each move of which waits for the one before it.
FewOps::Ahead FewOps::ahead(const State &state, size_t next) {
  Ahead sum;
  for (int set : state.copies)
    sum += ahead(state, set, next);
  for (size_t node : firsts)
    if (node >= next)
      sum.sum += aheadOfFirst(state, node);
  for (int set : state.copies)
    for (const Copy &copy : sets[set].all)
      if (copy.behind >= 0)
        sum.most = 0;
  return sum;
}

//===----------------------------------------------------------------------===//
// From layer to layer
//===----------------------------------------------------------------------===//

void FewOps::tryWay(const State &state, int number, size_t node, const Way &way,
                    double limit) {
  const Node &its = nodes[node];
  const double latency = ways.getLatency();
  SmallVector<const Option *> chosen(its.sources.size());
  auto choose = [&](auto &chooseNext, size_t i, double sum) -> void {
    if (sum >= limit)
      return;
    if (i == its.sources.size())
      return finish(state, number, node, way, chosen);
    chosen[i] = nullptr;
    const int source = its.sources[i];
    if (source < 0)
      return chooseNext(chooseNext, i + 1, sum);
    for (const Option &option :
         options(setFor(state, source), {node, i}, way.operands[i])) {
      chosen[i] = &option;
      chooseNext(
          chooseNext, i + 1,
          sum + std::max(option.seconds - latency * double(option.moves.size()),
                         0.));
    }
  };
  choose(choose, 0, state.seconds + way.work);
}

void FewOps::extend(const Layer &layer, size_t node, size_t width) {
  const Node &its = nodes[node];
  const double latency = ways.getLatency(), limit = bound - rest[node];
  std::vector<std::tuple<double, int, const Way *>> all;
  std::vector<Ahead> after; // by way
  for (const Way &way : its.ways)
    after.push_back(wayAhead(node, way));
  for (auto [number, state] : llvm::enumerate(layer)) {
    SmallVector<int> setOf;
    for (int source : its.sources)
      setOf.push_back(source < 0 ? -1 : setFor(state, source));
    const Ahead others = ahead(state, node + 1);
    ways.spend(kWay * double(its.ways.size()));
    for (auto [w, way] : llvm::enumerate(its.ways)) {
      double least = state.seconds + way.work,
             sum = state.seconds + others.sum + after[w].sum, most = 0;
      for (auto [i, set] : llvm::enumerate(setOf))
        if (set >= 0 && its.said.empty()) {
          const double move = leastReach(state, set, way.operands[i]);
          least += std::max(move - latency, 0.);
          sum += about(move);
          most = std::max(most, move);
        }
      sum += (1 - latencies) * std::max(others.most, most + after[w].most);
      if (least < limit)
        all.emplace_back(sum, int(number), &way);
    }
  }
  llvm::sort(all);
  std::vector<double> best; // a heap
  size_t tried = 0;
  for (auto [sum, number, way] : all) {
    if (ways.isSpent() || tried >= kTries * width ||
        (best.size() >= width && sum > best.front()))
      break;
    ++tried;
    const size_t before = next.size();
    tryWay(layer[number], number, node, *way, limit);
    for (size_t i = before; i < next.size(); ++i) {
      best.push_back(next[i].about);
      std::push_heap(best.begin(), best.end());
      if (best.size() > width) {
        std::pop_heap(best.begin(), best.end());
        best.pop_back();
      }
    }
  }
}

std::vector<FewOps::Step> FewOps::run(size_t width, ArrayRef<int> start) {
  std::vector<Layer> layers(1);
  optionsOfSets.clear();
  tables.clear();
  aheadOfUses.clear();
  aheadOfSets.clear();
  aheadOfFirsts.clear();
  State first = {0, 0, -1, {nullptr, {}, {}}, {}, {}};
  for (auto [value, view] : llvm::enumerate(start))
    if (view >= 0)
      first.copies.push_back(intern({int(value), {{view, -1, -1}}}));
  if (leastWork[0] + rest[0] + ahead(first, 0).most >=
      bound - kLeastLatency * ways.getLatency())
    return {};
  layers[0].push_back(std::move(first));
  for (size_t node = 0; node < nodes.size(); ++node) {
    next.clear();
    known.clear();
    extend(layers.back(), node, width);
    llvm::stable_sort(
        next, [](const State &a, const State &b) { return a.about < b.about; });
    if (next.size() > width)
      next.resize(width);
    if (next.empty())
      return {};
    layers.push_back(std::move(next));
  }
  bound = layers.back()[0].seconds;
  std::vector<Step> steps;
  for (int number = 0; layers.size() > 1; layers.pop_back()) {
    State &state = layers.back()[number];
    number = state.before;
    steps.push_back(std::move(state.step));
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

std::vector<FewOps::Step> FewOps::solve(double bound, ArrayRef<int> start) {
  this->bound = bound;
  this->start.assign(values.size(), -1);
  llvm::copy(start, this->start.begin());
  for (auto [n, node] : llvm::enumerate(nodes))
    if (node.said.empty() && !node.sources.empty() &&
        llvm::none_of(node.sources, [&](int source) {
          return source >= 0 && this->start[source] < 0;
        }))
      firsts.push_back(n);
  std::vector<Step> best;
  for (const Run &its : kRuns) {
    latencies = its.latencies;
    keepsParts = its.keepsParts;
    if (std::vector<Step> better = run(its.width, start); !better.empty())
      best = std::move(better);
  }
  return best;
}
