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

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::schedule;

std::string cuda::getPointType(ArrayRef<std::optional<int64_t>> extents) {
  int64_t points = 1;
  for (std::optional<int64_t> extent : extents)
    if (!extent || __builtin_mul_overflow(points, *extent, &points) ||
        points > (int64_t(1) << 31))
      return "uint64";
  return "uint32";
}

std::string cuda::getBounds(LoopAttr attribute) {
  std::string bounds = std::to_string(attribute.getThreads());
  if (attribute.getResident() > 0)
    bounds += ", resident(" + std::to_string(attribute.getResident()) + ")";
  return bounds;
}

static std::string getCondition(KernelWriter &out, scf::ParallelOp loop,
                                ConditionAttr condition, int64_t vectors) {
  const int64_t of = condition.getOf();
  const std::string v = std::to_string(vectors),
                    number = std::to_string(condition.getNumber());
  auto isMultiple = [&](Value extent) {
    return out.name(extent) + " % " + v + " == 0";
  };
  switch (condition.getKind()) {
  case ConditionKind::Aligned: {
    auto kernel = loop->getParentOfType<func::FuncOp>();
    return out.name(kernel.getArgument(of)) + ".fits<" + v + ">(" + number +
           ")";
  }
  case ConditionKind::Multiple:
    return isMultiple(loop.getUpperBound()[of]);
  case ConditionKind::StageMultiple:
    return isMultiple(getStages(loop)[of].getUpperBound().back());
  case ConditionKind::StageAtMost:
    auto factors =
        llvm::map_range(getStages(loop)[of].getUpperBound(), [&](Value extent) {
          return "int64(" + out.name(extent) + ")";
        });
    return llvm::join(factors, " * ") + " <= " + number;
  }
  llvm_unreachable("all kinds are covered");
}

void cuda::writeInstances(KernelWriter &out, scf::ParallelOp loop,
                          llvm::function_ref<std::string(InstanceAttr)> call) {
  for (InstanceAttr instance : getLoop(loop).getInstances()) {
    auto conditions =
        llvm::map_range(instance.getConditions(), [&](ConditionAttr condition) {
          return getCondition(out, loop, condition, instance.getVectors());
        });
    const bool isGuarded = !conditions.empty();
    if (isGuarded)
      out.line() << "if (" << llvm::join(conditions, " && ") << ")\n  ";
    out.line() << call(instance) << "(p);\n";
    if (isGuarded)
      out.line() << "else\n  ";
  }
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

std::string ChunkWriter::getGuards(Operation *op) {
  std::string text;
  for (; auto branch = dyn_cast<scf::IfOp>(op->getParentOp()); op = branch) {
    const bool isNegated = op->getParentRegion() == &branch.getElseRegion();
    text = (isNegated ? "!" : "") + out.name(branch.getCondition()) +
           (text.empty() ? "" : " && ") + text;
  }
  return text;
}

void ChunkWriter::declareVector(const std::string &variable, Value memref,
                                StringRef end) {
  out.line() << "Vector<" << out.getElement(memref) << ", V> " << variable
             << end;
}

/// Whether an op is not done for each lane.
static bool isDone(Operation *op) {
  RoleAttr role = getRole(op);
  return role && !role.is(RoleKind::Counts) && !role.is(RoleKind::Summed);
}

/// Of a load that is kept; `varies` is whether by row, where it is loaded
/// ahead.
void ChunkWriter::declareKept(memref::LoadOp load, StringRef varies) {
  std::string variable = out.fresh(out.getArgument(load.getMemRef()) + "_");
  out.line() << "Kept<How, " << out.getElement(load.getMemRef())
             << ", V, U, Group::kThreads" << varies << "> " << variable << "("
             << (lastKept.empty() ? "0" : lastKept + ".end()") << ");\n";
  vectors[load] = lastKept = variable;
}

LogicalResult ChunkWriter::write(const Loop &chunks) {
  planned.clear();
  vectors.clear();
  scf::ParallelOp loop = chunks.loop;
  loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isDone(op) && !hasRole(op, RoleKind::First))
      planned.push_back({op, getRole(op)});
  });
  // Registers of what is loaded.
  bool anyLoads = false;
  std::string arriving;
  SmallVector<std::pair<int64_t, std::string>> keeps;
  for (auto [op, role] : planned) {
    auto load = dyn_cast<memref::LoadOp>(op);
    const bool isKept = role.is(RoleKind::Kept);
    if (!load || (!isKept && !role.is(RoleKind::Vector)))
      continue;
    anyLoads = true;
    std::string &variable = vectors[op];
    if (auto found = kept.find(role.getNumber());
        isKept && found != kept.end()) {
      variable = found->second;
      out.line() << variable << ".again();\n";
      continue;
    }
    if (!isKept) {
      variable = out.fresh(out.getArgument(load.getMemRef()) + "_");
      declareVector(variable, load.getMemRef(), "[U];\n");
      continue;
    }
    declareKept(load, "");
    arriving = lastKept;
    keeps.push_back({role.getNumber(), lastKept});
  }
  loop.getBody()->walk([&](Operation *op) {
    if (!hasRole(op, RoleKind::Summed))
      return;
    std::string &variable = summed[getRole(op).getNumber()];
    if (!variable.empty())
      return;
    variable = out.fresh("sums");
    out.line() << "Summed<How, "
               << out.getElement(cast<memref::StoreOp>(op).getMemRef())
               << ", V, U> " << variable << ";\n";
  });
  out.open("for (" + chunks.header + ")");
  for (auto [op, role] : planned)
    if (role.is(RoleKind::Ahead)) {
      if (failed(out.writeOp(op)))
        return failure();
    } else if (role.is(RoleKind::Read)) {
      for (Value result : op->getResults()) {
        anyLoads = true;
        std::optional<std::string> type = getTypeName(result.getType());
        if (!type)
          return op->emitError()
                 << "'" << result.getType() << "' has no text for cuda kernels";
        std::string variable = out.fresh("once");
        out.names[result] = variable + "[u]";
        out.line() << *type << " " << variable << "[U];\n";
      }
    }
  // A pass over the chunks; what it names is forgotten after it.
  auto pass = [&](bool lanes, const std::string &unroll,
                  const std::string &first,
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
  if (anyLoads && failed(pass(false, "", leaves, [&] { return writeLoads(); })))
    return failure();
  if (!arriving.empty())
    out.line() << arriving << ".leave();\n";
  std::string unroll;
  if (auto most = loop->getAttrOfType<IntegerAttr>(kAtOnceAttr)) {
    const std::string number = std::to_string(most.getInt());
    unroll =
        " (How == Keep::Shared && U > " + number + " ? " + number + " : U)";
  }
  if (failed(pass(true, unroll, arrives, [&] { return writeLanes(chunks); })))
    return failure();
  if (chunks.inStage) {
    out.line() << "if (How != Keep::No)\n";
    out.line() << "  break;\n";
  }
  out.close();
  // From here on a later stage finds them.
  for (auto &[number, variable] : keeps)
    kept[number] = variable;
  return success();
}

/// The first pass: what addresses need, and loads.
LogicalResult ChunkWriter::writeLoads() {
  for (auto [op, role] : planned) {
    std::string guards = getGuards(op);
    switch (role.getKind()) {
    case RoleKind::Address:
      if (failed(out.writeOp(op)))
        return failure();
      break;
    case RoleKind::Read: {
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
    case RoleKind::Kept: {
      auto load = cast<memref::LoadOp>(op);
      if (kept.contains(role.getNumber()))
        out.line() << "if (How == Keep::No)\n  ";
      out.line() << vectors[op] << ".load(u, "
                 << out.getPointer(load.getMemRef(), load.getIndices())
                 << ");\n";
      break;
    }
    case RoleKind::Vector: {
      auto load = dyn_cast<memref::LoadOp>(op);
      if (!load)
        break;
      if (!guards.empty())
        out.line() << "if (" << guards << ")\n  ";
      out.line() << "load(" << vectors[op] << "[u], "
                 << out.getPointer(load.getMemRef(), load.getIndices())
                 << ");\n";
      break;
    }
    default:
      break;
    }
  }
  return success();
}

/// The second pass: each iteration of the chunk, then stores.
LogicalResult ChunkWriter::writeLanes(const Loop &chunks) {
  scf::ParallelOp loop = chunks.loop;
  for (auto [op, role] : planned) {
    LogicalResult written = success();
    if (role.is(RoleKind::Once) || role.is(RoleKind::Address))
      written = out.writeOp(op);
    else if (role.is(RoleKind::Late))
      written = writeLate(cast<memref::LoadOp>(op));
    else if (role.is(RoleKind::Randoms))
      written = writeRandoms(cast<plan::RandomOp>(op), chunks.lane);
    else if (auto store = dyn_cast<memref::StoreOp>(op))
      declareVector(out.getArgument(store.getMemRef()) + "_", store.getMemRef(),
                    ";\n");
    if (failed(written))
      return failure();
  }
  auto reduce = cast<scf::ReduceOp>(loop.getBody()->getTerminator());
  llvm::DenseMap<Operation *, OneHot> oneHots;
  for (Value addend : reduce.getOperands())
    if (auto op = addend.getDefiningOp<OneHotOp>()) {
      FailureOr<OneHot> written = writeOneHot(op, chunks.lane);
      if (failed(written))
        return failure();
      oneHots[op] = *written;
    }
  // The lane's values; loads and random numbers are lanes of their vectors.
  for (auto [op, role] : planned) {
    if (isa<memref::StoreOp>(op) ||
        (!role.isVector() && !role.is(RoleKind::Randoms)))
      continue;
    std::string &variable = vectors[op];
    if (role.is(RoleKind::Tile)) {
      variable = tiles[op];
    } else if (role.is(RoleKind::Kept)) {
      std::string name = out.fresh(
          out.getArgument(cast<memref::LoadOp>(op).getMemRef()) + "_");
      out.line() << "const auto &" << name << " = " << variable << "[u];\n";
      variable = name;
    } else if (role.is(RoleKind::Vector)) {
      variable += "[u]";
    }
    out.names[op->getResult(0)] =
        variable + (role.is(RoleKind::Randoms) ? "[v]" : ".get(v)");
  }
  bool hasLanes = false;
  for (auto [sum, region, addend] :
       llvm::zip(chunks.sums, reduce.getReductions(), reduce.getOperands())) {
    auto pairs = addend.getDefiningOp<PairsOp>();
    hasLanes |= !pairs;
    if (pairs && failed(writePairs(pairs, region, sum)))
      return failure();
  }
  hasLanes |=
      llvm::any_of(loop.getBody()->without_terminator(), [&](Operation &op) {
        return isa<memref::StoreOp>(op) ||
               (!isDone(&op) && !isa<OneHotOp, PairsOp>(op));
      });
  Value lane = chunks.lane;
  std::string first = out.names[lane];
  if (hasLanes) {
    out.line() << "#pragma unroll\n";
    out.open("for (int v = 0; v < V; ++v)");
    // (What has a role uses the first.)
    out.names[lane] = out.fresh("i");
    if (llvm::any_of(lane.getUsers(), [&](Operation *user) {
          return loop->isAncestor(user) && !isDone(user);
        }))
      out.line() << "const int64 " << out.names[lane] << " = " << first
                 << " + v;\n";
    if (failed(writeLane(*loop.getBody(), {})))
      return failure();
  }
  for (auto [sum, region, addend] :
       llvm::zip(chunks.sums, reduce.getReductions(), reduce.getOperands())) {
    Operation *op = addend.getDefiningOp();
    if (isa_and_nonnull<PairsOp>(op))
      continue;
    FailureOr<std::string> combiner = out.getCombiner(region);
    if (failed(combiner))
      return failure();
    if (auto oneHot = dyn_cast_or_null<OneHotOp>(op))
      out.line() << oneHots[op].picked
                 << "[v] = " << out.name(oneHot.getValue()) << ";\n";
    else
      out.line() << sum << "[v] = " << *combiner << "::of(" << sum << "[v], "
                 << out.name(addend) << ");\n";
  }
  if (hasLanes)
    out.close();
  // Lanes of a row are one sum.
  const bool isOwnLane = llvm::is_contained(loop.getInductionVars(), lane);
  for (auto [sum, addend] : llvm::zip(chunks.sums, reduce.getOperands())) {
    auto found = oneHots.find(addend.getDefiningOp());
    if (found == oneHots.end())
      continue;
    const OneHot &each = found->second;
    std::string to = sum + (isOwnLane ? "[0]" : "[v]");
    out.line() << "if (" << each.hot << " < uint32(V))\n";
    out.line() << "#pragma unroll\n";
    out.line() << "  for (int v = 0; v < V; ++v)\n";
    out.line() << "    if (" << each.hot << " == uint32(v))\n";
    out.line() << "      " << to << " = " << to << " + " << each.picked
               << "[v];\n";
  }
  out.names[lane] = first;
  for (auto [op, role] : planned)
    if (auto store = dyn_cast<memref::StoreOp>(op)) {
      if (std::string guards = getGuards(op); !guards.empty())
        out.line() << "if (" << guards << ")\n  ";
      out.line() << "store("
                 << out.getPointer(store.getMemRef(), store.getIndices())
                 << ", " << out.getArgument(store.getMemRef()) << "_);\n";
    }
  return success();
}

/// A lane's part of a sum of columns.
void ChunkWriter::writeSummed(Operation *access) {
  const std::string sums = summed[getRole(access).getNumber()];
  if (auto store = dyn_cast<memref::StoreOp>(access)) {
    out.line() << sums << ".set(u, v, "
               << out.getPointer(store.getMemRef(), store.getIndices()) << ", "
               << out.name(store.getValueToStore()) << ");\n";
    return;
  }
  auto load = cast<memref::LoadOp>(access);
  std::string variable = out.fresh("element");
  out.line() << "const " << out.getElement(load.getMemRef()) << " " << variable
             << " = " << sums << ".get(u, v, "
             << out.getPointer(load.getMemRef(), load.getIndices()) << ");\n";
  out.names[load.getResult()] = variable;
}

LogicalResult ChunkWriter::writeFetch(scf::ForOp rows, Place place) {
  struct Fetched {
    scf::ParallelOp stage;
    memref::LoadOp load;
    Address address;
  };
  SmallVector<Fetched> fetched;
  rows.getBody()->walk([&](memref::LoadOp load) {
    if (!hasRole(load, RoleKind::Kept) ||
        kept.contains(getRole(load).getNumber()))
      return;
    Address address = *getAddress(rows, load);
    declareKept(load, address.varies ? ", true" : ", false");
    kept[getRole(load).getNumber()] = lastKept;
    fetched.push_back(
        {cast<scf::ParallelOp>(load->getParentOp()), load, std::move(address)});
  });
  const auto names = out.names;
  out.open("auto fetch = [&](int64 row, bool isFirst)");
  out.names[rows.getInductionVar()] = "row";
  auto writeOps = [&](Block &block, auto isNeeded) {
    for (Operation &op : block)
      if (isNeeded(&op) && failed(out.writeOp(&op)))
        return failure();
    return success();
  };
  if (failed(writeOps(*rows.getBody(), [&](Operation *op) {
        return llvm::any_of(fetched, [&](const Fetched &each) {
          return each.address.ops.contains(op);
        });
      })))
    return failure();
  for (auto stage : rows.getBody()->getOps<scf::ParallelOp>()) {
    auto isOfStage = [&](const Fetched &each) { return each.stage == stage; };
    if (llvm::none_of(fetched, isOfStage))
      continue;
    out.line() << "#pragma unroll\n";
    out.open("for (int u = 0; u < U; ++u)");
    place(stage);
    if (failed(writeOps(*stage.getBody(), [&](Operation *op) {
          return llvm::any_of(fetched, [&](const Fetched &each) {
            return isOfStage(each) && each.address.ops.contains(op);
          });
        })))
      return failure();
    for (Fetched &each : fetched)
      if (isOfStage(each))
        out.line() << (each.address.varies ? "" : "if (isFirst) ")
                   << kept[getRole(each.load).getNumber()] << ".fetch(u, "
                   << out.getPointer(each.load.getMemRef(),
                                     each.load.getIndices())
                   << ");\n";
    out.close();
  }
  out.close("};");
  out.names = names;
  out.open("if constexpr (How == Keep::Ahead)");
  out.line() << "if (" << out.name(rows.getLowerBound()) << " < "
             << out.name(rows.getUpperBound()) << ")\n";
  out.line() << "  fetch(" << out.name(rows.getLowerBound()) << ", true);\n";
  out.line() << "endCopies();\n";
  out.close();
  return success();
}

void ChunkWriter::writeTurn(scf::ForOp rows) {
  const std::string next =
      out.name(rows.getInductionVar()) + " + " + out.name(rows.getStep());
  out.open("if constexpr (How == Keep::Ahead)");
  for (auto &[_, variable] : kept)
    out.line() << variable << ".turn();\n";
  out.line() << "if (" << next << " < " << out.name(rows.getUpperBound())
             << ")\n";
  out.line() << "  fetch(" << next << ", false);\n";
  out.line() << "endCopies();\n";
  out.line() << "waitForCopies<1>(1);\n";
  out.close();
}

void ChunkWriter::writeSums(scf::ParallelOp stage, Place place) {
  out.line() << "#pragma unroll\n";
  out.open("for (int u = 0; u < U; ++u)");
  place(stage);
  for (auto store : stage.getBody()->getOps<memref::StoreOp>())
    if (hasRole(store, RoleKind::Summed))
      out.line() << summed[getRole(store).getNumber()] << ".end(u, "
                 << out.getPointer(store.getMemRef(), store.getIndices())
                 << ");\n";
  out.close();
}

LogicalResult ChunkWriter::writeLate(memref::LoadOp load) {
  std::string &variable = vectors[load];
  variable = out.fresh(out.getArgument(load.getMemRef()) + "_");
  declareVector(variable, load.getMemRef(), ";\n");
  if (std::string guards = getGuards(load); !guards.empty())
    out.line() << "if (" << guards << ")\n  ";
  out.line() << "load(" << variable << ", "
             << out.getPointer(load.getMemRef(), load.getIndices()) << ");\n";
  return success();
}

LogicalResult ChunkWriter::writeFirst(Value number, Value lane) {
  if (number == lane)
    return success();
  Operation *op = number.getDefiningOp();
  if (failed(writeFirst(op->getOperand(getRole(op).getDim()), lane)))
    return failure();
  return out.writeOp(op);
}

FailureOr<ChunkWriter::OneHot> ChunkWriter::writeOneHot(OneHotOp op,
                                                        Value lane) {
  if (failed(writeFirst(op.getNumber(), lane)))
    return failure();
  OneHot names{out.fresh("hot"), out.fresh("picked")};
  out.line() << "const auto " << names.hot << " = unsign("
             << out.name(op.getOther()) << ") - unsign("
             << *getTypeName(op.getOther().getType()) << "("
             << out.name(op.getNumber()) << "));\n";
  out.line() << *getTypeName(op.getType()) << " " << names.picked << "[V];\n";
  return names;
}

LogicalResult ChunkWriter::writePairs(PairsOp op, Region &reduction,
                                      const std::string &sum) {
  FailureOr<std::string> combiner = out.getCombiner(reduction);
  if (failed(combiner))
    return failure();
  out.line() << "combinePairs<" << *combiner << ", "
             << stringifyExtreme(op.getExtreme()) << "Pairs<"
             << *getTypeName(op.getInput().getType()) << ">>(" << sum << ", "
             << vectors[op.getInput().getDefiningOp()] << ");\n";
  return success();
}

/// The random numbers of all iterations, from that of the first.
LogicalResult ChunkWriter::writeRandoms(plan::RandomOp op, Value lane) {
  std::string &variable = vectors[op];
  variable = out.fresh("random");
  out.line() << "float " << variable << "[V];\n";
  std::string guards = getGuards(op);
  out.open(guards.empty() ? "" : "if (" + guards + ")");
  if (failed(writeFirst(op.getNumber(), lane)))
    return failure();
  out.line() << "randomNumbers<" << op.getBits() << ">(" << variable << ", "
             << out.getRandomArguments(op) << ");\n";
  out.close();
  return success();
}

/// What is left of a block for one iteration.
LogicalResult ChunkWriter::writeLane(Block &block,
                                     ArrayRef<std::string> results) {
  for (Operation &op : block.without_terminator()) {
    if (auto store = dyn_cast<memref::StoreOp>(op); store && isDone(&op)) {
      out.line() << out.getArgument(store.getMemRef())
                 << "_.lane[v] = " << out.name(store.getValueToStore())
                 << ";\n";
      continue;
    }
    if (isDone(&op) || isa<OneHotOp, PairsOp>(op))
      continue;
    if (hasRole(&op, RoleKind::Summed)) {
      writeSummed(&op);
      continue;
    }
    auto branch = dyn_cast<scf::IfOp>(op);
    bool hasRoles = branch && branch
                                  ->walk([&](Operation *inner) {
                                    return isDone(inner)
                                               ? WalkResult::interrupt()
                                               : WalkResult::advance();
                                  })
                                  .wasInterrupted();
    if (!hasRoles) {
      if (failed(out.writeOp(&op)))
        return failure();
      continue;
    }
    auto inner = [&](Block &block, ArrayRef<std::string> results) {
      return writeLane(block, results);
    };
    if (failed(out.writeIf(branch, inner)))
      return failure();
  }
  for (auto [result, value] :
       llvm::zip(results, block.getTerminator()->getOperands()))
    out.line() << result << " = " << out.name(value) << ";\n";
  return success();
}
