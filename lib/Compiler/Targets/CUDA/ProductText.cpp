//===- ProductText.cpp - a matrix product's functor -----------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel is gemm.cuh. Written here is what it is a template of: a functor
// for the program's epilogue, its configuration, which is the schedule's, and a
// `__global__` function that hands over the launch's parameters.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/KernelForms.h"
#include "Compiler/Targets/CUDA/ScalarText.h"
#include "Compiler/Targets/CUDA/Scheduling.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::schedule;

/// GemmConfig of gemm.cuh; the text says so again.
constexpr int32_t kThreads = 384;
/// Row tiles that are walked together.
constexpr int64_t kWalked = 16;

/// As many blocks as there are tiles, or more where sizes are not known.
static std::vector<SpaceExtent> getBlocks(Value output, ProductAttr tiles) {
  auto type = cast<MemRefType>(output.getType());
  unsigned argument = cast<BlockArgument>(output).getArgNumber();
  std::vector<SpaceExtent> space;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    const int64_t fromEnd = type.getRank() - dim;
    if (ShapedType::isDynamic(size)) {
      space.push_back({SpaceExtent::Kind::Dimension, 0, argument,
                       static_cast<unsigned>(dim)});
      continue;
    }
    int64_t number = size;
    if (fromEnd == 2)
      number = llvm::divideCeil(size, kProductRows * tiles.getCluster()) *
               tiles.getCluster();
    else if (fromEnd == 1)
      number = llvm::divideCeil(size, tiles.getColumns());
    space.push_back({SpaceExtent::Kind::Constant, number});
  }
  return space;
}

/// A static member of the functors: the epilogue of a sum, in place.
static LogicalResult writeEpilogue(KernelWriter &out, plan::ProductOp op) {
  const size_t results = op.getOutputs().size();
  Block &block = op.getEpilogue().front();
  out.open("static __device__ void epilogue(const Args &args, float (&x)[" +
           std::to_string(results) + "], const GemmElement &at)");
  out.line() << "const " << out.getParametersType() << " &p = *args.p;\n";
  out.line() << "(void)p;\n";
  if (failed(out.enterFunction(op, &op.getEpilogue())))
    return failure();
  out.line() << "const float sum = x[0];\n";
  out.line() << "const int64 batch = at.batch, row = at.row, column = "
                "at.column;\n";
  static constexpr StringLiteral kIndices[] = {"batch", "row", "column"};
  out.names[block.getArgument(0)] = "sum";
  auto indices = block.getArguments().drop_front();
  for (auto [name, argument] :
       llvm::zip_equal(ArrayRef(kIndices).take_back(indices.size()), indices))
    out.names[argument] = name.str();
  if (failed(out.writeBlock(block)))
    return failure();
  for (auto [i, value] : llvm::enumerate(block.getTerminator()->getOperands()))
    out.line() << "x[" << i << "] = " << out.name(value) << ";\n";
  out.close();
  return success();
}

LogicalResult cuda::writeProduct(KernelWriter &out, plan::ProductOp op,
                                 DeviceFunction &function) {
  SmallVector<Value> tensors = {op.getA(), op.getB()};
  llvm::append_range(tensors, op.getOutputs());
  for (Value tensor : tensors) {
    auto type = cast<MemRefType>(tensor.getType());
    SmallVector<int64_t> strides;
    int64_t offset;
    if (!(type.getElementType().isBF16() || type.getElementType().isF16()) ||
        failed(type.getStridesAndOffset(strides, offset)) ||
        strides.back() != 1)
      return op.emitError() << "a product on cuda has elements of bf16 or f16, "
                               "in rows that are contiguous in memory, not "
                            << type;
    if (!isa<BlockArgument>(tensor))
      return op.emitError() << "multiplies what is no argument of the kernel";
  }
  auto type = cast<MemRefType>(op.getOutputs().front().getType());
  const int64_t rank = type.getRank();
  const bool batched = cast<MemRefType>(op.getB().getType()).getRank() == 3;
  const ProductAttr tiles = getProduct(op);
  function.threads = kThreads;
  function.shared = getSharedBytes(tiles);
  function.cluster = tiles.getCluster();
  function.persistent = true;
  function.space = getBlocks(op.getOutputs().front(), tiles);
  auto addBoxes = [&](Value tensor, int32_t rows) {
    std::vector<int32_t> box = {rows, 64};
    if (cast<MemRefType>(tensor.getType()).getRank() == 3)
      box.insert(box.begin(), 1);
    function.boxed.push_back(
        {cast<BlockArgument>(tensor).getArgNumber(), std::move(box)});
  };
  addBoxes(op.getA(), kProductRows);
  addBoxes(op.getB(), tiles.getColumns() / tiles.getCluster());
  for (Value output : op.getOutputs())
    addBoxes(output, 64);

  const std::string &symbol = function.symbol,
                    parameters = out.getParametersType();
  const size_t results = op.getOutputs().size();
  out.line() << "\n";
  out.open("struct " + symbol + "_Mods : GemmMods");
  out.line() << "struct Args {\n";
  out.line() << "  const " << parameters << " *p;\n";
  out.line() << "};\n";
  out.line() << "static constexpr int Results = " << results << ";\n";
  if (tiles.getRolled())
    out.line() << "static constexpr bool Rolled = true;\n";
  if (!op.getEpilogue().empty() && failed(writeEpilogue(out, op)))
    return failure();
  out.close("};");

  out.nameParameters();
  auto size = [&](Value tensor, int64_t dim) {
    return "int(" + out.name(tensor) + ".size[" + std::to_string(dim) + "])";
  };
  out.line() << "using " << symbol << "_Config = GemmConfig<"
             << *getTypeName(type.getElementType()) << ", "
             << tiles.getColumns() << ", " << tiles.getStages() << ", "
             << tiles.getCluster() << ", " << symbol << "_Mods, " << rank
             << ", " << (batched ? "true" : "false") << ">;\n";
  out.line() << "static_assert(" << symbol << "_Config::BM == " << kProductRows
             << " && " << symbol << "_Config::Threads == " << function.threads
             << " &&\n";
  out.line() << "              sizeof(" << symbol
             << "_Config::Shared) == " << function.shared << ",\n";
  out.line() << "              \"what the launch says\");\n";
  out.line() << "struct " << symbol << "_Boxed {\n";
  out.line() << "  " << parameters << " p;\n";
  out.line() << "  GemmMaps<" << results << "> maps;\n";
  out.line() << "};\n";
  out.line() << "extern \"C\" __global__ void __cluster_dims__("
             << tiles.getCluster() << ") __launch_bounds__(" << function.threads
             << ", 1)\n";
  out.open(symbol + "(const __grid_constant__ " + symbol + "_Boxed boxed)");
  out.line() << "const " << parameters << " &p = boxed.p;\n";
  out.line() << "const GemmParams<" << symbol << "_Mods::Args> g = {\n";
  out.line() << "    " << (rank == 3 ? size(op.getA(), 0) : std::string("1"))
             << ", " << size(op.getA(), rank - 2) << ", "
             << size(op.getOutputs().front(), rank - 1) << ", "
             << size(op.getA(), rank - 1) << ", "
             << kWalked / tiles.getCluster() << ", {&p}};\n";
  out.line() << "gemm<" << symbol << "_Config>(boxed.maps, g);\n";
  out.close();
  return success();
}
