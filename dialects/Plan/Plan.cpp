//===- Plan.cpp - text and checks of the plan dialect ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan/Plan.h"
#include "Plan/BlockWalks.h"
#include "Plan/Target.h"
#include "TensorView/Contract.h"
#include "TensorView/ScalarRegion.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::plan;

#include "Plan/PlanDialect.cpp.inc"
#include "Plan/PlanEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "Plan/PlanAttrs.cpp.inc"

void PlanDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Plan/PlanAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Plan/PlanOps.cpp.inc"
      >();
  addInterfaces<tv::LocalDialectInterface>();
}

LogicalResult PlanDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (attribute.getName() == kTargetAttr &&
      !isa<TargetAttr>(attribute.getValue()))
    return op->emitError() << kTargetAttr << " is a #plan.target<...>, not "
                           << attribute.getValue();
  if (attribute.getName() == kPackedTilesAttr) {
    auto of = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
    if (!of || of.size() != 4 || (of[3] != 0 && of[3] != 1))
      return op->emitError() << kPackedTilesAttr
                             << " has four numbers: of positions, sequences "
                                "and rows, and 1 if it is causal, else 0";
  }
  return success();
}

Attribute ExtentAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  tv::AsmTokenSource tokens(parser);
  Result<layout::Extent> extent = layout::parseExtent(tokens);
  if (!extent) {
    tokens.emitError() << extent.message();
    return {};
  }
  if (parser.parseGreater())
    return {};
  return ExtentAttr::get(parser.getContext(), *extent);
}

void ExtentAttr::print(AsmPrinter &printer) const {
  printer << "<" << layout::toString(getExtent()) << ">";
}

LogicalResult LaunchOp::verify() {
  for (Attribute scalar : getScalars())
    if (!isa<CoordAttr, ExtentAttr>(scalar))
      return emitOpError() << "scalar " << scalar
                           << " must be a #plan.coord or a #plan.extent";
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel =
      symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getKernelAttr());
  if (!kernel || !kernel->hasAttr(kKernelAttr))
    return emitOpError() << "there is no kernel " << getKernelAttr();
  size_t tensors = getNumOperands() + getNumResults();
  if (kernel.getNumArguments() != tensors + getScalars().size())
    return emitOpError() << "gives " << tensors << " tensors and "
                         << getScalars().size() << " scalars to a kernel with "
                         << kernel.getNumArguments() << " arguments";
  return verifyLists(*this, kernel, symbols);
}

/// The partial state of a local tensor; of others there is none.
static ArrayRef<layout::Partial> getPartial(Value tensor) {
  auto local = dyn_cast_or_null<tv::LocalAttr>(
      cast<RankedTensorType>(tensor.getType()).getEncoding());
  return local ? ArrayRef(local.getLayoutView().partial)
               : ArrayRef<layout::Partial>();
}

/// What is added to the product and what follows it: what that means. What a
/// library does of it in one step is the target's to say (Target::runs).
static LogicalResult verifyEpilogue(ContractOp op) {
  auto result = cast<RankedTensorType>(op.getResult().getType());
  if (Value bias = op.getBias()) {
    SmallVector<int64_t> columns;
    for (auto [dim, label] : llvm::enumerate(op.getLabels()))
      if (!llvm::is_contained(op.getALabels(), label))
        columns.push_back(result.getDimSize(dim));
    auto type = cast<RankedTensorType>(bias.getType());
    if (columns.size() != 1 || type.getShape() != ArrayRef(columns) ||
        type.getElementType() != result.getElementType())
      return op.emitOpError()
             << "the bias " << type << " must have one element for each of the "
             << "result's columns, which must be one dimension";
    if (getPartial(bias) != getPartial(op.getResult()))
      return op.emitOpError() << "the bias must be partial as the result is";
  }
  if (op.getEpilogue() && (!isa<FloatType>(result.getElementType()) ||
                           !getPartial(op.getResult()).empty()))
    return op.emitOpError() << "has an epilogue, but its result is partial or "
                               "of integers";
  auto isLikeResult = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return type.getShape() == result.getShape() &&
           type.getElementType() == result.getElementType();
  };
  if (Value addend = op.getAddend())
    if (!isLikeResult(addend) ||
        getPartial(addend) != getPartial(op.getResult()))
      return op.emitOpError()
             << "what is added, " << addend.getType()
             << ", must have the result's shape, elements and partial state";
  bool isGrad = op.getEpilogue() == Epilogue::GeluTanhGrad;
  if (op.getX() ? !isGrad || !isLikeResult(op.getX()) : isGrad)
    return op.emitOpError() << "gelu_tanh_grad, and nothing else, needs what "
                               "went into the gelu, of the result's shape and "
                               "elements";
  if (isGrad && !getPartial(op.getX()).empty())
    return op.emitOpError() << "what went into the gelu must be whole";
  if (op.getAux() && (!op.getEpilogue() || !isLikeResult(op.getAux())))
    return op.emitOpError() << "aux is what goes into the epilogue, of the "
                               "result's shape and elements";
  return success();
}

/// What is summed beside the product.
static LogicalResult verifySums(ContractOp op) {
  if (!op.getSummed())
    return success();
  if (!op.getSums())
    return op.emitOpError() << "has no result for its sums";
  auto result = cast<RankedTensorType>(op.getResult().getType());
  // The labels that stay of what is summed.
  ArrayRef<int32_t> other =
      op.getSummed() == Summed::A ? op.getBLabels() : op.getALabels();
  SmallVector<int64_t> kept;
  for (auto [dim, label] : llvm::enumerate(op.getLabels()))
    if (!llvm::is_contained(other, label))
      kept.push_back(result.getDimSize(dim));
  auto sums = cast<RankedTensorType>(op.getSums().getType());
  if (kept.size() != 1 || sums.getShape() != ArrayRef(kept) ||
      sums.getElementType() != result.getElementType() ||
      !isa<FloatType>(result.getElementType()))
    return op.emitOpError()
           << "the sums " << sums << " must have one float of the result's "
           << "type for each row or column, which must be one dimension";
  return success();
}

LogicalResult ContractOp::verify() {
  auto check = [&](ArrayRef<int32_t> labels, Type type,
                   StringRef name) -> LogicalResult {
    llvm::SmallSet<int32_t, 8> seen(labels.begin(), labels.end());
    if (int64_t(labels.size()) != cast<RankedTensorType>(type).getRank() ||
        seen.size() != labels.size())
      return emitOpError() << name << " needs one label for each dimension of "
                           << type << ", no two alike";
    return success();
  };
  if (failed(check(getALabels(), getA().getType(), "a")) ||
      failed(check(getBLabels(), getB().getType(), "b")) ||
      failed(check(getLabels(), getResult().getType(), "result")))
    return failure();
  // A label of one tensor alone would be a sum or a broadcast.
  for (ArrayRef<int32_t> labels : {getALabels(), getBLabels(), getLabels()})
    for (int32_t label : labels) {
      int uses = llvm::is_contained(getALabels(), label) +
                 llvm::is_contained(getBLabels(), label) +
                 llvm::is_contained(getLabels(), label);
      if (uses < 2)
        return emitOpError() << "label " << label << " is in one tensor only";
    }
  if (failed(verifyEpilogue(*this)))
    return failure();
  return verifySums(*this);
}

/// Whether two shapes have one rank, and no extents that are known and not the
/// same.
static bool maybeSame(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return a.size() == b.size() &&
         llvm::all_of(llvm::zip(a, b), [](auto extents) {
           auto [x, y] = extents;
           return x == y || ShapedType::isDynamic(x) ||
                  ShapedType::isDynamic(y);
         });
}

/// `likeQuery` and `likeKey`: what has the query's and the key's shape.
template <typename Op>
static LogicalResult verifyAttend(Op op, ValueRange likeQuery,
                                  ValueRange likeKey) {
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  auto key = cast<RankedTensorType>(op.getKey().getType());
  SmallVector<Value> tensors = {op.getQuery(), op.getKey()};
  llvm::append_range(tensors, likeKey);
  llvm::append_range(tensors, likeQuery);
  for (Value tensor : tensors) {
    auto type = cast<RankedTensorType>(tensor.getType());
    if (type.getRank() != 4 ||
        type.getElementType() != query.getElementType() ||
        !(type.getElementType().isBF16() || type.getElementType().isF16()))
      return op.emitOpError()
             << "query, key, value and result must have rank "
                "4 and elements of bf16 or f16, all alike, not "
             << query << " and " << type;
  }
  SmallVector<int64_t> ofQuery(query.getShape()), ofKey(key.getShape());
  ofQuery[1] = ofQuery[2] = ofKey[1] = ofKey[2] = ShapedType::kDynamic;
  auto haveShape = [](ValueRange tensors, ArrayRef<int64_t> shape) {
    return llvm::all_of(tensors, [&](Value tensor) {
      return maybeSame(cast<RankedTensorType>(tensor.getType()).getShape(),
                       shape);
    });
  };
  if (!maybeSame(ofQuery, ofKey) || !haveShape(likeKey, key.getShape()) ||
      !haveShape(likeQuery, query.getShape()))
    return op.emitOpError() << "query and key must have one batch and one head "
                               "dimension, the value the key's shape and the "
                               "result the query's";
  Value lse = op.getLse();
  if (lse && (!getElementTypeOrSelf(lse).isF32() ||
              !haveShape(lse, query.getShape().drop_back())))
    return op.emitOpError() << "lse must have the query's shape without its "
                               "last dimension and elements of f32, not "
                            << lse.getType();
  if (op.getCausal() && !ShapedType::isDynamic(query.getDimSize(2)) &&
      query.getDimSize(2) > key.getDimSize(2) &&
      !ShapedType::isDynamic(key.getDimSize(2)))
    return op.emitOpError() << "is causal with more queries than keys";
  return success();
}

LogicalResult AttendOp::verify() {
  return verifyAttend(*this, getResult(), getValue());
}

LogicalResult AttendGradOp::verify() {
  return verifyAttend(*this, {getOutput(), getGrad(), getQueryGrad()},
                      {getValue(), getKeyGrad(), getValueGrad()});
}

/// Rank 4 and one element type.
static LogicalResult verifyHeads(Operation *op, Value query,
                                 ValueRange tensors) {
  auto first = cast<MemRefType>(query.getType());
  for (Value tensor : tensors) {
    auto type = cast<MemRefType>(tensor.getType());
    if (type.getRank() != 4 || first.getRank() != 4 ||
        type.getElementType() != first.getElementType())
      return op->emitOpError()
             << "query, key, value and result must have rank 4 and "
                "one element type, not "
             << first << " and " << type;
  }
  return success();
}

static LogicalResult verifyRows(Operation *op, Value rows, StringRef name) {
  if (cast<MemRefType>(rows.getType()).getRank() == 3 &&
      getElementTypeOrSelf(rows).isF32())
    return success();
  return op->emitOpError() << name
                           << " must have rank 3 and elements of f32, not "
                           << rows.getType();
}

/// A function of `scores`, then batch, head, query and key.
static LogicalResult verifyFunctor(Operation *op, Region &region,
                                   StringRef name, unsigned scores,
                                   TypeRange yields) {
  if (region.empty())
    return success();
  SmallVector<Type> arguments(scores, Float32Type::get(op->getContext()));
  arguments.append(4, IndexType::get(op->getContext()));
  auto yield = region.front().empty()
                   ? tv::YieldOp()
                   : dyn_cast<tv::YieldOp>(region.front().back());
  if (region.front().getArgumentTypes() != TypeRange(arguments) || !yield ||
      yield.getOperandTypes() != yields)
    return op->emitOpError()
           << name << " must have arguments (" << TypeRange(arguments)
           << ") and tv.yield " << yields;
  return success();
}

static LogicalResult verifyBlocks(Operation *op,
                                  std::optional<ArrayRef<int64_t>> blocks,
                                  Region &blockMod) {
  if (blockMod.empty() == blocks.has_value() ||
      (blocks && (blocks->size() != 2 || (*blocks)[0] < 1 || (*blocks)[1] < 1)))
    return op->emitOpError()
           << "needs the numbers of queries and keys of a block for a "
              "block_mod, and for no other";
  return verifyFunctor(op, blockMod, "block_mod", 0,
                       IntegerType::get(op->getContext(), 8));
}

/// Tiles of packed sequences, one batch.
template <typename Op> static LogicalResult verifyTiles(Op op) {
  if (!op.getTiles())
    return success();
  auto tiles = cast<MemRefType>(op.getTiles().getType());
  auto query = cast<MemRefType>(op.getQuery().getType());
  if (tiles.getRank() != 2 || tiles.getDimSize(0) != 1 ||
      !tiles.hasStaticShape() || !tiles.getElementType().isSignlessInteger(32))
    return op.emitOpError()
           << "tiles must be [1, words], static, of i32, not " << tiles;
  const int64_t positions = query.getDimSize(2),
                more = tiles.getDimSize(1) - positions;
  if (query.getDimSize(0) != 1 || ShapedType::isDynamic(positions) ||
      cast<MemRefType>(op.getKey().getType()).getDimSize(2) != positions)
    return op.emitOpError() << "with tiles is of one batch with as many "
                               "queries as keys, a static number";
  if (more < 4 || (more - 4) % 8 != 0)
    return op.emitOpError()
           << "tiles of " << positions << " positions have " << positions + 4
           << " words and 8 for each sequence, not " << tiles.getDimSize(1);
  if (op.getBlocks())
    return op.emitOpError() << "has both tiles and blocks";
  return success();
}

/// A probability, a pair's number, and an i64 in memory.
template <typename Op> static LogicalResult verifyDropout(Op op) {
  const bool has = bool(op.getDropout());
  if (has != bool(op.getSeed()) || has != bool(op.getStream()) ||
      has == op.getNumberMod().empty() || (op.getStep() && !has))
    return op.emitOpError() << "needs seed, stream and a number_mod for "
                               "dropout, and for nothing else";
  if (!has)
    return success();
  const double rate = op.getDropout()->convertToDouble();
  if (!(rate >= 0 && rate < 1))
    return op.emitOpError() << "dropout must be in [0, 1)";
  if (failed(verifyFunctor(op, op.getNumberMod(), "number_mod", 0,
                           IndexType::get(op.getContext()))))
    return failure();
  if (!op.getStep())
    return success();
  auto step = cast<MemRefType>(op.getStep().getType());
  if (step.getRank() != 0 || !step.getElementType().isSignlessInteger(64))
    return op.emitOpError() << "step must be a memref<i64>, not " << step;
  return success();
}

/// Of a part of the queries.
template <typename Op> static LogicalResult verifyCausal(Op op) {
  if (!op.getCausalMod().empty() &&
      (!op.getCausal() || op.getTiles() || op.getBlocks()))
    return op.emitOpError()
           << "has a causal_mod, and is not causal or has tiles or blocks";
  return verifyFunctor(op, op.getCausalMod(), "causal_mod", 0,
                       IndexType::get(op.getContext()));
}

int64_t AttentionOp::getNumKeys() {
  const int64_t keys = cast<MemRefType>(getKey().getType()).getDimSize(2);
  return getPages()
             ? cast<MemRefType>(getPages().getType()).getDimSize(1) * keys
             : keys;
}

/// Both of static numbers.
static LogicalResult verifyPages(AttentionOp op) {
  if (!op.getPages())
    return success();
  auto pages = cast<MemRefType>(op.getPages().getType());
  auto key = cast<MemRefType>(op.getKey().getType());
  if (pages.getRank() != 2 || pages.isDynamicDim(1) ||
      !pages.getElementType().isSignlessInteger(32))
    return op.emitOpError()
           << "pages must be [B, M], M static, of i32, not " << pages;
  if (key.isDynamicDim(2))
    return op.emitOpError() << "with pages has a static number of keys in each";
  if (op.getBlocks() || op.getTiles())
    return op.emitOpError()
           << "has both pages and " << (op.getTiles() ? "tiles" : "blocks");
  return success();
}

LogicalResult AttentionOp::verify() {
  Type number = Float32Type::get(getContext());
  Type boolean = IntegerType::get(getContext(), 1);
  if (failed(verifyHeads(*this, getQuery(),
                         {getKey(), getValue(), getResult()})) ||
      (getLse() && failed(verifyRows(*this, getLse(), "lse"))) ||
      failed(verifyFunctor(*this, getScoreMod(), "score_mod", 1, number)) ||
      failed(verifyBlocks(*this, getBlocks(), getBlockMod())) ||
      failed(verifyTiles(*this)) || failed(verifyPages(*this)) ||
      failed(verifyDropout(*this)) || failed(verifyCausal(*this)))
    return failure();
  return verifyFunctor(*this, getMaskMod(), "mask_mod", 0, boolean);
}

/// Query heads that share keys have gradients of keys and values each.
static LogicalResult verifySharedKeys(AttentionGradOp op) {
  auto query = cast<MemRefType>(op.getQuery().getType());
  const std::pair<Value, Value> sides[] = {
      {op.getKey(), op.getKeyGradOfHeads()},
      {op.getValue(), op.getValueGradOfHeads()}};
  for (auto [side, ofHeads] : sides) {
    auto type = cast<MemRefType>(side.getType());
    if (!ofHeads) {
      if (type.getDimSize(1) != query.getDimSize(1))
        return op.emitOpError()
               << "needs memory for the gradients of each query head, 'heads', "
                  "as these share keys: "
               << query << " and " << type;
      continue;
    }
    SmallVector<int64_t> shape(type.getShape());
    shape[1] = query.getDimSize(1);
    auto own = cast<MemRefType>(ofHeads.getType());
    if (own.getShape() != ArrayRef(shape) ||
        own.getElementType() != type.getElementType())
      return op.emitOpError() << "has gradients of heads in " << own << " for "
                              << query << " and " << type;
  }
  return success();
}

LogicalResult AttentionGradOp::verify() {
  Type number = Float32Type::get(getContext());
  Type boolean = IntegerType::get(getContext(), 1);
  if (failed(verifyHeads(*this, getQuery(),
                         {getGrad(), getKey(), getValue(), getOutput(),
                          getQueryGrad(), getKeyGrad(), getValueGrad()})) ||
      failed(verifyRows(*this, getLse(), "lse")) ||
      (getLseGrad() && failed(verifyRows(*this, getLseGrad(), "dlse"))) ||
      failed(verifyFunctor(*this, getScoreMod(), "score_mod", 1, number)) ||
      failed(verifyFunctor(*this, getMaskMod(), "mask_mod", 0, boolean)) ||
      failed(verifyFunctor(*this, getScoreGrad(), "score_grad", 2,
                           SmallVector<Type>(1 + getSums().size(), number))) ||
      failed(verifyBlocks(*this, getBlocks(), getBlockMod())) ||
      failed(verifyTiles(*this)) || failed(verifyDropout(*this)) ||
      failed(verifyCausal(*this)))
    return failure();
  if (bool(getWalks()) != getBlocks().has_value() ||
      getWalkMod().empty() == bool(getWalks()))
    return emitOpError()
           << "needs walks and a walk_mod for blocks, and for no other";
  if (failed(verifyFunctor(*this, getWalkMod(), "walk_mod", 0,
                           IndexType::get(getContext()))))
    return failure();
  if (getWalks() &&
      failed(verifyWalks(*this, getWalks(),
                         cast<MemRefType>(getQuery().getType()).getDimSize(2),
                         cast<MemRefType>(getKey().getType()).getDimSize(2))))
    return failure();
  if (getScoreMod().empty() != getScoreGrad().empty())
    return emitOpError() << "must have both score_mod and score_grad, or none";
  if (failed(verifySharedKeys(*this)))
    return failure();
  auto scratch = cast<MemRefType>(getScratch().getType());
  if (scratch.getRank() != 4 || !scratch.getElementType().isF32())
    return emitOpError() << "scratch must have rank 4 and elements of f32, not "
                         << scratch;
  if (getSums().size() != getSumsBy().size() ||
      (!getSums().empty() && getScoreGrad().empty()))
    return emitOpError() << "needs a name of each sum, and a score_grad for it";
  for (auto [sum, by] :
       llvm::zip_equal(getSums(), getSumsBy().getAsRange<StringAttr>())) {
    auto type = cast<MemRefType>(sum.getType());
    if (!llvm::is_contained({"query", "key", "distance", "score"},
                            by.getValue()) ||
        type.getRank() != (by == "score" ? 4 : 3) ||
        !type.getElementType().isF32())
      return emitOpError()
             << "sums f32 by \"query\", \"key\", \"distance\" into "
                "rank 3, or by \"score\" into rank 4, not by "
             << by << " into " << type;
  }
  return success();
}

LogicalResult RandomOp::verify() {
  if (getBits() != 16 && getBits() != 24)
    return emitOpError() << "bits is " << getBits() << "; it must be 16 or 24";
  return success();
}

LogicalResult ProductOp::verify() {
  auto a = cast<MemRefType>(getA().getType());
  auto b = cast<MemRefType>(getB().getType());
  const int64_t rank = a.getRank();
  if ((rank != 2 && rank != 3) || (b.getRank() != 2 && b.getRank() != rank))
    return emitOpError()
           << "multiplies matrices, or a batch of them with one or "
              "with as many, not "
           << a << " and " << b;
  // Extents that are known may not differ.
  auto differ = [](int64_t x, int64_t y) {
    return x != y && !ShapedType::isDynamic(x) && !ShapedType::isDynamic(y);
  };
  SmallVector<int64_t> shape(a.getShape());
  shape.back() = b.getDimSize(b.getRank() - 2);
  if (a.getElementType() != b.getElementType() ||
      !isa<FloatType>(a.getElementType()) ||
      differ(a.getShape().back(), b.getShape().back()) ||
      (b.getRank() == 3 && differ(a.getDimSize(0), b.getDimSize(0))))
    return emitOpError() << "a and b must have one type of floats, rows of one "
                            "length and one batch, not "
                         << a << " and " << b;
  if (getOutputs().empty())
    return emitOpError() << "has no result";
  for (Type type : getOutputs().getTypes()) {
    auto result = cast<MemRefType>(type);
    bool fits = result.getRank() == rank &&
                result.getElementType() == a.getElementType();
    for (int64_t dim = 0; fits && dim < rank; ++dim)
      fits = !differ(result.getDimSize(dim), shape[dim]);
    if (!fits)
      return emitOpError()
             << "results must have a row for each one of a, a "
                "column for each row of b, and their elements, not "
             << result;
  }
  if (getEpilogue().empty()) {
    if (getOutputs().size() > 1)
      return emitOpError() << "has " << getOutputs().size()
                           << " results; only an epilogue gives several";
    return success();
  }
  SmallVector<Type> arguments(rank + 1, IndexType::get(getContext()));
  arguments[0] = Float32Type::get(getContext());
  SmallVector<Type> yields(getOutputs().size(), arguments[0]);
  Block &block = getEpilogue().front();
  auto yield =
      block.empty() ? tv::YieldOp() : dyn_cast<tv::YieldOp>(block.back());
  if (block.getArgumentTypes() != TypeRange(arguments) || !yield ||
      yield.getOperandTypes() != TypeRange(yields))
    return emitOpError() << "the epilogue must have arguments ("
                         << TypeRange(arguments) << ") and tv.yield "
                         << TypeRange(yields);
  return success();
}

LogicalResult AliasOp::verify() {
  bool needs =
      getKind() == AliasKind::Transpose || getKind() == AliasKind::Slice;
  int64_t rank = cast<RankedTensorType>(getInput().getType()).getRank();
  if (needs != bool(getAt()) || (needs && int64_t(getAt()->size()) != rank))
    return emitOpError() << "of kind " << stringifyAliasKind(getKind())
                         << (needs ? " needs 'at' with a number for each "
                                     "dimension of the source"
                                   : " has no 'at'");
  return success();
}

/// Whether the op is all of what it reads, in other dimensions.
static bool isWhole(AliasOp alias) {
  return alias.getKind() == AliasKind::Transpose ||
         alias.getKind() == AliasKind::Reshape;
}

/// What `value` is transposes and reshapes of.
static Value skipWhole(Value value) {
  while (auto alias = value.getDefiningOp<AliasOp>()) {
    if (!isWhole(alias) || !value.hasOneUse())
      break;
    value = alias.getInput();
  }
  return value;
}

Value plan::getChosen(Value value) {
  Value chosen = value;
  for (OpOperand &use : value.getUses())
    if (auto choice = dyn_cast<ChooseOp>(use.getOwner()))
      chosen =
          choice.getResult(use.getOperandNumber() % choice.getNumResults());
  return chosen;
}

bool plan::canBeJoined(Value value) {
  auto result = dyn_cast<OpResult>(skipWhole(value));
  if (!result || !result.hasOneUse())
    return false;
  auto choice = dyn_cast<ChooseOp>(result.getOwner());
  if (!choice)
    return isa<LaunchOp, AttendOp, AttendGradOp>(result.getOwner());
  return llvm::all_of(
      llvm::seq<unsigned>(0, choice.getVariants().size()), [&](unsigned i) {
        return isa_and_present<LaunchOp, AttendOp, AttendGradOp, CopyOp>(
            choice.getValuesOf(i)[result.getResultNumber()].getDefiningOp());
      });
}

bool plan::haveOneChoice(ValueRange values) {
  return llvm::all_equal(llvm::map_range(values, [](Value value) {
    return skipWhole(value).getDefiningOp<ChooseOp>();
  }));
}

JoinOp plan::getJoin(Value value) {
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (auto join = dyn_cast<JoinOp>(user))
      return join;
    auto alias = dyn_cast<AliasOp>(user);
    if (!alias || !isWhole(alias))
      break;
    value = alias.getResult();
  }
  return {};
}

LogicalResult JoinOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  const layout::Shape whole = tv::getGlobalShape(type);
  const int64_t rank = type.getRank(), dim = getDim();
  if (getInputs().empty() || dim < 0 || dim >= rank)
    return emitOpError() << "needs operands, and a dimension of its result";
  int64_t size = 0;
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    auto part = cast<RankedTensorType>(input.getType());
    const layout::Shape sizes = tv::getGlobalShape(part);
    bool fits = part.getRank() == rank && sizes.size() == whole.size() &&
                int64_t(sizes.size()) == rank &&
                part.getElementType() == type.getElementType();
    for (int64_t d = 0; fits && d < rank; ++d)
      fits = d == dim ? sizes[d] != layout::kDynamic : sizes[d] == whole[d];
    if (!fits)
      return emitOpError() << "operand #" << i << " is " << part
                           << ", no part of its result along dimension " << dim;
    size += sizes[dim];
    if (!canBeJoined(input))
      return emitOpError() << "operand #" << i
                           << " must be what a launch or an attention writes, "
                              "or a transpose or reshape of that, and be read "
                              "by nothing else";
  }
  if (!haveOneChoice(getInputs()))
    return emitOpError()
           << "either all of its operands are of one choice, or none is of any";
  if (size != whole[dim])
    return emitOpError() << "its operands have " << size
                         << " elements along dimension " << dim
                         << ", its result has " << whole[dim];
  return success();
}

// The syntax of regions.
using tv::parseScalarRegion;
using tv::printScalarRegion;

#define GET_OP_CLASSES
#include "Plan/PlanOps.cpp.inc"
