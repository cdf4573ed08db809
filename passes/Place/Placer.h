//===- Placer.h - ops placed together ---------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PLACE_PLACER_H
#define TESSERA_PLACE_PLACER_H

#include "Place/FewOps.h"
#include "Place/PlaceTogether.h"
#include "Place/Ways.h"
#include "TensorView/Contract.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

#include <limits>

namespace tessera::tv {

/// What PlaceTogether.h does.
class Placer {
public:
  Placer(mlir::func::FuncOp function, Moves &moves, Ways ways,
         const layout::Mesh &mesh, llvm::function_ref<void()> beforeChange);
  LeftAlone run();
  /// Where there are few ops: all at once, however they share values and moves.
  /// Whether there are.
  bool runFew(double bound);

private:
  /// An op, and how else it may be placed.
  struct Placed {
    mlir::Operation *op;
    Way now;
    /// Null until a region asks; `now` may be none of them.
    const std::vector<Way> *ways = nullptr;
    double least = 0; ///< of work
  };

  /// A value that lies in some view, and the time until it does.
  struct Lie {
    double seconds;
    const Way *way;
    /// Of an exchange, if it comes before it and ops on the way (OpPrice.h).
    int kind = kAlone;
  };

  /// The time until a value lies in a view, the kind of the move that brings it
  /// there, and from where: an op waits for all moves of one kind together.
  struct Reach {
    double seconds = std::numeric_limits<double>::infinity();
    int kind = kAlone, from = -1;
  };
  /// The least, and if that is alone the least that is not; it takes less than
  /// a latency more.
  struct Reaches {
    Reach least, joining;
  };
  /// Others are those of small moves (Ways.h).
  static constexpr int kAlone = -1, kExchange = -2;

  /// Ops that are placed at once, in order. All of them make one value; those
  /// that are not read by one other of them only are the ends.
  struct Region {
    llvm::SmallVector<Placed *> ops;
    llvm::SmallVector<mlir::Value, 2> centers; ///< in order
  };
  /// The view in which a center lies, and that of its copy.
  using Spot = std::pair<int, int>;

  /// An operand of an op of a region, by their numbers.
  using Read = std::pair<size_t, size_t>;

  /// A move to `view` that operands share: of what the first of them reads.
  struct Shared {
    Read read;
    int view;

    bool operator==(const Shared &other) const = default;
  };

  /// Of such a move, what reads first what it makes, and its kind.
  struct SharedMove {
    mlir::Operation *op;
    size_t operand;
    int view, kind;
  };

  /// How ops of a region are placed.
  struct Solution {
    double seconds = std::numeric_limits<double>::infinity();
    llvm::SmallVector<Spot, 2> centers;
    llvm::SmallVector<Shared> shared;
    llvm::SmallVector<int> waiting; ///< kinds of moves of what is returned
    llvm::SmallVector<Way> ways;
  };

  /// A reshard of one value that the user did not write.
  static ReshardOp asMove(mlir::Operation *op);
  /// The value before moves.
  static mlir::Value sourceOf(mlir::Value value);
  /// The uses of `value` and of what moves make of it.
  static void findUses(mlir::Value value,
                       llvm::SmallVectorImpl<mlir::OpOperand *> &uses);

  void finish();
  double takesNow();
  void addSmallRuns();
  double workNow(mlir::Operation *op);
  double addOp(mlir::Operation *op);
  bool isOnPart(mlir::Operation *op);
  void findWays(Placed &placed);
  bool isPlaced(mlir::Operation *op) const { return placed.contains(op); }
  static bool isCenter(const Region &region, mlir::Value value) {
    return llvm::is_contained(region.centers, value);
  }
  /// Whether the user says of all dimensions of a result of `op` how they are
  /// split; where one is open, what is said holds where that is returned.
  static bool isWritten(mlir::Operation *op);
  /// The one other placed op that reads the result of a placed op; null where
  /// there are more.
  mlir::Operation *joining(mlir::Value value) const;
  bool isJoined(mlir::Value value) const { return joining(value); }
  int numberOf(mlir::Value value) { return ways.numberOf(value); }
  double seconds(mlir::Value value, int from, int to) {
    return ways.seconds(value, from, to);
  }
  double leastSeconds(mlir::Value value, int from, int to) {
    return ways.leastSeconds(value, from, to);
  }

  std::vector<int64_t> keyOf(const Region &region);
  double mostNow(const Region &region);
  void leaveSmall(const Region &region);
  bool improve(const Region &region);
  mlir::Value valueOf(const Region &region, const Shared &shared);
  void findReads(const Region &region);
  void addShared(const Region &region, llvm::ArrayRef<Way> chosen,
                 llvm::SmallVectorImpl<Shared> &shared);
  double pay(const Region &region, llvm::ArrayRef<Shared> shared);
  Solution findBest(const Region &region, llvm::ArrayRef<Shared> now,
                    double bound);
  Solution solve(const Region &region, llvm::ArrayRef<Shared> shared,
                 llvm::ArrayRef<int> together, bool asItIs, double bound);
  double payersOf(mlir::Value source) const {
    auto known = reads.find(source);
    return paysParts && known != reads.end() ? double(known->second.size()) : 1;
  }
  llvm::ArrayRef<int> placesFor(mlir::Value source, const int &is);
  const Reaches &reach(const Region &region, mlir::Value source, int view);
  Reaches reachOperand(const Region &region, mlir::OpOperand &operand,
                       mlir::Value source, int view, int before);
  int kindOf(mlir::Value value, int from, int to);
  llvm::SmallVector<int> findBefore(const Region &region,
                                    llvm::ArrayRef<mlir::Value> sources);
  double join(llvm::MutableArrayRef<Reach> operands,
              llvm::ArrayRef<Reaches> reaches);
  double leastReach(const Region &region, mlir::Value source, int view);
  llvm::ArrayRef<Said> saidOf(mlir::OpOperand &use);
  int needOf(mlir::Value value, int from, mlir::OpOperand &use,
             bool asItIs = false, bool least = false);
  int kindReturned(mlir::OpOperand &use);
  void noteReturned(mlir::OpOperand &use);
  void noteNeeded();
  std::map<int, llvm::SmallPtrSet<mlir::Operation *, 4>> findReturned() const;
  llvm::SmallVector<int> waitingNow() const;
  bool isShared(mlir::OpOperand &use, int kind);
  double reachEnds(mlir::Value value, int from, int copy, bool asItIs,
                   bool least = false);
  double timeTo(mlir::Value value, int from, int to, mlir::OpOperand &use);
  llvm::ArrayRef<mlir::Value> copiesFor(const Region &region,
                                        mlir::Value source);
  llvm::SmallVector<int> viewsFor(const Region &region, mlir::Value source);
  void evaluate(const Region &region, const Placed &placed, bool asItIs,
                double bound);
  void choose(const Region &region, mlir::Value value, int view,
              llvm::DenseMap<mlir::Operation *, const Way *> &chosen);
  mlir::Value settle(mlir::OpBuilder &builder, mlir::Value value, int view,
                     int copyView);
  void apply(const Region &region, const Solution &solution);
  mlir::Value moveTo(mlir::OpBuilder &builder, mlir::Value value, int view);

  mlir::func::FuncOp function;
  llvm::SmallVector<mlir::BlockArgument> states; ///< of its results
  Moves &moves;
  const layout::Mesh &mesh;
  Ways ways;
  llvm::function_ref<void()> beforeChange;
  bool changed = false;
  double slack = 0; ///< less is no gain
  LeftAlone left;
  llvm::DenseSet<mlir::Value> leftMoves; ///< that count there
  /// Of regions that look the same; without ways where nothing is gained.
  std::map<std::vector<int64_t>, Solution> solved;

  llvm::MapVector<mlir::Operation *, Placed> placed;
  std::map<Looks, double> works;
  llvm::DenseMap<mlir::Type, bool> onPart; ///< whether a value of the type is
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::OpOperand *>> uses;
  std::map<unsigned, llvm::SmallVector<Said>> saidOfReturned;
  /// What is returned, by the kind of its small move and by number.
  std::map<int, std::map<unsigned, mlir::Value>> returned;
  std::map<int, llvm::SmallVector<ReshardOp>> needed; ///< by kind, by ops

  // Of the region that is solved.
  llvm::DenseSet<mlir::Operation *> inside;
  llvm::DenseMap<mlir::Value, llvm::MapVector<int, Lie>> lies;
  bool isAsItIs = false;
  std::map<std::pair<void *, int>, llvm::SmallVector<int>> places;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> copies;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<int>> sharedViews;
  llvm::SmallVector<SharedMove> sharedMoves;
  llvm::SmallVector<int> waiting;
  llvm::SetVector<int> kindsOfEnds;
  llvm::MapVector<mlir::Value, llvm::SmallVector<Read>> reads; ///< shared
  bool paysParts = false; ///< each of these a part of its move
  llvm::DenseMap<mlir::Value, std::map<int, Reaches>> reached;
  llvm::DenseMap<mlir::Value, llvm::DenseMap<int, double>> leastReached;
  llvm::SmallDenseMap<mlir::Value, Spot, 2> spots; ///< of its centers
};

} // namespace tessera::tv

#endif // TESSERA_PLACE_PLACER_H
