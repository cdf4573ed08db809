//===- KernelText.cpp - kernels as CUDA C++ -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each top-level loop of a kernel becomes a `__global__` function. What it
// looks like depends on the loop:
//
//   points  no parallel loop inside: threads share chunks of iterations
//   tiles   the same, but an operand's neighbours lie along another loop than
//           the last one: blocks take squares, which they read along memory
//   rows    parallel loops inside (stages): a group of threads takes one
//           iteration at a time, and the stages' chunks are shared among them
//   thread  a loop that runs in order: by one thread
//
// An attention becomes functors for attention_fwd.cuh.
//
// A chunk (Chunks.h) is written as two passes over a few chunks a thread: all
// loads first, so that many are under way at once, then the arithmetic and the
// stores. Loads that a later stage of the same row needs again stay in
// registers when the row is short enough (`Keep`).
//
//===----------------------------------------------------------------------===//

#include "Compiler/CUDA/KernelText.h"
#include "Compiler/CUDA/Chunks.h"
#include "Compiler/CUDA/ScalarText.h"
#include "Plan/Plan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

namespace {
/// Registers that loads of a thread may fill at a time.
constexpr int kLoadRegisters = 32;
constexpr int kPointThreads = 256;
constexpr int kColumnThreads = 512;
constexpr int kWarp = 32;
constexpr int kMaxStaticShared = 48 << 10;
/// Rows up to this length are a warp's.
constexpr int64_t kShortRow = 1024;

/// Everything but the loops: arguments, names, statements.
class KernelWriter {
public:
  explicit KernelWriter(func::FuncOp kernel) : kernel(kernel), os(functions) {}
  FailureOr<KernelSource> run();

private:
  // The kernel.
  LogicalResult nameArguments();
  std::string getParameters();
  LogicalResult addFunction(Operation *loop, std::string symbol);
  void nameParameters();
  LogicalResult enterFunction(Operation *loop, Region *part = nullptr);
  FailureOr<std::vector<SpaceExtent>> getSpace(scf::ParallelOp loop);

  // Kinds of functions.
  LogicalResult addPoints(scf::ParallelOp loop, DeviceFunction &function);
  LogicalResult addTiles(scf::ParallelOp loop, DeviceFunction &function);
  LogicalResult addRows(scf::ParallelOp loop, DeviceFunction &function);
  LogicalResult addThread(Operation *loop, DeviceFunction &function);
  LogicalResult addAttention(plan::AttentionOp op, DeviceFunction &function);
  LogicalResult writeFunctor(plan::AttentionOp op, Region &region,
                             const std::string &name);

  // Statements.
  enum class Mode {
    Thread, ///< each thread on its own
    Group,  ///< all members of a row's group alike
  };
  LogicalResult writeBlock(Block &block, Mode mode,
                           ArrayRef<std::string> results = {});
  LogicalResult writeOp(Operation *op, Mode mode);
  LogicalResult writeIf(scf::IfOp op, Mode mode);
  LogicalResult writeFor(scf::ForOp op, Mode mode);
  LogicalResult writeStore(memref::StoreOp op, Mode mode);
  LogicalResult writeNest(scf::ParallelOp op);
  LogicalResult writeStage(scf::ParallelOp op);
  LogicalResult writeExpression(Operation *op);

  // Chunks.
  struct ChunkLoop {
    scf::ParallelOp loop;
    const Chunk &chunk;
    std::string header; ///< of a loop over the first of U chunks
    /// Writes where chunk `u` is, or leaves the loop over `u`.
    llvm::function_ref<void()> place;
    bool inStage = false;
    ArrayRef<std::string> sums = {}; ///< of a stage's reductions, by lane
  };
  LogicalResult writeChunks(const ChunkLoop &chunks);
  LogicalResult writeLoads(const ChunkLoop &chunks);
  LogicalResult writeLanes(const ChunkLoop &chunks);
  LogicalResult writeLane(Block &block, const Chunk &chunk,
                          ArrayRef<std::string> results);
  /// Whether a load of a chunk is one of its second pass.
  bool isLate(const ChunkLoop &chunks, Operation *op,
              const Chunk::Planned &plan);
  void writeIndices(scf::ParallelOp loop, const std::string &number);
  std::string getCount(scf::ParallelOp loop);
  std::string getGuards(ArrayRef<Chunk::Guard> guards);
  void addFit(scf::ParallelOp loop, const Chunk &chunk, int width,
              SmallVectorImpl<std::string> &conditions);

  FailureOr<std::string> getCombiner(Region &region);
  std::string getPointer(Value memref, ValueRange indices);
  std::string getElement(Value memref);
  std::string fresh(StringRef stem) {
    return (stem + Twine(counters[stem]++)).str();
  }
  std::string name(Value value);
  std::optional<int64_t> getConstant(Value value) {
    APInt number;
    if (matchPattern(value, m_ConstantInt(&number)))
      return number.getSExtValue();
    return std::nullopt;
  }
  /// Starts a line.
  llvm::raw_ostream &line() { return os.indent(2 * depth); }
  void open(const Twine &text) {
    line() << text << " {\n";
    ++depth;
  }
  void close() {
    --depth;
    line() << "}\n";
  }

  func::FuncOp kernel;
  KernelSource source;
  std::string structs, functions;
  llvm::raw_string_ostream os;
  int depth = 0;

  llvm::DenseMap<Value, std::string> arguments, names;
  llvm::StringMap<int> counters;
  llvm::StringMap<std::string> combiners;
  std::optional<MemoryUse> memory;
  bool fast = false; ///< all floats that leave the kernel have 16 bits
  /// Of a row: the loads that more than one stage does, to their registers.
  llvm::StringMap<std::string> kept;
  llvm::StringMap<int> keepable;
  /// Whether what is not kept is loaded only where it is used, for there are
  /// not registers enough.
  bool loadsLate = false;
  /// Loads that go through shared memory, to its name.
  llvm::DenseMap<Operation *, std::string> tiles;
  std::map<Operation *, Chunk> stages;
};
} // namespace

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

static std::string getPointType(ArrayRef<std::optional<int64_t>> extents) {
  int64_t points = 1;
  for (std::optional<int64_t> extent : extents)
    if (!extent || __builtin_mul_overflow(points, *extent, &points) ||
        points > (int64_t(1) << 31))
      return "uint64";
  return "uint32";
}

LogicalResult KernelWriter::nameArguments() {
  unsigned inputs = 0, outputs = 0, scalars = 0;
  MemoryUse use(kernel);
  fast = llvm::all_of(use.stores, [](const auto &store) {
    Type type = cast<MemRefType>(store.first.getType()).getElementType();
    return type.isF16() || type.isBF16();
  });
  for (BlockArgument argument : kernel.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    std::string name = !type ? "n" + std::to_string(scalars++)
                       : use.isStored(argument)
                           ? "y" + std::to_string(outputs++)
                           : "x" + std::to_string(inputs++);
    arguments[argument] = name;
    if (type && !getTypeName(type.getElementType()))
      return kernel.emitError() << "'" << type.getElementType()
                                << "' is no element type of kernels for cuda";
    if (!type && !argument.getType().isInteger(64))
      return kernel.emitError()
             << "'" << argument.getType() << "' is no argument of kernels";
  }
  return success();
}

std::string KernelWriter::getElement(Value memref) {
  return *getTypeName(cast<MemRefType>(memref.getType()).getElementType());
}

std::string KernelWriter::getParameters() {
  std::string text = "struct " + source.name + "_Parameters {\n";
  int64_t words = 0;
  for (BlockArgument argument : kernel.getArguments()) {
    const std::string &name = arguments.find(argument)->second;
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type) {
      text += "  int64 " + name + ";\n";
      ++words;
      continue;
    }
    SmallVector<int64_t> strides;
    int64_t offset;
    int unit = -1;
    if (succeeded(type.getStridesAndOffset(strides, offset)))
      for (auto [dim, stride] : llvm::enumerate(strides))
        if (stride == 1)
          unit = dim;
    bool stored = StringRef(name).starts_with("y");
    text += "  Tensor<" + std::string(stored ? "" : "const ") +
            *getTypeName(type.getElementType()) + ", " +
            std::to_string(type.getRank());
    if (unit >= 0)
      text += ", " + std::to_string(unit);
    text += "> " + name + ";\n";
    words += 1 + 2 * type.getRank();
  }
  if (words == 0)
    text += "  int64 none;\n";
  return text + "};\n";
}

FailureOr<KernelSource> KernelWriter::run() {
  source.name = kernel.getName().str();
  if (failed(nameArguments()))
    return failure();
  SmallVector<Operation *> loops;
  for (Operation &op : kernel.getBody().front())
    if (isa<scf::ParallelOp, scf::ForOp, scf::IfOp, memref::StoreOp,
            plan::AttentionOp>(op))
      loops.push_back(&op);
  for (auto [i, loop] : llvm::enumerate(loops))
    if (failed(addFunction(loop, loops.size() == 1
                                     ? source.name
                                     : source.name + "_" + std::to_string(i))))
      return failure();
  bool isAttention = llvm::any_of(loops, llvm::IsaPred<plan::AttentionOp>);
  source.text = "#include \"prelude.cuh\"\n";
  source.text += isAttention
                     ? "#include \"attention_fwd.cuh\"\n"
                     : "#include \"rows.cuh\"\n#include \"tiles.cuh\"\n";
  source.text +=
      "\nusing namespace tessera;\n\n" + getParameters() + structs + functions;
  return std::move(source);
}

LogicalResult KernelWriter::addFunction(Operation *loop, std::string symbol) {
  memory.emplace(loop);
  stages.clear();
  kept.clear();
  keepable.clear();
  loadsLate = false;
  tiles.clear();
  DeviceFunction function;
  function.symbol = std::move(symbol);
  auto parallel = dyn_cast<scf::ParallelOp>(loop);
  LogicalResult written = failure();
  if (auto attention = dyn_cast<plan::AttentionOp>(loop)) {
    written = addAttention(attention, function);
  } else if (!parallel) {
    written = addThread(loop, function);
  } else {
    FailureOr<std::vector<SpaceExtent>> space = getSpace(parallel);
    if (failed(space))
      return failure();
    function.space = std::move(*space);
    if (parallel.getNumResults() != 0)
      return parallel.emitError()
             << "a reduction outside of a loop has no device function";
    bool isRows =
        parallel.getBody()
            ->walk([](scf::ParallelOp) { return WalkResult::interrupt(); })
            .wasInterrupted();
    written =
        isRows ? addRows(parallel, function) : addTiles(parallel, function);
  }
  if (failed(written))
    return failure();
  source.functions.push_back(std::move(function));
  return success();
}

FailureOr<std::vector<SpaceExtent>>
KernelWriter::getSpace(scf::ParallelOp loop) {
  std::vector<SpaceExtent> space;
  for (auto [lower, upper, step] : llvm::zip_equal(
           loop.getLowerBound(), loop.getUpperBound(), loop.getStep())) {
    if (getConstant(lower) != 0 || getConstant(step) != 1)
      return loop.emitError() << "loops of kernels go from 0 in steps of 1";
    SpaceExtent extent{SpaceExtent::Kind::Constant};
    if (std::optional<int64_t> constant = getConstant(upper)) {
      extent.constant = *constant;
    } else if (auto dim = upper.getDefiningOp<memref::DimOp>();
               dim && isa<BlockArgument>(dim.getSource()) &&
               getConstant(dim.getIndex())) {
      extent.kind = SpaceExtent::Kind::Dimension;
      extent.argument = cast<BlockArgument>(dim.getSource()).getArgNumber();
      extent.dim = *getConstant(dim.getIndex());
    } else if (auto cast = upper.getDefiningOp<arith::IndexCastOp>();
               cast && isa<BlockArgument>(cast.getIn())) {
      extent.kind = SpaceExtent::Kind::Scalar;
      extent.argument = ::cast<BlockArgument>(cast.getIn()).getArgNumber();
    } else {
      return loop.emitError()
             << "the extent of a kernel's loop is a constant, a dimension of "
                "an argument or a scalar argument, not this";
    }
    space.push_back(extent);
  }
  return space;
}

/// Forgets the function before.
void KernelWriter::nameParameters() {
  names.clear();
  counters.clear();
  for (auto &[argument, name] : arguments)
    names[argument] = "p." + name;
}

/// Forgets the function before, and writes what the loop, or a part of it, uses
/// of the kernel's entry.
LogicalResult KernelWriter::enterFunction(Operation *loop, Region *part) {
  nameParameters();
  llvm::SetVector<Operation *> needed;
  SmallVector<Value> worklist;
  auto use = [&](Operation *op) {
    llvm::append_range(worklist, op->getOperands());
  };
  if (part)
    part->walk(use);
  else
    loop->walk(use);
  Block *entry = loop->getBlock();
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (!op || op->getBlock() != entry || op == loop)
      continue;
    if (!isa<memref::DimOp>(op) &&
        (!isMemoryEffectFree(op) || op->getNumRegions() != 0))
      return op->emitError() << "a value of '" << op->getName()
                             << "' cannot go from one loop of a kernel to "
                                "another";
    if (needed.insert(op))
      llvm::append_range(worklist, op->getOperands());
  }
  for (Operation &op : *entry)
    if (needed.contains(&op) && failed(writeOp(&op, Mode::Thread)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Names and statements
//===----------------------------------------------------------------------===//

std::string KernelWriter::name(Value value) {
  TypedAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return getLiteral(constant);
  return names.lookup(value);
}

std::string KernelWriter::getPointer(Value memref, ValueRange indices) {
  return names.lookup(memref) + ".at(" +
         llvm::join(
             llvm::map_range(indices, [&](Value index) { return name(index); }),
             ", ") +
         ")";
}

LogicalResult KernelWriter::writeExpression(Operation *op) {
  std::optional<std::string> text =
      getExpression(op, fast, [&](Value value) { return name(value); });
  if (!text)
    return op->emitError() << "'" << op->getName()
                           << "' has no text for cuda kernels";
  Value result = op->getResult(0);
  std::string &variable = names[result];
  StringRef stem = op->getName().stripDialect();
  if (isa<FloatType>(result.getType()) && stem != "extf")
    stem.consume_back("f");
  variable = fresh(stem);
  line() << "const " << *getTypeName(result.getType()) << " " << variable
         << " = " << *text << ";\n";
  return success();
}

LogicalResult KernelWriter::writeOp(Operation *op, Mode mode) {
  if (isa<arith::ConstantOp>(op))
    return success();
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    std::optional<int64_t> number = getConstant(dim.getIndex());
    if (!number)
      return op->emitError() << "the number of a dimension must be constant";
    names[dim.getResult()] = names.lookup(dim.getSource()) + ".size[" +
                             std::to_string(*number) + "]";
    return success();
  }
  if (auto load = dyn_cast<memref::LoadOp>(op)) {
    std::string variable = fresh("element");
    line() << "const " << getElement(load.getMemRef()) << " " << variable
           << " = *" << getPointer(load.getMemRef(), load.getIndices())
           << ";\n";
    names[load.getResult()] = variable;
    return success();
  }
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return writeStore(store, mode);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return writeIf(branch, mode);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return writeFor(loop, mode);
  if (auto loop = dyn_cast<scf::ParallelOp>(op))
    return mode == Mode::Group ? writeStage(loop) : writeNest(loop);
  return writeExpression(op);
}

/// `results` get what the block's terminator yields.
LogicalResult KernelWriter::writeBlock(Block &block, Mode mode,
                                       ArrayRef<std::string> results) {
  for (Operation &op : block.without_terminator())
    if (failed(writeOp(&op, mode)))
      return failure();
  if (results.empty())
    return success();
  // The new values may be computed from the old ones: all before any changes.
  SmallVector<std::string> values;
  for (Value value : block.getTerminator()->getOperands())
    values.push_back(name(value));
  if (values.size() > 1)
    for (auto [value, operand] :
         llvm::zip_equal(values, block.getTerminator()->getOperands())) {
      std::string next = fresh("next");
      line() << "const " << *getTypeName(operand.getType()) << " " << next
             << " = " << value << ";\n";
      value = next;
    }
  for (auto [result, value] : llvm::zip_equal(results, values))
    line() << result << " = " << value << ";\n";
  return success();
}

LogicalResult KernelWriter::writeStore(memref::StoreOp op, Mode mode) {
  // What the group stores and loads again goes by turns.
  bool inTurn = mode == Mode::Group && memory->isBoth(op.getMemRef());
  if (inTurn)
    line() << "group.sync();\n";
  line() << (mode == Mode::Group ? "if (group.leads()) " : "") << "*"
         << getPointer(op.getMemRef(), op.getIndices()) << " = "
         << name(op.getValueToStore()) << ";\n";
  if (inTurn)
    line() << "group.sync();\n";
  return success();
}

LogicalResult KernelWriter::writeIf(scf::IfOp op, Mode mode) {
  SmallVector<std::string> results;
  for (Value result : op.getResults()) {
    std::optional<std::string> type = getTypeName(result.getType());
    if (!type)
      return op.emitError()
             << "'" << result.getType() << "' has no text for cuda kernels";
    results.push_back(fresh("either"));
    names[result] = results.back();
    line() << *type << " " << results.back() << ";\n";
  }
  open("if (" + name(op.getCondition()) + ")");
  if (failed(writeBlock(*op.thenBlock(), mode, results)))
    return failure();
  close();
  if (op.elseBlock()) {
    open("else");
    if (failed(writeBlock(*op.elseBlock(), mode, results)))
      return failure();
    close();
  }
  return success();
}

LogicalResult KernelWriter::writeFor(scf::ForOp op, Mode mode) {
  SmallVector<std::string> carried;
  for (auto [init, argument, result] : llvm::zip_equal(
           op.getInitArgs(), op.getRegionIterArgs(), op.getResults())) {
    std::optional<std::string> type = getTypeName(init.getType());
    if (!type)
      return op.emitError()
             << "'" << init.getType() << "' has no text for cuda kernels";
    carried.push_back(fresh("carried"));
    line() << *type << " " << carried.back() << " = " << name(init) << ";\n";
    names[argument] = names[result] = carried.back();
  }
  std::string i = fresh("i");
  names[op.getInductionVar()] = i;
  open("for (int64 " + i + " = " + name(op.getLowerBound()) + "; " + i + " < " +
       name(op.getUpperBound()) + "; " + i + " += " + name(op.getStep()) + ")");
  if (failed(writeBlock(*op.getBody(), mode, carried)))
    return failure();
  close();
  return success();
}

/// A parallel loop inside one thread.
LogicalResult KernelWriter::writeNest(scf::ParallelOp op) {
  if (failed(getSpace(op)))
    return failure();
  SmallVector<std::string> sums, combiners;
  auto reduce = cast<scf::ReduceOp>(op.getBody()->getTerminator());
  for (auto [init, result, region] : llvm::zip_equal(
           op.getInitVals(), op.getResults(), reduce.getReductions())) {
    FailureOr<std::string> combiner = getCombiner(region);
    if (failed(combiner))
      return failure();
    combiners.push_back(*combiner);
    sums.push_back(fresh("sum"));
    names[result] = sums.back();
    line() << *getTypeName(init.getType()) << " " << sums.back() << " = "
           << name(init) << ";\n";
  }
  for (auto [variable, extent] :
       llvm::zip_equal(op.getInductionVars(), op.getUpperBound())) {
    std::string i = fresh("i");
    names[variable] = i;
    open("for (int64 " + i + " = 0; " + i + " < " + name(extent) + "; ++" + i +
         ")");
  }
  if (failed(writeBlock(*op.getBody(), Mode::Thread)))
    return failure();
  for (auto [sum, combiner, addend] :
       llvm::zip_equal(sums, combiners, reduce.getOperands()))
    line() << sum << " = " << combiner << "::of(" << sum << ", " << name(addend)
           << ");\n";
  for (size_t i = 0; i < op.getInductionVars().size(); ++i)
    close();
  return success();
}

/// A struct for the function that combines two addends; the same for equal
/// ones.
FailureOr<std::string> KernelWriter::getCombiner(Region &region) {
  Block &block = region.front();
  std::optional<std::string> type = getTypeName(block.getArgument(0).getType());
  if (!type)
    return region.getParentOp()->emitError()
           << "'" << block.getArgument(0).getType()
           << "' has no text for cuda kernels";
  std::string text;
  auto outside = std::move(counters);
  counters.clear();
  int outsideDepth = std::exchange(depth, 2);
  names[block.getArgument(0)] = "a";
  names[block.getArgument(1)] = "b";
  os.flush();
  size_t begin = functions.size();
  LogicalResult written = writeBlock(block, Mode::Thread);
  if (succeeded(written))
    line() << "return " << name(block.getTerminator()->getOperand(0)) << ";\n";
  os.flush();
  text = functions.substr(begin);
  functions.resize(begin);
  depth = outsideDepth;
  counters = std::move(outside);
  if (failed(written))
    return failure();
  std::string &combiner = combiners[text];
  if (combiner.empty()) {
    combiner = source.name + "_Combine" + std::to_string(combiners.size() - 1);
    structs += "struct " + combiner + " {\n  static __device__ " + *type +
               " of(" + *type + " a, " + *type + " b) {\n" + text + "  }\n};\n";
  }
  return combiner;
}

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

/// The dimension of a memref whose stride is known to be 1.
static std::optional<unsigned> getUnitDim(Value memref) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (succeeded(cast<MemRefType>(memref.getType())
                    .getStridesAndOffset(strides, offset)))
    for (auto [dim, stride] : llvm::enumerate(strides))
      if (stride == 1)
        return dim;
  return std::nullopt;
}

/// The loop, other than the last one, along which the neighbours of a vector
/// load lie, if all its indices are loops or the same in all iterations.
static std::optional<unsigned> getAcross(scf::ParallelOp loop,
                                         memref::LoadOp load, unsigned dim) {
  std::optional<unsigned> unit = getUnitDim(load.getMemRef());
  if (!unit || *unit == dim)
    return std::nullopt;
  Value along = load.getIndices()[*unit];
  auto variables = loop.getInductionVars();
  auto found = llvm::find(variables, along);
  if (found == variables.end())
    return std::nullopt;
  for (auto [i, index] : llvm::enumerate(load.getIndices())) {
    bool isLoop = llvm::is_contained(variables, index);
    if (!isLoop && loop->isAncestor(index.getParentRegion()->getParentOp()))
      return std::nullopt;
    if (i != *unit && index == along)
      return std::nullopt;
  }
  return found - variables.begin();
}

std::string KernelWriter::getCount(scf::ParallelOp loop) {
  std::string text;
  for (auto [i, extent] : llvm::enumerate(loop.getUpperBound()))
    text += (i == 0 ? "" : " * ") + (i + 1 == loop.getUpperBound().size()
                                         ? "(" + name(extent) + " / V)"
                                         : name(extent));
  return text;
}

/// The induction variables of a chunk; the last is that of its first iteration.
void KernelWriter::writeIndices(scf::ParallelOp loop,
                                const std::string &number) {
  auto variables = loop.getInductionVars();
  SmallVector<std::string> texts;
  for (Value variable : variables)
    names[variable] = fresh("i");
  std::string rest = number;
  if (variables.size() > 1) {
    rest = fresh("rest");
    line() << "Point " << rest << " = " << number << ";\n";
  }
  for (size_t i = variables.size(); i-- > 0;) {
    std::string extent = name(loop.getUpperBound()[i]);
    bool isLast = i + 1 == variables.size();
    line() << "const int64 " << names[variables[i]] << " = ";
    if (i == 0)
      os << "int64(" << rest << ")";
    else
      os << "int64(split(" << rest << ", Point(" << extent
         << (isLast ? " / V" : "") << ")))";
    os << (isLast ? " * V" : "") << ";\n";
  }
}

std::string KernelWriter::getGuards(ArrayRef<Chunk::Guard> guards) {
  std::string text;
  for (const Chunk::Guard &guard : guards)
    text += (text.empty() ? "" : " && ") +
            std::string(guard.negated ? "!" : "") + name(guard.condition);
  return text;
}

/// Conditions for all vector accesses of a loop to be such.
void KernelWriter::addFit(scf::ParallelOp loop, const Chunk &chunk, int width,
                          SmallVectorImpl<std::string> &conditions) {
  std::string v = std::to_string(width);
  Value extent = loop.getUpperBound().back();
  if (!getConstant(extent))
    if (std::string condition = name(extent) + " % " + v + " == 0";
        !llvm::is_contained(conditions, condition))
      conditions.push_back(condition);
  for (auto &[op, plan] : chunk.planned) {
    Value memref;
    if (plan.role == Chunk::Role::VectorLoad)
      memref = cast<memref::LoadOp>(op).getMemRef();
    else if (plan.role == Chunk::Role::VectorStore)
      memref = cast<memref::StoreOp>(op).getMemRef();
    else
      continue;
    unsigned dim = tiles.count(op) ? *getUnitDim(memref) : plan.dim;
    std::string condition =
        names.lookup(memref) + ".fits<" + v + ">(" + std::to_string(dim) + ")";
    if (!llvm::is_contained(conditions, condition))
      conditions.push_back(condition);
  }
}

/// Names the same element of a row in all of its stages.
static std::string getKeepKey(scf::ParallelOp loop, memref::LoadOp load) {
  std::string key;
  llvm::raw_string_ostream os(key);
  auto print = [&](Value value) {
    auto variables = loop.getInductionVars();
    auto found = llvm::find(variables, value);
    APInt constant;
    if (found != variables.end())
      os << "variable " << found - variables.begin();
    else if (matchPattern(value, m_ConstantInt(&constant)))
      os << constant;
    else
      os << value.getAsOpaquePointer();
    os << ", ";
  };
  print(load.getMemRef());
  for (Value extent : loop.getUpperBound())
    print(extent);
  for (Value index : load.getIndices())
    print(index);
  return key;
}

bool KernelWriter::isLate(const ChunkLoop &chunks, Operation *op,
                          const Chunk::Planned &plan) {
  return loadsLate && chunks.inStage && plan.role == Chunk::Role::VectorLoad &&
         (!plan.guards.empty() ||
          keepable[getKeepKey(chunks.loop, cast<memref::LoadOp>(op))] < 2);
}

LogicalResult KernelWriter::writeChunks(const ChunkLoop &chunks) {
  const Chunk &chunk = chunks.chunk;
  // Registers of what is loaded.
  bool anyLoads = false;
  for (auto &[op, plan] : chunk.planned) {
    if (plan.role == Chunk::Role::VectorLoad && !tiles.count(op) &&
        !isLate(chunks, op, plan)) {
      auto load = cast<memref::LoadOp>(op);
      std::string key = getKeepKey(chunks.loop, load);
      bool keeps = chunks.inStage && plan.guards.empty() && keepable[key] > 1;
      std::string &variable = names[load.getResult()];
      anyLoads = true;
      if (keeps && kept.count(key)) {
        variable = kept[key];
        continue;
      }
      variable = fresh(arguments.lookup(load.getMemRef()) + "_");
      line() << "Vector<" << getElement(load.getMemRef()) << ", V> " << variable
             << "[U];\n";
    }
  }
  open("for (" + chunks.header + ")");
  for (auto &[op, plan] : chunk.planned)
    if (plan.role == Chunk::Role::OnceLoaded)
      for (Value result : op->getResults()) {
        anyLoads = true;
        std::optional<std::string> type = getTypeName(result.getType());
        if (!type)
          return op->emitError()
                 << "'" << result.getType() << "' has no text for cuda kernels";
        names[result] = fresh("once") + "[u]";
        line() << *type << " " << StringRef(names[result]).drop_back(3)
               << "[U];\n";
      }
  // A pass over the chunks; what it names is forgotten after it.
  auto pass = [&](llvm::function_ref<LogicalResult()> body) {
    line() << "#pragma unroll\n";
    open("for (int u = 0; u < U; ++u)");
    chunks.place();
    if (failed(body()))
      return failure();
    close();
    return success();
  };
  if (anyLoads && failed(pass([&] { return writeLoads(chunks); })))
    return failure();
  if (failed(pass([&] { return writeLanes(chunks); })))
    return failure();
  if (chunks.inStage) {
    line() << "if (Keep)\n";
    line() << "  break;\n";
  }
  close();
  // From here on a later stage finds them.
  if (chunks.inStage)
    for (auto &[op, plan] : chunk.planned)
      if (plan.role == Chunk::Role::VectorLoad && plan.guards.empty()) {
        auto load = cast<memref::LoadOp>(op);
        std::string key = getKeepKey(chunks.loop, load);
        if (keepable[key] > 1)
          kept[key] = names[load.getResult()];
      }
  return success();
}

/// The first pass: what addresses need, and loads.
LogicalResult KernelWriter::writeLoads(const ChunkLoop &chunks) {
  for (auto &[op, plan] : chunks.chunk.planned) {
    std::string guards = getGuards(plan.guards);
    switch (plan.role) {
    case Chunk::Role::Once:
      if (chunks.chunk.forAddresses.contains(op) &&
          failed(writeOp(op, Mode::Thread)))
        return failure();
      break;
    case Chunk::Role::OnceLoaded: {
      SmallVector<std::string> variables;
      for (Value result : op->getResults())
        variables.push_back(names[result]);
      open(guards.empty() ? "" : "if (" + guards + ")");
      if (failed(writeOp(op, Mode::Thread)))
        return failure();
      for (auto [result, variable] :
           llvm::zip_equal(op->getResults(), variables)) {
        line() << variable << " = " << names[result] << ";\n";
        names[result] = variable;
      }
      close();
      break;
    }
    case Chunk::Role::VectorLoad: {
      auto load = cast<memref::LoadOp>(op);
      if (tiles.count(op) || isLate(chunks, op, plan))
        break;
      if (chunks.inStage && plan.guards.empty() &&
          kept.count(getKeepKey(chunks.loop, load)))
        line() << "if (!Keep)\n  ";
      else if (!guards.empty())
        line() << "if (" << guards << ")\n  ";
      line() << "load(" << names[load.getResult()] << "[u], "
             << getPointer(load.getMemRef(), load.getIndices()) << ");\n";
      break;
    }
    case Chunk::Role::VectorStore:
      break;
    }
  }
  return success();
}

/// The second pass: each iteration of the chunk, then stores.
LogicalResult KernelWriter::writeLanes(const ChunkLoop &chunks) {
  scf::ParallelOp loop = chunks.loop;
  const Chunk &chunk = chunks.chunk;
  for (auto &[op, plan] : chunk.planned) {
    if (plan.role == Chunk::Role::Once && failed(writeOp(op, Mode::Thread)))
      return failure();
    if (isLate(chunks, op, plan)) {
      auto load = cast<memref::LoadOp>(op);
      std::string &variable = names[load.getResult()];
      variable = fresh(arguments.lookup(load.getMemRef()) + "_");
      line() << "Vector<" << getElement(load.getMemRef()) << ", V> " << variable
             << ";\n";
      if (std::string guards = getGuards(plan.guards); !guards.empty())
        line() << "if (" << guards << ")\n  ";
      line() << "load(" << variable << ", "
             << getPointer(load.getMemRef(), load.getIndices()) << ");\n";
    }
    if (plan.role == Chunk::Role::VectorStore) {
      Value memref = cast<memref::StoreOp>(op).getMemRef();
      line() << "Vector<" << getElement(memref) << ", V> "
             << arguments.lookup(memref) << "_;\n";
    }
  }
  // The lane's values; loads are lanes of their vectors.
  Value last = loop.getInductionVars().back();
  std::string first = names[last];
  SmallVector<std::pair<Value, std::string>> vectors;
  for (auto &[op, plan] : chunk.planned)
    if (plan.role == Chunk::Role::VectorLoad) {
      Value value = op->getResult(0);
      vectors.push_back({value, names[value]});
      if (tiles.count(op))
        names[value] = tiles[op] + ".lines[column + v][row]";
      else
        names[value] += isLate(chunks, op, plan) ? ".lane[v]" : "[u].lane[v]";
    }
  line() << "#pragma unroll\n";
  open("for (int v = 0; v < V; ++v)");
  // (What is planned uses the first.)
  names[last] = fresh("i");
  if (llvm::any_of(last.getUsers(),
                   [&](Operation *user) { return !chunk.has(user); }))
    line() << "const int64 " << names[last] << " = " << first << " + v;\n";
  if (failed(writeLane(*loop.getBody(), chunk, {})))
    return failure();
  auto reduce = cast<scf::ReduceOp>(loop.getBody()->getTerminator());
  for (auto [sum, region, addend] :
       llvm::zip(chunks.sums, reduce.getReductions(), reduce.getOperands())) {
    FailureOr<std::string> combiner = getCombiner(region);
    if (failed(combiner))
      return failure();
    line() << sum << "[v] = " << *combiner << "::of(" << sum << "[v], "
           << name(addend) << ");\n";
  }
  close();
  names[last] = first;
  for (auto &[value, name] : vectors)
    names[value] = name;
  for (auto &[op, plan] : chunk.planned)
    if (plan.role == Chunk::Role::VectorStore) {
      auto store = cast<memref::StoreOp>(op);
      if (std::string guards = getGuards(plan.guards); !guards.empty())
        line() << "if (" << guards << ")\n  ";
      line() << "store(" << getPointer(store.getMemRef(), store.getIndices())
             << ", " << arguments.lookup(store.getMemRef()) << "_);\n";
    }
  return success();
}

/// What is left of a block for one iteration.
LogicalResult KernelWriter::writeLane(Block &block, const Chunk &chunk,
                                      ArrayRef<std::string> results) {
  for (Operation &op : block.without_terminator()) {
    if (auto store = dyn_cast<memref::StoreOp>(op); store && chunk.has(&op)) {
      line() << arguments.lookup(store.getMemRef())
             << "_.lane[v] = " << name(store.getValueToStore()) << ";\n";
      continue;
    }
    if (chunk.has(&op))
      continue;
    auto branch = dyn_cast<scf::IfOp>(op);
    bool hasPlanned = branch && branch
                                    ->walk([&](Operation *inner) {
                                      return chunk.has(inner)
                                                 ? WalkResult::interrupt()
                                                 : WalkResult::advance();
                                    })
                                    .wasInterrupted();
    if (!hasPlanned) {
      if (failed(writeOp(&op, Mode::Thread)))
        return failure();
      continue;
    }
    SmallVector<std::string> either;
    for (Value result : branch.getResults()) {
      either.push_back(fresh("either"));
      names[result] = either.back();
      line() << *getTypeName(result.getType()) << " " << either.back() << ";\n";
    }
    open("if (" + name(branch.getCondition()) + ")");
    if (failed(writeLane(*branch.thenBlock(), chunk, either)))
      return failure();
    close();
    if (branch.elseBlock()) {
      open("else");
      if (failed(writeLane(*branch.elseBlock(), chunk, either)))
        return failure();
      close();
    }
  }
  for (auto [result, value] :
       llvm::zip(results, block.getTerminator()->getOperands()))
    line() << result << " = " << name(value) << ";\n";
  return success();
}

//===----------------------------------------------------------------------===//
// Functions of points
//===----------------------------------------------------------------------===//

/// The widest vectors that the last extent allows, if it is known.
static int narrow(int width, std::optional<int64_t> extent) {
  while (extent && width > 1 && *extent % width != 0)
    width /= 2;
  return width;
}

LogicalResult KernelWriter::addTiles(scf::ParallelOp loop,
                                     DeviceFunction &function) {
  Chunk chunk(loop, *memory);
  auto variables = loop.getInductionVars();
  unsigned last = variables.size() - 1, across = last;
  int width = 1, bytes = 0;
  for (auto &[op, plan] : chunk.planned) {
    if (plan.role != Chunk::Role::VectorLoad || !plan.guards.empty())
      continue;
    auto load = cast<memref::LoadOp>(op);
    std::optional<unsigned> found = getAcross(loop, load, plan.dim);
    if (!found || (across != last && *found != across))
      continue;
    across = *found;
    tiles[op] = "tile" + std::to_string(tiles.size());
    int size = load.getMemRefType().getElementTypeBitWidth() / 8;
    width = std::max(width, 4 / std::min(size, 4));
    bytes += size;
  }
  const int size = kWarp * width;
  auto isShort = [&](unsigned i) {
    std::optional<int64_t> extent = getConstant(loop.getUpperBound()[i]);
    return extent && *extent < kWarp / 2;
  };
  if (tiles.empty() || bytes * size * (size + width) > kMaxStaticShared ||
      isShort(across) || isShort(last)) {
    tiles.clear();
    return addPoints(loop, function);
  }
  const std::string side = std::to_string(size), &symbol = function.symbol;
  line() << "\ntemplate <int V>\n";
  open("static __device__ void " + symbol + "_tiles(const " + source.name +
       "_Parameters &p)");
  line() << "constexpr int U = 4;\n";
  if (failed(enterFunction(loop)))
    return failure();
  for (auto &[op, plan] : chunk.planned)
    if (tiles.count(op))
      line() << "__shared__ Tile<"
             << getElement(cast<memref::LoadOp>(op).getMemRef()) << ", " << side
             << "> " << tiles[op] << ";\n";
  SmallVector<std::string> counts;
  for (auto [i, extent] : llvm::enumerate(loop.getUpperBound())) {
    bool isSide = i == last || i == across;
    counts.push_back(isSide ? "uint64((" + name(extent) + " + " +
                                  std::to_string(size - 1) + ") / " + side + ")"
                            : "uint64(" + name(extent) + ")");
  }
  line() << "const uint64 squares = " << llvm::join(counts, " * ") << ";\n";
  open("for (uint64 number = blockIdx.x; number < squares; number += "
       "gridDim.x)");
  line() << "uint64 rest = number;\n";
  for (Value variable : variables)
    names[variable] = fresh("i");
  for (size_t i = variables.size(); i-- > 0;) {
    bool isSide = i == last || i == across;
    line() << "const int64 " << names[variables[i]] << " = int64("
           << (i == 0 ? "rest" : "split(rest, " + counts[i] + ")") << ")"
           << (isSide ? " * " + side : "") << ";\n";
  }
  // Lines of the operands, each along its own memory.
  std::string firstLine = names[variables[last]],
              firstPlace = names[variables[across]];
  std::string lines = name(loop.getUpperBound()[last]),
              length = name(loop.getUpperBound()[across]);
  names[variables[last]] = firstLine + " + line";
  names[variables[across]] = firstPlace + " + place";
  line() << "__syncthreads();\n";
  for (auto &[op, plan] : chunk.planned)
    if (tiles.count(op)) {
      auto load = cast<memref::LoadOp>(op);
      line() << tiles[op] << ".template read<V>(" << lines << " - " << firstLine
             << ", " << length << " - " << firstPlace
             << ", [&](int line, int place) {\n";
      line() << "  return " << getPointer(load.getMemRef(), load.getIndices())
             << ";\n";
      line() << "});\n";
    }
  line() << "__syncthreads();\n";
  // Then lines of the result, which go across those.
  std::string row = fresh("i"), column = fresh("i");
  names[variables[across]] = row;
  names[variables[last]] = column;
  line() << "constexpr int kLanes = " << side << " / V, kStep = "
         << "kTileThreads / kLanes;\n";
  line() << "const int column = threadIdx.x % kLanes * V;\n";
  auto place = [&] {
    line() << "const int row = at + u * kStep;\n";
    line() << "const int64 " << row << " = " << firstPlace << " + row, "
           << column << " = " << firstLine << " + column;\n";
    line() << "if (row >= " << side << " || " << row << " >= " << length
           << " || " << column << " >= " << lines << ")\n";
    line() << "  break;\n";
  };
  ChunkLoop chunks{loop, chunk,
                   "int at = threadIdx.x / kLanes; at < " + side +
                       "; at += U * kStep",
                   place};
  if (failed(writeChunks(chunks)))
    return failure();
  close();
  close();

  function.threads = kPointThreads;
  function.items = int64_t(size) * size;
  line() << "extern \"C\" __global__ void __launch_bounds__(" << kPointThreads
         << ")\n";
  open(symbol + "(const __grid_constant__ " + source.name + "_Parameters p)");
  if (failed(enterFunction(loop)))
    return failure();
  width = narrow(width, getConstant(loop.getUpperBound()[last]));
  width = narrow(width, getConstant(loop.getUpperBound()[across]));
  if (width > 1) {
    SmallVector<std::string> conditions;
    addFit(loop, chunk, width, conditions);
    if (!getConstant(loop.getUpperBound()[across]))
      conditions.push_back(name(loop.getUpperBound()[across]) + " % " +
                           std::to_string(width) + " == 0");
    line() << "if (" << llvm::join(conditions, " && ") << ")\n";
    line() << "  " << symbol << "_tiles<" << width << ">(p);\n";
    line() << "else\n  ";
  }
  line() << symbol << "_tiles<1>(p);\n";
  close();
  return success();
}

LogicalResult KernelWriter::addPoints(scf::ParallelOp loop,
                                      DeviceFunction &function) {
  Chunk chunk(loop, *memory);
  int width =
      narrow(chunk.getWidth(), getConstant(loop.getUpperBound().back()));
  auto unroll = [&](int width) {
    // Long bodies hide the latency of their loads themselves.
    size_t ops = 0;
    loop.getBody()->walk([&](Operation *) { ++ops; });
    int registers = std::max(chunk.countRegisters(width), 1);
    return ops > 100 ? 1 : std::clamp(kLoadRegisters / 2 / registers, 1, 4);
  };
  SmallVector<std::optional<int64_t>> extents;
  for (Value extent : loop.getUpperBound())
    extents.push_back(getConstant(extent));
  const std::string &symbol = function.symbol;
  line() << "\ntemplate <int V, int U>\n";
  open("static __device__ void " + symbol + "_points(const " + source.name +
       "_Parameters &p)");
  line() << "using Point = " << getPointType(extents) << ";\n";
  if (failed(enterFunction(loop)))
    return failure();
  line() << "const Point points = " << getCount(loop) << ";\n";
  auto place = [&] {
    line() << "const Point number = at + u * blockDim.x;\n";
    line() << "if (number >= points)\n";
    line() << "  break;\n";
    writeIndices(loop, "number");
  };
  ChunkLoop chunks{loop, chunk,
                   "Point at = Point(blockIdx.x) * blockDim.x * U + "
                   "threadIdx.x; at < points; at += Point(gridDim.x) * "
                   "blockDim.x * U",
                   place};
  if (failed(writeChunks(chunks)))
    return failure();
  close();

  function.threads = kPointThreads;
  function.items = int64_t(kPointThreads) * width * unroll(width);
  line() << "extern \"C\" __global__ void __launch_bounds__(" << kPointThreads
         << ")\n";
  open(symbol + "(const __grid_constant__ " + source.name + "_Parameters p)");
  if (failed(enterFunction(loop)))
    return failure();
  auto call = [&](int width) {
    line() << symbol << "_points<" << width << ", " << unroll(width)
           << ">(p);\n";
  };
  if (width > 1) {
    SmallVector<std::string> conditions;
    addFit(loop, chunk, width, conditions);
    line() << "if (" << llvm::join(conditions, " && ") << ")\n  ";
    call(width);
    line() << "else\n  ";
  }
  call(1);
  close();
  return success();
}

LogicalResult KernelWriter::addThread(Operation *loop,
                                      DeviceFunction &function) {
  function.threads = 1;
  line() << "\nextern \"C\" __global__ void __launch_bounds__(1)\n";
  open(function.symbol + "(const __grid_constant__ " + source.name +
       "_Parameters p)");
  line() << "if (blockIdx.x != 0 || threadIdx.x != 0)\n    return;\n";
  if (failed(enterFunction(loop)) || failed(writeOp(loop, Mode::Thread)))
    return failure();
  close();
  return success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// A static member of the functors: `region` as a function of a score, if it
/// has one, batch, head, query and key.
LogicalResult KernelWriter::writeFunctor(plan::AttentionOp op, Region &region,
                                         const std::string &functor) {
  static constexpr StringLiteral kArguments[] = {"s", "b", "h", "q", "k"};
  Block &block = region.front();
  auto variables = ArrayRef(kArguments).take_back(block.getNumArguments());
  auto type = [&](Value value) { return *getTypeName(value.getType()); };
  Value result = block.getTerminator()->getOperand(0);
  std::string text =
      "static __device__ " + type(result) + " " + functor + "(const Args &args";
  for (auto [variable, argument] :
       llvm::zip_equal(variables, block.getArguments()))
    text += ", " + type(argument) + " " + variable.str();
  open(text + ")");
  line() << "const " << source.name << "_Parameters &p = *args.p;\n";
  line() << "(void)p;\n";
  if (failed(enterFunction(op, &region)))
    return failure();
  for (auto [variable, argument] :
       llvm::zip_equal(variables, block.getArguments()))
    names[argument] = variable.str();
  if (failed(writeBlock(block, Mode::Thread)))
    return failure();
  line() << "return " << name(result) << ";\n";
  close();
  return success();
}

LogicalResult KernelWriter::addAttention(plan::AttentionOp op,
                                         DeviceFunction &function) {
  auto type = cast<MemRefType>(op.getQuery().getType());
  const int64_t depth = type.getDimSize(3);
  if ((depth != 64 && depth != 128) ||
      cast<MemRefType>(op.getValue().getType()).getDimSize(3) != depth ||
      !(type.getElementType().isBF16() || type.getElementType().isF16()))
    return op.emitError() << "attention on cuda has a head dimension of 64 or "
                             "128 and elements of bf16 or f16, not "
                          << type;
  for (Value tensor :
       {op.getQuery(), op.getKey(), op.getValue(), op.getResult()}) {
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(cast<MemRefType>(tensor.getType())
                   .getStridesAndOffset(strides, offset)) ||
        strides.back() != 1)
      return op.emitError() << "attention on cuda reads and writes heads that "
                               "are contiguous in memory, not "
                            << tensor.getType();
  }
  const std::string &symbol = function.symbol, &kernelName = source.name;
  const bool hasMods = !op.getScoreMod().empty() || !op.getMaskMod().empty();
  // FwdConfig of attention_fwd.cuh; the text says so again.
  const bool scaled =
      !op.getScoreMod().empty() || !(op.getScale().convertToDouble() > 0);
  const int32_t groups = depth == 64 && !hasMods && !scaled ? 3 : 2;
  const int32_t rows = 64 * groups, keys = 128;
  function.threads = 128 * (groups + 1);
  function.shared = (2 * rows + 4 * keys) * depth * 2 + 1024;
  auto number = [](Value tensor) {
    return cast<BlockArgument>(tensor).getArgNumber();
  };
  for (unsigned dim : {0, 1, 2})
    function.space.push_back(
        {SpaceExtent::Kind::Dimension, 0, number(op.getResult()), dim});
  function.boxed = {{number(op.getQuery()), {1, 1, rows, 64}},
                    {number(op.getKey()), {1, 1, keys, 64}},
                    {number(op.getValue()), {1, 1, keys, 64}},
                    {number(op.getResult()), {1, 1, 64, 64}}};

  line() << "\n";
  open("struct " + symbol + "_Mods : AttentionMods");
  line() << "struct Args {\n";
  line() << "  const " << kernelName << "_Parameters *p;\n";
  line() << "};\n";
  Builder b(op.getContext());
  line() << "static constexpr float Scale = "
         << getLiteral(b.getF32FloatAttr(op.getScale().convertToDouble()))
         << ";\n";
  if (op.getCausal())
    line() << "static constexpr bool Causal = true;\n";
  if (!op.getScoreMod().empty()) {
    line() << "static constexpr bool HasScore = true;\n";
    if (failed(writeFunctor(op, op.getScoreMod(), "score")))
      return failure();
  }
  if (!op.getMaskMod().empty()) {
    line() << "static constexpr bool HasMask = true;\n";
    if (failed(writeFunctor(op, op.getMaskMod(), "mask")))
      return failure();
  }
  --this->depth;
  line() << "};\n";

  nameParameters();
  auto size = [&](Value tensor, int dim) {
    return "int(" + name(tensor) + ".size[" + std::to_string(dim) + "])";
  };
  line() << "using " << symbol << "_Config = FwdConfig<"
         << *getTypeName(type.getElementType()) << ", " << depth << ", "
         << symbol << "_Mods>;\n";
  line() << "static_assert(" << symbol << "_Config::BM == " << rows << " && "
         << symbol << "_Config::BN == " << keys << " &&\n";
  line() << "              " << symbol
         << "_Config::Threads == " << function.threads << " &&\n";
  line() << "              sizeof(" << symbol
         << "_Config::Shared) == " << function.shared << ",\n";
  line() << "              \"what the launch says\");\n";
  line() << "// Launches of a module follow each other.\n";
  line() << "static __device__ int " << symbol << "_ticket;\n";
  line() << "struct " << symbol << "_Boxed {\n";
  line() << "  " << kernelName << "_Parameters p;\n";
  line() << "  FwdMaps maps;\n";
  line() << "};\n";
  line() << "extern \"C\" __global__ void __launch_bounds__("
         << function.threads << ", 1)\n";
  open(symbol + "(const __grid_constant__ " + symbol + "_Boxed boxed)");
  line() << "const " << kernelName << "_Parameters &p = boxed.p;\n";
  line() << "FwdParams<" << symbol << "_Mods::Args> f = {};\n";
  if (op.getLse()) {
    std::string lse = name(op.getLse());
    line() << "f.lse = " << lse << ".data;\n";
    for (int dim = 0; dim < 3; ++dim)
      line() << "f.lse_strides[" << dim << "] = " << lse << ".stride[" << dim
             << "];\n";
  }
  line() << "f.ticket = &" << symbol << "_ticket;\n";
  line() << "f.batch = " << size(op.getQuery(), 0) << ";\n";
  line() << "f.heads = " << size(op.getQuery(), 1) << ";\n";
  line() << "f.key_heads = " << size(op.getKey(), 1) << ";\n";
  line() << "f.queries = " << size(op.getQuery(), 2) << ";\n";
  line() << "f.keys = " << size(op.getKey(), 2) << ";\n";
  line() << "f.causal_shift = f.keys - f.queries;\n";
  line() << "f.args.p = &p;\n";
  line() << "attention_fwd<" << symbol << "_Config>(boxed.maps, f);\n";
  close();
  return success();
}

//===----------------------------------------------------------------------===//
// Functions of rows
//===----------------------------------------------------------------------===//

/// A stage: its chunks are shared among the row's group.
LogicalResult KernelWriter::writeStage(scf::ParallelOp op) {
  if (failed(getSpace(op)))
    return failure();
  const Chunk &chunk = stages.at(op);
  auto reduce = cast<scf::ReduceOp>(op.getBody()->getTerminator());
  SmallVector<std::string> sums, combiners;
  for (auto [init, region] :
       llvm::zip_equal(op.getInitVals(), reduce.getReductions())) {
    FailureOr<std::string> combiner = getCombiner(region);
    if (failed(combiner))
      return failure();
    combiners.push_back(*combiner);
    sums.push_back(fresh("lanes"));
    line() << *getTypeName(init.getType()) << " " << sums.back() << "[V];\n";
    line() << "for (int v = 0; v < V; ++v)\n";
    line() << "  " << sums.back() << "[v] = " << name(init) << ";\n";
  }
  std::string count = fresh("chunks");
  line() << "const Point " << count << " = group.active ? Point("
         << getCount(op) << ") : 0;\n";
  auto place = [&] {
    line() << "const Point number = at + u * group.size();\n";
    line() << "if (number >= " << count << ")\n";
    line() << "  break;\n";
    writeIndices(op, "number");
  };
  ChunkLoop chunks{op,
                   chunk,
                   "Point at = group.member(); at < " + count +
                       "; at += U * group.size()",
                   place,
                   /*inStage=*/true,
                   sums};
  if (failed(writeChunks(chunks)))
    return failure();
  for (auto [result, init, sum, combiner] :
       llvm::zip_equal(op.getResults(), op.getInitVals(), sums, combiners)) {
    std::string variable = fresh("sum");
    names[result] = variable;
    line() << "const " << *getTypeName(init.getType()) << " " << variable
           << " = group.template reduce<" << combiner << ">(reduceLanes<"
           << combiner << ">(" << sum << "), " << *getTypeName(init.getType())
           << "(" << name(init) << "));\n";
  }
  // What the group has stored here is read by others of it.
  bool shares = op.getBody()
                    ->walk([&](memref::StoreOp store) {
                      return memory->isBoth(store.getMemRef())
                                 ? WalkResult::interrupt()
                                 : WalkResult::advance();
                    })
                    .wasInterrupted();
  if (shares)
    line() << "group.sync();\n";
  return success();
}

LogicalResult KernelWriter::addRows(scf::ParallelOp loop,
                                    DeviceFunction &function) {
  SmallVector<scf::ParallelOp> inner;
  bool conditional = false;
  loop.getBody()->walk<WalkOrder::PreOrder>([&](scf::ParallelOp stage) {
    inner.push_back(stage);
    conditional |= stage->getParentOp() != loop;
    return WalkResult::skip();
  });
  bool hasSmall = llvm::any_of(memory->loads, [](const auto &load) {
    return cast<MemRefType>(load.first.getType()).getElementTypeBitWidth() <=
           16;
  });
  int width = 8;
  int64_t longest = 1;
  bool isStatic = true;
  SmallVector<std::optional<int64_t>> extents;
  int along = 0, across = 0;
  Value lastRow = loop.getInductionVars().back();
  for (scf::ParallelOp stage : inner) {
    Chunk &chunk = stages.try_emplace(stage, stage, *memory).first->second;
    if (chunk.getWidth() > 1)
      width = std::min(width, chunk.getWidth());
    width = narrow(width, getConstant(stage.getUpperBound().back()));
    int64_t length = 1;
    for (Value extent : stage.getUpperBound()) {
      std::optional<int64_t> constant = getConstant(extent);
      isStatic &= constant.has_value();
      extents.push_back(constant);
      length *= constant.value_or(1);
    }
    longest = std::max(longest, length);
    // Do neighbours lie in a row, or in neighbouring rows?
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
    for (auto &[op, plan] : chunk.planned)
      if (plan.role == Chunk::Role::VectorLoad && plan.guards.empty() &&
          !conditional)
        ++keepable[getKeepKey(stage, cast<memref::LoadOp>(op))];
  }
  bool vectors = llvm::any_of(
      stages, [](const auto &stage) { return stage.second.getWidth() > 1; });
  bool columns = across > along && !conditional;
  if (!vectors || columns)
    width = 1;

  // How many threads, and chunks of each.
  std::string group = "BlockRow";
  int unroll = 4;
  function.threads = 256;
  if (columns) {
    group = "ColumnRow";
    function.threads = kColumnThreads;
    function.items = kWarp;
  } else {
    int64_t count = isStatic ? llvm::divideCeil(longest, width) : 1024;
    if (isStatic && longest <= kShortRow) {
      group = "WarpRow";
      function.threads = 128;
      function.items = function.threads / kWarp;
      unroll = llvm::divideCeil(count, kWarp);
    } else {
      // Several blocks to a multiprocessor, so that some load while others
      // reduce.
      if (count > 4 * function.threads)
        function.threads = count > 8 * 512 ? 1024 : 512;
      unroll = llvm::divideCeil(count, function.threads);
    }
  }
  // Registers for a chunk of what later stages need again, and of the rest.
  int again = 0, once = 0;
  llvm::StringSet<> seen;
  for (scf::ParallelOp stage : inner) {
    int here = 0;
    for (auto &[op, plan] : stages.at(stage).planned) {
      if (plan.role != Chunk::Role::VectorLoad)
        continue;
      auto load = cast<memref::LoadOp>(op);
      int size = std::max<int>(
          width * load.getMemRefType().getElementTypeBitWidth() / 32, 1);
      std::string key = getKeepKey(stage, load);
      if (keepable[key] < 2)
        here += size;
      else if (seen.insert(key).second)
        again += size;
    }
    once = std::max(once, here);
  }
  // Rows that are too long for registers are loaded once a stage.
  bool mayKeep = !columns && unroll <= 8 && unroll * again <= 40;
  if (!mayKeep)
    unroll =
        columns
            ? (hasSmall ? 16 : 8)
            : std::clamp(kLoadRegisters / 2 / std::max(again + once, 1), 1, 4);
  loadsLate = mayKeep && again > 0;
  // Some blocks load while others reduce; what bodies compute takes registers
  // too.
  size_t ops = 0;
  loop.getBody()->walk([&](Operation *) { ++ops; });
  int resident = 1;
  if (group == "BlockRow" && mayKeep && ops < 80)
    resident =
        std::max((unroll * again <= 12 ? 1536 : 1024) / function.threads, 1);

  SmallVector<std::optional<int64_t>> rowExtents;
  for (Value extent : loop.getUpperBound())
    rowExtents.push_back(getConstant(extent));
  const std::string &symbol = function.symbol;
  line() << "\ntemplate <class Group, int V, int U, bool Keep>\n";
  open("static __device__ void " + symbol + "_rows(const " + source.name +
       "_Parameters &p)");
  line() << "using Point = " << getPointType(extents) << ";\n";
  if (failed(enterFunction(loop)))
    return failure();
  SmallVector<std::string> factors;
  for (Value extent : loop.getUpperBound())
    factors.push_back("int64(" + name(extent) + ")");
  line() << "const int64 rows = " << llvm::join(factors, " * ") << ";\n";
  line() << "Group group;\n";
  open("for (int64 first = group.first(); first < rows; first += "
       "group.step())");
  line() << "uint64 row = group.row(first, rows);\n";
  auto variables = loop.getInductionVars();
  for (Value variable : variables)
    names[variable] = fresh("i");
  for (size_t i = variables.size(); i-- > 0;) {
    line() << "const int64 " << names[variables[i]] << " = int64("
           << (i == 0 ? "row"
                      : "split(row, uint64(" + name(loop.getUpperBound()[i]) +
                            "))")
           << ");\n";
  }
  if (failed(writeBlock(*loop.getBody(), Mode::Group)))
    return failure();
  close();
  close();

  line() << "extern \"C\" __global__ void __launch_bounds__("
         << function.threads
         << (resident > 1 ? ", resident(" + std::to_string(resident) + ")" : "")
         << ")\n";
  open(symbol + "(const __grid_constant__ " + source.name + "_Parameters p)");
  if (failed(enterFunction(loop)))
    return failure();
  auto call = [&](int width, bool keep) {
    line() << symbol << "_rows<" << group << ", " << width << ", "
           << (keep || width > 1 || columns ? unroll : 4) << ", "
           << (keep ? "true" : "false") << ">(p);\n";
  };
  SmallVector<std::string> conditions;
  for (scf::ParallelOp stage : inner)
    if (width > 1)
      addFit(stage, stages.at(stage), width, conditions);
  // Kept rows have one trip; a row of dynamic length may be too long.
  if (mayKeep && !isStatic)
    for (scf::ParallelOp stage : inner) {
      std::string count;
      for (Value extent : stage.getUpperBound())
        count += (count.empty() ? "" : " * ") + name(extent);
      std::string fit =
          count + " <= " +
          std::to_string(int64_t(width) * unroll *
                         (group == "WarpRow" ? kWarp : function.threads));
      if (!llvm::is_contained(conditions, fit))
        conditions.push_back(fit);
    }
  if (!conditions.empty()) {
    line() << "if (" << llvm::join(conditions, " && ") << ")\n  ";
    call(width, mayKeep);
    line() << "else\n  ";
    call(1, false);
  } else {
    call(width, mayKeep);
  }
  close();
  return success();
}

FailureOr<KernelSource> cuda::emitKernel(func::FuncOp kernel) {
  return KernelWriter(kernel).run();
}
