//===- ScheduleAttention.cpp - tiles of attention, stages of its functors -===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/AttentionKeys.h"
#include "Compiler/Targets/CUDA/NVRTC.h"
#include "Compiler/Targets/CUDA/Scheduling.h"
#include "Kernels/LoopKernels.h"
#include "Kernels/cuda/attention/attention_tiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::schedule;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// The head dimensions of queries and of values.
template <typename Op> static std::pair<int64_t, int64_t> getDepths(Op op) {
  auto depthOf = [](Value tensor) {
    return cast<MemRefType>(tensor.getType()).getDimSize(3);
  };
  return {depthOf(op.getQuery()), depthOf(op.getValue())};
}

/// Sums that a block of queries has in shared memory.
static int64_t countSharedSums(plan::AttentionGradOp op) {
  return llvm::count_if(
      op.getSumsBy().getAsRange<StringAttr>(),
      [](StringAttr by) { return by == "query" || by == "distance"; });
}

/// Of a head; 0: they are not known.
static int64_t getNumQueries(plan::AttentionOp op) {
  const int64_t queries =
      cast<MemRefType>(op.getQuery().getType()).getDimSize(2);
  return ShapedType::isDynamic(queries) ? 0 : queries;
}
/// For tiles of so many of a head's queries.
static AttentionTiles getQueryTiles(plan::AttentionOp op, bool shared,
                                    int64_t queries) {
  auto [depth, ofValues] = getDepths(op);
  // Of packed sequences and of pages, too, there are two groups.
  const bool two = op.getTiles() || op.getPages() || shared;
  // Beside wide heads pages and parts of tiles take registers as functions do.
  return getForwardTiles(
      depth, ofValues,
      !op.getScoreMod().empty() || !op.getMaskMod().empty() ||
          op.getDropout() || (depth > 128 && (op.getPages() || shared)),
      !op.getScoreMod().empty() || !(op.getScale().convertToDouble() > 0) ||
          two,
      op.getBlocks() ? (*op.getBlocks())[1] : 0,
      isBoundedTanh(op) && op.getMaskMod().empty() && !op.getDropout() && !two,
      queries, two);
}

/// How many heads read one key head; 0: they are not known.
static int64_t getGroup(plan::AttentionOp op) {
  const int64_t heads = cast<MemRefType>(op.getQuery().getType()).getDimSize(1);
  const int64_t groups = cast<MemRefType>(op.getKey().getType()).getDimSize(1);
  return ShapedType::isDynamic(heads) || ShapedType::isDynamic(groups) ||
                 groups == 0
             ? 0
             : heads / groups;
}

/// The rows of tiles that have queries of all heads of a group.
static std::optional<int64_t> getFewRows(plan::AttentionOp op) {
  const int64_t queries =
      cast<MemRefType>(op.getQuery().getType()).getDimSize(2);
  if (op.getBlocks() || op.getTiles() || op.getDropout() ||
      ShapedType::isDynamic(queries))
    return std::nullopt;
  const int64_t group = getGroup(op);
  const int of = getGroupQueries(group, queries);
  return of ? std::optional(of * group) : std::nullopt;
}

static bool isShared(plan::AttentionOp op, const plan::Limits &limits) {
  ArrayRef<int64_t> shape =
      cast<MemRefType>(op.getQuery().getType()).getShape();
  const int64_t keys =
      op.getPages() ? op.getNumKeys()
                    : cast<MemRefType>(op.getKey().getType()).getDimSize(2);
  if (op.getBlocks() || op.getDropout() || ShapedType::isDynamicShape(shape) ||
      ShapedType::isDynamic(keys))
    return false;
  return tessera::isShared(getQueryTiles(op, /*shared=*/true, shape[2]),
                           double(shape[0]) * shape[1], shape[2], keys,
                           op.getCausal(), limits.multiprocessors);
}

bool cuda::isOfClusters(plan::AttentionGradOp op) {
  return getDepths(op).first > kMostNarrowDepth;
}

bool cuda::isOfFew(plan::AttentionOp op) {
  return getAttention(op).getRows() <= kMostFewRows;
}
int64_t cuda::getTileQueries(plan::AttentionOp op) {
  return getAttention(op).getRows() / getGroup(op);
}

static AttentionAttr getAttr(Operation *op, AttentionTiles tiles,
                             bool shared = false, bool finish = false) {
  return AttentionAttr::get(op->getContext(), tiles.rows, tiles.keys,
                            tiles.stages, shared, finish);
}
static AttentionAttr chooseTiles(plan::AttentionOp op,
                                 const plan::Limits &limits) {
  auto [depth, ofValues] = getDepths(op);
  if (std::optional<int64_t> rows = getFewRows(op))
    return getAttr(op, getFewTiles(depth, ofValues, *rows));
  const bool shared = isShared(op, limits);
  return getAttr(op, getQueryTiles(op, shared, getNumQueries(op)), shared);
}
static AttentionTiles getTiles(plan::AttentionGradOp op) {
  auto [depth, ofValues] = getDepths(op);
  return getBackwardTiles(
      depth, ofValues,
      !op.getMaskMod().empty() || op.getDropout() ||
          op.getWalks() || // of steps of 64 queries
          !(op.getCausalMod().empty() || isShift(op.getCausalMod().front())),
      !op.getScoreGrad().empty(), countSharedSums(op));
}
/// BwdConfig::HasFinish.
static bool hasFinish(plan::AttentionGradOp op) {
  const bool isPlain = op.getScoreMod().empty() && op.getMaskMod().empty();
  const bool alternates = getDepths(op).first == 96 && !op.getDropout();
  // A wrong value is an error where NVRTC is opened.
  Result<unsigned> traps = getTrapWaits();
  return !op.getCausal() || op.getWalks() || isOfClusters(op) ||
         (isPlain && alternates) || !op.getSums().empty() ||
         (traps && *traps > 0);
}
static AttentionAttr chooseTiles(plan::AttentionGradOp op,
                                 const plan::Limits &) {
  return getAttr(op, getTiles(op), /*shared=*/false, hasFinish(op));
}

/// Of a row in memory: panels of 64 columns.
static int64_t getRowBytes(int64_t depth) {
  return llvm::alignTo(depth, 64) * 2;
}

// As FwdConfig of attention_fwd.cuh, FewConfig of attention_few.cuh and
// BwdConfig of attention_bwd_order.cuh have them; the text says so again.

int64_t cuda::getSharedBytes(plan::AttentionOp op) {
  const AttentionAttr tiles = getAttention(op);
  auto [depth, ofValues] = getDepths(op);
  const int64_t row = getRowBytes(depth), ofValue = getRowBytes(ofValues);
  // Two buffers of queries, keys and values; barriers.
  if (isOfFew(op))
    return kFewPipes * (2 * llvm::alignTo(tiles.getRows(), 8) * row +
                        tiles.getStages() * tiles.getKeys() * (row + ofValue)) +
           1024;
  // Queries and results, which may take the queries' place; keys and values;
  // barriers.
  return (tiles.getStages() > 2 ? 2 : 1) * tiles.getRows() * row +
         (depth > 128 ? 1024 : tiles.getRows() * ofValue) +
         tiles.getStages() * tiles.getKeys() * (row + ofValue) + 1024;
}

int64_t cuda::getSharedBytes(plan::AttentionGradOp op) {
  const AttentionAttr tiles = getAttention(op);
  // As many places as there is room for, or one for dQ where there is room.
  if (isOfClusters(op) || tiles.getRows() == 128)
    return 227 * 1024;
  const int64_t row = getRowBytes(getDepths(op).first);
  const int64_t rows = tiles.getRows(), inStages = tiles.getStages() * rows;
  // Keys and values; queries and gradients, with two numbers a row and what
  // functions have of it; three of the scores' gradients; two of each warp's
  // sums; barriers.
  return (2 * tiles.getKeys() + 2 * inStages) * row +
         (2 * 4 + kKeptBytes) * inStages + 3 * rows * tiles.getKeys() * 2 +
         2 * countSharedSums(op) * 8 * (rows + 16) * 4 + 2048;
}

//===----------------------------------------------------------------------===//
// Functions of a score
//===----------------------------------------------------------------------===//

SmallVector<Block *> cuda::getFunctions(Operation *attention) {
  SmallVector<Block *> functions;
  for (Region &region : attention->getRegions())
    if (!region.empty())
      functions.push_back(&region.front());
  return functions;
}

/// Batch, head, query and key come behind the score and its gradient.
static unsigned countScores(Block &function) {
  return function.getNumArguments() - 4;
}

llvm::DenseMap<Operation *, unsigned> cuda::getDependences(Block &function) {
  llvm::DenseMap<Operation *, unsigned> all;
  const unsigned scores = countScores(function);
  for (Operation &op : function.without_terminator()) {
    unsigned own = 0;
    op.walk([&](Operation *inner) {
      if (isa<memref::LoadOp>(inner))
        own |= OnMemory;
      for (Value operand : inner->getOperands()) {
        auto argument = dyn_cast<BlockArgument>(operand);
        if (argument && argument.getOwner() == &function)
          own |= argument.getArgNumber() < scores
                     ? unsigned(OnScore)
                     : OnBatch << (argument.getArgNumber() - scores);
        else if (!argument && operand.getDefiningOp()->getBlock() == &function)
          own |= all.lookup(operand.getDefiningOp());
      }
    });
    all[&op] = own;
  }
  return all;
}

bool cuda::isShift(Block &function) {
  const Value query = function.getArgument(countScores(function) + 2);
  llvm::DenseMap<Operation *, unsigned> dependences = getDependences(function);
  auto depends = [&](Value value) {
    return value == query ||
           (dependences.lookup(value.getDefiningOp()) & OnQuery);
  };
  Value value = function.getTerminator()->getOperand(0);
  while (value != query) {
    Operation *op = value.getDefiningOp();
    if (!isa_and_present<arith::AddIOp, arith::SubIOp>(op))
      return false;
    const bool left = depends(op->getOperand(0));
    if (left == depends(op->getOperand(1)) || (!left && isa<arith::SubIOp>(op)))
      return false;
    value = op->getOperand(left ? 0 : 1);
  }
  return true;
}

/// What an op with role `query` or `key` may depend on.
static unsigned getAllowed(RoleKind kind) {
  return OnMemory | OnBatch |
         (kind == RoleKind::Query ? OnHead | OnQuery : OnKey);
}

bool cuda::isWide(Type type) {
  return type.isIndex() || type.getIntOrFloatBitWidth() > 32;
}

/// In a struct, the wide ones first.
static int64_t getKeptBytes(Operation *op) {
  int64_t bytes = 0;
  for (Type type : op->getResultTypes())
    bytes += isWide(type) ? 8 : 4;
  return bytes;
}

/// What the functions load for a query, whatever the key, or the other way
/// round, as far as there is room.
static void keep(ArrayRef<Block *> functions, RoleKind kind) {
  int64_t bytes = 0;
  for (Block *function : functions) {
    llvm::DenseMap<Operation *, unsigned> all = getDependences(*function);
    auto takes = [&](Operation *op) {
      return (all[op] & OnMemory) && !(all[op] & ~getAllowed(kind));
    };
    for (Operation &op : function->without_terminator()) {
      const bool leaves = llvm::any_of(op.getUsers(), [&](Operation *user) {
        user = function->findAncestorOpInBlock(*user);
        return user == function->getTerminator() || !takes(user);
      });
      if (!takes(&op) || !leaves || bytes + getKeptBytes(&op) > kKeptBytes)
        continue;
      bytes += getKeptBytes(&op);
      setRole(&op, kind);
    }
  }
}

std::optional<Scaling> cuda::getScaling(Operation *op) {
  FloatAttr constant;
  for (unsigned i : {1, 0}) {
    if (!isa_and_nonnull<arith::MulFOp, arith::DivFOp>(op) ||
        !matchPattern(op->getOperand(i), m_Constant(&constant)))
      continue;
    APFloat factor = constant.getValue();
    if (isa<arith::DivFOp>(op)) {
      if (i == 0)
        continue;
      factor = APFloat(factor.getSemantics(), 1);
      factor.divide(constant.getValue(), APFloat::rmNearestTiesToEven);
    }
    if (factor.isFiniteNonZero())
      return Scaling{op->getOperand(1 - i), factor};
  }
  return std::nullopt;
}

bool cuda::isBoundedTanh(plan::AttentionOp op) {
  if (op.getScoreMod().empty() ||
      !op.getQuery().getType().getElementType().isBF16())
    return false;
  Block &block = op.getScoreMod().front();
  double most = 1;
  auto skip = [&](Value value, RoleKind role) {
    Operation *scale = value.getDefiningOp();
    if (!scale || !hasRole(scale, role))
      return value;
    if (role == RoleKind::OuterScale)
      most = getScaling(scale)->factor.convertToDouble();
    return getScaling(scale)->value;
  };
  auto tanh = skip(block.getTerminator()->getOperand(0), RoleKind::OuterScale)
                  .getDefiningOp<math::TanhOp>();
  return tanh && tanh.getType().isF32() &&
         skip(tanh.getOperand(), RoleKind::InnerScale) ==
             block.getArgument(0) &&
         isBounded(getDepths(op).first, most);
}

/// The product by a constant that is all the function does with its score at
/// first.
static Operation *getInnerScale(Block &function) {
  Value score = function.getArgument(0);
  if (!score.hasOneUse())
    return nullptr;
  Operation *user = *score.user_begin();
  std::optional<Scaling> scaling = getScaling(user);
  return scaling && scaling->value == score && user->getBlock() == &function
             ? user
             : nullptr;
}

/// That which a score_mod yields, by a positive constant.
static Operation *getOuterScale(Block &function) {
  Operation *product = function.getTerminator()->getOperand(0).getDefiningOp();
  std::optional<Scaling> scaling = getScaling(product);
  return scaling && !scaling->factor.isNegative() &&
                 product->getBlock() == &function
             ? product
             : nullptr;
}

/// The functions of a score, score_mod first.
static SmallVector<Block *> getScoreFunctions(Operation *attention) {
  SmallVector<Block *> functions = getFunctions(attention);
  llvm::erase_if(functions,
                 [](Block *function) { return countScores(*function) == 0; });
  return functions;
}

/// With one factor in all functions of a score, or none.
static SmallVector<Operation *> getInnerScales(Operation *attention) {
  SmallVector<Operation *> scales;
  for (Block *function : getScoreFunctions(attention)) {
    Operation *scale = getInnerScale(*function);
    if (!scale || (!scales.empty() && !getScaling(scale)->factor.bitwiseIsEqual(
                                          getScaling(scales.front())->factor)))
      return {};
    scales.push_back(scale);
  }
  return scales;
}

/// What bounds the keys that tiles of queries look at. A whole block of a block
/// mask does not ask mask_mod. Inside of a packed sequence positions count from
/// its begin: only the distance of a key is a bound there.
static SmallVector<arith::CmpIOp> getBounds(Operation *attention) {
  return llvm::TypeSwitch<Operation *, SmallVector<arith::CmpIOp>>(attention)
      .Case<plan::AttentionOp, plan::AttentionGradOp>([](auto op) {
        SmallVector<arith::CmpIOp> bounds;
        if (!op.getMaskMod().empty() && !op.getBlocks())
          bounds = getBoundingOps(op.getMaskMod().front());
        if (op.getTiles())
          llvm::erase_if(bounds, [](arith::CmpIOp compare) {
            return llvm::any_of(
                getKeyBounds(compare),
                [](const KeyBound &bound) { return !bound.isOfDistance(); });
          });
        return bounds;
      });
}

//===----------------------------------------------------------------------===//
// The schedule
//===----------------------------------------------------------------------===//

void cuda::scheduleAttention(Operation *attention, const plan::Limits &limits) {
  SmallVector<Block *> ofScores = getScoreFunctions(attention);
  Operation *outer =
      ofScores.empty() ? nullptr : getOuterScale(*ofScores.front());
  if (outer)
    setRole(outer, RoleKind::OuterScale);
  for (Operation *scale : getInnerScales(attention))
    setRole(scale, RoleKind::InnerScale);
  // They depend on the factors.
  attention->setAttr(kAttentionAttr,
                     llvm::TypeSwitch<Operation *, AttentionAttr>(attention)
                         .Case<plan::AttentionOp, plan::AttentionGradOp>(
                             [&](auto op) { return chooseTiles(op, limits); }));
  // Beside the gradient of the widest heads there is no room for queries' own.
  auto grad = dyn_cast<plan::AttentionGradOp>(attention);
  if (!grad || getDepths(grad).first <= 192)
    keep(getFunctions(attention), RoleKind::Query);
  keep(getFunctions(attention), RoleKind::Key);
  for (arith::CmpIOp bound : getBounds(attention))
    bound->setAttr(kBoundAttr, UnitAttr::get(attention->getContext()));
}

/// A tile lies in one block of a block mask.
template <typename Op>
static LogicalResult verifyBlocks(Op op, AttentionAttr tiles) {
  if (!op.getBlocks())
    return success();
  for (auto [block, tile, what] :
       {std::tuple((*op.getBlocks())[0], tiles.getRows(), "queries"),
        std::tuple((*op.getBlocks())[1], tiles.getKeys(), "keys")})
    if (block % tile != 0)
      return op.emitError()
             << "tiles of " << tile << " " << what
             << " do not divide the block mask's blocks of " << block;
  return success();
}

/// That there are kernels with such tiles.
static LogicalResult verifyTiles(plan::AttentionOp op, AttentionAttr tiles) {
  if (tiles.getFinish())
    return op.emitError() << "a kernel finishes gradients alone";
  const bool mayShare = !op.getBlocks() && !op.getDropout();
  if (tiles.getShared() && !mayShare)
    return op.emitError() << "blocks share no tiles of an attention with "
                          << (op.getBlocks() ? "a block mask" : "dropout");
  if (tiles.getRows() <= kMostFewRows && mayShare && !op.getTiles()) {
    if (tiles.getShared())
      return op.emitError() << "tiles of at most " << kMostFewRows
                            << " rows are shared without saying so";
    if (cast<MemRefType>(op.getQuery().getType()).isDynamicDim(2))
      return op.emitError() << "tiles of at most " << kMostFewRows
                            << " rows are for a number of queries that is "
                               "known";
    const int64_t group = getGroup(op);
    if (group == 0 || tiles.getRows() < 1 || tiles.getRows() % group != 0)
      return op.emitError()
             << "a tile of at most " << kMostFewRows
             << " rows has as many of each head that reads a key head"
             << (group ? ", " + std::to_string(group) + " of them" : "")
             << ", not " << tiles.getRows();
    if (!llvm::is_contained({32, 64, 128}, tiles.getKeys()))
      return op.emitError() << "beside at most " << kMostFewRows
                            << " rows a block takes 32, 64 or 128 keys at a "
                               "time, not "
                            << tiles.getKeys();
    if (tiles.getStages() < 1 || tiles.getStages() > 6)
      return op.emitError()
             << "there are 1 to 6 stages of keys and values, not "
             << tiles.getStages();
    return success();
  }
  const bool three =
      getQueryTiles(op, tiles.getShared(), /*queries=*/0).rows == 192;
  if (tiles.getRows() != 128 && (tiles.getRows() != 192 || !three))
    return op.emitError() << "a block takes "
                          << (three ? "128 queries or 192" : "128 queries")
                          << ", not " << tiles.getRows();
  if (!llvm::is_contained({64, 80, 96, 112, 128}, tiles.getKeys()))
    return op.emitError() << "a block takes 64, 80, 96, 112 or 128 keys at a "
                             "time, not "
                          << tiles.getKeys();
  const int64_t most = getDepths(op).first <= 64 ? 4 : 2;
  if (tiles.getStages() < 2 || tiles.getStages() > most)
    return op.emitError() << "there are 2 " << (most > 2 ? "to 4 " : "")
                          << "stages of keys and values, not "
                          << tiles.getStages();
  return success();
}
static LogicalResult verifyTiles(plan::AttentionGradOp op,
                                 AttentionAttr tiles) {
  if (tiles.getShared())
    return op.emitError() << "blocks share no tiles of a gradient";
  if (tiles.getRows() != 64 &&
      (tiles.getRows() != 128 || getTiles(op).rows != 128))
    return op.emitError() << "a block takes 64 queries"
                          << (getTiles(op).rows == 128 ? " or 128" : "")
                          << " at a time, not " << tiles.getRows();
  if (tiles.getKeys() != 128)
    return op.emitError() << "a block takes 128 keys, not " << tiles.getKeys();
  if (tiles.getStages() != 2 && tiles.getStages() != 3)
    return op.emitError() << "there are 2 or 3 stages of queries and "
                             "gradients, not "
                          << tiles.getStages();
  if (tiles.getFinish() != hasFinish(op))
    return op.emitError() << (tiles.getFinish()
                                  ? "its blocks leave nothing to finish"
                                  : "a kernel must finish what its blocks sum");
  return success();
}

static LogicalResult verifyRoles(Operation *attention) {
  const SmallVector<Block *> ofScores = getScoreFunctions(attention);
  const SmallVector<Operation *> inner = getInnerScales(attention);
  const SmallVector<arith::CmpIOp> bounds = getBounds(attention);
  int64_t bytes[] = {0, 0};
  size_t scaled = 0;
  for (Block *function : getFunctions(attention)) {
    llvm::DenseMap<Operation *, unsigned> dependences =
        getDependences(*function);
    WalkResult walked = function->walk([&](Operation *op) -> WalkResult {
      if (op->hasAttr(kBoundAttr) && !llvm::is_contained(bounds, op))
        return op->emitError() << "is no comparison that must hold and bounds "
                                  "a query's keys";
      RoleAttr role = getRole(op);
      if (!role)
        return WalkResult::advance();
      if (op->getBlock() != function)
        return op->emitError() << "has a role in a region of a function";
      switch (role.getKind()) {
      case RoleKind::InnerScale:
        ++scaled;
        if (!llvm::is_contained(inner, op))
          return op->emitError() << "is not all that the functions do with the "
                                    "score at first, by one constant";
        return WalkResult::advance();
      case RoleKind::OuterScale:
        if (function != ofScores.front() || getOuterScale(*function) != op)
          return op->emitError() << "is not what score_mod yields, by a "
                                    "positive constant";
        return WalkResult::advance();
      case RoleKind::Query:
      case RoleKind::Key: {
        const bool isQuery = role.is(RoleKind::Query);
        if (dependences[op] & ~getAllowed(role.getKind()))
          return op->emitError()
                 << (isQuery ? "is not the same for all keys of a query"
                             : "is not the same for all queries of a key");
        int64_t &kept = bytes[isQuery ? 0 : 1];
        if ((kept += getKeptBytes(op)) > kKeptBytes)
          return op->emitError() << "is more than the " << kKeptBytes
                                 << " bytes that are kept for a "
                                 << (isQuery ? "query" : "key");
        return WalkResult::advance();
      }
      default:
        return op->emitError() << "has the role of an op in a loop";
      }
    });
    if (walked.wasInterrupted())
      return failure();
  }
  if (scaled != 0 && scaled != inner.size())
    return attention->emitError() << "has an inner scale in one of its "
                                     "functions alone";
  return success();
}

LogicalResult cuda::verifyAttention(Operation *attention,
                                    const plan::Limits &limits) {
  AttentionAttr tiles = getAttention(attention);
  if (!tiles)
    return attention->emitError()
           << "has no schedule; cuda-schedule gives it one";
  auto verify = [&](auto op) -> LogicalResult {
    if (failed(verifyTiles(op, tiles)) || failed(verifyBlocks(op, tiles)))
      return failure();
    if (const int64_t bytes = getSharedBytes(op);
        bytes > limits.sharedBytes - kSystemShared)
      return op.emitError()
             << "takes " << bytes << " bytes of shared memory; a "
             << "block has " << limits.sharedBytes - kSystemShared;
    return verifyRoles(op);
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(attention)
      .Case<plan::AttentionOp, plan::AttentionGradOp>(verify);
}
