//===- RowsText.cpp - kernels of rows -------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A group of threads (rows.cuh) takes one iteration of the outer loop, a row,
// at a time, or a run of them. Each parallel loop inside, a stage, shares its
// chunks among the group; all else every member does alike, but for stores,
// which one does.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/ChunkWriter.h"
#include "Compiler/Targets/CUDA/KernelForms.h"
#include "Compiler/Targets/CUDA/ScalarText.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::schedule;

namespace {
class RowsWriter {
public:
  RowsWriter(KernelWriter &out, scf::ParallelOp loop)
      : out(out), loop(loop), columns(getLoop(loop).getForm() == Form::Columns),
        writer(out) {}
  LogicalResult write(DeviceFunction &function);

private:
  LogicalResult writeTemplate(const std::string &symbol);
  LogicalResult writeBlock(Block &block, ArrayRef<std::string> results);
  LogicalResult writeLanes(Operation *op);
  void writeStore(memref::StoreOp op);
  LogicalResult writeStage(scf::ParallelOp op);
  LogicalResult writeRun(scf::ForOp rows);
  /// Where chunk `u` of a stage is, of those of this thread from `first` on.
  void writePlace(scf::ParallelOp stage, const std::string &count,
                  const std::string &first);
  /// What the lanes of a stage's chunks are iterations of.
  Value getLane(scf::ParallelOp stage) {
    return (columns ? loop : stage).getInductionVars().back();
  }
  std::string getStagePointType();

  KernelWriter &out;
  scf::ParallelOp loop;
  bool columns; ///< lanes are rows
  ChunkWriter writer;
};
} // namespace

/// For the chunks of any stage.
std::string RowsWriter::getStagePointType() {
  std::optional<int64_t> longest = 1;
  for (scf::ParallelOp stage : getStages(loop)) {
    int64_t length = 1;
    for (Value extent : stage.getUpperBound()) {
      std::optional<int64_t> constant = getConstant(extent);
      if (!constant)
        return getPointType(constant);
      length *= *constant;
    }
    longest = std::max(*longest, length);
  }
  return getPointType(longest);
}

/// All members of the group alike.
LogicalResult RowsWriter::writeBlock(Block &block,
                                     ArrayRef<std::string> results) {
  auto inner = [&](Block &block, ArrayRef<std::string> results) {
    return writeBlock(block, results);
  };
  for (Operation &op : block.without_terminator()) {
    LogicalResult written = success();
    if (hasRole(&op, RoleKind::Lanes))
      written = writeLanes(&op);
    else if (auto store = dyn_cast<memref::StoreOp>(op))
      writeStore(store);
    else if (auto stage = dyn_cast<scf::ParallelOp>(op))
      written = writeStage(stage);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      written = out.writeIf(branch, inner);
    else if (auto rows = dyn_cast<scf::ForOp>(op))
      written =
          rows == getRowLoop(loop) ? writeRun(rows) : out.writeFor(rows, inner);
    else
      written = out.writeOp(&op);
    if (failed(written))
      return failure();
  }
  out.writeYield(block, results);
  return success();
}

/// A run of rows, whose sums of columns are in memory after it.
LogicalResult RowsWriter::writeRun(scf::ForOp rows) {
  auto place = [&](scf::ParallelOp stage) {
    std::string count = out.fresh("chunks");
    out.line() << "const Point " << count << " = "
               << writer.getCount(stage, getLane(stage)) << ";\n";
    writePlace(stage, count, "group.member()");
  };
  const bool isAhead =
      llvm::any_of(getLoop(loop).getInstances(), [](InstanceAttr instance) {
        return instance.getKeep() == Keep::Ahead;
      });
  if (isAhead && failed(writer.writeFetch(rows, place)))
    return failure();
  if (failed(
          out.writeFor(rows, [&](Block &block, ArrayRef<std::string> results) {
            if (isAhead)
              writer.writeTurn(rows);
            return writeBlock(block, results);
          })))
    return failure();
  for (auto stage : loop.getBody()->getOps<scf::ParallelOp>())
    if (llvm::any_of(stage.getBody()->getOps<memref::StoreOp>(),
                     [](memref::StoreOp store) {
                       return hasRole(store, RoleKind::Summed);
                     }))
      writer.writeSums(stage, place);
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
  const bool syncs = op->hasAttr(kSyncAttr);
  if (syncs)
    out.line() << "group.sync();\n";
  out.line() << "if (group.leads()) *"
             << out.getPointer(op.getMemRef(), op.getIndices()) << " = "
             << out.name(op.getValueToStore()) << ";\n";
  if (syncs)
    out.line() << "group.sync();\n";
}

void RowsWriter::writePlace(scf::ParallelOp stage, const std::string &count,
                            const std::string &first) {
  // (No test is left where the number of chunks is known and fits.)
  out.line() << "const Point number = " << first << " + u * group.size();\n";
  out.line() << "if (" << count
             << " % (U * group.size()) != 0 && number >= " << count << ")\n";
  out.line() << "  continue;\n";
  writer.writeIndices(stage, getLane(stage), "number");
}

/// A stage: its chunks are shared among the row's group.
LogicalResult RowsWriter::writeStage(scf::ParallelOp op) {
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
  auto place = [&](bool) { writePlace(op, count, "at"); };
  ChunkWriter::Loop chunks{op,
                           getLane(op),
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
  if (op->hasAttr(kSyncAttr))
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
  out.line() << "using Point = " << getStagePointType() << ";\n";
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

static StringRef getGroup(Form form) {
  return form == Form::Warps     ? "WarpRow"
         : form == Form::Columns ? "ColumnRow"
                                 : "BlockRow";
}

static StringRef getText(Keep keep) {
  return keep == Keep::Ahead       ? "Keep::Ahead"
         : keep == Keep::Shared    ? "Keep::Shared"
         : keep == Keep::Registers ? "Keep::Registers"
                                   : "Keep::No";
}

LogicalResult RowsWriter::write(DeviceFunction &function) {
  const std::string &symbol = function.symbol;
  if (failed(writeTemplate(symbol)))
    return failure();
  LoopAttr attribute = getLoop(loop);
  const std::string threads = std::to_string(attribute.getThreads());
  out.openGlobal(getBounds(attribute), symbol);
  if (failed(out.enterFunction(loop)))
    return failure();
  writeInstances(out, loop, [&](InstanceAttr instance) {
    return symbol + "_rows<" + getGroup(attribute.getForm()).str() + "<" +
           threads + ">, " + std::to_string(instance.getVectors()) + ", " +
           std::to_string(instance.getUnroll()) + ", " +
           getText(instance.getKeep()).str() + ">";
  });
  out.close();
  return success();
}

LogicalResult cuda::writeRows(KernelWriter &out, scf::ParallelOp loop,
                              DeviceFunction &function) {
  return RowsWriter(out, loop).write(function);
}
