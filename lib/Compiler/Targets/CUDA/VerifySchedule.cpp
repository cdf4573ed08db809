//===- VerifySchedule.cpp - whether a schedule is legal -------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attributes are held against the program, whoever wrote them. First the loop:
// what the GPU has, and each instance with its conditions. Then each role,
// where it stands; last, that what is to wait does, where all threads are.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/KernelForms.h"
#include "Compiler/Targets/CUDA/Scheduling.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::schedule;

namespace {
/// Of a block, whatever the GPU.
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxStaticShared = 48 << 10;
constexpr int64_t kTileThreads = 128; // of tiles.cuh
/// More of either would not fit, whatever they are of.
constexpr int64_t kMaxUnroll = 64, kMaxNumber = 1 << 16;

class Verifier {
public:
  Verifier(Operation *op, LoopAttr attribute, const plan::Limits &limits)
      : op(op), attribute(attribute), limits(limits), memory(op) {}
  LogicalResult verify();

private:
  LogicalResult verifyShape();
  LogicalResult verifyInstances();
  LogicalResult verifyInstance(InstanceAttr instance);
  LogicalResult verifyExtents(InstanceAttr instance);
  LogicalResult verifyKept(InstanceAttr instance);
  LogicalResult verifyCondition(ConditionAttr condition);
  LogicalResult verifyBody(scf::ParallelOp body, const Lanes &lanes);
  LogicalResult verifyRole(Operation *inner, RoleAttr role,
                           scf::ParallelOp body, const Lanes &lanes);
  LogicalResult verifyVector(Operation *access, RoleAttr role,
                             scf::ParallelOp body, const Lanes &lanes);
  LogicalResult verifySummed(Operation *access, RoleAttr role,
                             scf::ParallelOp body);
  LogicalResult verifyAvailable(Operation *inner, RoleAttr role,
                                scf::ParallelOp body);
  LogicalResult verifyOneHot(OneHotOp oneHot, scf::ParallelOp body,
                             const Lanes &lanes);
  LogicalResult verifyPairs(PairsOp pairs, scf::ParallelOp body,
                            const Lanes &lanes);
  LogicalResult verifyCounts(Value number, const Lanes &lanes, Operation *user);
  LogicalResult verifyOutside();
  LogicalResult verifySyncs();
  bool has(InstanceAttr instance, ConditionKind kind, int64_t of,
           int64_t number = -1) {
    return llvm::is_contained(
        instance.getConditions(),
        ConditionAttr::get(op->getContext(), kind, of, number));
  }
  bool isForm(Form form) const { return attribute.getForm() == form; }

  Operation *op;
  LoopAttr attribute;
  const plan::Limits &limits;
  MemoryUse memory;
  scf::ParallelOp loop; ///< null for one thread
  scf::ForOp rows;      ///< of a run, if it has them
  llvm::DenseMap<int64_t, Value> sums; ///< of columns, by number
  SmallVector<scf::ParallelOp> stages;
  SmallVector<std::pair<scf::ParallelOp, memref::LoadOp>> kept;
  SmallVector<Operation *> vectors; ///< accesses of all lanes
};
} // namespace

/// Ops of a body that have a role in it.
static SmallVector<Operation *> getPlanned(scf::ParallelOp body) {
  SmallVector<Operation *> planned;
  body.getBody()->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (getRole(op))
      planned.push_back(op);
  });
  return planned;
}

//===----------------------------------------------------------------------===//
// The loop
//===----------------------------------------------------------------------===//

LogicalResult cuda::verifyLoops(scf::ParallelOp loop,
                                ArrayRef<scf::ParallelOp> stages) {
  if (failed(verifyLoop(loop)) || llvm::any_of(stages, [](auto stage) {
        return failed(verifyLoop(stage));
      }))
    return failure();
  if (loop.getNumResults() != 0)
    return loop.emitError()
           << "a reduction outside of a loop has no device function";
  return success();
}

/// The form, and what a block has.
LogicalResult Verifier::verifyShape() {
  const int64_t threads = attribute.getThreads(),
                resident = attribute.getResident(),
                shared = attribute.getShared();
  loop = dyn_cast<scf::ParallelOp>(op);
  if (isForm(Form::Thread) != !loop)
    return op->emitError() << "a loop in parallel is not one thread's, and "
                              "another op of a kernel's body is";
  if (!loop)
    return threads == 1 && attribute.getItems() == 1 && shared == 0
               ? success()
               : op->emitError() << "one thread has threads(1) alone";
  stages = getStages(loop);
  rows = getRowLoop(loop);
  if (failed(verifyLoops(loop, stages)))
    return failure();
  if (attribute.isOfRows() == stages.empty())
    return op->emitError() << "rows have parallel loops inside, points and "
                              "squares have none";
  const int64_t most = std::min(kMaxThreads, limits.threads);
  if (threads < kWarp || threads % kWarp != 0 || threads > most)
    return op->emitError() << "a block has a multiple of 32 threads, at most "
                           << most << ", not " << threads;
  if (attribute.getItems() < 1)
    return op->emitError() << "a block has at least one item";
  if (shared < 0 ||
      (shared > 0 && !isForm(Form::Blocks) && !(isForm(Form::Warps) && rows)))
    return op->emitError() << "shared memory is for the rows of blocks, or of "
                              "runs";
  if (resident < 0 || resident > limits.threads / threads)
    return op->emitError() << "a multiprocessor has " << limits.threads
                           << " threads, for " << limits.threads / threads
                           << " resident blocks";
  if (shared > limits.sharedBytes - kSystemShared)
    return op->emitError() << "a block has at most "
                           << limits.sharedBytes - kSystemShared
                           << " bytes of shared memory, not " << shared;
  if (!isForm(Form::Squares))
    return attribute.getSide() == 0 && attribute.getAcross() == -1
               ? success()
               : op->emitError() << "side and across are for squares";
  const int64_t side = attribute.getSide(), across = attribute.getAcross();
  if (threads != kTileThreads || (side != 32 && side != 64 && side != 128) ||
      across < 0 || across >= int64_t(loop.getNumLoops()) - 1)
    return op->emitError()
           << "squares have 128 threads, a side of 32, 64 or 128 and one of "
              "the dimensions before the last across";
  return success();
}

LogicalResult Verifier::verifyCondition(ConditionAttr condition) {
  const int64_t of = condition.getOf(), number = condition.getNumber();
  auto kernel = op->getParentOfType<func::FuncOp>();
  bool is = of >= 0;
  switch (condition.getKind()) {
  case ConditionKind::Aligned: {
    is = is && of < kernel.getNumArguments();
    auto type =
        is ? dyn_cast<MemRefType>(kernel.getArgument(of).getType()) : nullptr;
    is = type && number >= 0 && number < type.getRank();
    break;
  }
  case ConditionKind::Multiple:
    is = is && of < int64_t(loop.getNumLoops());
    break;
  case ConditionKind::StageMultiple:
  case ConditionKind::StageAtMost:
    is = is && of < int64_t(stages.size());
    // What is tested before the loop is known there.
    for (Value extent : is ? stages[of].getUpperBound() : ValueRange())
      is = is && !loop->isAncestor(extent.getParentRegion()->getParentOp());
    break;
  }
  if (!is)
    return op->emitError() << "there is nothing to test for " << condition;
  return success();
}

LogicalResult Verifier::verifyInstances() {
  ArrayRef<InstanceAttr> instances = attribute.getInstances();
  if (instances.empty())
    return op->emitError() << "has no instance";
  for (InstanceAttr instance : instances) {
    const bool isLast = instance == instances.back();
    if (instance.getConditions().empty() != isLast)
      return op->emitError() << "the last instance, and no other, runs without "
                                "conditions";
    if (failed(verifyInstance(instance)))
      return failure();
  }
  return success();
}

LogicalResult Verifier::verifyInstance(InstanceAttr instance) {
  const int64_t v = instance.getVectors(), u = instance.getUnroll();
  if (v != 1 && v != 2 && v != 4 && v != 8)
    return op->emitError() << "vectors have 1, 2, 4 or 8 elements, not " << v;
  if (u < 1 || u > kMaxUnroll)
    return op->emitError() << "1 to " << kMaxUnroll
                           << " chunks are unrolled, not " << u;
  for (ConditionAttr condition : instance.getConditions())
    if (failed(verifyCondition(condition)))
      return failure();
  if (isForm(Form::Squares) &&
      u != attribute.getInstances().front().getUnroll())
    return op->emitError() << "all instances of squares unroll the same";
  if (v > 1 && failed(verifyExtents(instance)))
    return failure();
  for (Operation *access :
       v > 1 ? ArrayRef(vectors) : ArrayRef<Operation *>()) {
    auto load = dyn_cast<memref::LoadOp>(access);
    Value memref =
        load ? load.getMemRef() : cast<memref::StoreOp>(access).getMemRef();
    RoleAttr role = getRole(access);
    const int64_t dim =
        role.is(RoleKind::Tile) ? *getUnitDim(memref) : role.getDim();
    const int64_t argument = cast<BlockArgument>(memref).getArgNumber();
    if (!has(instance, ConditionKind::Aligned, argument, dim))
      return access->emitError()
             << "vectors of " << v << " need <aligned " << argument << ", "
             << dim << "> of this access among the conditions";
  }
  return verifyKept(instance);
}

/// No chunk is cut by the end of its loop.
LogicalResult Verifier::verifyExtents(InstanceAttr instance) {
  const int64_t v = instance.getVectors();
  auto isWhole = [&](Value extent) {
    std::optional<int64_t> constant = getConstant(extent);
    return constant && *constant % v == 0;
  };
  auto fail = [&](Operation *at) {
    return at->emitError() << "vectors of " << v
                           << " need an extent that is a multiple of it, by "
                              "its value or a condition";
  };
  SmallVector<int64_t> dims;
  if (!attribute.isOfRows() || isForm(Form::Columns))
    dims.push_back(loop.getNumLoops() - 1);
  if (isForm(Form::Squares))
    dims.push_back(attribute.getAcross());
  for (int64_t dim : dims)
    if (!isWhole(loop.getUpperBound()[dim]) &&
        !has(instance, ConditionKind::Multiple, dim))
      return fail(loop);
  if (!dims.empty())
    return success();
  for (scf::ParallelOp stage : stages) {
    // By a condition of this stage or of one with the same extent.
    const bool isTested =
        llvm::any_of(instance.getConditions(), [&](ConditionAttr condition) {
          return condition.getKind() == ConditionKind::StageMultiple &&
                 isSameExtent(stages[condition.getOf()].getUpperBound().back(),
                              stage.getUpperBound().back());
        });
    if (!isWhole(stage.getUpperBound().back()) && !isTested)
      return fail(stage);
  }
  return success();
}

/// Kept rows are one trip of their group, and have the memory.
LogicalResult Verifier::verifyKept(InstanceAttr instance) {
  const Keep keep = instance.getKeep();
  if (keep == Keep::No)
    return success();
  if (keep == Keep::Ahead && !rows)
    return op->emitError() << "only runs of rows are kept ahead";
  if (!isForm(Form::Blocks) && (keep == Keep::Shared || !isForm(Form::Warps)))
    return op->emitError() << "only rows of warps and blocks are kept, and in "
                              "shared memory those of blocks";
  const int64_t v = instance.getVectors(), u = instance.getUnroll(),
                most = v * u * attribute.getGroup();
  for (scf::ParallelOp stage : stages) {
    int64_t length = 1;
    bool fits = true;
    for (Value extent : stage.getUpperBound()) {
      std::optional<int64_t> constant = getConstant(extent);
      fits = fits && constant &&
             !__builtin_mul_overflow(length, *constant, &length);
    }
    fits = fits && length <= most;
    for (ConditionAttr condition : instance.getConditions())
      fits |= condition.getKind() == ConditionKind::StageAtMost &&
              condition.getNumber() <= most &&
              llvm::equal(stages[condition.getOf()].getUpperBound(),
                          stage.getUpperBound(), isSameExtent);
    if (!fits)
      return stage.emitError() << "a kept row has at most " << most
                               << " iterations, by its extents or a condition";
  }
  int64_t bytes = 0;
  llvm::SmallDenseSet<int64_t> numbers;
  for (auto &[stage, load] : kept) {
    if (!numbers.insert(getRole(load).getNumber()).second)
      continue;
    const int64_t own = v * load.getMemRefType().getElementTypeBitWidth() / 8;
    if (keep != Keep::Registers && own % 4 != 0)
      return load.emitError() << "goes to shared memory in words of 4 bytes, "
                                 "not in "
                              << own;
    int64_t rowsOf = 1;
    if (keep == Keep::Ahead) {
      std::optional<Address> address = getAddress(rows, load);
      if (!rows->isAncestor(load) || !address)
        return load.emitError() << "is not known before the row begins, to be "
                                   "loaded ahead";
      rowsOf = address->varies ? 2 : 1;
    }
    bytes += rowsOf * own * u * attribute.getThreads();
  }
  if (keep != Keep::Registers && bytes > attribute.getShared())
    return op->emitError() << "what is kept needs " << bytes
                           << " bytes of shared memory, not "
                           << attribute.getShared();
  return success();
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

LogicalResult Verifier::verifyVector(Operation *access, RoleAttr role,
                                     scf::ParallelOp body, const Lanes &lanes) {
  const bool isStore = isa<memref::StoreOp>(access), isStage = body != loop,
             isGuarded = access->getParentOp() != body,
             isNumber = role.getNumber() >= 0 && role.getNumber() < kMaxNumber;
  std::optional<unsigned> dim = lanes.getVectorDim(access);
  if (!dim || role.getDim() != *dim)
    return access->emitError()
           << "is no access of all lanes along dimension " << role.getDim()
           << ": that index, and no other, must be the lane, of an argument "
              "that nothing else in the loop stores"
           << (isStore ? " or loads" : "");
  if (isStore && !role.is(RoleKind::Vector))
    return access->emitError() << "a store of all lanes is <vector ...>";
  if (role.is(RoleKind::Late) && !isStage)
    return access->emitError() << "only loads of stages are late";
  vectors.push_back(access);
  if (role.is(RoleKind::Kept)) {
    auto load = cast<memref::LoadOp>(access);
    Operation *parent = body->getParentOp();
    if (!isStage || isGuarded ||
        (parent != loop && (!rows || parent != rows)) || !isNumber)
      return access->emitError() << "what is kept is loaded in each row: in "
                                    "stages, under no condition, by number";
    for (auto &[stage, other] : kept)
      if (getRole(other).getNumber() == role.getNumber() &&
          (!readSame(body, load, stage, other) ||
           stage->getParentOp() != parent))
        return access->emitError()
               << "is not what is kept as number " << role.getNumber();
    kept.push_back({body, load});
  }
  if (role.is(RoleKind::Tile)) {
    auto load = cast<memref::LoadOp>(access);
    std::optional<unsigned> across = getAcross(loop, load, *dim);
    if (!isForm(Form::Squares) || isGuarded || !isNumber || !across ||
        *across != attribute.getAcross())
      return access->emitError()
             << "a tile is of squares, under no condition, of memory whose "
                "neighbours lie along the dimension across";
  }
  return success();
}

/// All accesses of the memory are such, by one number.
LogicalResult Verifier::verifySummed(Operation *access, RoleAttr role,
                                     scf::ParallelOp body) {
  const auto [memref, indices] = getAccess(access);
  if (!memref || body == loop || !isSummed(loop, memref))
    return access->emitError()
           << "is no sum of columns over a run of rows: what stages alone "
              "access, in each iteration the same element, and one before the "
              "rows sets";
  const int64_t lane =
      llvm::find(indices, body.getInductionVars().back()) - indices.begin();
  if (role.getDim() != lane || role.getNumber() < 0 ||
      role.getNumber() >= kMaxNumber ||
      sums.try_emplace(role.getNumber(), memref).first->second != memref)
    return access->emitError() << "is summed along dimension " << lane
                               << ", by a number of its own";
  WalkResult same = loop.walk([&, of = memref](Operation *other) {
    if (getAccess(other).memref != of || getRole(other) == role)
      return WalkResult::advance();
    return WalkResult(other->emitError()
                      << "accesses what another op has as " << role);
  });
  vectors.push_back(access);
  return failure(same.wasInterrupted());
}

/// What an op with a role needs of the body is there when it is done.
LogicalResult Verifier::verifyAvailable(Operation *inner, RoleAttr role,
                                        scf::ParallelOp body) {
  const bool isFirstPass =
      role.is(RoleKind::Address) || role.is(RoleKind::Read) ||
      role.is(RoleKind::Kept) ||
      (role.is(RoleKind::Vector) && isa<memref::LoadOp>(inner));
  SmallVector<Value> needed;
  inner->walk([&](Operation *each) {
    llvm::append_range(needed, each->getOperands());
  });
  if (auto store = dyn_cast<memref::StoreOp>(inner))
    needed.assign(store.getIndices().begin(), store.getIndices().end());
  for (Operation *parent = inner->getParentOp(); parent != body;
       parent = parent->getParentOp())
    needed.push_back(cast<scf::IfOp>(parent).getCondition());
  for (Value value : needed) {
    Operation *from = value.getDefiningOp();
    if (!from || !body->isProperAncestor(from) || inner->isAncestor(from) ||
        isa<arith::ConstantOp>(from))
      continue;
    RoleAttr own = getRole(from);
    const bool isThere =
        own &&
        (own.is(RoleKind::Address) || own.is(RoleKind::Read) ||
         own.is(RoleKind::Ahead) || (own.is(RoleKind::Once) && !isFirstPass) ||
         own.is(RoleKind::First) || own.is(RoleKind::Counts));
    if (!isThere)
      return inner->emitError()
             << "needs the result of '" << from->getName()
             << "', which has no role in which it is there before";
  }
  return success();
}

LogicalResult Verifier::verifyCounts(Value number, const Lanes &lanes,
                                     Operation *user) {
  if (!lanes.counts(number))
    return user->emitError() << "its number does not grow by 1 each lane";
  for (; number != lanes.getLane();
       number = number.getDefiningOp()->getOperand(
           *lanes.getCounting(number.getDefiningOp()))) {
    Operation *from = number.getDefiningOp();
    if (!hasRole(from, RoleKind::Counts) && !hasRole(from, RoleKind::First))
      return user->emitError()
             << "needs the result of '" << from->getName()
             << "' for the first lane, which is <counts ...> or <first ...>";
  }
  return success();
}

LogicalResult Verifier::verifyRole(Operation *inner, RoleAttr role,
                                   scf::ParallelOp body, const Lanes &lanes) {
  for (Operation *parent = inner->getParentOp(); parent != body;
       parent = parent->getParentOp()) {
    auto branch = dyn_cast<scf::IfOp>(parent);
    if (!branch || !lanes.isFixed(branch.getCondition()))
      return inner->emitError()
             << "has a role under a condition that differs by lane, or in a "
                "loop";
  }
  const bool isGuarded = inner->getParentOp() != body;
  auto isIn = [&](Value value) {
    return body->isAncestor(value.getParentRegion()->getParentOp());
  };
  switch (role.getKind()) {
  case RoleKind::Once:
  case RoleKind::Address:
  case RoleKind::Read:
  case RoleKind::Ahead: {
    if (!lanes.isSame(inner, isGuarded))
      return inner->emitError() << "is not the same for all lanes";
    const bool isPure =
        isMemoryEffectFree(inner) && inner->getNumRegions() == 0;
    if ((role.is(RoleKind::Once) || role.is(RoleKind::Address)) && !isPure)
      return inner->emitError() << "is not pure, to be done again: it is "
                                   "<read> or <ahead>";
    if (role.is(RoleKind::Ahead) && (isGuarded || inner->getNumRegions() != 0 ||
                                     llvm::any_of(inner->getOperands(), isIn)))
      return inner->emitError() << "is not the same for all chunks";
    return verifyAvailable(inner, role, body);
  }
  case RoleKind::Vector:
  case RoleKind::Late:
  case RoleKind::Kept:
  case RoleKind::Tile:
    if (failed(verifyVector(inner, role, body, lanes)))
      return failure();
    return role.is(RoleKind::Tile) ? success()
                                   : verifyAvailable(inner, role, body);
  case RoleKind::Randoms: {
    auto random = dyn_cast<plan::RandomOp>(inner);
    if (!random)
      return inner->emitError() << "is no random number";
    if (!lanes.isFixed(random.getSeed()) || !lanes.isFixed(random.getStream()))
      return inner->emitError() << "its seed or stream differs among lanes";
    return failed(verifyCounts(random.getNumber(), lanes, inner))
               ? failure()
               : verifyAvailable(inner, role, body);
  }
  case RoleKind::Counts:
  case RoleKind::First:
    if (lanes.getCounting(inner) != role.getDim())
      return inner->emitError() << "does not grow by 1 each lane as its "
                                   "operand "
                                << role.getDim();
    if (role.is(RoleKind::First) &&
        !llvm::all_of(inner->getUsers(), [](Operation *user) {
          return hasRole(user, RoleKind::First) ||
                 hasRole(user, RoleKind::Randoms);
        }))
      return inner->emitError() << "is needed for other lanes than the first";
    return success();
  case RoleKind::Summed:
    return isGuarded ? inner->emitError() << "is summed under a condition"
                     : verifySummed(inner, role, body);
  case RoleKind::Lanes:
    return inner->emitError() << "<lanes> is for ops outside of stages";
  case RoleKind::Query:
  case RoleKind::Key:
  case RoleKind::InnerScale:
  case RoleKind::OuterScale:
    return inner->emitError()
           << "has the role of an op in a function of an attention";
  }
  llvm_unreachable("all kinds are covered");
}

/// The stage that adds an op's result, if it is all that uses it.
static std::optional<unsigned> getAddend(Operation *op, scf::ParallelOp body) {
  if (!op->hasOneUse() || *op->user_begin() != body.getBody()->getTerminator())
    return std::nullopt;
  return op->use_begin()->getOperandNumber();
}

LogicalResult Verifier::verifyOneHot(OneHotOp oneHot, scf::ParallelOp body,
                                     const Lanes &lanes) {
  auto reduce = cast<scf::ReduceOp>(body.getBody()->getTerminator());
  std::optional<unsigned> addend = getAddend(oneHot, body);
  if (!addend || body == loop ||
      !isBy<arith::AddFOp>(reduce.getReductions()[*addend]))
    return oneHot.emitError() << "is what a stage sums, and nothing else";
  if (!lanes.isFixed(oneHot.getOther()))
    return oneHot.emitError() << "compares with what is not the same for all "
                                 "lanes";
  Operation *other = oneHot.getOther().getDefiningOp();
  if (other && body->isProperAncestor(other) &&
      !isa<arith::ConstantOp>(other) && !getRole(other))
    return oneHot.emitError() << "needs the result of '" << other->getName()
                              << "', which has no role";
  return verifyCounts(oneHot.getNumber(), lanes, oneHot);
}

LogicalResult Verifier::verifyPairs(PairsOp pairs, scf::ParallelOp body,
                                    const Lanes &lanes) {
  auto reduce = cast<scf::ReduceOp>(body.getBody()->getTerminator());
  std::optional<unsigned> addend = getAddend(pairs, body);
  const bool isMaximum = pairs.getExtreme() == Extreme::Maximum;
  if (!addend || body == loop ||
      !(isMaximum ? isBy<arith::MaximumFOp>(reduce.getReductions()[*addend])
                  : isBy<arith::MinimumFOp>(reduce.getReductions()[*addend])))
    return pairs.emitError()
           << "is what a stage takes the "
           << stringifyExtreme(pairs.getExtreme()) << " of, and nothing else";
  auto load = pairs.getInput().getDefiningOp<memref::LoadOp>();
  RoleAttr role = load ? getRole(load) : nullptr;
  if (!role || !role.isVector() || load->getParentOp() != body ||
      role.is(RoleKind::Tile) || isForm(Form::Columns) ||
      load.getMemRefType().getElementTypeBitWidth() != 16)
    return pairs.emitError() << "compares elements of 16 bits of a load of all "
                                "lanes of a row, under no condition";
  return success();
}

LogicalResult Verifier::verifyBody(scf::ParallelOp body, const Lanes &lanes) {
  for (Operation *inner : getPlanned(body))
    if (failed(verifyRole(inner, getRole(inner), body, lanes)))
      return failure();
  LogicalResult result = success();
  body.getBody()->walk([&](Operation *inner) {
    if (auto oneHot = dyn_cast<OneHotOp>(inner))
      result = verifyOneHot(oneHot, body, lanes);
    else if (auto pairs = dyn_cast<PairsOp>(inner))
      result = verifyPairs(pairs, body, lanes);
    return failed(result) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Outside of stages
//===----------------------------------------------------------------------===//

/// By columns, what differs by row is done for each lane, and stages, at whose
/// end all threads meet, are under no condition.
LogicalResult Verifier::verifyOutside() {
  llvm::DenseSet<Value> byRow;
  if (isForm(Form::Columns)) {
    byRow = getByRow(loop);
    for (scf::ParallelOp stage : stages)
      if (stage->getParentOp() != loop)
        return stage.emitError() << "is a barrier under a condition that "
                                    "differs by thread: by columns, stages are "
                                    "under none";
  }
  LogicalResult result = success();
  loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation *inner) {
    if (llvm::is_contained(stages, inner))
      return WalkResult::skip();
    RoleAttr role = getRole(inner);
    const bool differs =
        isForm(Form::Columns) && inner->getParentOp() == loop &&
        !inner->hasTrait<OpTrait::IsTerminator>() && usesAny(inner, byRow);
    if (role && !role.is(RoleKind::Lanes))
      result = inner->emitError() << "has the role of a stage's op outside of "
                                     "stages";
    else if (bool(role) != differs)
      result = inner->emitError() << (differs ? "differs by row, and is "
                                                "<lanes>"
                                              : "does not differ by row");
    return failed(result) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result;
}

/// Those that must, and no others, wait for others.
LogicalResult Verifier::verifySyncs() {
  LogicalResult result = success();
  op->walk([&](Operation *inner) {
    const bool isStage = llvm::is_contained(stages, inner);
    Operation *stage = inner->getParentOp();
    while (stage != op && !llvm::is_contained(stages, stage) && inner != op)
      stage = stage->getParentOp();
    auto store = dyn_cast<memref::StoreOp>(inner);
    bool waits = false;
    if (isStage)
      inner->walk([&](memref::StoreOp own) {
        waits |=
            memory.isBoth(own.getMemRef()) && !hasRole(own, RoleKind::Summed);
      });
    else if (store && attribute.isOfRows() && stage == op)
      waits = memory.isBoth(store.getMemRef());
    if (inner->hasAttr(kSyncAttr) != waits)
      result = inner->emitError()
               << (waits ? "the row's threads must wait for what this stores, "
                           "which is loaded again: schedule.sync"
                         : "there is nothing to wait for: schedule.sync is for "
                           "what a row's stages, and stores outside of them, "
                           "store and load again");
    else if (waits && isForm(Form::Columns) && !isStage &&
             inner->getParentOp() != op)
      result = inner->emitError() << "is a barrier under a condition that "
                                     "differs by thread";
    else if (inner->hasAttr(kAtOnceAttr) && !isStage)
      result = inner->emitError() << "schedule.at_once is for stages";
    else if (inner->hasAttr(kBoundAttr))
      result = inner->emitError() << "schedule.bound is for an attention's "
                                     "mask_mod";
    return failed(result) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result;
}

LogicalResult Verifier::verify() {
  if (failed(verifyShape()))
    return failure();
  if (!loop) {
    WalkResult walked = op->walk([](Operation *inner) {
      return getRole(inner) || inner->hasAttr(kSyncAttr) ||
                     inner->hasAttr(kAtOnceAttr) ||
                     inner->hasAttr(kBoundAttr) || isa<OneHotOp, PairsOp>(inner)
                 ? WalkResult(inner->emitError()
                              << "is one thread's, which does all in order")
                 : WalkResult::advance();
    });
    return failure(walked.wasInterrupted());
  }
  if (!attribute.isOfRows()) {
    Lanes lanes(loop, loop.getInductionVars().back(), memory);
    if (failed(verifyBody(loop, lanes)))
      return failure();
  } else {
    if (failed(verifyOutside()))
      return failure();
    llvm::DenseSet<Value> byRow;
    if (isForm(Form::Columns))
      byRow = getByRow(loop);
    for (scf::ParallelOp stage : stages) {
      scf::ParallelOp own = isForm(Form::Columns) ? loop : stage;
      Lanes lanes(stage, own.getInductionVars().back(), memory, byRow);
      if (failed(verifyBody(stage, lanes)))
        return failure();
    }
  }
  if (isForm(Form::Squares)) {
    int64_t bytes = 0;
    llvm::SmallDenseSet<int64_t> numbers;
    for (Operation *access : vectors) {
      RoleAttr role = getRole(access);
      if (!role.is(RoleKind::Tile))
        continue;
      if (!numbers.insert(role.getNumber()).second)
        return access->emitError()
               << "there are two tiles of number " << role.getNumber();
      auto type = cast<memref::LoadOp>(access).getMemRefType();
      bytes += type.getElementTypeBitWidth() / 8;
    }
    const int64_t side = attribute.getSide();
    if (bytes == 0 || bytes * side * (side + 4) > kMaxStaticShared)
      return op->emitError() << "squares have tiles, in at most "
                             << kMaxStaticShared << " bytes";
  }
  return failed(verifyInstances()) ? failure() : verifySyncs();
}

LogicalResult cuda::verifySchedule(func::FuncOp kernel,
                                   const plan::Limits &limits) {
  if (kernel->hasAttr(kRoundedAttr) && !MemoryUse(kernel).storesHalves())
    return kernel.emitError() << "schedule.rounded is for kernels all of whose "
                                 "results have 16 bits";
  for (Operation &op : kernel.getBody().front()) {
    LoopAttr attribute = getLoop(&op);
    const bool isLoop =
        isa<scf::ParallelOp, scf::ForOp, scf::IfOp, memref::StoreOp>(op);
    auto product = dyn_cast<plan::ProductOp>(op);
    if (product && failed(verifyProduct(product, limits)))
      return failure();
    const bool isAttention = isa<plan::AttentionOp, plan::AttentionGradOp>(op);
    if (isAttention && failed(verifyAttention(&op, limits)))
      return failure();
    if (isLoop != bool(attribute))
      return op.emitError() << (isLoop ? "has no schedule; cuda-schedule gives "
                                         "it one"
                                       : "is no loop, to have a schedule");
    if (isLoop && failed(Verifier(&op, attribute, limits).verify()))
      return failure();
    const WalkResult walked = op.walk([&](Operation *inner) {
      if (inner != &op && getLoop(inner))
        return WalkResult(inner->emitError()
                          << "only ops of a kernel's body have a schedule");
      return (inner != product && getProduct(inner)) ||
                     ((inner != &op || !isAttention) && getAttention(inner))
                 ? WalkResult(inner->emitError()
                              << "is no product or attention of a kernel's "
                                 "body, to have tiles")
                 : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return failure();
  }
  return success();
}
