//===- TensorViewVerifyAttention.cpp - legal attention --------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention, its gradient, and what says which of their pairs there are.
//
//===----------------------------------------------------------------------===//

#include "TensorView/TensorViewVerify.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;
using namespace tessera::tv::checks;

/// What attention and its gradient have in common: `tensors` are those of four
/// dimensions, the query and the key first, `rows` have a number a query.
static LogicalResult
verifyAttention(Operation *op, ArrayRef<std::pair<Value, StringRef>> tensors,
                ArrayRef<std::pair<Value, StringRef>> rows) {
  Value query = tensors[0].first, key = tensors[1].first;
  if (failed(verifyElement(op, query, "query", kFloats)))
    return failure();
  SmallVector<Value> alike;
  for (auto [value, name] : tensors)
    alike.push_back(value);
  if (failed(verifySameElement(op, alike)))
    return failure();
  for (auto [value, name] : tensors)
    if (failed(verifyRank(op, value, name, 4)))
      return failure();
  for (auto [value, name] : rows) {
    if (failed(verifyRank(op, value, name, 3)))
      return failure();
    if (elementOf(value) != getWide(query))
      return op->emitOpError()
             << name << " has element type " << elementOf(value)
             << "; it must be " << getWide(query);
  }
  int64_t heads = shapeOf(query)[1], groups = shapeOf(key)[1];
  if (isDynamic(heads) || isDynamic(groups))
    return op->emitOpError() << "the number of heads must be static";
  if (heads == 0 || groups == 0)
    return op->emitOpError() << "the query has " << heads << " heads, the key "
                             << groups << "; each must have at least 1";
  if (heads % groups)
    return op->emitOpError() << "the key's " << groups
                             << " heads must divide the query's " << heads;
  return success();
}

/// A block mask for so many queries and keys.
static LogicalResult verifyBlocks(Operation *op, Value mask,
                                  ArrayRef<int64_t> blocks,
                                  ArrayRef<int64_t> of) {
  if (blocks.size() != 2)
    return op->emitOpError() << "has " << blocks.size()
                             << " block sizes; a block mask has two, of "
                                "queries and of keys";
  for (int64_t size : blocks)
    if (size <= 0 || size % 64 != 0 || size > INT32_MAX)
      return op->emitOpError() << "has blocks of " << size
                               << "; block sizes must be positive multiples "
                                  "of 64, below 2^31";
  if (!elementOf(mask).isSignlessInteger(8))
    return op->emitOpError() << "block_mask has element type "
                             << elementOf(mask) << "; it must be i8";
  if (failed(verifyRank(op, mask, "block_mask", 4)))
    return failure();
  for (auto [i, extent] : llvm::enumerate(of)) {
    if (isDynamic(extent))
      return op->emitOpError() << "has a block mask; its numbers of queries "
                                  "and keys must be static";
    const int64_t own = shapeOf(mask)[2 + i];
    const int64_t needed = llvm::divideCeil(extent, blocks[i]);
    if (own != needed)
      return op->emitOpError()
             << "block_mask has " << extentText(own) << " blocks of "
             << (i ? "keys" : "queries") << "; " << extent << " in blocks of "
             << blocks[i] << " are " << needed;
  }
  return success();
}

/// Where sequences begin, tiles of them, or pages.
static LogicalResult verifyWords(Operation *op, Value words, StringRef name) {
  if (!elementOf(words).isSignlessInteger(32))
    return op->emitOpError() << name << " has element type " << elementOf(words)
                             << "; it must be i32";
  return verifyRank(op, words, name, 2);
}

static LogicalResult verifyBegins(Operation *op, Value begins, StringRef name) {
  if (failed(verifyWords(op, begins, name)))
    return failure();
  if (shapeOf(begins)[1] == 0)
    return op->emitOpError()
           << name << " has no column; it has one more than sequences";
  return success();
}

/// How many positions of each of these sequences there are, where that is said.
static LogicalResult verifyUsed(Operation *op, Value used, Value begins) {
  if (!used)
    return success();
  if (!begins)
    return op->emitOpError() << "has used lengths, but no sequences";
  if (failed(verifyWords(op, used, "used")))
    return failure();
  const layout::Shape own = shapeOf(used), of = shapeOf(begins);
  if (own[0] != of[0] || own[1] != of[1] - 1)
    return op->emitOpError()
           << "used is for " << extentText(own[1]) << " sequences of "
           << extentText(own[0]) << " batches; there are "
           << extentText(of[1] - 1) << " of " << extentText(of[0]);
  return success();
}

/// A list of tiles that the program makes must be one of this attention. A
/// count of words alone may be that of fewer positions in more sequences.
template <typename Op> static LogicalResult verifyOwnTiles(Op op) {
  auto list = op.getTiles().template getDefiningOp<PackedTilesOp>();
  if (!list)
    return success();
  auto fail = [&](const Twine &problem) {
    InFlightDiagnostic error = op.emitOpError(problem);
    error.attachNote(list.getLoc()) << "the tiles are made here";
    return error;
  };
  const int64_t positions = shapeOf(op.getQuery())[2];
  if (list.getNumPositions() != positions)
    return fail("has tiles of " + Twine(list.getNumPositions()) +
                " positions in " + Twine(list.getNumSequences()) +
                " sequences; the query has " + Twine(positions) + " positions");
  if (list.getCausal() != op.getCausal())
    return fail(
        Twine("has tiles that are ") +
        (list.getCausal() ? "causal; it is not" : "not causal; it is causal"));
  return success();
}

/// So must a block mask: counts of blocks alone may be those of other sizes.
template <typename Op> static LogicalResult verifyOwnMask(Op op) {
  auto mask = op.getBlockMask().template getDefiningOp<BlockMaskOp>();
  if (!mask)
    return success();
  auto textOf = [](ArrayRef<int64_t> of, ArrayRef<int64_t> blocks) {
    return (Twine(of[0]) + " queries and " + Twine(of[1]) +
            " keys in blocks of " + Twine(blocks[0]) + " and " +
            Twine(blocks[1]))
        .str();
  };
  const int64_t extents[] = {shapeOf(op.getQuery())[2],
                             shapeOf(op.getKey())[2]};
  const std::string made = textOf(mask.getOf(), mask.getBlocks()),
                    own = textOf(extents, *op.getBlocks());
  if (made == own)
    return success();
  InFlightDiagnostic error = op.emitOpError() << "has a block mask of " << made
                                              << "; it is of " << own;
  error.attachNote(mask.getLoc()) << "the block mask is made here";
  return error;
}

/// Packed sequences, if the op has such.
template <typename Op> static LogicalResult verifySequences(Op op) {
  Value begins = op.getSequences(), tiles = op.getTiles();
  if (!begins && !tiles)
    return verifyUsed(op, op.getUsed(), begins);
  if (begins && failed(verifyBegins(op, begins, "sequences")))
    return failure();
  if (tiles && failed(verifyWords(op, tiles, "tiles")))
    return failure();
  const layout::Shape query = shapeOf(op.getQuery()),
                      key = shapeOf(op.getKey()),
                      words = shapeOf(begins ? begins : tiles);
  if (isDynamic(words[0]) || isDynamic(words[1]) || isDynamic(query[2]))
    return op.emitOpError() << "has packed sequences; the numbers of batches, "
                               "sequences and positions must be static";
  if (query[0] != words[0])
    return op.emitOpError()
           << (begins ? "sequences" : "tiles") << " of " << words[0]
           << " batches; the query has " << extentText(query[0]);
  if (query[2] != key[2])
    return op.emitOpError()
           << "has packed sequences, " << extentText(query[2])
           << " queries and " << extentText(key[2])
           << " keys; a position is one of a query and of a key";
  if (tiles && (words[1] < query[2] + 4 || (words[1] - query[2] - 4) % 8 != 0))
    return op.emitOpError()
           << "has tiles of " << words[1] << " words; those of " << query[2]
           << " positions have " << query[2] + 4 << ", and 8 for each sequence";
  if (failed(verifyUsed(op, op.getUsed(), begins)))
    return failure();
  return tiles ? verifyOwnTiles(op) : success();
}

LogicalResult PackedTilesOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyBegins(*this, getBegins(), "begins")) ||
      failed(verifyWords(*this, getResult(), "result")))
    return failure();
  if (getRows() < 4 || getRows() > INT32_MAX)
    return emitOpError() << "has tiles of " << getRows()
                         << " rows; they have at least 4, below 2^31";
  const layout::Shape begins = shapeOf(getBegins()),
                      words = shapeOf(getResult());
  for (int64_t extent : {begins[0], begins[1], words[0], words[1]})
    if (isDynamic(extent))
      return emitOpError() << "must have static shapes";
  if (begins[0] != words[0])
    return emitOpError() << "has a result of " << words[0]
                         << " batches; sequences are of " << begins[0];
  if (getNumPositions() < 0)
    return emitOpError() << "has a result of " << words[1]
                         << " words; it has 4, 8 for each of "
                         << getNumSequences()
                         << " sequences, and as many as there are positions";
  return verifyUsed(*this, getUsed(), getBegins());
}

int64_t PackedTilesOp::getNumSequences() { return shapeOf(getBegins())[1] - 1; }
int64_t PackedTilesOp::getNumPositions() {
  return shapeOf(getResult())[1] - 8 * getNumSequences() - 4;
}

LogicalResult SequenceErrorsOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyBegins(*this, getBegins(), "begins")) ||
      failed(verifyUsed(*this, getUsed(), getBegins())) ||
      failed(verifyWords(*this, getResult(), "result")))
    return failure();
  if (getTokens() > INT32_MAX)
    return emitOpError() << "has " << int64_t(getTokens())
                         << " tokens; there must be at least 0, below 2^31";
  const layout::Shape begins = shapeOf(getBegins()),
                      result = shapeOf(getResult());
  if (isDynamic(begins[1]))
    return emitOpError() << "has begins of dynamically many sequences; their "
                            "number must be static";
  if (begins != result)
    return emitOpError() << "has a result of " << extentText(result[0]) << " x "
                         << extentText(result[1]) << "; begins are "
                         << extentText(begins[0]) << " x " << begins[1];
  return success();
}

LogicalResult PageErrorsOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyWords(*this, getTable(), "table")))
    return failure();
  const layout::Shape table = shapeOf(getTable());
  for (auto [value, name] : {std::pair(Value(getLengths()), "lengths"),
                             std::pair(Value(getResult()), "result")}) {
    if (failed(verifyRank(*this, value, name, 1)))
      return failure();
    if (!elementOf(value).isSignlessInteger(32))
      return emitOpError() << name << " has element type " << elementOf(value)
                           << "; it must be i32";
    if (shapeOf(value)[0] != table[0])
      return emitOpError() << name << " is for "
                           << extentText(shapeOf(value)[0])
                           << " sequences; the table has "
                           << extentText(table[0]);
  }
  for (auto [count, name] : {std::pair(getPage(), "positions a page"),
                             std::pair(getPages(), "pages")})
    if (count < 1 || count > INT32_MAX)
      return emitOpError() << "has " << int64_t(count) << " " << name
                           << "; there must be at least 1, below 2^31";
  if (isDynamic(table[1]))
    return emitOpError() << "has a table of dynamically many pages a sequence; "
                            "their number must be static";
  if (table[1] > int64_t(INT32_MAX / getPage()))
    return emitOpError() << "has rows of " << table[1] << " pages of "
                         << int64_t(getPage())
                         << " positions; lengths are below 2^31";
  return success();
}

template <typename Op> static LogicalResult verifyBlockMask(Op op) {
  Value mask = op.getBlockMask();
  if (!mask != !op.getBlocks())
    return op.emitOpError() << "must have both a block_mask and blocks, or "
                               "neither";
  if (!mask)
    return success();
  const layout::Shape query = shapeOf(op.getQuery());
  if (failed(verifyBlocks(op, mask, *op.getBlocks(),
                          {query[2], shapeOf(op.getKey())[2]})))
    return failure();
  for (int64_t dim : {0, 1})
    if (const int64_t own = shapeOf(mask)[dim]; own != 1 && own != query[dim])
      return op.emitOpError()
             << "block_mask is for " << extentText(own)
             << (dim ? " heads" : " batches") << "; it must be for 1 or "
             << extentText(query[dim]);
  return verifyOwnMask(op);
}

/// Dropout of the weights, if the op has it.
template <typename Op> static LogicalResult verifyDropout(Op op) {
  if (bool(op.getDropout()) != bool(op.getSeed()) ||
      bool(op.getDropout()) != bool(op.getStream()))
    return op.emitOpError() << "must have dropout, seed and stream, or none";
  if (!op.getDropout())
    return op.getStep() ? op.emitOpError() << "has a step, but no dropout"
                        : success();
  const double rate = op.getDropout()->convertToDouble();
  if (!(rate >= 0 && rate < 1))
    return op.emitOpError() << "dropout must be in [0, 1)";
  return verifyStep(op, op.getStep());
}

/// A number in the type that scores are computed in, too.
template <typename Op> static LogicalResult verifyScale(Op op) {
  APFloat scale = op.getScale();
  bool loses = false;
  scale.convert(cast<FloatType>(getWide(op.getQuery())).getFloatSemantics(),
                APFloat::rmNearestTiesToEven, &loses);
  if (scale.isFinite())
    return success();
  return op.emitOpError() << "has a scale that is no number in "
                          << getWide(op.getQuery());
}

int64_t AttentionOp::getNumKeys() {
  const int64_t keys = shapeOf(getKey())[2];
  return getPages() ? shapeOf(getPages())[1] * keys : keys;
}

/// Where keys lie, if it is in pages.
static LogicalResult verifyPages(AttentionOp op) {
  Value pages = op.getPages();
  if (!pages)
    return success();
  if (failed(verifyWords(op, pages, "pages")))
    return failure();
  const int64_t each = shapeOf(pages)[1], rows = shapeOf(op.getKey())[2];
  if (isDynamic(each) || isDynamic(rows))
    return op.emitOpError() << "has pages; how many a batch has, and their "
                               "numbers of positions, must be static";
  if (rows > 0 && each > INT32_MAX / rows)
    return op.emitOpError() << "has " << each << " pages of " << rows
                            << " positions a batch; keys of one must be below "
                               "2^31";
  return success();
}

/// Which pairs there are and where keys lie, as an operand says.
template <typename Op> static LogicalResult verifyStructure(Op op) {
  int given =
      bool(op.getBlockMask()) + bool(op.getSequences()) + bool(op.getTiles());
  StringRef all = "a block_mask, sequences and tiles";
  if constexpr (std::is_same_v<Op, AttentionOp>) {
    given += bool(op.getPages());
    all = "a block_mask, sequences, tiles and pages";
    if (failed(verifyPages(op)))
      return failure();
  }
  if (given > 1)
    return op.emitOpError() << "must have one of " << all << ", or none";
  return failed(verifyBlockMask(op)) ? failure() : verifySequences(op);
}

LogicalResult BlockMaskOp::verify() {
  if (failed(verifyTensors(*this)))
    return failure();
  if (getOf().size() != 2 || getOf()[0] < 0 || getOf()[1] < 0)
    return emitOpError() << "must be of two numbers, of queries and of keys";
  if (failed(verifyBlocks(*this, getResult(), getBlocks(), getOf())))
    return failure();
  for (int64_t dim : {0, 1})
    if (isDynamic(shapeOf(getResult())[dim]))
      return emitOpError() << "must be of a static shape";
  return success();
}

LogicalResult BlockMaskOp::verifyRegions() {
  Type index = IndexType::get(getContext());
  return verifyScalarRegion(*this, getMaskMod(), "mask_mod",
                            {index, index, index, index},
                            {IntegerType::get(getContext(), 1)});
}

/// The regions that attention and its gradient share.
static LogicalResult verifyMods(Operation *op, Region &scoreMod,
                                Region &maskMod, Type wide) {
  Type index = IndexType::get(op->getContext());
  Type boolean = IntegerType::get(op->getContext(), 1);
  if (!scoreMod.empty() &&
      failed(verifyScalarRegion(op, scoreMod, "score_mod",
                                {wide, index, index, index, index}, {wide})))
    return failure();
  if (maskMod.empty())
    return success();
  return verifyScalarRegion(op, maskMod, "mask_mod",
                            {index, index, index, index}, {boolean});
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyTensors(*this)) ||
      failed(verifyAttention(*this,
                             {{getQuery(), "query"},
                              {getKey(), "key"},
                              {getValue(), "value"},
                              {getResult(), "result"}},
                             {{getLse(), "lse"}})) ||
      failed(verifyScale(*this)) || failed(verifyDropout(*this)) ||
      failed(verifyStructure(*this)))
    return failure();
  return verifyExtents(*this);
}

LogicalResult AttentionOp::verifyRegions() {
  return verifyMods(*this, getScoreMod(), getMaskMod(), getWide(getQuery()));
}

LogicalResult AttentionGradOp::verify() {
  SmallVector<std::pair<Value, StringRef>> rows = {{getLse(), "lse"}};
  if (getLseGrad())
    rows.push_back({getLseGrad(), "dlse"});
  if (failed(verifyTensors(*this)) ||
      failed(verifyAttention(*this,
                             {{getQuery(), "query"},
                              {getKey(), "key"},
                              {getValue(), "value"},
                              {getGrad(), "the gradient"},
                              {getOutput(), "the attention's result"},
                              {getQueryGrad(), "the query's gradient"},
                              {getKeyGrad(), "the key's gradient"},
                              {getValueGrad(), "the value's gradient"}},
                             rows)) ||
      failed(verifyScale(*this)) || failed(verifyDropout(*this)) ||
      failed(verifyStructure(*this)))
    return failure();
  if (getCaptured().size() != getCapturedGrads().size())
    return emitOpError() << "has " << getCaptured().size()
                         << " captured tensors and "
                         << getCapturedGrads().size() << " gradients of them";
  if (!getCaptured().empty() && getScoreMod().empty())
    return emitOpError() << "has captured tensors, but no score_mod that could "
                            "load from them";
  for (auto [i, tensor] : llvm::enumerate(getCaptured())) {
    Value grad = getCapturedGrads()[i];
    std::string name = "captured tensor #" + std::to_string(i);
    if (!kFloats.contains(elementOf(tensor)))
      return emitOpError() << name << " has element type " << elementOf(tensor)
                           << "; only floats have a gradient";
    if (elementOf(grad) != elementOf(tensor))
      return emitOpError() << "the gradient of " << name << " has element type "
                           << elementOf(grad) << "; it must be "
                           << elementOf(tensor);
    if (failed(
            verifyRank(*this, grad, "the gradient of " + name, rankOf(tensor))))
      return failure();
  }
  return verifyExtents(*this);
}

LogicalResult AttentionGradOp::verifyRegions() {
  Type index = IndexType::get(getContext());
  Type wide = getWide(getQuery());
  if (failed(verifyMods(*this, getScoreMod(), getMaskMod(), wide)))
    return failure();
  if (getScoreGrad().empty())
    return success();
  if (getScoreMod().empty())
    return emitOpError() << "has a score_grad, but no score_mod";
  return verifyScalarRegion(*this, getScoreGrad(), "score_grad",
                            {wide, wide, index, index, index, index}, {wide});
}

LogicalResult AccumulateOp::verify() {
  auto parent = dyn_cast_or_null<AttentionGradOp>((*this)->getParentOp());
  if (!parent || (*this)->getParentRegion() != &parent.getScoreGrad())
    return emitOpError() << "belongs in the score_grad of a tv.attention_grad";
  uint64_t count = parent.getCapturedGrads().size();
  if (getNumber() >= count)
    return emitOpError() << "adds to the gradient of captured tensor #"
                         << int64_t(getNumber()) << "; there are " << count;
  Value grad = parent.getCapturedGrads()[getNumber()];
  if (int64_t(getIndices().size()) != rankOf(grad))
    return emitOpError() << "has " << getIndices().size()
                         << " indices; the tensor has rank " << rankOf(grad);
  Type wide = getWide(parent.getQuery());
  if (getAdjoint().getType() != wide)
    return emitOpError() << "adds a " << getAdjoint().getType()
                         << "; it must be " << wide;
  return success();
}
