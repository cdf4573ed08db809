//===- Ways.h - all ways to place an op -------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLACE_WAYS_H
#define TESSERA_PLACE_WAYS_H

#include "Layout/AxisOrder.h"
#include "Place/ChoosePlacement.h"

#include <map>

namespace tessera::tv {

/// One way to place an op of one result: numbers of views.
struct Way {
  llvm::SmallVector<int, 3> operands;
  int result;
  double work; ///< seconds

  bool operator==(const Way &other) const {
    return operands == other.operands && result == other.result;
  }
};

/// What the user says of how a dimension is split: nothing, how at least
/// (`did(x) * ?`), or how.
enum class Said { Nothing, Least, All };

/// The digits that are dealt to loops: axes of `mesh`, cut where those of views
/// begin and end, and where `isFine` into primes, an axis of 4 into two of 2.
/// Axes whole where that is too many.
std::vector<layout::SubAxis> findDigits(const layout::Mesh &mesh,
                                        llvm::ArrayRef<ViewAttr> views,
                                        bool isFine);

/// How ops may be placed over digits of a mesh, and the moves between.
class Ways {
public:
  /// What nothing else decides the order of axes in `views` does.
  Ways(Moves &moves, const layout::Mesh &mesh,
       std::vector<layout::SubAxis> digits, llvm::ArrayRef<ViewAttr> views,
       double mostPlans);

  /// Sizes may be small, too (Moves::setSmall): times are from now on those of
  /// typical runs, and `weight` times those of small ones.
  void addSmallRuns(double weight) { weightOfSmall = weight; }
  /// What goes over links counts no more than it takes, and concats and slices
  /// are split along their dimension, too.
  void beThorough() {
    carried = 0;
    isThorough = true;
  }

  /// Each digit divides one loop, in every order, keeps operands partial, or
  /// does neither, and may leave a gap in a loop that others divide. Empty
  /// where that is more than can be tried. Ops that look the same have the
  /// same.
  const std::vector<Way> &of(mlir::Operation *op);

  /// What `time` gives, and with small runs too what it gives for these.
  double sum(llvm::function_ref<double()> time);

  int numberOf(const layout::View &view);
  int numberOf(mlir::Value value);
  const layout::View &viewOf(int number) const { return views[number]; }

  /// Of the op when it lies as `placement`.
  double work(mlir::Operation *op, const Placement &placement);
  /// Of a move of `value`; infinity if there is none. What goes over links
  /// counts a little more than it takes.
  double seconds(mlir::Value value, int from, int to);
  /// A move of a value from one view to another.
  struct MoveOf {
    mlir::Value value;
    int from, to;
  };
  /// What moves of one step from peer to peer save that go together.
  double saved(llvm::ArrayRef<MoveOf> together);
  /// Whether such moves of operands of one op go together.
  bool isExchange(mlir::Value value, int from, int to);
  /// At most that, without a plan.
  double leastSeconds(mlir::Value value, int from, int to);
  /// Of one phase of a move.
  double getLatency() const {
    return moves.getMachine().latency * (1 + weightOfSmall);
  }
  /// Small moves of one kind go together (tv-merge-reshards); -1 for others.
  int kindOf(mlir::Value value, int from, int to);
  int numKinds() const { return int(kinds.size()); }
  /// How `value`, which lies as `view`, may be returned where the user says
  /// that of its dimensions, with which `now` agrees: sums, and what splits
  /// dimensions otherwise, scattered where that cuts best if there is something
  /// to cut, or whole.
  llvm::ArrayRef<int> returned(mlir::Value value, int view, int now,
                               llvm::ArrayRef<Said> said);

  /// What finding the least time may take, in plans of moves: the same on every
  /// machine, so that what is found is, too.
  void spend(double plans) { left -= plans; }
  bool isSpent() const { return left < 0; }

private:
  uint64_t keyOf(mlir::Value value, int from, int to);
  llvm::SmallVector<Delay> delaysOf(ShardingRuleOpInterface op);
  void find(ReinterpretOpInterface op, std::vector<Way> &ways);
  void find(ShardingRuleOpInterface op, llvm::ArrayRef<Delay> delays,
            std::vector<Way> &ways);
  void add(mlir::Operation *op, const Placement &placement,
           std::vector<Way> &ways);
  llvm::ArrayRef<layout::SubAxis> digitsFor(size_t places) const;
  std::optional<bool> isSlice(mlir::Value value, int from, int to) const;
  layout::Shape smallShapeOf(mlir::Value value);
  int shapeOf(mlir::Value value);
  double localBytes(mlir::Value value, int view);
  double totalBytes(mlir::Value value);

  Moves &moves;
  const layout::Mesh &mesh;
  layout::AxisOrder axisOrder;
  double weightOfSmall = 0;
  double carried; ///< what goes over links counts so much more
  bool isThorough = false;
  double left;
  std::vector<layout::SubAxis> digits, axes; ///< dealt; axes whole
  std::map<std::vector<int64_t>, std::vector<Way>> known;

  std::vector<layout::View> views;
  std::map<layout::View, int> numbers;
  llvm::DenseMap<mlir::Attribute, int> numbersOfViews; ///< of values
  std::map<std::tuple<layout::Shape, layout::Shape, int64_t>, int> shapes;
  llvm::DenseMap<mlir::Value, int> shapeOfValue;
  std::pair<mlir::Value, int> last;                ///< of these
  llvm::DenseMap<uint64_t, double> times;          ///< by shape and two views
  llvm::DenseMap<uint64_t, double> leastTimes;     ///< by the same
  std::map<std::vector<uint64_t>, double> savings; ///< by more of the same
  llvm::DenseMap<uint64_t, bool> exchanges;        ///< by the same
  llvm::DenseMap<uint64_t, int> kindsOfMoves;      ///< by the same
  /// By shape, two views and what the user says.
  std::map<std::tuple<int, int, int, std::vector<Said>>,
           llvm::SmallVector<int, 2>>
      returnedAs;
  llvm::DenseMap<uint64_t, double> localParts; ///< bytes, by shape and view
  llvm::DenseMap<std::pair<int, int>, double> lacksOfMoves;
  std::map<Moves::Kind, int> kinds;
};

} // namespace tessera::tv

#endif // TESSERA_PLACE_WAYS_H
