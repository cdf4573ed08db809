//===- FewOps.h - the best placement of few ops -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLACE_FEWOPS_H
#define TESSERA_PLACE_FEWOPS_H

#include "Place/Ways.h"

#include <string>
#include <unordered_map>

namespace tessera::tv {

/// Ops in order that are placed all at once, the last of which returns values.
/// A beam search: one after the other, for all states after those before it;
/// what lies alike from then on goes on as the state of the least time, and of
/// many states those of the least time go on, by about what comes after them.
/// None does that takes no less than what is known, by what must come after it.
class FewOps {
public:
  /// An op, of which values and views have numbers.
  struct Node {
    mlir::Operation *op;
    llvm::SmallVector<int> sources; ///< values; -1 has no view
    llvm::SmallVector<int> results;
    std::vector<Way> ways;
    /// Of an op that returns: what is said of each source (Ways::returned).
    llvm::SmallVector<llvm::SmallVector<Said>> said;
  };
  /// Of a value from one view to another.
  struct Move {
    int value, from, to;
  };
  /// How a node is placed: its way, how its operands lie, and what moves.
  struct Step {
    const Way *way;
    llvm::SmallVector<int, 3> reads;
    llvm::SmallVector<Move, 3> moves;
  };

  FewOps(Ways &ways, std::vector<Node> nodes, std::vector<mlir::Value> values);
  /// By node; empty if none takes less than `bound`. `start`: of the values
  /// that no node makes, how they lie.
  std::vector<Step> solve(double bound, llvm::ArrayRef<int> start);

private:
  /// Where a value lies: it was there before nodes from `since` on needed
  /// moves.
  struct Copy {
    int view, since;
    int behind; ///< the exchange that waits behind it for an op; or -1
    auto key() const { return std::tuple(view, since, behind); }
  };
  struct Copies {
    int value;
    llvm::SmallVector<Copy, 2> all;
  };
  /// Up to two moves that bring a value to `view`.
  struct Option {
    double seconds;
    int view;
    llvm::SmallVector<std::pair<Move, int>, 2> moves; ///< and their kinds
    int since, behind;
  };
  struct State {
    double seconds;
    double about; ///< with what comes after it
    int before;   ///< in the layer before
    Step step;
    llvm::SmallVector<int, 6> copies;                 ///< of live values
    llvm::SmallVector<std::pair<int, int>, 2> groups; ///< by kind, when ended
  };
  using Layer = std::vector<State>;

  /// A node that reads a value, and the number of the operand.
  using Use = std::pair<size_t, size_t>;
  /// Seconds of what comes: about, and at the least.
  struct Ahead {
    double sum = 0, most = 0;
    void operator+=(const Ahead &other) {
      sum += other.sum;
      most = std::max(most, other.most);
    }
    void takeLess(const Ahead &other) {
      sum = std::min(sum, other.sum);
      most = std::min(most, other.most);
    }
  };
  using Table = llvm::MapVector<int, Ahead>; ///< by view

  int intern(Copies copies);
  int viewOf(const Node &node, const Way &way, int result) const;
  int setFor(const State &state, int value) const;
  int kindOf(const Move &move);
  const std::vector<Option> &options(int set, const Use &use, int view);
  void addOption(std::vector<Option> &found, double seconds, const Copy &from,
                 llvm::ArrayRef<Move> moves);
  void addOptionsBy(std::vector<Option> &found, const Copies &copies,
                    size_t node, int view, double best);
  int endedAfter(const State &state, int since);
  double leastMove(const Move &move, int ended);
  double leastReach(const State &state, int set, int view);
  double about(double least) const;
  Ahead wayAhead(size_t node, const Way &way);
  const Table &tableOf(const Use &use);
  llvm::SmallVector<int> returned(int value, int view, const Use &use);
  Ahead ahead(int value, int view, const Use &use, int ended);
  Ahead ahead(const State &state, int set, size_t next);
  double aheadOfFirst(const State &state, size_t node);
  Ahead ahead(const State &state, size_t next);
  void tryWay(const State &state, int number, size_t node, const Way &way,
              double limit);
  void finish(const State &state, int number, size_t node, const Way &way,
              llvm::ArrayRef<const Option *> chosen);
  void extend(const Layer &layer, size_t node, size_t width);
  std::vector<Step> run(size_t width, llvm::ArrayRef<int> start);

  Ways &ways;
  std::vector<Node> nodes;
  std::vector<mlir::Value> values;
  std::vector<int> start;                   ///< by value, -1 if made
  std::vector<size_t> firsts;               ///< nodes that read no results
  std::vector<size_t> lastUse;              ///< by value
  std::vector<llvm::SmallVector<Use>> uses; ///< by value, in order
  std::vector<llvm::SetVector<int>> needs;  ///< by value
  std::vector<double> leastWork;            ///< by node
  std::vector<double> rest;                 ///< by node, of those after it
  double bound = 0;
  double latencies = 1; ///< as many are counted of each move ahead
  bool keepsParts = true;

  std::vector<Copies> sets;
  std::map<std::vector<int>, int> numbersOfSets;
  std::map<std::tuple<int, size_t, int>, std::vector<Option>> optionsOfSets;
  std::vector<Move> exchanges; ///< by number
  std::map<std::tuple<int, int, int>, int> numbersOfExchanges;
  std::map<Use, Table> tables;
  std::map<std::tuple<Use, int, int>, Ahead> aheadOfUses;
  std::map<std::vector<int>, Ahead> aheadOfSets;
  std::map<std::vector<int>, double> aheadOfFirsts;
  std::vector<std::vector<int>> kindsEnded = {{}}; ///< by number
  std::map<std::vector<int>, int> numbersOfKinds = {{{}, 0}};
  Layer next;
  std::unordered_map<std::string, size_t> known; ///< of the next layer
};

} // namespace tessera::tv

#endif // TESSERA_PLACE_FEWOPS_H
