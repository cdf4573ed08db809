//===- KernelWriter.cpp - text of what one thread does --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops become lines in the order that they have. A value is a variable, named
// after its op, a constant its literal.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/KernelWriter.h"
#include "Compiler/Targets/CUDA/ScalarText.h"
#include "Schedule/Schedule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

LogicalResult cuda::verifyLoop(scf::ParallelOp loop) {
  for (auto [lower, step] :
       llvm::zip_equal(loop.getLowerBound(), loop.getStep()))
    if (getConstant(lower) != 0 || getConstant(step) != 1)
      return loop.emitError() << "loops of kernels go from 0 in steps of 1";
  return success();
}

FailureOr<std::vector<SpaceExtent>> cuda::getSpace(scf::ParallelOp loop) {
  if (failed(verifyLoop(loop)))
    return failure();
  std::vector<SpaceExtent> space;
  for (Value upper : loop.getUpperBound()) {
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

//===----------------------------------------------------------------------===//
// Arguments and functions
//===----------------------------------------------------------------------===//

LogicalResult KernelWriter::nameArguments() {
  unsigned inputs = 0, outputs = 0, scalars = 0;
  if (kernel->hasAttr(schedule::kRoundedAttr))
    rounding = Rounding::Results;
  for (BlockArgument argument : kernel.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    std::string name = !type ? "n" + std::to_string(scalars++)
                       : memory.isStored(argument)
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
  std::string text = "struct " + getParametersType() + " {\n";
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
    text += "  Tensor<" +
            std::string(memory.isStored(argument) ? "" : "const ") +
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

std::string KernelWriter::getText() {
  os.flush();
  return getParameters() + structs + functions;
}

void KernelWriter::openGlobal(const std::string &bounds,
                              const std::string &symbol) {
  line() << "extern \"C\" __global__ void __launch_bounds__(" << bounds
         << ")\n";
  open(symbol + "(const __grid_constant__ " + getParametersType() + " p)");
}

void KernelWriter::nameParameters() {
  names.clear();
  counters.clear();
  for (auto &[argument, name] : arguments)
    names[argument] = "p." + name;
}

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
    if (needed.contains(&op) && failed(writeOp(&op)))
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
  auto known = names.find(value);
  // Text with nothing in its place could compile.
  return known == names.end() || known->second.empty() ? "value_without_a_name"
                                                       : known->second;
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
      getExpression(op, rounding, [&](Value value) { return name(value); });
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

LogicalResult KernelWriter::writeOp(Operation *op) {
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
  if (auto random = dyn_cast<plan::RandomOp>(op)) {
    std::string variable = fresh("random");
    line() << "const float " << variable << " = randomNumber<"
           << random.getBits() << ">(" << getRandomArguments(random) << ");\n";
    names[random] = variable;
    return success();
  }
  if (auto store = dyn_cast<memref::StoreOp>(op)) {
    line() << "*" << getPointer(store.getMemRef(), store.getIndices()) << " = "
           << name(store.getValueToStore()) << ";\n";
    return success();
  }
  auto inner = [&](Block &block, ArrayRef<std::string> results) {
    return writeBlock(block, results);
  };
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return writeIf(branch, inner);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return writeFor(loop, inner);
  if (auto loop = dyn_cast<scf::ParallelOp>(op))
    return writeNest(loop);
  return writeExpression(op);
}

std::string KernelWriter::getRandomArguments(plan::RandomOp op) {
  return name(op.getNumber()) + ", uint64(" + name(op.getSeed()) +
         "), uint64(" + name(op.getStream()) + ")";
}

LogicalResult KernelWriter::writeBlock(Block &block,
                                       ArrayRef<std::string> results) {
  for (Operation &op : block.without_terminator())
    if (failed(writeOp(&op)))
      return failure();
  writeYield(block, results);
  return success();
}

void KernelWriter::writeYield(Block &block, ArrayRef<std::string> results) {
  if (results.empty())
    return;
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
}

LogicalResult KernelWriter::writeIf(scf::IfOp op, BlockText writeInner) {
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
  if (failed(writeInner(*op.thenBlock(), results)))
    return failure();
  close();
  if (op.elseBlock()) {
    open("else");
    if (failed(writeInner(*op.elseBlock(), results)))
      return failure();
    close();
  }
  return success();
}

/// NVRTC unrolls a nest of few steps whole; beside stores, whose order it
/// keeps, that gains nothing, and it crashed on 160 of them (13.0).
static bool isOrderedNest(scf::ForOp op) {
  bool stores = false, nests = false;
  op.getBody()->walk([&](Operation *inner) {
    stores |= isa<memref::StoreOp>(inner);
    nests |= isa<scf::ForOp>(inner);
  });
  return stores && nests;
}

LogicalResult KernelWriter::writeFor(scf::ForOp op, BlockText writeInner) {
  SmallVector<std::string> carried;
  for (auto [init, argument, result] : llvm::zip_equal(
           op.getInitArgs(), op.getRegionIterArgs(), op.getResults())) {
    std::optional<std::string> type = getTypeName(init.getType());
    if (!type)
      return op.emitError()
             << "'" << init.getType() << "' has no text for cuda kernels";
    carried.push_back(fresh("carried"));
    line() << *type << " " << carried.back() << " = " << name(init) << ";\n";
    names[argument] = carried.back();
    names[result] = carried.back();
  }
  std::string i = fresh("i");
  names[op.getInductionVar()] = i;
  if (isOrderedNest(op))
    line() << "#pragma unroll 1\n";
  open("for (int64 " + i + " = " + name(op.getLowerBound()) + "; " + i + " < " +
       name(op.getUpperBound()) + "; " + i + " += " + name(op.getStep()) + ")");
  if (failed(writeInner(*op.getBody(), carried)))
    return failure();
  close();
  return success();
}

/// A parallel loop inside one thread.
LogicalResult KernelWriter::writeNest(scf::ParallelOp op) {
  if (failed(verifyLoop(op)))
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
  if (failed(writeBlock(*op.getBody())))
    return failure();
  for (auto [sum, combiner, addend] :
       llvm::zip_equal(sums, combiners, reduce.getOperands()))
    line() << sum << " = " << combiner << "::of(" << sum << ", " << name(addend)
           << ");\n";
  for (size_t i = 0; i < op.getInductionVars().size(); ++i)
    close();
  return success();
}

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
  LogicalResult written = writeBlock(block);
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
    combiner = getSymbol() + "_Combine" + std::to_string(combiners.size() - 1);
    structs += "struct " + combiner + " {\n  static __device__ " + *type +
               " of(" + *type + " a, " + *type + " b) {\n" + text + "  }\n};\n";
  }
  return combiner;
}
