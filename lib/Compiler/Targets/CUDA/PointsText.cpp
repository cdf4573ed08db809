//===- PointsText.cpp - kernels whose iterations stand alone --------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Threads share the chunks of all iterations. Where the neighbours of an
// operand lie along another loop than the last one, blocks take squares of
// iterations instead (tiles.cuh): they read the operand along its own memory
// into shared memory, and find its elements there.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/ChunkWriter.h"
#include "Compiler/Targets/CUDA/KernelForms.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::schedule;

static LogicalResult writeFlat(KernelWriter &out, scf::ParallelOp loop,
                               DeviceFunction &function) {
  ChunkWriter writer(out);
  SmallVector<std::optional<int64_t>> extents;
  for (Value extent : loop.getUpperBound())
    extents.push_back(getConstant(extent));
  const std::string &symbol = function.symbol;
  out.line() << "\ntemplate <int V, int U>\n";
  out.open("static __device__ void " + symbol + "_points(const " +
           out.getParametersType() + " &p)");
  out.line() << "using Point = " << getPointType(extents) << ";\n";
  if (failed(out.enterFunction(loop)))
    return failure();
  const Value lane = loop.getInductionVars().back();
  out.line() << "const Point points = " << writer.getCount(loop, lane) << ";\n";
  const std::string threads = std::to_string(getLoop(loop).getThreads());
  auto place = [&](bool) {
    out.line() << "const Point number = at + u * " << threads << ";\n";
    // (No test is left where the number of points is known and fits.)
    out.line() << "if (points % (U * " << threads
               << ") != 0 && number >= points)\n";
    out.line() << "  continue;\n";
    writer.writeIndices(loop, lane, "number");
  };
  ChunkWriter::Loop chunks{loop, lane,
                           "Point at = Point(blockIdx.x) * " + threads +
                               " * U + threadIdx.x; at < points; at += "
                               "Point(gridDim.x) * " +
                               threads + " * U",
                           place};
  if (failed(writer.write(chunks)))
    return failure();
  out.close();

  out.openGlobal(getBounds(getLoop(loop)), symbol);
  if (failed(out.enterFunction(loop)))
    return failure();
  writeInstances(out, loop, [&](InstanceAttr instance) {
    return symbol + "_points<" + std::to_string(instance.getVectors()) + ", " +
           std::to_string(instance.getUnroll()) + ">";
  });
  out.close();
  return success();
}

static LogicalResult writeSquares(KernelWriter &out, scf::ParallelOp loop,
                                  DeviceFunction &function) {
  ChunkWriter writer(out);
  LoopAttr attribute = getLoop(loop);
  auto variables = loop.getInductionVars();
  const unsigned last = variables.size() - 1, across = attribute.getAcross();
  const int64_t size = attribute.getSide();
  const std::string side = std::to_string(size), &symbol = function.symbol,
                    unroll = std::to_string(
                        attribute.getInstances().front().getUnroll());
  // Loads through shared memory, and its names.
  SmallVector<std::pair<memref::LoadOp, std::string>> tiles;
  for (auto load : loop.getBody()->getOps<memref::LoadOp>())
    if (hasRole(load, RoleKind::Tile))
      tiles.push_back(
          {load, symbol + "_tile" + std::to_string(getRole(load).getNumber())});
  out.line() << "\n";
  for (auto &[load, tile] : tiles)
    out.line() << "static __shared__ Tile<" << out.getElement(load.getMemRef())
               << ", " << side << "> " << tile << ";\n";
  out.line() << "template <int V>\n";
  out.open("static __device__ void " + symbol + "_tiles(const " +
           out.getParametersType() + " &p)");
  out.line() << "using Chunks = Square<V, " << side << ">;\n";
  out.line() << "constexpr int U = Chunks::kTurns < " << unroll
             << " ? Chunks::kTurns : " << unroll << ";\n";
  if (failed(out.enterFunction(loop)))
    return failure();
  SmallVector<std::string> counts;
  for (auto [i, extent] : llvm::enumerate(loop.getUpperBound())) {
    bool isSide = i == last || i == across;
    counts.push_back(isSide ? "uint64((" + out.name(extent) + " + " +
                                  std::to_string(size - 1) + ") / " + side + ")"
                            : "uint64(" + out.name(extent) + ")");
  }
  out.line() << "const uint64 squares = " << llvm::join(counts, " * ") << ";\n";
  out.open("for (uint64 number = blockIdx.x; number < squares; number += "
           "gridDim.x)");
  out.line() << "uint64 rest = number;\n";
  for (Value variable : variables)
    out.names[variable] = out.fresh("i");
  for (size_t i = variables.size(); i-- > 0;) {
    bool isSide = i == last || i == across;
    out.line() << "const int64 " << out.names[variables[i]] << " = int64("
               << (i == 0 ? "rest" : "split(rest, " + counts[i] + ")") << ")"
               << (isSide ? " * " + side : "") << ";\n";
  }
  // Lines of the operands, each along its own memory.
  std::string firstLine = out.names[variables[last]],
              firstPlace = out.names[variables[across]];
  std::string lines = out.name(loop.getUpperBound()[last]),
              length = out.name(loop.getUpperBound()[across]);
  out.names[variables[last]] = firstLine + " + line";
  out.names[variables[across]] = firstPlace + " + place";
  out.line() << "__syncthreads();\n";
  for (auto &[load, tile] : tiles) {
    out.line() << tile << ".template read<V>(" << lines << " - " << firstLine
               << ", " << length << " - " << firstPlace
               << ", [&](int line, int place) {\n";
    out.line() << "  return "
               << out.getPointer(load.getMemRef(), load.getIndices()) << ";\n";
    out.line() << "});\n";
  }
  out.line() << "__syncthreads();\n";
  // Then lines of the result, which go across those.
  std::string row = out.fresh("i"), column = out.fresh("i");
  out.names[variables[across]] = row;
  out.names[variables[last]] = column;
  auto place = [&](bool lanes) {
    out.line() << "const int row = Chunks::row(at + u), column = "
                  "Chunks::column(at + u);\n";
    // (A warp's threads meet here.)
    if (lanes)
      for (auto &[load, tile] : tiles) {
        std::string &across = writer.tiles[load];
        across = out.fresh("across");
        out.line() << "const auto " << across << " = " << tile
                   << ".template across<V>(row, column);\n";
      }
    out.line() << "const int64 " << row << " = " << firstPlace << " + row, "
               << column << " = " << firstLine << " + column;\n";
    out.line() << "if (" << row << " >= " << length << " || " << column
               << " >= " << lines << ")\n";
    out.line() << "  continue;\n";
  };
  ChunkWriter::Loop chunks{loop, variables[last],
                           "int at = 0; at < Chunks::kTurns; at += U", place};
  if (failed(writer.write(chunks)))
    return failure();
  out.close();
  out.close();

  out.openGlobal(getBounds(attribute), symbol);
  if (failed(out.enterFunction(loop)))
    return failure();
  writeInstances(out, loop, [&](InstanceAttr instance) {
    return symbol + "_tiles<" + std::to_string(instance.getVectors()) + ">";
  });
  out.close();
  return success();
}

LogicalResult cuda::writePoints(KernelWriter &out, scf::ParallelOp loop,
                                DeviceFunction &function) {
  return getLoop(loop).getForm() == Form::Squares
             ? writeSquares(out, loop, function)
             : writeFlat(out, loop, function);
}
