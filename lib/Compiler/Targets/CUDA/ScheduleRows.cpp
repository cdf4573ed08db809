//===- ScheduleRows.cpp - loops over rows ---------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group of threads takes one iteration of the outer loop, a row, at a time.
// Each parallel loop inside, a stage, shares its chunks among the group. Loads
// that a later stage of the same row needs again are kept in registers or
// shared memory when the row is short enough. Where an iteration is a run of
// rows, sums of columns are in registers, and each row is loaded while the one
// before is computed.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/Scheduling.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::schedule;

namespace {
/// Rows up to this length are a warp's.
constexpr int64_t kShortRow = 1024;
/// What a block begins for.
constexpr int64_t kMinPoints = 4096;
/// Of a block's shared memory, for what is not kept.
constexpr int64_t kReserved = 2 << 10;
/// Of a multiprocessor; what a thread of a run needs beside its sums, and
/// another beside its loads.
constexpr int64_t kRegisters = 1 << 16, kOtherRegisters = 48,
                  kBodyRegisters = 32;

class Rows {
public:
  Rows(scf::ParallelOp loop, const plan::Limits &limits)
      : loop(loop), rows(getRowLoop(loop)), limits(limits), memory(loop),
        stages(getStages(loop)) {}
  void schedule();

private:
  void planStages();
  int columnWidth();
  void countNeighbours(scf::ParallelOp stage, int &along, int &across);
  void planSums();
  bool isAhead();
  void numberKept();
  std::optional<int64_t> countRows();
  void planGroup();
  void planRuns();
  void planKept();
  SmallVector<ConditionAttr> getConditions();
  LoopAttr getAttribute();
  void writeStage(scf::ParallelOp stage, Chunk &chunk);
  void writeOutside();
  /// What the lanes of a stage's chunks are iterations of.
  Value getLaneExtent(scf::ParallelOp stage) {
    return (columns() ? loop : stage).getUpperBound().back();
  }
  bool columns() const { return form == Form::Columns; }
  /// Of a thread, where all that a stage loads is there at once.
  int64_t getRegisters() const {
    return int64_t(unroll) * (again + once) + kBodyRegisters;
  }

  scf::ParallelOp loop;
  scf::ForOp rows; ///< of a run
  const plan::Limits &limits;
  MemoryUse memory;
  SmallVector<scf::ParallelOp> stages;
  std::vector<Chunk> chunks;   ///< of the stages
  llvm::SetVector<Value> sums; ///< of columns
  bool conditional = false;    ///< whether a stage is in a branch or a loop
  bool isStatic = true;
  int64_t longest = 1; ///< of the stages, as far as extents are known
  size_t ops = 0;      ///< of the body: long ones need more registers
  Form form = Form::Blocks;
  int width = 8, unroll = 4;
  int64_t threads = 256, items = 1, shared = 0;
  /// Registers for a chunk of what later stages need again, and of the rest.
  int again = 0, once = 0;
  int aheadBytes = 0; ///< of a chunk, of this row and the next
  bool words = true;  ///< whether what they need again is in words
  Keep keep = Keep::No;
  int resident = 1;         ///< blocks that a multiprocessor should hold
  int64_t lastArrived = -1; ///< what earlier stages keep
};
} // namespace

void Rows::planStages() {
  loop.getBody()->walk([&](Operation *) { ++ops; });
  int along = 0, across = 0;
  for (scf::ParallelOp stage : stages) {
    conditional |=
        stage->getParentOp() != loop && (!rows || stage->getParentOp() != rows);
    countNeighbours(stage, along, across);
  }
  llvm::DenseSet<Value> byRow;
  if (across > along && !conditional && !rows) {
    form = Form::Columns;
    byRow = getByRow(loop);
  }
  bool vectors = false;
  for (scf::ParallelOp stage : stages) {
    Value lane = (columns() ? loop : stage).getInductionVars().back();
    Chunk &chunk = chunks.emplace_back(stage, lane, memory, byRow);
    if (chunk.getWidth() > 1) {
      vectors = true;
      width = std::min(width, chunk.getWidth());
    }
    width = narrow(width, getConstant(getLaneExtent(stage)));
    int64_t length = 1;
    for (Value extent : stage.getUpperBound()) {
      std::optional<int64_t> constant = getConstant(extent);
      isStatic &= constant.has_value();
      length *= constant.value_or(1);
    }
    longest = std::max(longest, length);
  }
  if (!vectors)
    width = 1;
  // A warp's lines have 128 bytes: more would leave too few blocks.
  if (columns())
    width = std::min(width, columnWidth());
}

/// Of 4 bytes, of the smallest elements.
int Rows::columnWidth() {
  int width = 1;
  for (Chunk &chunk : chunks)
    for (auto [load, plan] : chunk.getLoads())
      width = std::max<int>(width,
                            32 / load.getMemRefType().getElementTypeBitWidth());
  return width;
}

/// How many accesses have their neighbours in a row, and in neighbouring rows.
/// (What neighbouring rows have in common is loaded once for them anyway.)
void Rows::countNeighbours(scf::ParallelOp stage, int &along, int &across) {
  Value lastRow = loop.getInductionVars().back();
  Value lastInner = stage.getInductionVars().back();
  const llvm::DenseSet<Value> byRow = getByRow(loop);
  auto mayVary = [&](Value index) { // from row to row
    Operation *op = index.getDefiningOp();
    return byRow.contains(index) || (op && stage->isAncestor(op));
  };
  stage.walk([&](Operation *op) {
    auto [memref, indices] = getAccess(op);
    SmallVector<int64_t> strides;
    int64_t offset;
    if (!memref || failed(cast<MemRefType>(memref.getType())
                              .getStridesAndOffset(strides, offset)))
      return;
    for (auto [index, stride] : llvm::zip_equal(indices, strides))
      if (stride == 1 && llvm::is_contained(indices, lastInner)) {
        along += index == lastInner && llvm::any_of(indices, mayVary);
        across += index == lastRow;
      }
  });
}

/// Numbers the sums of columns.
void Rows::planSums() {
  if (conditional)
    return;
  auto kernel = loop->getParentOfType<func::FuncOp>();
  for (Value memref : kernel.getArguments())
    if (memory.isBoth(memref) && isSummed(loop, memref))
      sums.insert(memref);
  for (auto [stage, chunk] : llvm::zip_equal(stages, chunks)) {
    Value lane = stage.getInductionVars().back();
    stage.walk([&](Operation *access) {
      auto [memref, indices] = getAccess(access);
      if (sums.contains(memref))
        chunk.planned[access] = {RoleKind::Summed, false,
                                 llvm::find(indices, lane) - indices.begin(),
                                 llvm::find(sums, memref) - sums.begin()};
    });
  }
}

/// Whether all that a run's rows load is known before the row.
bool Rows::isAhead() {
  if (!rows || conditional)
    return false;
  for (Chunk &chunk : chunks)
    for (auto [load, plan] : chunk.getLoads())
      if (plan->guarded || !rows->isAncestor(load) || !getAddress(rows, load))
        return false;
  return true;
}

/// Numbers the loads that several stages do, of a run all, and counts
/// registers.
void Rows::numberKept() {
  const bool ahead = isAhead();
  struct Same {
    scf::ParallelOp stage;
    SmallVector<std::pair<memref::LoadOp, Chunk::Planned *>> loads;
  };
  SmallVector<Same> elements;
  for (auto [stage, chunk] : llvm::zip_equal(stages, chunks))
    for (auto [load, plan] : chunk.getLoads()) {
      if (plan->guarded || conditional)
        continue;
      auto found = llvm::find_if(elements, [&](const Same &same) {
        return readSame(stage, load, same.stage, same.loads.front().first);
      });
      if (found == elements.end())
        found = elements.insert(elements.end(), {stage, {}});
      found->loads.push_back({load, plan});
    }
  auto getBytes = [&](memref::LoadOp load) -> int {
    return width * load.getMemRefType().getElementTypeBitWidth() / 8;
  };
  int64_t number = 0;
  for (Same &same : elements) {
    if (same.loads.size() < 2 && !ahead)
      continue;
    for (auto &[load, plan] : same.loads)
      plan->number = number;
    ++number;
    const int bytes = getBytes(same.loads.front().first);
    again += std::max(bytes / 4, 1);
    words &= bytes % 4 == 0;
    if (ahead)
      aheadBytes += getAddress(rows, same.loads.front().first)->varies
                        ? 2 * bytes
                        : bytes;
  }
  for (Chunk &chunk : chunks) {
    int here = 0;
    for (auto [load, plan] : chunk.getLoads())
      if (plan->number < 0)
        here += std::max(getBytes(load) / 4, 1);
    once = std::max(once, here);
  }
}

/// If it is known.
std::optional<int64_t> Rows::countRows() {
  int64_t all = 1;
  for (Value extent : loop.getUpperBound()) {
    std::optional<int64_t> constant = getConstant(extent);
    if (!constant)
      return std::nullopt;
    all *= *constant;
  }
  return all;
}

/// How many threads, and chunks of each.
void Rows::planGroup() {
  if (columns()) {
    items = kWarp * width;
    unroll = std::clamp(kLoadRegisters / std::max(again + once, 1), 1, 8);
    // A warp for each place of short ones. Of few long ones twice as many load,
    // if a device holds them all at once; long bodies lack the registers.
    std::optional<int64_t> all = countRows();
    const bool few = all && ops < 40 && (!isStatic || longest >= 2048) &&
                     llvm::divideCeilSigned(*all, items) * 1024 <=
                         limits.multiprocessors * limits.threads;
    const int64_t most = few ? 1024 / kWarp : 512 / kWarp;
    threads = kWarp * (isStatic ? std::clamp<int64_t>(longest, 2, most) : most);
    return;
  }
  int64_t count = isStatic ? llvm::divideCeil(longest, width) : 1024;
  if (isStatic && longest <= kShortRow) {
    form = Form::Warps;
    threads = 128;
    items = kMinPoints / longest;
    // Few rows are shared among all multiprocessors.
    if (std::optional<int64_t> all = countRows(); all && limits.multiprocessors)
      items = std::min<int64_t>(items,
                                llvm::divideCeil(*all, limits.multiprocessors));
    items = std::max(items, threads / kWarp);
    unroll = llvm::divideCeil(count, kWarp);
    return;
  }
  // Several blocks to a multiprocessor, so that some load while others reduce:
  // more of them where they keep little.
  if (count > 4 * threads)
    threads = count <= 4 * 384 && again > 0 && again <= 4 ? 384 : 512;
  // Of long rows, so many that the last chunks are not a few threads'.
  auto getIdle = [&](int64_t threads) {
    return llvm::alignTo(count, threads) - count;
  };
  if (count > 8 * 512)
    for (int more = 512 + 64; more <= 1024; more += 64)
      if (getIdle(more) <= getIdle(threads))
        threads = more;
  unroll = llvm::divideCeil(count, threads);
}

/// Threads that have registers for the sums, and rows in shared memory, a row
/// ahead if there is room for two.
void Rows::planRuns() {
  int64_t runs = 1;
  for (Value extent : loop.getUpperBound())
    runs *= getConstant(extent).value_or(1);
  resident = std::max<int64_t>(
      llvm::divideCeil(runs, std::max<int64_t>(limits.multiprocessors, 1)), 1);
  const int64_t count = llvm::divideCeil(longest, width);
  if (form == Form::Blocks) {
    auto fits = [&](int64_t threads) {
      const int64_t chunks = llvm::divideCeil(count, threads);
      return threads * resident <= limits.threads &&
             chunks * threads - count <= count / 8 &&
             chunks * width * int64_t(sums.size()) + kOtherRegisters <=
                 kRegisters / (threads * resident);
    };
    threads = 256;
    for (int64_t more : {512, 384})
      if (count >= more && fits(more)) {
        threads = more;
        break;
      }
    unroll = llvm::divideCeil(count, threads);
    resident = std::min<int64_t>(resident, limits.threads / threads);
  } else {
    items = threads / kWarp; // a run is work enough
    resident = std::max<int64_t>(resident * kWarp / threads, 1);
  }
  const int64_t most = limits.sharedBytes / resident - kReserved,
                ahead = aheadBytes * unroll * threads,
                ofRow = int64_t(4) * again * unroll * threads;
  if (again == 0 || !words)
    return;
  if (aheadBytes > 0 && ahead <= most) {
    keep = Keep::Ahead;
    shared = ahead;
  } else if (form == Form::Blocks && ofRow <= most) {
    keep = Keep::Shared;
    shared = ofRow;
  }
}

/// What is kept where, and how many blocks there should be for it.
void Rows::planKept() {
  if (rows && isStatic)
    planRuns();
  if (keep != Keep::No)
    return;
  const int64_t needed = int64_t(4) * again * unroll * threads;
  // Rows of which a multiprocessor does not hold two are loaded once a stage.
  const int64_t most = limits.sharedBytes / 2 - kReserved;
  const bool blocks = form == Form::Blocks;
  if (blocks && again > 0 && words && needed <= most) {
    keep = Keep::Shared;
    shared = needed;
  } else if (!columns() && unroll <= 8 && unroll * again <= 40 &&
             getRegisters() <= kRegisters / threads) {
    keep = Keep::Registers;
  }
  const bool mayKeep = keep != Keep::No;
  if (!mayKeep && !columns())
    unroll = std::clamp(kLoadRegisters / 2 / std::max(again + once, 1), 1, 4);
  // What is loaded once leaves registers to more chunks and more blocks.
  if (!mayKeep && blocks && again == 0) {
    threads = 256;
    unroll = std::clamp(kLoadRegisters / std::max(once, 1), 1, 8);
    resident =
        std::clamp<int64_t>(kRegisters / (threads * getRegisters()), 1, 4);
  }
  // Some blocks load while others reduce; what bodies compute takes registers
  // too.
  if (blocks && mayKeep && ops < 80) {
    const bool few = shared > 0 ? ops < 60 : unroll * again <= 12;
    resident = threads == 1024 ? (shared > 0 && few ? 2 : 1)
                               : (few ? 1536 : 1024) / threads;
    resident = std::min<int64_t>(resident, limits.threads / threads);
  }
}

/// Of the instance with the widest vectors, and of what is kept.
SmallVector<ConditionAttr> Rows::getConditions() {
  SmallVector<ConditionAttr> conditions;
  auto add = [&](ConditionKind kind, int64_t of, int64_t number) {
    conditions.push_back(
        ConditionAttr::get(loop.getContext(), kind, of, number));
  };
  // Those of an earlier stage with the same extents are not said again.
  auto isFirst = [&](size_t number, auto isSame) {
    return llvm::none_of(ArrayRef(stages).take_front(number), isSame);
  };
  if (width > 1)
    for (auto [number, chunk] : llvm::enumerate(chunks)) {
      Value extent = getLaneExtent(stages[number]);
      auto isSame = [&](scf::ParallelOp other) {
        return isSameExtent(getLaneExtent(other), extent);
      };
      if (!getConstant(extent) && isFirst(number, isSame))
        add(columns() ? ConditionKind::Multiple : ConditionKind::StageMultiple,
            columns() ? loop.getNumLoops() - 1 : number, -1);
      chunk.addAligned(conditions);
    }
  // Kept rows have one trip; a row of dynamic length may be too long.
  if (keep == Keep::No || isStatic)
    return conditions;
  const int64_t most =
      int64_t(width) * unroll * (form == Form::Warps ? kWarp : threads);
  for (auto [number, stage] : llvm::enumerate(stages)) {
    auto isSame = [stage](scf::ParallelOp other) mutable {
      return llvm::equal(stage.getUpperBound(), other.getUpperBound(),
                         isSameExtent);
    };
    if (isFirst(number, isSame))
      add(ConditionKind::StageAtMost, number, most);
  }
  return conditions;
}

LoopAttr Rows::getAttribute() {
  MLIRContext *context = loop.getContext();
  SmallVector<ConditionAttr> conditions = getConditions();
  const bool widest = keep != Keep::No || width > 1 || columns();
  size_t loads = 1; // of a stage
  for (Chunk &chunk : chunks)
    loads = std::max(loads, chunk.getLoads().size());
  const int ofNumbers =
      columns() ? unroll : std::clamp<int>(kLoadRegisters / loads, 1, 4);
  SmallVector<InstanceAttr> instances = {InstanceAttr::get(
      context, width, widest ? unroll : ofNumbers, keep, conditions)};
  if (!conditions.empty())
    instances.push_back(InstanceAttr::get(context, 1, ofNumbers, Keep::No, {}));
  return LoopAttr::get(context, form, threads, items, shared,
                       form == Form::Blocks ? resident : 0, 0, -1, instances);
}

void Rows::writeStage(scf::ParallelOp stage, Chunk &chunk) {
  // Where values are kept there are not registers enough for others.
  const bool late = keep != Keep::No && again > 0;
  bool arrives = false, inRegisters = false;
  for (auto &[op, plan] : chunk.planned) {
    inRegisters |= plan.kind == RoleKind::Read;
    if (plan.kind != RoleKind::Vector || !isa<memref::LoadOp>(op))
      continue;
    if (plan.number >= 0)
      plan.kind = RoleKind::Kept;
    else if (late)
      plan.kind = RoleKind::Late;
    arrives |= plan.number > lastArrived;
    inRegisters |= plan.kind == RoleKind::Vector;
  }
  for (auto &[op, plan] : chunk.planned)
    lastArrived = std::max(lastArrived, plan.number);
  Builder b(stage.getContext());
  // What is kept in shared memory is not to be in registers all at once.
  bool shares = false;
  bool adds = false;
  stage.walk([&](memref::StoreOp store) {
    const bool isSum = sums.contains(store.getMemRef());
    adds |= isSum;
    shares |= memory.isBoth(store.getMemRef()) && !isSum;
  });
  if (!inRegisters && !arrives && !adds)
    stage->setAttr(kAtOnceAttr, b.getI64IntegerAttr(4));
  if (shares)
    stage->setAttr(kSyncAttr, b.getUnitAttr());
  chunk.formPeepholes();
  chunk.write();
}

/// What is outside of stages.
void Rows::writeOutside() {
  Builder b(loop.getContext());
  loop.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (llvm::is_contained(stages, op))
      return WalkResult::skip();
    // What the group stores and loads again goes by turns.
    if (auto store = dyn_cast<memref::StoreOp>(op);
        store && memory.isBoth(store.getMemRef()))
      store->setAttr(kSyncAttr, b.getUnitAttr());
    return WalkResult::advance();
  });
  if (!columns())
    return;
  const llvm::DenseSet<Value> byRow = getByRow(loop);
  for (Operation &op : loop.getBody()->without_terminator())
    if (!isa<scf::ParallelOp>(op) && usesAny(&op, byRow))
      setRole(&op, RoleKind::Lanes);
}

void Rows::schedule() {
  planStages();
  planSums();
  numberKept();
  planGroup();
  planKept();
  loop->setAttr(kLoopAttr, getAttribute());
  writeOutside();
  for (auto [stage, chunk] : llvm::zip_equal(stages, chunks))
    writeStage(stage, chunk);
}

void cuda::scheduleRows(scf::ParallelOp loop, const plan::Limits &limits) {
  Rows(loop, limits).schedule();
}
