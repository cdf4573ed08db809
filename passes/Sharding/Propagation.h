//===- Propagation.h - from some views to a view for every tensor
//----------===//
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
// A round asks every op, from the state before the round, for proposals: "split
// this dimension like that". Then the proposals to each tensor are merged, best
// first; one is taken if the dimension is open, the new product refines the old
// one, and its axes are free in the tensor. Rounds go forward (operands to
// results) until nothing changes, then one backward (results and operands to
// operands), and so on until neither changes anything. The order of ops and
// operands is never looked at, so it has no influence.
//
//     x [_, _]      w0 [did(tp) * _, _]     forward:  h [_, did(tp) * _]
//     h = linear(x, w0)                     backward: nothing
//     y = linear(h, w1), w1 [_, ?]          backward: w1 [_, did(tp) * _]
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_SHARDING_PROPAGATION_H
#define TESSERA_SHARDING_PROPAGATION_H

#include "Layout/Rule.h"

#include <functional>
#include <memory>

namespace tessera::tv {

class Propagation {
public:
  static constexpr int kClosed = -1;

  struct Tensor {
    layout::Shape shape;
    int64_t bytes = 0;   ///< global, dynamic extents at their maximum
    bool weight = false; ///< stays in place when a conflict is a tie
    layout::View view;   ///< canonical
    /// For each tensor dimension kClosed, or that it is open.
    std::vector<int> open;
    /// For each view dimension of a user's view the priority at which it takes
    /// part; 0 otherwise.
    std::vector<int64_t> priority;
    std::string name; ///< for explanations
  };

  /// A view of one end from a view of the other (reshape).
  using ViewMap = std::function<Result<layout::View>(const layout::View &)>;

  struct Node {
    std::string name;
    std::vector<int> operands, results; ///< tensors; -1 for none
    layout::Rule rule;                  ///< unless `forward` is set
    ViewMap forward, backward;
  };

  explicit Propagation(layout::Mesh mesh) : mesh(std::move(mesh)) {}

  int addTensor(Tensor tensor);
  void addNode(Node node);

  /// Runs to the fixed point. Fails if it is not reached in axes x tensors
  /// rounds, which would be an error of this class.
  Status run();

  const Tensor &tensor(int index) const { return tensors[index]; }

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
    // Rank among proposals: smaller first.
    int64_t priority;
    int64_t bytes; ///< of the tensor that it comes from; larger first
    bool weight;   ///< first
    std::string text;
    std::string why;
  };

  /// A product that one tensor of an op suggests for one of its factors (or,
  /// for flat dimensions, a sequence of factors).
  struct Candidate {
    std::vector<int> factors;
    layout::Dim dim;
    int64_t priority;
    int64_t bytes;
    bool weight;
    std::string text;
    int source;
    bool isOperand;
  };

  bool round(Direction direction, int64_t priority);
  /// Views are only refined, so an op whose tensors are as before proposes what
  /// has been taken or refused already: it need not be asked again.
  void askAgain(int node);
  void propose(const Node &node, Direction direction, int64_t priority,
               std::vector<Proposal> &proposals) const;
  void proposeByRule(const Node &node, Direction direction, int64_t priority,
                     std::vector<Proposal> &proposals) const;
  void proposeByView(const Node &node, int source, int target,
                     const ViewMap &map, int64_t priority,
                     std::vector<Proposal> &proposals) const;
  void collect(int tensor, const std::vector<std::vector<int>> &factorsOfDims,
               bool isOperand, int64_t priority,
               std::vector<Candidate> &candidates) const;
  bool take(const Proposal &proposal);
  bool isWhole(const Tensor &tensor, const layout::Dim &dim,
               int64_t first) const;

  layout::Mesh mesh;
  std::vector<Tensor> tensors;
  std::vector<Node> nodes;
  std::vector<std::vector<int>> nodesOfTensor;
  /// The ops to ask in the next round of a direction, and whether one is
  /// listed.
  std::vector<int> pending[2];
  std::vector<bool> isPending[2];
  std::vector<Decision> log;
};

} // namespace tessera::tv

#endif // TESSERA_SHARDING_PROPAGATION_H
