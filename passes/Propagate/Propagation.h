//===- Propagation.h - from some views to a view for every tensor ---------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Propagation on a plain graph of tensors and ops, without IR.
//
// A tensor's dimension is closed (its product is what the user wrote) or open.
// A round asks every op for proposals: "split this dimension like that". Those
// to one tensor are merged, best first; one is taken if the dimension is open,
// the new product refines the old one, and its axes are free in the tensor. A
// round forward (operands to results) asks each op after those that compute its
// operands; then one goes backward (results and operands to operands), all ops
// from the state before it; and so on until neither changes anything. The order
// in which ops and operands are listed is never looked at, so it has no
// influence.
//
// Where an op cannot have the splits of two tensors, it has those with which it
// and the moves around it take less time (OpCost.h, Planner.h). Where that is
// less than a latency, it waits for what other tensors say, its results too;
// only when nothing else changes any more are such ties broken.
//
// Where nothing says how a value that the function returns shall lie, and it is
// summed over devices, each device keeps a part: a reduce-scatter moves half of
// what an all-reduce does. So it does of a product of such a sum, of which it
// then computes a part, and of a slice, pad or concat along a dimension that it
// keeps. Not so a small one: its all-reduce goes with others. What it returns of
// a composite along a split dimension stays split.
// Arguments stay as they are for it.
//
// Two uses of a value may want different splits of it. A value that costs
// nothing as it is (an argument, or computed without a split sum) then stays
// so: each use cuts its part out of it, and nothing moves.
//
// A flat(k) passes pointwise ops only. To others it comes rounded to its
// outermost dimension, as blocks over the same axes, and an explanation says
// which product in the user's view would need no rounding:
//
//     w [did(tp) * 32, _], linear, then
//     reshape 96 to 16 x 6           [_, flat(2) did(tp) * 32]
//     slice of the last dimension    [_, did(tp) * 6, _]
//     "... would not if w had (did(tp) * 6 | 16) * 6 in dimension 0"
//
// Through slice, pad and concat goes the same split of the other extent: blocks
// stay blocks over the same devices, and only what crosses their borders moves.
// Boxes that are equal parts of the whole stay where they are: beside
// did(tp) * 4 of three of them, the whole is 3 * did(tp) * 4.
// In the end a slice keeps what each device has, where that takes no longer.
// Backward only to values that do not cost nothing as they are, and never to
// fewer values than devices.
//
//     x [_, _]      w0 [did(tp) * _, _]     forward:  h [_, did(tp) * _]
//     h = linear(x, w0)                     backward: nothing
//     y = linear(h, w1), w1 [_, ?]          backward: w1 [_, did(tp) * _]
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PROPAGATE_PROPAGATION_H
#define TESSERA_PROPAGATE_PROPAGATION_H

#include "Layout/AxisOrder.h"
#include "Layout/OpCost.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>

namespace tessera::tv {

class Propagation {
public:
  static constexpr int kClosed = -1;

  struct Tensor {
    layout::Shape shape;
    layout::Shape typical; ///< `shape`, dynamic extents at a usual one
    int64_t elementBytes = 1;
    bool weight = false;   ///< stays in place when a conflict is a tie
    bool returned = false; ///< by the function, in any view
    bool pinned = false;   ///< something that is no node needs it as it lies
    layout::View view;     ///< canonical
    /// For each tensor dimension kClosed, or that it is open.
    std::vector<int> open;
    /// For each view dimension of a user's view the priority at which it takes
    /// part; 0 otherwise.
    std::vector<int64_t> priority;
    std::string name; ///< where decisions are explained

    int64_t bytes() const; ///< global
  };

  /// A view of one end from a view of the other (reshape).
  using ViewMap = std::function<Result<layout::View>(const layout::View &)>;

  struct Node {
    std::string name;                   ///< where decisions are explained
    std::vector<int> operands, results; ///< tensors; -1 for none
    layout::Rule rule;                  ///< unless `forward` is set
    bool pointwise = false;             ///< passes flat dimensions on
    ViewMap forward, backward;
    /// Where the one result is a box of the first operand: as what each device
    /// has of it.
    ViewMap box;
    /// Where the boxes of a whole are some of the equal parts that it has along
    /// their shifted dimension.
    bool hasEqualParts = false;
  };

  /// With `explain`, `decisions` tells of all; without, ops that can decide
  /// nothing are not asked.
  explicit Propagation(layout::Mesh mesh, const layout::Machine &machine = {},
                       bool explain = true);

  int addTensor(Tensor tensor);
  void addNode(Node node);

  /// Runs to the fixed point. Fails if it is not reached in axes x tensors
  /// rounds, which would be an error of this class.
  Status run();

  const Tensor &tensor(int index) const { return tensors[index]; }
  /// Whether propagation may split a dimension of it.
  bool isOpen(int tensor) const;

  /// Where a decision comes from, or why a proposal was not taken.
  struct Decision {
    int tensor;
    bool taken;
    std::string text;
  };
  const std::vector<Decision> &decisions() const { return log; }

private:
  enum class Direction { Forward, Backward };

  /// "Dimension `dim` of the view of `tensor` becomes `to`."
  struct Proposal {
    int tensor;
    int64_t firstDim; ///< tensor dimension where `to` begins
    layout::Dim to;
    int node;
    int source;        ///< tensor
    int64_t sourceDim; ///< where its product begins
    bool shifted;      ///< after others: its op moves an overlap
    bool rounded;      ///< last
    // Rank among proposals: smaller first.
    int64_t priority;
    int64_t bytes; ///< of the tensor that it comes from; larger first
    bool weight;   ///< first
  };

  class ByRule;

  std::optional<layout::Price> priceMove(int tensor, const layout::View &from,
                                         const layout::View &to) const;
  /// Whether there is a plan from `view` to whole.
  bool canLeave(int tensor, const layout::View &view) const;
  Status runToEnd(int64_t priority, int64_t &roundsLeft);
  bool roundForward(int64_t priority);
  bool roundBackward(int64_t priority);
  /// Tries them all, the best first; whether one was taken.
  bool merge(std::vector<Proposal> &proposals, Direction direction);
  void findDepths();
  /// Whether the one result lies as its operands do.
  bool passesOn(const Node &node) const;
  bool isOpenEverywhere(int tensor) const;
  /// Whether `view` splits dimensions that are closed as they are split.
  bool keepsClosed(int tensor, const layout::View &view) const;
  bool isWhole(int tensor) const {
    return layout::axesOf(tensors[tensor].view).empty() &&
           isOpenEverywhere(tensor);
  }
  /// Of an operand of such a node, if its result lies as `view`.
  std::optional<layout::View> viewAbove(const Node &node, size_t operand,
                                        const layout::View &view) const;
  struct Sum {
    std::vector<layout::SubAxis> axes; ///< over which it is summed
    /// Which may lie otherwise with it, it first, each before what it is made
    /// of: nothing else uses them.
    std::vector<int> tensors;
    std::set<int> sums;       ///< of these
    bool behindLoops = false; ///< an op between splits some loops only
  };
  /// Of what a tensor is made last.
  Sum findSum(int tensor) const;
  /// How what `tensor` is made of lies, as far as its sums, if it lies as
  /// `view`; none where uses differ.
  std::map<int, std::optional<layout::View>>
  viewsAbove(const Sum &sum, int tensor, const layout::View &view) const;
  /// Splits a sum that is returned over the devices that have its addends.
  void scatterReturned(int tensor);
  /// Whether a box stays as its operand lies; see KeepBoxes.cpp.
  void keepBox(int node);
  /// Whether a composite's result stays as core ops make it; KeepSplits.cpp.
  void keepSplit(int node);
  bool passSplits(const Node &node, size_t operand, const layout::View &before,
                  const layout::View &after,
                  std::map<int, layout::View> &views) const;
  double secondsOf(const Node &node,
                   const std::map<int, layout::View> &views) const;
  /// Views are only refined, so an op whose tensors are as before proposes what
  /// has been taken or refused already: it need not be asked again.
  void askAgain(int node);
  void propose(int node, Direction direction, int64_t priority,
               std::vector<Proposal> &proposals);
  /// See ProposeByRule.cpp.
  void proposeByRule(int node, Direction direction, int64_t priority,
                     std::vector<Proposal> &proposals);
  void proposeByView(int node, int source, int target, const ViewMap &map,
                     int64_t priority, std::vector<Proposal> &proposals) const;
  /// Whether an op must be written out where that is split, as a softmax.
  bool isNeededWhole(const Proposal &proposal) const;
  bool take(const Proposal &proposal);
  /// The view of its tensor with what it proposes, other dimensions without the
  /// axes of that; nothing if it begins or ends inside of one.
  std::optional<layout::View> viewWith(const Proposal &proposal) const;
  /// Whether `a` and `b`, to one tensor, exclude each other.
  bool exclude(const Proposal &a, const Proposal &b) const;
  /// Marks the dimensions of tensors that stay as they are because uses differ.
  void findDisputes(const std::vector<Proposal> &proposals);
  bool isFreeAsItIs(int tensor) const;
  /// A flat dimension that splits its outermost dimension, of `extent`, into
  /// blocks over the same axes; nothing if stored digits come first.
  std::optional<layout::Dim> roundToOutermost(const layout::Dim &flat,
                                              int64_t extent) const;
  void explainRounding(const Proposal &proposal);
  /// Logs a decision on `tensor`, of which `text()` tells.
  template <typename Text> void say(int tensor, bool taken, Text text) {
    if (explain)
      log.push_back({tensor, taken, text()});
  }
  std::string describe(const Proposal &proposal) const;

  bool explain;
  layout::Mesh mesh;
  layout::AxisOrder axisOrder;
  mutable layout::Plans plans; ///< each made once
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<std::vector<int>> nodesOfTensor;
  std::vector<int> producers; ///< nodes; -1 for none
  std::vector<int> depths;    ///< of nodes: of their operands' producers, and 1
  /// Whether ties are broken, and the ops that have met one that was not.
  bool breakTies = false;
  std::set<int> tied;
  /// For each tensor dimension, whether its uses want it split differently.
  std::vector<std::vector<bool>> disputed;
  /// For each tensor dimension whose product was carried unchanged: from where.
  std::vector<std::vector<std::pair<int, int64_t>>> origins;
  /// The ops to ask in the next round of a direction, and whether one is
  /// listed.
  std::vector<int> pending[2];
  std::vector<bool> isPending[2];
  std::vector<Decision> log;
  std::set<int> explained; ///< tensors whose rounding `log` has
  /// Nodes, tensors and dimensions of which `log` says what does not pass.
  std::set<std::tuple<int, int, int64_t>> conflicts;
};

} // namespace tessera::tv

#endif // TESSERA_PROPAGATE_PROPAGATION_H
