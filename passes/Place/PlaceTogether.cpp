//===- PlaceTogether.cpp - the cheapest views for ops together ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is best for one op after the other need not be best for all:
//
//     t = transpose a     the view of a, moved here or there
//     p = matmul t, b     wants t split otherwise
//     y = add p, c        p partial: one move of y for two of p and c
//
// Ops that values of one use join are a tree: the least time for its last value
// to lie in each view follows from that for the values before, whatever the
// rest does. Each op is divided in all ways over the digits of the mesh
// (`Ways`). A value of several uses is an end of its trees, where it lies as it
// is; then the trees around one such value are placed together, for each view
// in which that value may lie, but for those that read what another makes; and
// where that gains nothing more, those around two such values next to a tree.
// What more operands than one read of other values moves once for all of them;
// exchanges for the operands of one op have one latency, as small moves of one
// kind have, and those of what is returned, which wait for the end. All is done
// again while that gains, for each is placed beside the others as they stand.
//
//===----------------------------------------------------------------------===//

#include "Place/PlaceTogether.h"
#include "Layout/OpCost.h"
#include "Place/Placer.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using layout::View;

static constexpr double kNever = std::numeric_limits<double>::infinity();
/// What is less of the whole function's time is no gain.
static constexpr double kLeastGain = 0.01;
/// Beyond, plans of the moves that are tried take more than a second.
static constexpr int64_t kMaxDevices = 1024;
/// In plans of moves: what may be spent on a function, and once more with axes
/// cut into primes.
static constexpr double kMostPlans = 10000, kFinePlans = 2000, kFewPlans = 8000;
/// More ops than this around one value are placed tree by tree.
static constexpr size_t kMaxAround = 16;
/// What is gained later is little.
static constexpr int kMaxSweeps = 3;

static SmallVector<ViewAttr> findViews(func::FuncOp function) {
  llvm::SetVector<ViewAttr> views;
  auto add = [&](Value value) {
    if (ViewAttr view = getView(value))
      views.insert(view);
  };
  llvm::for_each(function.getArguments(), add);
  for (Operation &op : function.getBody().front())
    llvm::for_each(op.getResults(), add);
  return views.takeVector();
}

Placer::Placer(func::FuncOp function, Moves &moves, Ways ways,
               const layout::Mesh &mesh,
               llvm::function_ref<void()> beforeChange)
    : function(function), states(getStates(function)), moves(moves), mesh(mesh),
      ways(std::move(ways)), beforeChange(beforeChange) {}

ReshardOp Placer::asMove(Operation *op) {
  auto reshard = dyn_cast_or_null<ReshardOp>(op);
  bool moves = reshard && reshard.getInputs().size() == 1 &&
               !reshard->hasAttr(kUserMoveAttr) && !reshard->hasAttr(kStepAttr);
  return moves ? reshard : ReshardOp();
}

Value Placer::sourceOf(Value value) {
  while (ReshardOp move = asMove(value.getDefiningOp()))
    value = move.getInputs()[0];
  return value;
}

void Placer::findUses(Value value, SmallVectorImpl<OpOperand *> &uses) {
  for (OpOperand &use : value.getUses())
    if (ReshardOp move = asMove(use.getOwner()))
      findUses(move.getResult(0), uses);
    else
      uses.push_back(&use);
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

Value Placer::moveTo(OpBuilder &builder, Value value, int view) {
  if (numberOf(value) == view)
    return value;
  Type type =
      withEncoding(value.getType(), getView(value).with(ways.viewOf(view)));
  return ReshardOp::create(builder, value.getLoc(), TypeRange{type},
                           ValueRange{value}, StepAttr())
      .getResult(0);
}

/// `value` lies as `view`, with a copy as `copyView`; its uses that are not in
/// the region are served from either. Gives the copy.
Value Placer::settle(OpBuilder &builder, Value value, int view, int copyView) {
  SmallVector<std::pair<OpOperand *, int>> needs;
  for (OpOperand *use : uses.find(value)->second)
    if (!inside.contains(use->getOwner()))
      needs.emplace_back(use, needOf(value, view, *use));
  value.setType(
      withEncoding(value.getType(), getView(value).with(ways.viewOf(view))));
  Value copy = moveTo(builder, value, copyView);
  SmallVector<std::pair<int, Value>> has = {{view, value}};
  if (copy != value)
    has.emplace_back(copyView, copy);
  auto serve = [&](OpOperand *use, Value by) {
    use->set(by);
    if (isa<func::ReturnOp>(use->getOwner()))
      noteReturned(*use);
  };
  // What is nearest first, as `reachEnds` counts it.
  while (!needs.empty()) {
    double least = kNever;
    size_t next = 0, by = 0;
    for (auto [number, each] : llvm::enumerate(needs))
      for (auto [source, known] : llvm::enumerate(has)) {
        double time = timeTo(value, known.first, each.second, *each.first);
        if (time < least) {
          least = time;
          next = number;
          by = source;
        }
      }
    auto [use, need] = needs[next];
    Value moved = moveTo(builder, has[by].second, need);
    if (moved != has[by].second)
      has.emplace_back(need, moved);
    serve(use, moved);
    needs.erase(needs.begin() + next);
  }
  return copy;
}

void Placer::apply(const Region &region, const Solution &solution) {
  OpBuilder builder(function.getContext());
  llvm::SmallDenseMap<Value, Value, 2> copyOfCenter;
  auto settleCenter = [&](Value center) {
    builder.setInsertionPointAfterValue(center);
    auto [view, copy] = solution.centers[llvm::find(region.centers, center) -
                                         region.centers.begin()];
    copyOfCenter[center] = settle(builder, center, view, copy);
  };
  auto isServed = [&](Value value) {
    return llvm::all_of(uses.find(value)->second, [&](OpOperand *use) {
      return inside.contains(use->getOwner()) ||
             needOf(value, numberOf(value), *use) == numberOf(use->get());
    });
  };
  for (Value center : region.centers)
    if (!inside.contains(center.getDefiningOp()))
      settleCenter(center);
  llvm::DenseMap<Value, SmallVector<Value>> there; // of what ops read
  for (auto [placed, way] : llvm::zip_equal(region.ops, solution.ways)) {
    Operation *op = placed->op;
    builder.setInsertionPoint(op);
    for (auto [operand, view] :
         llvm::zip_equal(op->getOpOperands(), way.operands)) {
      Value source = sourceOf(operand.get());
      auto [known, isNew] = there.try_emplace(source);
      SmallVector<Value> &from = known->second;
      auto moveNearest = [&](int view) {
        Value nearest = *llvm::min_element(from, [&](Value a, Value b) {
          return seconds(source, numberOf(a), view) <
                 seconds(source, numberOf(b), view);
        });
        return moveTo(builder, nearest, view);
      };
      if (isNew) {
        from.push_back(source);
        if (isCenter(region, source))
          from.push_back(copyOfCenter.lookup(source));
        else if (!isJoined(source))
          llvm::append_range(from, copiesFor(region, source));
        for (const Shared &shared : solution.shared)
          if (valueOf(region, shared) == source)
            from.push_back(moveNearest(shared.view));
      }
      operand.set(moveNearest(view));
    }
    placed->now = way;
    if (Value result = op->getResult(0); isCenter(region, result)) {
      settleCenter(result);
    } else if (numberOf(result) != way.result || !isServed(result)) {
      builder.setInsertionPointAfter(op);
      settle(builder, result, way.result, way.result);
    }
  }
}

/// What decides how a region is placed.
std::vector<int64_t> Placer::keyOf(const Region &region) {
  std::vector<int64_t> key;
  llvm::DenseMap<Value, int64_t> numbers;
  for (auto [number, center] : llvm::enumerate(region.centers)) {
    numbers[center] = -1 - int64_t(number);
    key.push_back(numberOf(center));
  }
  auto addEnds = [&](Value value) {
    for (OpOperand *use : uses.find(value)->second)
      if (!inside.contains(use->getOwner())) {
        auto move = dyn_cast<ReshardOp>(use->getOwner());
        key.push_back(numberOf(move ? move.getResult(0) : use->get()));
        for (Said said : saidOf(*use))
          key.push_back(int64_t(said));
        if (isa<func::ReturnOp>(use->getOwner()))
          for (int kind = 0; kind < ways.numKinds(); ++kind)
            if (isShared(*use, kind))
              key.push_back(-3 - kind);
      }
    key.push_back(-1);
  };
  llvm::for_each(region.centers, addEnds);
  for (auto [number, placed] : llvm::enumerate(region.ops)) {
    key.push_back(reinterpret_cast<int64_t>(placed->ways));
    for (auto [operand, view] :
         llvm::zip_equal(placed->op->getOperands(), placed->now.operands)) {
      Value source = sourceOf(operand);
      key.push_back(view);
      auto [known, isNew] = numbers.try_emplace(source, -2 - numbers.size());
      key.push_back(known->second);
      if (!isNew)
        continue;
      for (Value copy : copiesFor(region, source))
        key.push_back(numberOf(copy));
    }
    Value result = placed->op->getResult(0);
    key.push_back(placed->now.result);
    if (!isCenter(region, result)) {
      numbers[result] = number;
      addEnds(result);
    }
  }
  return key;
}

/// Notes that `region` cannot gain what is one.
void Placer::leaveSmall(const Region &region) {
  if (!region.centers.empty()) // its trees have been asked
    return;
  ++left.small;
  for (const Placed *placed : region.ops)
    for (Value operand : placed->op->getOperands())
      if (Value source = sourceOf(operand);
          source != operand && leftMoves.insert(operand).second)
        left.moves += seconds(source, numberOf(source), numberOf(operand));
}

/// What the region takes now at most: its ops, and each of the moves around it
/// alone.
double Placer::mostNow(const Region &region) {
  double most = 0;
  auto addUses = [&](Value value) {
    for (OpOperand *use : uses.find(value)->second) {
      auto written = dyn_cast<ReshardOp>(use->getOwner());
      Value need = written ? written.getResult(0) : use->get();
      most += seconds(value, numberOf(value), numberOf(need));
    }
  };
  for (Value center : region.centers)
    addUses(center);
  for (const Placed *placed : region.ops) {
    most += placed->now.work;
    for (Value operand : placed->op->getOperands())
      if (Value source = sourceOf(operand); !isCenter(region, source))
        most += seconds(source, numberOf(source), numberOf(operand));
    if (Value result = placed->op->getResult(0); !isCenter(region, result))
      addUses(result);
  }
  return most;
}

/// Whether it is placed otherwise than it was.
bool Placer::improve(const Region &region) {
  if (ways.isSpent()) {
    ++left.tooLate;
    return false;
  }
  inside.clear();
  copies.clear();
  waiting.clear();
  double least = 0;
  for (const Placed *placed : region.ops)
    least += placed->now.work / double(mesh.numDevices());
  if (least > mostNow(region) - slack) {
    leaveSmall(region);
    return false;
  }
  for (const Placed *placed : region.ops)
    inside.insert(placed->op);
  findReads(region);
  SmallVector<Way> waysNow;
  for (const Placed *placed : region.ops)
    waysNow.push_back(placed->now);
  SmallVector<Shared> shared;
  addShared(region, waysNow, shared);
  // Most regions take too little for a gain: their ways are not asked for.
  auto asItIs = [&] {
    return solve(region, shared, waitingNow(), /*asItIs=*/true, kNever).seconds;
  };
  if (double now = asItIs(); now == kNever || least > now - slack) {
    leaveSmall(region);
    return false;
  }
  least = 0;
  for (Placed *placed : region.ops) {
    findWays(*placed);
    least += placed->least;
  }
  waiting.clear();
  auto [solution, isNew] = solved.try_emplace(keyOf(region));
  if (isNew) {
    const double now = asItIs();
    if (least > now - slack) {
      leaveSmall(region);
      return false;
    }
    Solution best = findBest(region, shared, now - slack);
    if (best.seconds < now - slack)
      solution->second = std::move(best);
    else if (ways.isSpent())
      ++left.tooLate;
  }
  if (solution->second.ways.empty())
    return false;
  if (!changed)
    beforeChange();
  changed = true;
  waiting = solution->second.waiting;
  apply(region, solution->second);
  noteNeeded();
  return true;
}

void Placer::findWays(Placed &placed) {
  if (placed.ways)
    return;
  placed.ways = &ways.of(placed.op);
  auto same = llvm::find(*placed.ways, placed.now);
  if (same != placed.ways->end())
    placed.now.work = same->work;
  placed.least = placed.now.work;
  for (const Way &way : *placed.ways)
    placed.least = std::min(placed.least, way.work);
}

/// Whether the op reads or makes what lies on a part of the mesh, as one in a
/// stage of a pipeline: that it is computed there is the user's.
bool Placer::isOnPart(Operation *op) {
  auto liesOnPart = [&](Value value) {
    Type type = value.getType();
    auto [known, isNew] = onPart.try_emplace(type);
    if (isNew)
      known->second = layout::liesOnPart(
          getView(value).getView(),
          layout::Shape(cast<RankedTensorType>(type).getShape()), mesh);
    return known->second;
  };
  return llvm::any_of(op->getOperands(), liesOnPart) ||
         llvm::any_of(op->getResults(), liesOnPart);
}

/// Whether `op` reads rows that data name: those alone may move
/// (tv-fetch-rows), so that a move of all has another price. An op that writes
/// rows has their dimension in the operand that it writes into, too.
static bool readsByIndex(Operation *op) {
  auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
  if (!ruled)
    return false;
  const layout::Rule rule = ruled.getShardingRule();
  for (auto [f, factor] : llvm::enumerate(rule.factors))
    if (factor.kind == layout::IterationFactor::Kind::Indexed &&
        !(rule.isInOperand(f) && rule.isInResult(f)))
      return true;
  return false;
}

/// What the function takes.
double Placer::takesNow() {
  double all = 0;
  for (Operation &op : function.getBody().front().without_terminator())
    if (ReshardOp move = asMove(&op)) {
      Value from = move.getInputs()[0];
      auto time = moves.seconds(from, placesOf(from),
                                placesOf(move.getResult(0)), mesh);
      all += time ? *time : 0;
    } else if (isa<ShardingRuleOpInterface>(op)) {
      all += getWork(&op, *getActualPlacement(&op), moves);
    }
  return all;
}

/// Of dynamic sizes: runs are typical or small, and either counts by the part
/// that it takes more or less than now.
void Placer::addSmallRuns() {
  bool isDynamic = false;
  for (Operation &op : function.getBody().front())
    for (Type type : op.getResultTypes())
      isDynamic |= !cast<RankedTensorType>(type).hasStaticShape();
  if (!isDynamic)
    return;
  const double typical = takesNow();
  moves.setSmall(true);
  const double small = takesNow();
  moves.setSmall(false);
  if (small > 0)
    ways.addSmallRuns(typical / small);
}

/// The work of `op` as it is; of ops of static sizes that look alike once.
double Placer::workNow(Operation *op) {
  auto isStatic = [](Type type) {
    return cast<RankedTensorType>(type).hasStaticShape();
  };
  if (op->getNumRegions() || !llvm::all_of(op->getOperandTypes(), isStatic) ||
      !llvm::all_of(op->getResultTypes(), isStatic))
    return ways.work(op, *getActualPlacement(op));
  auto [work, isNew] = works.try_emplace(looksOf(op));
  if (isNew)
    work->second = ways.work(op, *getActualPlacement(op));
  return work->second;
}

/// What `op` takes, and how it is placed.
double Placer::addOp(Operation *op) {
  if (ReshardOp move = asMove(op)) {
    Value from = move.getInputs()[0], to = move.getResult(0);
    double time = seconds(from, numberOf(from), numberOf(to));
    return time == kNever ? 0 : time;
  }
  if (!isa<ShardingRuleOpInterface, ReinterpretOpInterface>(op))
    return 0;
  const double work = workNow(op);
  if (op->getNumResults() != 1 || isa<ReshardOp>(op) || isOnPart(op) ||
      readsByIndex(op))
    return work;
  Placed made{op, {}};
  for (Value operand : op->getOperands())
    made.now.operands.push_back(numberOf(operand));
  made.now.result = numberOf(op->getResult(0));
  made.now.work = work;
  placed.insert({op, std::move(made)});
  return work;
}

/// What is returned may lie otherwise now, and moves of nothing go.
void Placer::finish() {
  Block &body = function.getBody().front();
  // Reshards that nothing reads any more.
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isa<ReshardOp>(op) && op.use_empty())
      op.erase();
  // Results as they lie now.
  SmallVector<Type> results(body.getTerminator()->getOperandTypes());
  function.setFunctionType(FunctionType::get(function.getContext(),
                                             body.getArgumentTypes(), results));
}

LeftAlone Placer::run() {
  Block &body = function.getBody().front();
  SmallVector<Value> values(function.getArguments());
  addSmallRuns();
  double all = 0;
  for (Operation &op : body.without_terminator()) {
    all += addOp(&op);
    if (!asMove(&op))
      llvm::append_range(values, op.getResults());
  }
  for (Value value : values)
    findUses(value, uses[value]);
  for (OpOperand &use : body.getTerminator()->getOpOperands())
    noteReturned(use);
  noteNeeded();
  slack = std::max(kLeastGain * all, kLeastLatency * ways.getLatency());

  // The last op of the tree of each op, from the last op on.
  llvm::DenseMap<Operation *, Operation *> ends;
  llvm::MapVector<Operation *, SmallVector<Operation *>> trees;
  for (auto &[op, ways] : llvm::reverse(placed)) {
    Value result = op->getResult(0);
    Operation *next = joining(result);
    Operation *end = next ? ends.lookup(next) : op;
    ends[op] = end;
    trees[end].push_back(op);
  }
  std::vector<Region> regions;
  auto addRegion = [&](ArrayRef<Operation *> of, ArrayRef<Value> centers) {
    Region &region = regions.emplace_back();
    region.centers.assign(centers.begin(), centers.end());
    for (Operation *end : of)
      for (Operation *op : trees[end])
        region.ops.push_back(&placed.find(op)->second);
    llvm::sort(region.ops, [](const Placed *a, const Placed *b) {
      return a->op->isBeforeInBlock(b->op);
    });
  };
  for (auto &[end, tree] : trees)
    addRegion(end, {});
  // The ends of the trees that make a value or read it.
  auto endsAround = [&](Value value) {
    llvm::SetVector<Operation *> around;
    auto add = [&](Operation *op) {
      if (isPlaced(op))
        around.insert(ends.lookup(op));
    };
    add(value.getDefiningOp());
    for (OpOperand *use : uses[value])
      add(use->getOwner());
    return around;
  };
  auto addAround = [&](ArrayRef<Value> centers) {
    llvm::SetVector<Operation *> around;
    for (Value center : centers)
      around.set_union(endsAround(center));
    size_t count = 0;
    for (Operation *end : around)
      count += trees[end].size();
    if (around.empty() || count > kMaxAround)
      return;
    // What is made in one tree and read in another would count twice: the
    // later one stays as it is.
    SmallVector<Operation *> inOrder = around.takeVector();
    llvm::sort(inOrder, [](Operation *a, Operation *b) {
      return a->isBeforeInBlock(b);
    });
    auto readsOther = [&](Operation *op) {
      return llvm::any_of(op->getOperands(), [&](Value operand) {
        Value source = sourceOf(operand);
        Operation *end = ends.lookup(source.getDefiningOp());
        return !llvm::is_contained(centers, source) && end != ends.lookup(op) &&
               around.contains(end);
      });
    };
    for (Operation *end : inOrder)
      if (llvm::none_of(trees[end], readsOther))
        around.insert(end);
    addRegion(around.getArrayRef(), centers);
  };
  SmallVector<Value> shared;
  for (Value value : values)
    if (uses[value].size() > 1 &&
        !(value.getDefiningOp() && isWritten(value.getDefiningOp())))
      shared.push_back(value);
  for (Value value : shared)
    addAround(value);
  // Two that are next to one tree.
  llvm::DenseMap<Operation *, SmallVector<Value>> nextTo;
  for (Value value : shared) {
    llvm::SetVector<Value> others;
    for (Operation *end : endsAround(value)) {
      others.insert(nextTo[end].begin(), nextTo[end].end());
      nextTo[end].push_back(value);
    }
    for (Value other : others)
      addAround({other, value});
  }
  // Each is placed beside the others as they stand.
  bool improved = true;
  LeftAlone first;
  for (int sweep = 0; improved && sweep < kMaxSweeps; ++sweep) {
    improved = false;
    for (const Region &region : regions)
      if (region.centers.size() < 2)
        improved |= improve(region);
    if (sweep == 0)
      first = left;
    if (improved && sweep + 1 < kMaxSweeps)
      continue;
    for (const Region &region : regions)
      if (region.centers.size() > 1)
        improved |= improve(region);
  }
  left = first;
  left.gain = slack;
  if (!changed)
    return left;
  finish();
  return left;
}

/// The mesh of `function`'s values; null if none has one.
static const layout::Mesh *findMesh(func::FuncOp function) {
  for (Operation &op : function.getBody().front())
    for (Value value : op.getResults())
      if (ViewAttr view = getView(value))
        return &view.getLayoutMesh();
  return nullptr;
}

LeftAlone tv::placeTogether(func::FuncOp function, Moves &moves, bool isFine,
                            llvm::function_ref<void()> beforeChange) {
  const layout::Mesh *mesh = findMesh(function);
  if (!mesh || mesh->numDevices() > kMaxDevices)
    return {};
  const SmallVector<ViewAttr> views = findViews(function);
  std::vector<layout::SubAxis> digits = findDigits(*mesh, views, isFine);
  if (isFine && digits == findDigits(*mesh, views, /*isFine=*/false))
    return {};
  Ways ways(moves, *mesh, std::move(digits), views,
            isFine ? kFinePlans : kMostPlans);
  return Placer(function, moves, std::move(ways), *mesh, beforeChange).run();
}

bool tv::placeFew(func::FuncOp function, Moves &moves, double bound,
                  llvm::function_ref<void()> beforeChange) {
  const layout::Mesh *mesh = findMesh(function);
  if (!mesh || mesh->numDevices() > kMaxDevices)
    return false;
  const SmallVector<ViewAttr> views = findViews(function);
  Ways ways(moves, *mesh, findDigits(*mesh, views, /*isFine=*/true), views,
            kFewPlans);
  ways.beThorough();
  return Placer(function, moves, std::move(ways), *mesh, beforeChange)
      .runFew(bound);
}
