//===- ChunkWriter.cpp - text of loops over chunks ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two passes over a few chunks a thread: all loads first, so that many are
// under way at once, then the arithmetic and the stores.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/ChunkWriter.h"
#include "Compiler/Targets/CUDA/ScalarText.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

std::string cuda::getPointType(ArrayRef<std::optional<int64_t>> extents) {
  int64_t points = 1;
  for (std::optional<int64_t> extent : extents)
    if (!extent || __builtin_mul_overflow(points, *extent, &points) ||
        points > (int64_t(1) << 31))
      return "uint64";
  return "uint32";
}

int cuda::narrow(int width, std::optional<int64_t> extent) {
  while (extent && width > 1 && *extent % width != 0)
    width /= 2;
  return width;
}

std::optional<unsigned> cuda::getUnitDim(Value memref) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (succeeded(cast<MemRefType>(memref.getType())
                    .getStridesAndOffset(strides, offset)))
    for (auto [dim, stride] : llvm::enumerate(strides))
      if (stride == 1)
        return dim;
  return std::nullopt;
}

std::string ChunkWriter::getCount(scf::ParallelOp loop, Value lane) {
  std::string text;
  for (auto [variable, extent] :
       llvm::zip_equal(loop.getInductionVars(), loop.getUpperBound()))
    text += (text.empty() ? "" : " * ") +
            ("Point(" + out.name(extent) + (variable == lane ? " / V)" : ")"));
  return text;
}

void ChunkWriter::writeIndices(scf::ParallelOp loop, Value lane,
                               const std::string &number) {
  auto variables = loop.getInductionVars();
  for (Value variable : variables)
    out.names[variable] = out.fresh("i");
  std::string rest = number;
  if (variables.size() > 1) {
    rest = out.fresh("rest");
    out.line() << "Point " << rest << " = " << number << ";\n";
  }
  for (size_t i = variables.size(); i-- > 0;) {
    std::string extent = out.name(loop.getUpperBound()[i]);
    bool isLane = variables[i] == lane;
    std::string digit = i == 0 ? rest
                               : "split(" + rest + ", Point(" + extent +
                                     (isLane ? " / V" : "") + "))";
    out.line() << "const int64 " << out.names[variables[i]] << " = int64("
               << digit << ")" << (isLane ? " * V" : "") << ";\n";
  }
}

std::string ChunkWriter::getGuards(ArrayRef<Chunk::Guard> guards) {
  std::string text;
  for (const Chunk::Guard &guard : guards)
    text += (text.empty() ? "" : " && ") +
            std::string(guard.negated ? "!" : "") + out.name(guard.condition);
  return text;
}

void ChunkWriter::addFit(Value extent, const Chunk &chunk, int width,
                         SmallVectorImpl<std::string> &conditions) {
  std::string v = std::to_string(width);
  if (!getConstant(extent))
    if (std::string condition = out.name(extent) + " % " + v + " == 0";
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
    std::string condition = out.names.lookup(memref) + ".fits<" + v + ">(" +
                            std::to_string(dim) + ")";
    if (!llvm::is_contained(conditions, condition))
      conditions.push_back(condition);
  }
}

std::string cuda::getKeepKey(scf::ParallelOp loop, memref::LoadOp load) {
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

bool ChunkWriter::isLate(const Loop &chunks, Operation *op,
                         const Chunk::Planned &plan) {
  return loadsLate && chunks.inStage && plan.role == Chunk::Role::VectorLoad &&
         (!plan.guards.empty() ||
          keepable[getKeepKey(chunks.loop, cast<memref::LoadOp>(op))] < 2);
}

bool ChunkWriter::isKept(const Loop &chunks, Operation *op,
                         const Chunk::Planned &plan) {
  return chunks.inStage && plan.role == Chunk::Role::VectorLoad &&
         plan.guards.empty() &&
         keepable[getKeepKey(chunks.loop, cast<memref::LoadOp>(op))] > 1;
}

bool ChunkWriter::isOfAll(const Loop &chunks, Operation *op,
                          const Chunk::Planned &plan) {
  return plan.role == Chunk::Role::OnceLoaded && plan.guards.empty() &&
         op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return !chunks.loop->isAncestor(
               operand.getParentRegion()->getParentOp());
         });
}

LogicalResult ChunkWriter::write(const Loop &chunks) {
  const Chunk &chunk = chunks.chunk;
  // Registers of what is loaded.
  bool anyLoads = false;
  std::string arriving;
  for (auto &[op, plan] : chunk.planned) {
    if (plan.role == Chunk::Role::VectorLoad && !tiles.count(op) &&
        !isLate(chunks, op, plan)) {
      auto load = cast<memref::LoadOp>(op);
      std::string key = getKeepKey(chunks.loop, load);
      bool keeps = isKept(chunks, op, plan);
      std::string &variable = out.names[load.getResult()];
      anyLoads = true;
      if (keeps && kept.count(key)) {
        variable = kept[key];
        out.line() << variable << ".again();\n";
        continue;
      }
      variable = out.fresh(out.getArgument(load.getMemRef()) + "_");
      if (keeps) {
        out.line() << "Kept<How, " << out.getElement(load.getMemRef())
                   << ", V, U, Group::kThreads> " << variable << "("
                   << (lastKept.empty() ? "0" : lastKept + ".end()") << ");\n";
        lastKept = arriving = variable;
      } else {
        out.line() << "Vector<" << out.getElement(load.getMemRef()) << ", V> "
                   << variable << "[U];\n";
      }
    }
  }
  out.open("for (" + chunks.header + ")");
  for (auto &[op, plan] : chunk.planned)
    if (isOfAll(chunks, op, plan)) {
      if (failed(out.writeOp(op)))
        return failure();
    } else if (plan.role == Chunk::Role::OnceLoaded)
      for (Value result : op->getResults()) {
        anyLoads = true;
        std::optional<std::string> type = getTypeName(result.getType());
        if (!type)
          return op->emitError()
                 << "'" << result.getType() << "' has no text for cuda kernels";
        out.names[result] = out.fresh("once") + "[u]";
        out.line() << *type << " " << StringRef(out.names[result]).drop_back(3)
                   << "[U];\n";
      }
  // A pass over the chunks; what it names is forgotten after it.
  auto pass = [&](bool lanes, StringRef unroll, const std::string &first,
                  llvm::function_ref<LogicalResult()> body) {
    out.line() << "#pragma unroll" << unroll << "\n";
    out.open("for (int u = 0; u < U; ++u)");
    if (!first.empty())
      out.line() << first << ";\n";
    chunks.place(lanes);
    if (failed(body()))
      return failure();
    out.close();
    return success();
  };
  // Each chunk is a group of copies, if it is beyond the last, too.
  std::string leaves, arrives;
  if (!arriving.empty()) {
    leaves = "if (u > 0) " + arriving + ".leave()";
    arrives = arriving + ".arrive(u)";
  }
  if (anyLoads &&
      failed(pass(false, "", leaves, [&] { return writeLoads(chunks); })))
    return failure();
  if (!arriving.empty())
    out.line() << arriving << ".leave();\n";
  // What is kept in shared memory is not to be in registers all at once.
  bool inRegisters = llvm::any_of(chunk.planned, [&](auto &each) {
    auto &[op, plan] = each;
    return (plan.role == Chunk::Role::OnceLoaded &&
            !isOfAll(chunks, op, plan)) ||
           (plan.role == Chunk::Role::VectorLoad && !isKept(chunks, op, plan) &&
            !isLate(chunks, op, plan));
  });
  StringRef unroll = chunks.inStage && !inRegisters && arriving.empty()
                         ? " (How == Keep::Shared && U > 4 ? 4 : U)"
                         : "";
  if (failed(pass(true, unroll, arrives, [&] { return writeLanes(chunks); })))
    return failure();
  if (chunks.inStage) {
    out.line() << "if (How != Keep::No)\n";
    out.line() << "  break;\n";
  }
  out.close();
  // From here on a later stage finds them.
  if (chunks.inStage)
    for (auto &[op, plan] : chunk.planned)
      if (plan.role == Chunk::Role::VectorLoad && plan.guards.empty()) {
        auto load = cast<memref::LoadOp>(op);
        std::string key = getKeepKey(chunks.loop, load);
        if (keepable[key] > 1)
          kept[key] = out.names[load.getResult()];
      }
  return success();
}

/// The first pass: what addresses need, and loads.
LogicalResult ChunkWriter::writeLoads(const Loop &chunks) {
  for (auto &[op, plan] : chunks.chunk.planned) {
    std::string guards = getGuards(plan.guards);
    switch (plan.role) {
    case Chunk::Role::Once:
      if (chunks.chunk.forAddresses.contains(op) && failed(out.writeOp(op)))
        return failure();
      break;
    case Chunk::Role::OnceLoaded: {
      if (isOfAll(chunks, op, plan))
        break;
      SmallVector<std::string> variables;
      for (Value result : op->getResults())
        variables.push_back(out.names[result]);
      out.open(guards.empty() ? "" : "if (" + guards + ")");
      if (failed(out.writeOp(op)))
        return failure();
      for (auto [result, variable] :
           llvm::zip_equal(op->getResults(), variables)) {
        out.line() << variable << " = " << out.names[result] << ";\n";
        out.names[result] = variable;
      }
      out.close();
      break;
    }
    case Chunk::Role::VectorLoad: {
      auto load = cast<memref::LoadOp>(op);
      if (tiles.count(op) || isLate(chunks, op, plan))
        break;
      std::string variable = out.names[load.getResult()];
      std::string pointer = out.getPointer(load.getMemRef(), load.getIndices());
      if (isKept(chunks, op, plan)) {
        if (kept.count(getKeepKey(chunks.loop, load)))
          out.line() << "if (How == Keep::No)\n  ";
        out.line() << variable << ".load(u, " << pointer << ");\n";
        break;
      }
      if (!guards.empty())
        out.line() << "if (" << guards << ")\n  ";
      out.line() << "load(" << variable << "[u], " << pointer << ");\n";
      break;
    }
    case Chunk::Role::VectorStore:
    case Chunk::Role::Randoms:
      break;
    }
  }
  return success();
}

/// Whether a reduction is by one op.
template <class Op> static bool isBy(Region &reduction) {
  Block &block = reduction.front();
  auto op = block.getTerminator()->getOperand(0).getDefiningOp<Op>();
  return op && op.getLhs() == block.getArgument(0) &&
         op.getRhs() == block.getArgument(1);
}

std::optional<ChunkWriter::OneHot>
ChunkWriter::getOneHot(const Loop &chunks, Region &reduction, Value addend) {
  scf::ParallelOp loop = chunks.loop;
  auto select = addend.getDefiningOp<arith::SelectOp>();
  auto compare =
      select ? select.getCondition().getDefiningOp<arith::CmpIOp>() : nullptr;
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq ||
      select->getBlock() != loop.getBody() || !isBy<arith::AddFOp>(reduction) ||
      !matchPattern(select.getFalseValue(), m_AnyZeroFloat()))
    return std::nullopt;
  for (auto [number, other] : {std::pair(compare.getLhs(), compare.getRhs()),
                               std::pair(compare.getRhs(), compare.getLhs())}) {
    // (Modulo 2^32, too; smaller numbers C++ would widen.)
    Type type = other.getType();
    if (!type.isIndex() && type.getIntOrFloatBitWidth() < 32)
      return std::nullopt;
    if (auto cast = number.getDefiningOp<arith::IndexCastOp>();
        cast && !chunks.chunk.counts(number))
      number = cast.getIn();
    if (chunks.chunk.counts(number) && chunks.chunk.isFixed(other))
      return OneHot{number, other, select.getTrueValue(), "", ""};
  }
  return std::nullopt;
}

memref::LoadOp ChunkWriter::getPairs(const Loop &chunks, Region &reduction,
                                     Value addend, std::string &function) {
  scf::ParallelOp loop = chunks.loop;
  auto wide = addend.getDefiningOp<arith::ExtFOp>();
  auto load = wide ? wide.getIn().getDefiningOp<memref::LoadOp>() : nullptr;
  if (!load || !wide.getType().isF32() || wide->getBlock() != loop.getBody() ||
      !llvm::is_contained(loop.getInductionVars(), chunks.lane))
    return nullptr;
  auto planned = chunks.chunk.planned.find(load);
  if (planned == chunks.chunk.planned.end() ||
      planned->second.role != Chunk::Role::VectorLoad ||
      !planned->second.guards.empty() || tiles.count(load))
    return nullptr;
  if (isBy<arith::MaximumFOp>(reduction))
    function = "maximumPairs";
  else if (isBy<arith::MinimumFOp>(reduction))
    function = "minimumPairs";
  else
    return nullptr;
  function += "<" + *getTypeName(load.getType()) + ">";
  return load;
}

/// The second pass: each iteration of the chunk, then stores.
LogicalResult ChunkWriter::writeLanes(const Loop &chunks) {
  scf::ParallelOp loop = chunks.loop;
  const Chunk &chunk = chunks.chunk;
  for (auto &[op, plan] : chunk.planned) {
    if (plan.role == Chunk::Role::Once && failed(out.writeOp(op)))
      return failure();
    if (isLate(chunks, op, plan)) {
      auto load = cast<memref::LoadOp>(op);
      std::string &variable = out.names[load.getResult()];
      variable = out.fresh(out.getArgument(load.getMemRef()) + "_");
      out.line() << "Vector<" << out.getElement(load.getMemRef()) << ", V> "
                 << variable << ";\n";
      if (std::string guards = getGuards(plan.guards); !guards.empty())
        out.line() << "if (" << guards << ")\n  ";
      out.line() << "load(" << variable << ", "
                 << out.getPointer(load.getMemRef(), load.getIndices())
                 << ");\n";
    }
    if (plan.role == Chunk::Role::Randoms &&
        failed(writeRandoms(chunk, cast<plan::RandomOp>(op), plan)))
      return failure();
    if (plan.role == Chunk::Role::VectorStore) {
      Value memref = cast<memref::StoreOp>(op).getMemRef();
      out.line() << "Vector<" << out.getElement(memref) << ", V> "
                 << out.getArgument(memref) << "_;\n";
    }
  }
  Value lane = chunks.lane;
  const bool isOwnLane = llvm::is_contained(loop.getInductionVars(), lane);
  auto reduce = cast<scf::ReduceOp>(loop.getBody()->getTerminator());
  std::map<std::string, OneHot> oneHots; // by sums
  for (auto [sum, region, addend] :
       llvm::zip(chunks.sums, reduce.getReductions(), reduce.getOperands())) {
    std::optional<OneHot> found = getOneHot(chunks, region, addend);
    if (!found)
      continue;
    OneHot &each = oneHots[sum] = *found;
    if (Operation *select = addend.getDefiningOp(); select->hasOneUse()) {
      replaced.insert(select);
      if (Operation *compare = select->getOperand(0).getDefiningOp();
          compare->hasOneUse())
        replaced.insert(compare);
    }
    for (Operation *op : chunk.getCountingOps(each.number))
      if (failed(out.writeOp(op)))
        return failure();
    std::string type = *getTypeName(each.other.getType());
    each.hot = out.fresh("hot");
    each.picked = out.fresh("picked");
    out.line() << "const auto " << each.hot << " = unsign("
               << out.name(each.other) << ") - unsign(" << type << "("
               << out.name(each.number) << "));\n";
    out.line() << *getTypeName(addend.getType()) << " " << each.picked
               << "[V];\n";
  }
  // The lane's values; loads and random numbers are lanes of their vectors.
  std::string first = out.names[lane];
  SmallVector<std::pair<Value, std::string>> vectors;
  for (auto &[op, plan] : chunk.planned)
    if (plan.role == Chunk::Role::VectorLoad ||
        plan.role == Chunk::Role::Randoms) {
      Value value = op->getResult(0);
      vectors.push_back({value, out.names[value]});
      if (tiles.count(op))
        out.names[value] = tiles[op] + ".get(v)";
      else if (plan.role == Chunk::Role::Randoms)
        out.names[value] += "[v]";
      else if (isKept(chunks, op, plan)) {
        std::string variable = out.fresh(
            out.getArgument(cast<memref::LoadOp>(op).getMemRef()) + "_");
        out.line() << "const auto &" << variable << " = " << out.names[value]
                   << "[u];\n";
        out.names[value] = variable + ".get(v)";
      } else
        out.names[value] += isLate(chunks, op, plan) ? ".get(v)" : "[u].get(v)";
    }
  llvm::StringSet<> inPairs; // sums
  for (auto [sum, region, addend] :
       llvm::zip(chunks.sums, reduce.getReductions(), reduce.getOperands())) {
    std::string function;
    memref::LoadOp load = getPairs(chunks, region, addend, function);
    if (!load)
      continue;
    inPairs.insert(sum);
    if (addend.hasOneUse())
      replaced.insert(addend.getDefiningOp());
    FailureOr<std::string> combiner = out.getCombiner(region);
    if (failed(combiner))
      return failure();
    out.line() << "combinePairs<" << *combiner << ", " << function << ">("
               << sum << ", "
               << StringRef(out.names[load.getResult()]).drop_back(7) << ");\n";
  }
  const bool hasLanes =
      inPairs.size() < chunks.sums.size() ||
      llvm::any_of(loop.getBody()->without_terminator(), [&](Operation &op) {
        return isa<memref::StoreOp>(op) ||
               (!chunk.has(&op) && !replaced.contains(&op));
      });
  if (hasLanes) {
    out.line() << "#pragma unroll\n";
    out.open("for (int v = 0; v < V; ++v)");
    // (What is planned uses the first.)
    out.names[lane] = out.fresh("i");
    if (llvm::any_of(lane.getUsers(), [&](Operation *user) {
          return loop->isAncestor(user) && !chunk.has(user);
        }))
      out.line() << "const int64 " << out.names[lane] << " = " << first
                 << " + v;\n";
    if (failed(writeLane(*loop.getBody(), chunk, {})))
      return failure();
  }
  for (auto [sum, region, addend] :
       llvm::zip(chunks.sums, reduce.getReductions(), reduce.getOperands())) {
    if (inPairs.contains(sum))
      continue;
    FailureOr<std::string> combiner = out.getCombiner(region);
    if (failed(combiner))
      return failure();
    if (auto found = oneHots.find(sum); found != oneHots.end())
      out.line() << found->second.picked
                 << "[v] = " << out.name(found->second.value) << ";\n";
    else
      out.line() << sum << "[v] = " << *combiner << "::of(" << sum << "[v], "
                 << out.name(addend) << ");\n";
  }
  if (hasLanes)
    out.close();
  for (auto &[sum, each] : oneHots) {
    // Lanes of a row are one sum.
    std::string to = sum + (isOwnLane ? "[0]" : "[v]");
    out.line() << "if (" << each.hot << " < uint32(V))\n";
    out.line() << "#pragma unroll\n";
    out.line() << "  for (int v = 0; v < V; ++v)\n";
    out.line() << "    if (" << each.hot << " == uint32(v))\n";
    out.line() << "      " << to << " = " << to << " + " << each.picked
               << "[v];\n";
  }
  out.names[lane] = first;
  for (auto &[value, name] : vectors)
    out.names[value] = name;
  for (auto &[op, plan] : chunk.planned)
    if (plan.role == Chunk::Role::VectorStore) {
      auto store = cast<memref::StoreOp>(op);
      if (std::string guards = getGuards(plan.guards); !guards.empty())
        out.line() << "if (" << guards << ")\n  ";
      out.line() << "store("
                 << out.getPointer(store.getMemRef(), store.getIndices())
                 << ", " << out.getArgument(store.getMemRef()) << "_);\n";
    }
  return success();
}

/// The random numbers of all iterations, from that of the first.
LogicalResult ChunkWriter::writeRandoms(const Chunk &chunk, plan::RandomOp op,
                                        const Chunk::Planned &plan) {
  std::string variable = out.fresh("random");
  out.names[op] = variable;
  out.line() << "float " << variable << "[V];\n";
  std::string guards = getGuards(plan.guards);
  out.open(guards.empty() ? "" : "if (" + guards + ")");
  for (Operation *number : chunk.getCountingOps(op.getNumber()))
    if (failed(out.writeOp(number)))
      return failure();
  out.line() << "randomNumbers(" << variable << ", "
             << out.getRandomArguments(op) << ");\n";
  out.close();
  return success();
}

/// What is left of a block for one iteration.
LogicalResult ChunkWriter::writeLane(Block &block, const Chunk &chunk,
                                     ArrayRef<std::string> results) {
  for (Operation &op : block.without_terminator()) {
    if (auto store = dyn_cast<memref::StoreOp>(op); store && chunk.has(&op)) {
      out.line() << out.getArgument(store.getMemRef())
                 << "_.lane[v] = " << out.name(store.getValueToStore())
                 << ";\n";
      continue;
    }
    if (chunk.has(&op) || replaced.contains(&op))
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
      if (failed(out.writeOp(&op)))
        return failure();
      continue;
    }
    auto inner = [&](Block &block, ArrayRef<std::string> results) {
      return writeLane(block, chunk, results);
    };
    if (failed(out.writeIf(branch, inner)))
      return failure();
  }
  for (auto [result, value] :
       llvm::zip(results, block.getTerminator()->getOperands()))
    out.line() << result << " = " << out.name(value) << ";\n";
  return success();
}
