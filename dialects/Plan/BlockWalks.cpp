//===- BlockWalks.cpp - checks of lists that attention goes by ------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks of another mask would be a hang on a GPU, or sums of blocks that are
// not in the mask; tiles of others, memory that is not the tensor's.
//
//===----------------------------------------------------------------------===//

#include "Plan/BlockWalks.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::plan;

int64_t BlockWalksOp::countWords(int64_t queries, int64_t keys) {
  const int64_t blocks = llvm::divideCeil(queries, 64);
  return llvm::divideCeil(keys, 128) *
         (blocks + llvm::divideCeil(blocks, 32) + 8);
}

/// The order of a block mask's tiles, of so many queries and keys.
LogicalResult plan::verifyWalks(Operation *op, Value value, int64_t queries,
                                int64_t keys) {
  auto walks = cast<MemRefType>(value.getType());
  if (ShapedType::isDynamic(queries) || ShapedType::isDynamic(keys))
    return op->emitOpError()
           << "has walks; its numbers of queries and keys must be static";
  // A word has 16 bits for a block of queries and 15 for a number of tiles.
  constexpr int64_t most = 64 * ((1 << 16) - 1);
  if (std::max(queries, keys) > most)
    return op->emitOpError() << "has walks of " << queries << " queries and "
                             << keys << " keys; they have at most " << most;
  const int64_t words = BlockWalksOp::countWords(queries, keys);
  if (walks.getRank() != 4 || walks.getDimSize(2) != 2 ||
      walks.getDimSize(3) != words ||
      !walks.getElementType().isSignlessInteger(32))
    return op->emitOpError() << "walks of " << queries << " queries and "
                             << keys << " keys must be [B or 1, H or 1, 2, "
                             << words << "], of i32, not " << walks;
  return success();
}

LogicalResult BlockWalksOp::verify() {
  auto mask = cast<MemRefType>(getMask().getType());
  ArrayRef<int64_t> of = getOf(), blocks = getBlocks();
  if (of.size() != 2 || blocks.size() != 2 ||
      llvm::any_of(of, [](int64_t n) { return n < 0; }))
    return emitOpError() << "is of two numbers, of queries and of keys, and "
                            "has two sizes of a block";
  for (auto [size, tile] :
       llvm::zip_equal(blocks, SmallVector<int64_t>{64, 128}))
    if (size < 1 || size % tile != 0)
      return emitOpError() << "has blocks of " << size
                           << ", no multiple of a tile's " << tile;
  if (mask.getRank() != 4 || !mask.getElementType().isSignlessInteger(8) ||
      mask.getDimSize(2) != int64_t(llvm::divideCeil(of[0], blocks[0])) ||
      mask.getDimSize(3) != int64_t(llvm::divideCeil(of[1], blocks[1])))
    return emitOpError() << "has a mask of " << mask << " for " << of[0]
                         << " queries and " << of[1] << " keys in blocks of "
                         << blocks[0] << " and " << blocks[1];
  auto walks = cast<MemRefType>(getWalks().getType());
  if (walks.getRank() == 4 && (walks.getDimSize(0) != mask.getDimSize(0) ||
                               walks.getDimSize(1) != mask.getDimSize(1)))
    return emitOpError() << "makes walks of " << walks << " for a mask of "
                         << mask;
  return verifyWalks(*this, getWalks(), of[0], of[1]);
}

//===----------------------------------------------------------------------===//
// Whose walks a launch reads
//===----------------------------------------------------------------------===//

/// (Under a budget of memory steps run again, too: Recompute.cpp.)
static Value skipCopies(Value value) {
  while (auto copy = value ? value.getDefiningOp<CopyOp>() : CopyOp())
    value = copy.getInput();
  return value;
}

static std::string describe(Value value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    os << "argument " << argument.getArgNumber();
  } else {
    auto result = cast<OpResult>(value);
    os << "result " << result.getResultNumber() << " of '"
       << result.getOwner()->getName() << "'";
    if (auto launch = dyn_cast<LaunchOp>(result.getOwner()))
      os << " @" << launch.getKernel();
  }
  return text;
}

/// The block mask that kinds of blocks are elements of; null if they are of
/// none.
static Value getMask(AttentionGradOp grad) {
  Value mask;
  grad.getBlockMod().walk([&](memref::LoadOp load) {
    if (llvm::is_contained(
            grad.getBlockMod().front().getTerminator()->getOperands(),
            load.getResult()))
      mask = load.getMemRef();
  });
  return mask;
}

/// The tensor that a launch gives for an argument of its kernel; null for other
/// arguments.
static Value getGiven(LaunchOp launch, Value argument) {
  auto number = dyn_cast_or_null<BlockArgument>(argument);
  if (!number || number.getArgNumber() >= launch.getInputs().size())
    return {};
  return launch.getInputs()[number.getArgNumber()];
}

static LogicalResult verifyWalksOfMask(LaunchOp launch, AttentionGradOp grad,
                                       SymbolTableCollection &symbols) {
  auto walks = dyn_cast_or_null<OpResult>(getGiven(launch, grad.getWalks()));
  auto maker = walks ? dyn_cast<LaunchOp>(walks.getOwner()) : LaunchOp();
  BlockWalksOp order;
  if (auto kernel = maker ? symbols.lookupNearestSymbolFrom<func::FuncOp>(
                                maker, maker.getKernelAttr())
                          : func::FuncOp();
      kernel && !kernel.isExternal())
    for (auto op : kernel.getBody().front().getOps<BlockWalksOp>())
      if (auto to = dyn_cast<BlockArgument>(op.getWalks());
          to && to.getArgNumber() ==
                    maker.getInputs().size() + walks.getResultNumber())
        order = op;
  if (!order) {
    auto error = launch.emitOpError()
                 << "reads walks that no 'plan.block_walks' makes";
    if (walks)
      error.attachNote(walks.getOwner()->getLoc())
          << "they are " << describe(walks);
    return error;
  }
  auto fail = [&](const auto &...what) -> LogicalResult {
    auto error = launch.emitOpError() << "reads walks of ";
    (error << ... << what);
    error.attachNote(maker.getLoc()) << "they are made here";
    return error;
  };

  auto query = cast<MemRefType>(grad.getQuery().getType()),
       key = cast<MemRefType>(grad.getKey().getType());
  const int64_t queries = query.getDimSize(2), keys = key.getDimSize(2);
  ArrayRef<int64_t> of = order.getOf(), blocks = order.getBlocks();
  if (of != ArrayRef({queries, keys}))
    return fail(of[0], " queries and ", of[1], " keys for ", queries, " and ",
                keys);
  if (ArrayRef<int64_t> own = *grad.getBlocks(); blocks != own)
    return fail("a mask in blocks of ", blocks[0], " and ", blocks[1],
                " for one in blocks of ", own[0], " and ", own[1]);
  if (order.getCausal() != grad.getCausal())
    return fail(order.getCausal() ? "a causal attention for one that is not"
                                  : "an attention that is not causal for one "
                                    "that is");
  Value from = getGiven(maker, order.getMask()),
        own = getGiven(launch, getMask(grad));
  if (from && own && !tv::areSame(from, own, skipCopies))
    return fail("another block mask: of ", describe(from),
                ", where its own is ", describe(own));
  return success();
}

//===----------------------------------------------------------------------===//
// Whose tiles a launch reads
//===----------------------------------------------------------------------===//

template <typename Op>
static LogicalResult verifyTilesOfSequences(LaunchOp launch, Op attention,
                                            SymbolTableCollection &symbols) {
  auto tiles = dyn_cast_or_null<OpResult>(
      skipCopies(getGiven(launch, attention.getTiles())));
  auto maker = tiles ? dyn_cast<LaunchOp>(tiles.getOwner()) : LaunchOp();
  auto kernel = maker ? symbols.lookupNearestSymbolFrom<func::FuncOp>(
                            maker, maker.getKernelAttr())
                      : func::FuncOp();
  auto made =
      kernel
          ? kernel->template getAttrOfType<DenseI64ArrayAttr>(kPackedTilesAttr)
          : DenseI64ArrayAttr();
  if (!made) {
    auto error = launch.emitOpError() << "reads tiles that no kernel with '"
                                      << kPackedTilesAttr << "' makes";
    if (tiles)
      error.attachNote(tiles.getOwner()->getLoc())
          << "they are " << describe(tiles);
    return error;
  }
  const int64_t positions =
      cast<MemRefType>(attention.getQuery().getType()).getDimSize(2);
  const int64_t words =
      cast<MemRefType>(attention.getTiles().getType()).getDimSize(1);
  const int64_t sequences = (words - positions - 4) / 8;
  const SmallVector<int64_t> own = {positions, sequences, kPackedRows,
                                    attention.getCausal() && sequences > 0};
  if (made.asArrayRef() == ArrayRef(own))
    return success();
  auto textOf = [](ArrayRef<int64_t> of) {
    return (Twine(of[0]) + " positions in " + Twine(of[1]) + " sequences by " +
            Twine(of[2]) + " rows, " + (of[3] ? "causal" : "not causal"))
        .str();
  };
  auto error = launch.emitOpError() << "reads tiles of " << textOf(made)
                                    << "; its own are of " << textOf(own);
  error.attachNote(maker.getLoc()) << "they are made here";
  return error;
}

LogicalResult plan::verifyLists(LaunchOp launch, func::FuncOp kernel,
                                SymbolTableCollection &symbols) {
  if (kernel.isExternal())
    return success();
  Block &body = kernel.getBody().front();
  for (auto attention : body.getOps<AttentionOp>())
    if (attention.getTiles() &&
        failed(verifyTilesOfSequences(launch, attention, symbols)))
      return failure();
  for (auto grad : body.getOps<AttentionGradOp>())
    if ((grad.getWalks() && failed(verifyWalksOfMask(launch, grad, symbols))) ||
        (grad.getTiles() &&
         failed(verifyTilesOfSequences(launch, grad, symbols))))
      return failure();
  return success();
}
