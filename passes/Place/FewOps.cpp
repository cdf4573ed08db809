//===- FewOps.cpp - the best placement of few ops -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Place/FewOps.h"
#include "Place/OpPrice.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

static constexpr double kNever = std::numeric_limits<double>::infinity();
/// How many states go on, and how much counts a latency ahead.
static constexpr std::pair<size_t, double> kRuns[] = {{64, 1}, {128, 0.5}};
/// As many more are tried for these.
static constexpr size_t kTries = 8;
/// What asking a way takes of a plan of a move.
static constexpr double kWay = 0.001;
/// The kinds of moves that are none of Ways.
static constexpr int kAlone = -1, kExchange = -2;

FewOps::FewOps(Ways &ways, std::vector<Node> nodes, std::vector<Value> values)
    : ways(ways), nodes(std::move(nodes)), values(std::move(values)) {
  lastUse.assign(this->values.size(), 0);
  uses.resize(this->values.size());
  needs.resize(this->values.size());
  rest.assign(this->nodes.size(), 0);
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
  for (size_t n = this->nodes.size(); n-- > 1;) {
    double least = kNever;
    for (const Way &way : this->nodes[n].ways)
      least = std::min(least, way.work);
    rest[n - 1] = rest[n] + least;
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

double FewOps::leastReach(int set, int view) {
  auto [known, isNew] = leastOfSets.try_emplace({set, view}, kNever);
  if (isNew)
    for (const Copy &copy : sets[set].all)
      known->second =
          std::min(known->second,
                   ways.leastSeconds(values[sets[set].value], copy.view, view));
  return known->second;
}

/// Of one kind the first of the least time stays.
void FewOps::addOption(std::vector<Option> &found, Option option) {
  auto kindOf = [](const Option &option) {
    return option.moves.empty() ? kAlone : option.moves.back().second;
  };
  for (Option &other : found)
    if (other.moves.size() == option.moves.size() &&
        other.moves[0].first.to == option.moves[0].first.to &&
        kindOf(other) == kindOf(option)) {
      if (option.seconds < other.seconds)
        other = std::move(option);
      return;
    }
  found.push_back(std::move(option));
}

/// How a value that lies as `set` says comes to lie as `view`, if others read
/// it later by a view on the way, too.
const std::vector<FewOps::Option> &
FewOps::options(int set, size_t node, size_t operand, int view, bool isLast) {
  const bool isReturned = !nodes[node].said.empty();
  auto [known, isNew] = optionsOfSets.try_emplace(
      {set, isReturned ? -1 - int(operand) : view, isLast});
  std::vector<Option> &found = known->second;
  if (!isNew)
    return found;
  const Copies copies = sets[set];
  Value value = values[copies.value];
  for (const Copy &copy : copies.all)
    if (copy.view == view) {
      found.push_back({0, view, {}, copy.since, copy.behind});
      return found;
    }
  const double latency = ways.getLatency();
  auto kindOf = [&](int from, int to) {
    return ways.isExchange(value, from, to) ? kExchange
                                            : ways.kindOf(value, from, to);
  };
  double best = kNever;
  auto consider = [&](const Copy &copy, int to) {
    if (ways.leastSeconds(value, copy.view, to) > best + latency)
      return;
    const double time = ways.seconds(value, copy.view, to);
    if (time == kNever || time > best + latency)
      return;
    best = std::min(best, time);
    Option option = {time, to, {}, copy.since, -1};
    option.moves.push_back(
        {{copies.value, copy.view, to}, kindOf(copy.view, to)});
    addOption(found, std::move(option));
  };
  for (const Copy &copy : copies.all) {
    consider(copy, view);
    if (isReturned && !nodes[node].said[operand].empty())
      for (int other :
           ways.returned(value, copy.view, view, nodes[node].said[operand])) {
        if (other != copy.view) {
          consider(copy, other);
          continue;
        }
        found.assign(1, {0, other, {}, copy.since, copy.behind});
        return found;
      }
  }
  if (isLast || isReturned)
    return found;
  for (int by : needs[copies.value]) {
    if (by == view || llvm::any_of(copies.all, [&](const Copy &copy) {
          return copy.view == by;
        }))
      continue;
    if (ways.leastSeconds(value, by, view) >= best)
      continue;
    for (const Copy &copy : copies.all) {
      if (ways.leastSeconds(value, copy.view, by) > best + latency)
        continue;
      const double first = ways.seconds(value, copy.view, by);
      if (first == kNever || first > 2 * best + latency)
        continue;
      const double second = ways.seconds(value, by, view);
      if (second >= best)
        break;
      Option option = {first + second, view, {}, copy.since, -1};
      option.moves.push_back(
          {{copies.value, copy.view, by}, kindOf(copy.view, by)});
      option.moves.push_back({{copies.value, by, view}, kindOf(by, view)});
      addOption(found, std::move(option));
    }
  }
  return found;
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
  if (then.seconds >= bound - rest[node])
    return;
  // What is live from now on.
  for (int set : state.copies) {
    const int value = sets[set].value;
    if (lastUse[value] <= node)
      continue;
    Copies copies = sets[set];
    for (auto &[of, copy] : made)
      if (of == value && llvm::none_of(copies.all, [&](const Copy &other) {
            return other.view == copy.view;
          }))
        copies.all.push_back(copy);
    then.copies.push_back(intern(std::move(copies)));
  }
  for (int result : its.results) {
    if (lastUse[result] <= node)
      continue;
    const int view =
        its.results.size() == 1 ? way.result : ways.numberOf(values[result]);
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
  then.about = then.seconds + ahead(then, node);
  auto [other, isNew] = known.try_emplace(std::move(key), next.size());
  if (isNew)
    next.push_back(std::move(then));
  else if (then.seconds < next[other->second].seconds)
    next[other->second] = std::move(then);
}

//===----------------------------------------------------------------------===//
// What comes after a state, about
//===----------------------------------------------------------------------===//

/// Of a move ahead, which may go together with others.
double FewOps::about(double least) const {
  const double latency = ways.getLatency();
  return least < latency ? least : least - (1 - latencies) * latency;
}

/// Of a node that lies so, all after it, and the moves of what no node makes.
double FewOps::wayAhead(size_t node, const Way &way) {
  const Node &its = nodes[node];
  double sum = way.work;
  for (auto [i, source] : llvm::enumerate(its.sources))
    if (source >= 0 && start[source] >= 0)
      sum += about(ways.leastSeconds(values[source], start[source],
                                     way.operands[i])) /
             double(uses[source].size());
  for (int result : its.results)
    for (const Use &use : uses[result])
      sum += ahead(result,
                   its.results.size() == 1 ? way.result
                                           : ways.numberOf(values[result]),
                   use);
  return sum;
}

double FewOps::ahead(int value, int view, const Use &use) {
  auto known = aheadOfUses.find({use, view});
  if (known != aheadOfUses.end())
    return known->second;
  const Node &node = nodes[use.first];
  double least = kNever;
  if (!node.said.empty()) {
    const int now = node.ways[0].operands[use.second];
    least = about(ways.leastSeconds(values[value], view, now));
    if (!node.said[use.second].empty())
      for (int other :
           ways.returned(values[value], view, now, node.said[use.second]))
        least = std::min(least,
                         about(ways.leastSeconds(values[value], view, other)));
    return aheadOfUses[{use, view}] = least;
  }
  auto [table, isNew] = tables.try_emplace(use);
  if (isNew) {
    llvm::SmallSetVector<int, 4> made;
    for (int source : node.sources)
      if (source >= 0 && start[source] < 0)
        made.insert(source);
    for (const Way &way : node.ways) {
      const double time = wayAhead(use.first, way) / double(made.size());
      auto [known, isNew] =
          table->second.insert({way.operands[use.second], time});
      if (!isNew)
        known->second = std::min(known->second, time);
    }
  }
  for (auto [to, time] : table->second)
    if (time < least)
      least = std::min(
          least, time + about(ways.leastSeconds(values[value], view, to)));
  return aheadOfUses[{use, view}] = least;
}

double FewOps::ahead(int set, size_t node) {
  auto [known, isNew] = aheadOfSets.try_emplace({set, node}, 0);
  const Copies &copies = sets[set];
  if (!isNew || start[copies.value] >= 0)
    return known->second;
  double sum = 0;
  for (const Use &use : uses[copies.value]) {
    if (use.first <= node)
      continue;
    double least = kNever;
    for (const Copy &copy : copies.all)
      least = std::min(least, ahead(copies.value, copy.view, use));
    sum += least;
  }
  return aheadOfSets[{set, node}] = sum;
}

double FewOps::ahead(const State &state, size_t node) {
  double sum = 0;
  for (int set : state.copies)
    sum += ahead(set, node);
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
    const int set = *llvm::find_if(
        state.copies, [&](int set) { return sets[set].value == source; });
    for (const Option &option :
         options(set, node, i, way.operands[i], lastUse[source] <= node)) {
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
  std::vector<double> after;
  for (const Way &way : its.ways) {
    double sum = way.work;
    for (int result : its.results)
      for (const Use &use : uses[result])
        sum += ahead(result,
                     its.results.size() == 1 ? way.result
                                             : ways.numberOf(values[result]),
                     use);
    after.push_back(sum);
  }
  for (auto [number, state] : llvm::enumerate(layer)) {
    SmallVector<int> setOf;
    for (int source : its.sources) {
      auto same = llvm::find_if(state.copies, [&](int set) {
        return source >= 0 && sets[set].value == source;
      });
      setOf.push_back(same == state.copies.end() ? -1 : *same);
    }
    const double others = state.seconds + ahead(state, node);
    ways.spend(kWay * double(its.ways.size()));
    for (auto [w, way] : llvm::enumerate(its.ways)) {
      double least = state.seconds + way.work, sum = others + after[w];
      for (auto [i, set] : llvm::enumerate(setOf))
        if (set >= 0 && its.said.empty()) {
          const double move = leastReach(set, way.operands[i]);
          least += std::max(move - latency, 0.);
          sum += move;
        }
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
  tables.clear();
  aheadOfUses.clear();
  aheadOfSets.clear();
  State first = {0, 0, -1, {nullptr, {}, {}}, {}, {}};
  for (auto [value, view] : llvm::enumerate(start))
    if (view >= 0)
      first.copies.push_back(intern({int(value), {{view, -1, -1}}}));
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
  std::vector<Step> best;
  for (auto [width, latencies] : kRuns) {
    this->latencies = latencies;
    if (std::vector<Step> better = run(width, start); !better.empty())
      best = std::move(better);
  }
  return best;
}
