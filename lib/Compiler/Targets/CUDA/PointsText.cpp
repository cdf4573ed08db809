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

constexpr int kPointThreads = 256;
constexpr int kTileThreads = 128; // of tiles.cuh
constexpr int kMaxStaticShared = 48 << 10;

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

namespace {
/// Of blocks: their sides lie along the last loop and the loop `across`.
struct Squares {
  llvm::DenseMap<Operation *, std::string> tiles; ///< loads, to shared memory
  unsigned across;
  int side = kWarp, width = 1;
};
} // namespace

static std::optional<Squares> getSquares(scf::ParallelOp loop,
                                         const Chunk &chunk,
                                         const std::string &symbol) {
  const unsigned last = loop.getInductionVars().size() - 1;
  Squares squares;
  squares.across = last;
  int bytes = 0;
  for (auto &[op, plan] : chunk.planned) {
    if (plan.role != Chunk::Role::VectorLoad || !plan.guards.empty())
      continue;
    auto load = cast<memref::LoadOp>(op);
    std::optional<unsigned> found = getAcross(loop, load, plan.dim);
    if (!found || (squares.across != last && *found != squares.across))
      continue;
    squares.across = *found;
    squares.tiles[op] = symbol + "_tile" + std::to_string(squares.tiles.size());
    int size = load.getMemRefType().getElementTypeBitWidth() / 8;
    // Lines of 128 bytes, read 16 at a time.
    squares.side = std::max(squares.side, kWarp * 4 / std::min(size, 4));
    squares.width = std::max(squares.width, std::min(16 / size, 8));
    bytes += size;
  }
  auto isShort = [&](unsigned i) {
    std::optional<int64_t> extent = getConstant(loop.getUpperBound()[i]);
    return extent && *extent < kWarp / 2;
  };
  // (A gap of 4 bytes between lines, or of an element of 8.)
  const int side = squares.side;
  if (squares.tiles.empty() || bytes * side * (side + 4) > kMaxStaticShared ||
      isShort(squares.across) || isShort(last))
    return std::nullopt;
  return squares;
}

static LogicalResult writeFlat(KernelWriter &out, scf::ParallelOp loop,
                               const Chunk &chunk, DeviceFunction &function) {
  ChunkWriter writer(out);
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
  out.line() << "\ntemplate <int V, int U>\n";
  out.open("static __device__ void " + symbol + "_points(const " +
           out.getParametersType() + " &p)");
  out.line() << "using Point = " << getPointType(extents) << ";\n";
  if (failed(out.enterFunction(loop)))
    return failure();
  const Value lane = loop.getInductionVars().back();
  out.line() << "const Point points = " << writer.getCount(loop, lane) << ";\n";
  const std::string threads = std::to_string(kPointThreads);
  auto place = [&](bool) {
    out.line() << "const Point number = at + u * " << kPointThreads << ";\n";
    // (No test is left where the number of points is known and fits.)
    out.line() << "if (points % (U * " << kPointThreads
               << ") != 0 && number >= points)\n";
    out.line() << "  continue;\n";
    writer.writeIndices(loop, lane, "number");
  };
  ChunkWriter::Loop chunks{loop, lane, chunk,
                           "Point at = Point(blockIdx.x) * " + threads +
                               " * U + threadIdx.x; at < points; at += "
                               "Point(gridDim.x) * " +
                               threads + " * U",
                           place};
  if (failed(writer.write(chunks)))
    return failure();
  out.close();

  function.threads = kPointThreads;
  function.items = int64_t(kPointThreads) * width * unroll(width);
  out.openGlobal(std::to_string(kPointThreads), symbol);
  if (failed(out.enterFunction(loop)))
    return failure();
  auto call = [&](int width) {
    out.line() << symbol << "_points<" << width << ", " << unroll(width)
               << ">(p);\n";
  };
  if (width > 1) {
    SmallVector<std::string> conditions;
    writer.addFit(loop.getUpperBound().back(), chunk, width, conditions);
    out.line() << "if (" << llvm::join(conditions, " && ") << ")\n  ";
    call(width);
    out.line() << "else\n  ";
  }
  call(1);
  out.close();
  return success();
}

static LogicalResult writeSquares(KernelWriter &out, scf::ParallelOp loop,
                                  const Chunk &chunk, const Squares &squares,
                                  DeviceFunction &function) {
  ChunkWriter writer(out);
  const auto &tiles = squares.tiles;
  writer.tiles = tiles;
  auto variables = loop.getInductionVars();
  const unsigned last = variables.size() - 1, across = squares.across;
  const int size = squares.side;
  const std::string side = std::to_string(size), &symbol = function.symbol;
  out.line() << "\n";
  for (auto &[op, plan] : chunk.planned)
    if (tiles.count(op))
      out.line() << "static __shared__ Tile<"
                 << out.getElement(cast<memref::LoadOp>(op).getMemRef()) << ", "
                 << side << "> " << tiles.lookup(op) << ";\n";
  out.line() << "template <int V>\n";
  out.open("static __device__ void " + symbol + "_tiles(const " +
           out.getParametersType() + " &p)");
  out.line() << "using Chunks = Square<V, " << side << ">;\n";
  out.line() << "constexpr int U = Chunks::kTurns < 4 ? Chunks::kTurns : 4;\n";
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
  for (auto &[op, plan] : chunk.planned)
    if (tiles.count(op)) {
      auto load = cast<memref::LoadOp>(op);
      out.line() << tiles.lookup(op) << ".template read<V>(" << lines << " - "
                 << firstLine << ", " << length << " - " << firstPlace
                 << ", [&](int line, int place) {\n";
      out.line() << "  return "
                 << out.getPointer(load.getMemRef(), load.getIndices())
                 << ";\n";
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
      for (auto &[op, plan] : chunk.planned)
        if (auto tile = tiles.find(op); tile != tiles.end()) {
          writer.tiles[op] = out.fresh("across");
          out.line() << "const auto " << writer.tiles[op] << " = "
                     << tile->second << ".template across<V>(row, column);\n";
        }
    out.line() << "const int64 " << row << " = " << firstPlace << " + row, "
               << column << " = " << firstLine << " + column;\n";
    out.line() << "if (" << row << " >= " << length << " || " << column
               << " >= " << lines << ")\n";
    out.line() << "  continue;\n";
  };
  ChunkWriter::Loop chunks{loop, variables[last], chunk,
                           "int at = 0; at < Chunks::kTurns; at += U", place};
  if (failed(writer.write(chunks)))
    return failure();
  out.close();
  out.close();

  function.threads = kTileThreads;
  function.items = int64_t(size) * size;
  out.openGlobal(std::to_string(kTileThreads) + ", resident(8)", symbol);
  if (failed(out.enterFunction(loop)))
    return failure();
  int width = narrow(squares.width, getConstant(loop.getUpperBound()[last]));
  width = narrow(width, getConstant(loop.getUpperBound()[across]));
  if (width > 1) {
    SmallVector<std::string> conditions;
    writer.addFit(loop.getUpperBound().back(), chunk, width, conditions);
    if (!getConstant(loop.getUpperBound()[across]))
      conditions.push_back(out.name(loop.getUpperBound()[across]) + " % " +
                           std::to_string(width) + " == 0");
    out.line() << "if (" << llvm::join(conditions, " && ") << ")\n";
    out.line() << "  " << symbol << "_tiles<" << width << ">(p);\n";
    out.line() << "else\n  ";
  }
  out.line() << symbol << "_tiles<1>(p);\n";
  out.close();
  return success();
}

LogicalResult cuda::writePoints(KernelWriter &out, scf::ParallelOp loop,
                                DeviceFunction &function) {
  const MemoryUse memory(loop);
  const Chunk chunk(loop, loop.getInductionVars().back(), memory);
  if (std::optional<Squares> squares = getSquares(loop, chunk, function.symbol))
    return writeSquares(out, loop, chunk, *squares, function);
  return writeFlat(out, loop, chunk, function);
}
