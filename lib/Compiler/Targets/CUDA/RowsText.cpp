//===- RowsText.cpp - kernels of rows -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group of threads (rows.cuh) takes one iteration of the outer loop, a row,
// at a time. Each parallel loop inside, a stage, shares its chunks among the
// group; all else every member does alike, but for stores, which one does.
// Loads that a later stage of the same row needs again are kept in registers or
// shared memory when the row is short enough (`Keep`).
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/ChunkWriter.h"
#include "Compiler/Targets/CUDA/KernelForms.h"
#include "Compiler/Targets/CUDA/ScalarText.h"
#include "Plan/Target.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

namespace {
/// Rows up to this length are a warp's.
constexpr int64_t kShortRow = 1024;
/// What a block begins for.
constexpr int64_t kMinPoints = 4096;
/// Of a block's shared memory, for what is not kept.
constexpr int64_t kReserved = 2 << 10;

class RowsWriter {
public:
  RowsWriter(KernelWriter &out, scf::ParallelOp loop)
      : out(out), loop(loop), memory(loop), writer(out) {}
  LogicalResult write(DeviceFunction &function);

private:
  // How rows are shared, and what of them is kept.
  void planStages();
  void findByLane();
  int columnWidth() const;
  void countNeighbours(scf::ParallelOp stage, int &along, int &across);
  void countLoads();
  void planGroup(DeviceFunction &function);
  void planKept(DeviceFunction &function);
  // Text.
  LogicalResult writeTemplate(const std::string &symbol);
  LogicalResult writeBlock(Block &block, ArrayRef<std::string> results);
  LogicalResult writeLanes(Operation *op);
  void writeStore(memref::StoreOp op);
  LogicalResult writeStage(scf::ParallelOp op);
  /// What the lanes of a stage's chunks are iterations of.
  Value getLane(scf::ParallelOp stage) {
    return (columns ? loop : stage).getInductionVars().back();
  }
  Value getLaneExtent(scf::ParallelOp stage) {
    return (columns ? loop : stage).getUpperBound().back();
  }

  KernelWriter &out;
  scf::ParallelOp loop;
  MemoryUse memory;
  ChunkWriter writer;
  SmallVector<scf::ParallelOp> inner; ///< the stages
  std::map<Operation *, Chunk> stages;
  bool isStatic = true;
  int64_t longest = 1;  ///< of the stages, as far as extents are known
  bool columns = false; ///< neighbours lie in neighbouring rows: lanes are rows
  /// Outside of stages, what differs by lane.
  llvm::DenseSet<Value> byLane;
  llvm::DenseSet<Operation *> ofLane;
  std::string group = "BlockRow";
  int width = 8, unroll = 4;
  /// Registers for a chunk of what later stages need again, and of the rest.
  int again = 0, once = 0;
  bool words = true; ///< whether what they need again is in words
  std::string keep = "Keep::No";
  int resident = 1; ///< blocks that a multiprocessor should hold
};
} // namespace

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

void RowsWriter::planStages() {
  bool conditional = false;
  loop.getBody()->walk<WalkOrder::PreOrder>([&](scf::ParallelOp stage) {
    inner.push_back(stage);
    conditional |= stage->getParentOp() != loop;
    return WalkResult::skip();
  });
  int along = 0, across = 0;
  for (scf::ParallelOp stage : inner)
    countNeighbours(stage, along, across);
  columns = across > along && !conditional;
  if (columns)
    findByLane();
  bool hasAlloca =
      loop.getBody()
          ->walk([](memref::AllocaOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  bool vectors = false;
  for (scf::ParallelOp stage : inner) {
    Chunk &chunk =
        stages.try_emplace(stage, stage, getLane(stage), memory, byLane)
            .first->second;
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
    for (auto &[op, plan] : chunk.planned)
      if (plan.role == Chunk::Role::VectorLoad && plan.guards.empty() &&
          !conditional)
        ++writer.keepable[getKeepKey(stage, cast<memref::LoadOp>(op))];
  }
  if (!vectors)
    width = 1;
  // A warp's lines have 128 bytes: more would leave too few blocks. (Lanes
  // would share a thread's own memory.)
  if (columns)
    width = hasAlloca ? 1 : std::min(width, columnWidth());
}

void RowsWriter::findByLane() {
  byLane.insert(loop.getInductionVars().back());
  for (Operation &op : loop.getBody()->without_terminator()) {
    bool isStage = isa<scf::ParallelOp>(op);
    if (!isStage && !op.walk([&](Operation *inner) {
                         return llvm::any_of(inner->getOperands(),
                                             [&](Value value) {
                                               return byLane.contains(value);
                                             })
                                    ? WalkResult::interrupt()
                                    : WalkResult::advance();
                       }).wasInterrupted())
      continue;
    byLane.insert(op.result_begin(), op.result_end());
    if (!isStage)
      ofLane.insert(&op);
  }
}

/// Of 4 bytes, of the smallest elements.
int RowsWriter::columnWidth() const {
  int width = 1;
  for (auto &[op, chunk] : stages)
    for (auto &[access, plan] : chunk.planned)
      if (plan.role == Chunk::Role::VectorLoad)
        width = std::max<int>(width, 32 / cast<memref::LoadOp>(access)
                                              .getMemRefType()
                                              .getElementTypeBitWidth());
  return width;
}

/// How many accesses have their neighbours in a row, and in neighbouring rows.
void RowsWriter::countNeighbours(scf::ParallelOp stage, int &along,
                                 int &across) {
  Value lastRow = loop.getInductionVars().back();
  Value lastInner = stage.getInductionVars().back();
  stage.walk([&](Operation *op) {
    Value memref;
    ValueRange indices;
    if (auto load = dyn_cast<memref::LoadOp>(op))
      memref = load.getMemRef(), indices = load.getIndices();
    else if (auto store = dyn_cast<memref::StoreOp>(op))
      memref = store.getMemRef(), indices = store.getIndices();
    SmallVector<int64_t> strides;
    int64_t offset;
    if (!memref || failed(cast<MemRefType>(memref.getType())
                              .getStridesAndOffset(strides, offset)))
      return;
    for (auto [index, stride] : llvm::zip_equal(indices, strides))
      if (stride == 1 && llvm::is_contained(indices, lastInner)) {
        along += index == lastInner;
        across += index == lastRow;
      }
  });
}

void RowsWriter::countLoads() {
  llvm::StringSet<> seen;
  for (scf::ParallelOp stage : inner) {
    int here = 0;
    for (auto &[op, plan] : stages.at(stage).planned) {
      if (plan.role != Chunk::Role::VectorLoad)
        continue;
      auto load = cast<memref::LoadOp>(op);
      int bytes = width * load.getMemRefType().getElementTypeBitWidth() / 8;
      std::string key = getKeepKey(stage, load);
      if (writer.keepable[key] < 2) {
        here += std::max(bytes / 4, 1);
      } else if (seen.insert(key).second) {
        again += std::max(bytes / 4, 1);
        words &= bytes % 4 == 0;
      }
    }
    once = std::max(once, here);
  }
}

/// How many threads, and chunks of each.
void RowsWriter::planGroup(DeviceFunction &function) {
  function.threads = 256;
  if (columns) {
    group = "ColumnRow";
    // Long bodies need more registers.
    size_t ops = 0;
    loop.getBody()->walk([&](Operation *) { ++ops; });
    function.threads = ops < 40 && (!isStatic || longest >= 512) ? 1024 : 512;
    function.items = kWarp * width;
    unroll = 8;
    return;
  }
  int64_t count = isStatic ? llvm::divideCeil(longest, width) : 1024;
  if (isStatic && longest <= kShortRow) {
    group = "WarpRow";
    function.threads = 128;
    function.items =
        std::max(kMinPoints / longest, int64_t(function.threads / kWarp));
    unroll = llvm::divideCeil(count, kWarp);
    return;
  }
  // Several blocks to a multiprocessor, so that some load while others reduce:
  // more of them where they keep little.
  if (count > 4 * function.threads)
    function.threads = count <= 4 * 384 && again > 0 && again <= 4 ? 384 : 512;
  // Of long rows, so many that the last chunks are not a few threads'.
  auto getIdle = [&](int threads) {
    return llvm::alignTo(count, threads) - count;
  };
  if (count > 8 * 512)
    for (int threads = 512 + 64; threads <= 1024; threads += 64)
      if (getIdle(threads) <= getIdle(function.threads))
        function.threads = threads;
  unroll = llvm::divideCeil(count, function.threads);
}

/// What is kept where, and how many blocks there should be for it.
void RowsWriter::planKept(DeviceFunction &function) {
  const int64_t shared = int64_t(4) * again * unroll * function.threads;
  // Rows of which a multiprocessor does not hold two are loaded once a stage.
  const plan::Limits &limits = plan::getTarget(loop).getLimits();
  const int64_t most = limits.sharedBytes / 2 - kReserved;
  if (group == "BlockRow" && again > 0 && words && shared <= most) {
    keep = "Keep::Shared";
    function.shared = shared;
  } else if (!columns && unroll <= 8 && unroll * again <= 40) {
    keep = "Keep::Registers";
  }
  const bool mayKeep = keep != "Keep::No";
  if (!mayKeep && !columns)
    unroll = std::clamp(kLoadRegisters / 2 / std::max(again + once, 1), 1, 4);
  // What is loaded once leaves registers to more chunks and more blocks.
  if (!mayKeep && group == "BlockRow" && again == 0) {
    function.threads = 256;
    unroll = std::clamp(kLoadRegisters / std::max(once, 1), 1, 8);
    resident = 4;
  }
  writer.loadsLate = mayKeep && again > 0;
  // Some blocks load while others reduce; what bodies compute takes registers
  // too.
  size_t ops = 0;
  loop.getBody()->walk([&](Operation *) { ++ops; });
  if (group == "BlockRow" && mayKeep && ops < 80) {
    const bool few = function.shared > 0 ? ops < 60 : unroll * again <= 12;
    resident = function.threads == 1024
                   ? (function.shared > 0 && few ? 2 : 1)
                   : (few ? 1536 : 1024) / function.threads;
    resident = std::min<int>(resident, limits.threads / function.threads);
  }
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// All members of the group alike.
LogicalResult RowsWriter::writeBlock(Block &block,
                                     ArrayRef<std::string> results) {
  auto inner = [&](Block &block, ArrayRef<std::string> results) {
    return writeBlock(block, results);
  };
  for (Operation &op : block.without_terminator()) {
    LogicalResult written = success();
    if (ofLane.contains(&op))
      written = writeLanes(&op);
    else if (auto store = dyn_cast<memref::StoreOp>(op))
      writeStore(store);
    else if (auto stage = dyn_cast<scf::ParallelOp>(op))
      written = writeStage(stage);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      written = out.writeIf(branch, inner);
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      written = out.writeFor(loop, inner);
    else
      written = out.writeOp(&op);
    if (failed(written))
      return failure();
  }
  out.writeYield(block, results);
  return success();
}

/// An op outside of stages, once for each lane.
LogicalResult RowsWriter::writeLanes(Operation *op) {
  SmallVector<std::string> lanes;
  for (Value result : op->getResults()) {
    std::optional<std::string> type = getTypeName(result.getType());
    if (!type)
      return op->emitError()
             << "'" << result.getType() << "' has no text for cuda kernels";
    lanes.push_back(out.fresh("lanes"));
    out.line() << *type << " " << lanes.back() << "[V];\n";
  }
  out.line() << "#pragma unroll\n";
  out.open("for (int v = 0; v < V; ++v)");
  Value row = loop.getInductionVars().back();
  std::string first = out.names[row];
  out.names[row] = "(" + first + " + v)";
  auto inner = [&](Block &block, ArrayRef<std::string> results) {
    return writeBlock(block, results);
  };
  LogicalResult written = success();
  if (auto store = dyn_cast<memref::StoreOp>(op))
    writeStore(store);
  else if (auto branch = dyn_cast<scf::IfOp>(op))
    written = out.writeIf(branch, inner);
  else if (auto loop = dyn_cast<scf::ForOp>(op))
    written = out.writeFor(loop, inner);
  else
    written = out.writeOp(op);
  if (failed(written))
    return failure();
  for (auto [result, lane] : llvm::zip_equal(op->getResults(), lanes)) {
    out.line() << lane << "[v] = " << out.names[result] << ";\n";
    out.names[result] = lane + "[v]";
  }
  out.names[row] = first;
  out.close();
  return success();
}

void RowsWriter::writeStore(memref::StoreOp op) {
  // What the group stores and loads again goes by turns.
  bool inTurn = memory.isBoth(op.getMemRef());
  if (inTurn)
    out.line() << "group.sync();\n";
  out.line() << "if (group.leads()) *"
             << out.getPointer(op.getMemRef(), op.getIndices()) << " = "
             << out.name(op.getValueToStore()) << ";\n";
  if (inTurn)
    out.line() << "group.sync();\n";
}

/// A stage: its chunks are shared among the row's group.
LogicalResult RowsWriter::writeStage(scf::ParallelOp op) {
  if (failed(verifyLoop(op)))
    return failure();
  const Chunk &chunk = stages.at(op);
  auto reduce = cast<scf::ReduceOp>(op.getBody()->getTerminator());
  SmallVector<std::string> sums, combiners;
  for (auto [init, region] :
       llvm::zip_equal(op.getInitVals(), reduce.getReductions())) {
    FailureOr<std::string> combiner = out.getCombiner(region);
    if (failed(combiner))
      return failure();
    combiners.push_back(*combiner);
    sums.push_back(out.fresh("lanes"));
    out.line() << *getTypeName(init.getType()) << " " << sums.back()
               << "[V];\n";
    out.line() << "for (int v = 0; v < V; ++v)\n";
    out.line() << "  " << sums.back() << "[v] = " << out.name(init) << ";\n";
  }
  std::string count = out.fresh("chunks");
  out.line() << "const Point " << count << " = "
             << writer.getCount(op, getLane(op)) << ";\n";
  // (No test is left where the number of chunks is known and fits.)
  auto place = [&](bool) {
    out.line() << "const Point number = at + u * group.size();\n";
    out.line() << "if (" << count
               << " % (U * group.size()) != 0 && number >= " << count << ")\n";
    out.line() << "  continue;\n";
    writer.writeIndices(op, getLane(op), "number");
  };
  ChunkWriter::Loop chunks{op,
                           getLane(op),
                           chunk,
                           "Point at = group.member(); at < group.share(" +
                               count + "); at += U * group.size()",
                           place,
                           /*inStage=*/true,
                           sums};
  if (failed(writer.write(chunks)))
    return failure();
  for (auto [result, init, sum, combiner] :
       llvm::zip_equal(op.getResults(), op.getInitVals(), sums, combiners)) {
    std::string variable = out.fresh("sum"),
                type = *getTypeName(init.getType());
    std::string reduce = "group.template reduce<" + combiner + ">(",
                identity = type + "(" + out.name(init) + "));\n";
    if (columns) {
      out.line() << type << " " << variable << "[V];\n";
      out.line() << "#pragma unroll\n";
      out.line() << "for (int v = 0; v < V; ++v)\n";
      out.line() << "  " << variable << "[v] = " << reduce << sum << "[v], "
                 << identity;
      out.names[result] = variable + "[v]";
      continue;
    }
    out.names[result] = variable;
    out.line() << "const " << type << " " << variable << " = " << reduce
               << "reduceLanes<" << combiner << ">(" << sum << "), "
               << identity;
  }
  // What the group has stored here is read by others of it.
  bool shares = op.getBody()
                    ->walk([&](memref::StoreOp store) {
                      return memory.isBoth(store.getMemRef())
                                 ? WalkResult::interrupt()
                                 : WalkResult::advance();
                    })
                    .wasInterrupted();
  if (shares)
    out.line() << "group.sync();\n";
  return success();
}

/// A row, for any group.
LogicalResult RowsWriter::writeTemplate(const std::string &symbol) {
  out.line() << "\ntemplate <class Group, int V, int U, Keep How>\n";
  out.open("static __device__ void " + symbol + "_rows(const " +
           out.getParametersType() + " &p)");
  SmallVector<std::optional<int64_t>> rows;
  for (Value extent : loop.getUpperBound())
    rows.push_back(getConstant(extent));
  out.line() << "using Row = " << getPointType(rows) << ";\n";
  out.line() << "using Point = "
             << getPointType(isStatic ? std::optional(longest) : std::nullopt)
             << ";\n";
  if (failed(out.enterFunction(loop)))
    return failure();
  // By columns, a row stands for all its lanes.
  SmallVector<std::string> factors;
  for (auto [i, extent] : llvm::enumerate(loop.getUpperBound())) {
    bool isLane = columns && i + 1 == loop.getUpperBound().size();
    factors.push_back("Row(" + out.name(extent) + (isLane ? " / V)" : ")"));
  }
  out.line() << "const Row rows = " << llvm::join(factors, " * ") << ";\n";
  out.line() << "Group group;\n";
  out.open("for (Row first = group.first(); first < rows; first += "
           "group.step())");
  out.line() << "Row row = group.row(first, rows);\n";
  auto variables = loop.getInductionVars();
  for (Value variable : variables)
    out.names[variable] = out.fresh("i");
  for (size_t i = variables.size(); i-- > 0;) {
    out.line() << "const int64 " << out.names[variables[i]] << " = int64("
               << (i == 0 ? "row" : "split(row, " + factors[i] + ")") << ")"
               << (columns && i + 1 == variables.size() ? " * V" : "") << ";\n";
  }
  if (failed(writeBlock(*loop.getBody(), {})))
    return failure();
  out.close();
  out.close();
  return success();
}

LogicalResult RowsWriter::write(DeviceFunction &function) {
  planStages();
  countLoads();
  planGroup(function);
  planKept(function);
  const std::string &symbol = function.symbol;
  if (failed(writeTemplate(symbol)))
    return failure();
  std::string bounds = std::to_string(function.threads);
  if (group == "BlockRow") // else some numbers of threads get too few registers
    bounds += ", resident(" + std::to_string(resident) + ")";
  out.openGlobal(bounds, symbol);
  if (failed(out.enterFunction(loop)))
    return failure();
  const bool mayKeep = keep != "Keep::No";
  auto call = [&](int width, const std::string &keep) {
    out.line() << symbol << "_rows<" << group << "<" << function.threads
               << ">, " << width << ", "
               << (keep != "Keep::No" || width > 1 || columns ? unroll : 4)
               << ", " << keep << ">(p);\n";
  };
  SmallVector<std::string> conditions;
  for (scf::ParallelOp stage : inner)
    if (width > 1)
      writer.addFit(getLaneExtent(stage), stages.at(stage), width, conditions);
  // Kept rows have one trip; a row of dynamic length may be too long.
  if (mayKeep && !isStatic)
    for (scf::ParallelOp stage : inner) {
      std::string count;
      for (Value extent : stage.getUpperBound())
        count +=
            (count.empty() ? "" : " * ") + ("int64(" + out.name(extent)) + ")";
      std::string fit =
          count + " <= " +
          std::to_string(int64_t(width) * unroll *
                         (group == "WarpRow" ? kWarp : function.threads));
      if (!llvm::is_contained(conditions, fit))
        conditions.push_back(fit);
    }
  if (!conditions.empty()) {
    out.line() << "if (" << llvm::join(conditions, " && ") << ")\n  ";
    call(width, keep);
    out.line() << "else\n  ";
    call(1, "Keep::No");
  } else {
    call(width, keep);
  }
  out.close();
  return success();
}

LogicalResult cuda::writeRows(KernelWriter &out, scf::ParallelOp loop,
                              DeviceFunction &function) {
  return RowsWriter(out, loop).write(function);
}
