//===- SimplifyIndices.cpp - indices that change back ---------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A move before a transpose does what one behind it does, so nothing is lost
// with a place between two. (Of local tensors the dialect's own patterns do
// more: there types say all of how values lie.)
//
//===----------------------------------------------------------------------===//

#include "Bind/Passes.h"
#include "TensorView/TensorView.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

namespace tessera::tv {
#define GEN_PASS_DEF_SIMPLIFYINDICESPASS
#include "Bind/Passes.h.inc"
} // namespace tessera::tv

/// Whether nothing is said of how `value` lies but by ops that compute it and
/// read it.
static bool isFree(Value value) {
  Operation *op = value.getDefiningOp();
  return op && !getView(value) && !op->hasAttr(kLocalOpAttr);
}

/// Whether `other` may take the place of `value`. What a function returns has
/// the type that its signature says.
static bool mayBe(Value value, Value other) {
  return isFree(value) && (value.getType() == other.getType() ||
                           llvm::none_of(value.getUsers(), [](Operation *user) {
                             return user->hasTrait<OpTrait::IsTerminator>();
                           }));
}

/// A product whose result may as well be in another order.
static ContractionOpInterface getFreeProduct(Value value) {
  auto product = value.getDefiningOp<ContractionOpInterface>();
  return product && isFree(value) && value.hasOneUse() && !product.getBias() &&
                 !product.getAddend()
             ? product
             : ContractionOpInterface();
}

/// The function of elements that `value` alone needs, if it is free. (What an
/// element's index decides, as tv.dropout, is no such.)
static Operation *getFreePointwise(Value value) {
  Operation *op = value.getDefiningOp();
  return op && isa<MapOp, ScalarOpInterface>(op) && isFree(value) &&
                 value.hasOneUse() && op->getNumResults() == 1
             ? op
             : nullptr;
}

/// Whether a transpose of `value` would be one op with what computes it, or
/// with what computes that, so far up.
static bool takesTranspose(Value value, int depth = 8) {
  if (getFreeProduct(value))
    return true;
  if (auto transpose = value.getDefiningOp<TransposeOp>())
    return isFree(value);
  Operation *op = getFreePointwise(value);
  return op && depth > 0 && llvm::all_of(op->getOperands(), [&](Value operand) {
           return takesTranspose(operand, depth - 1);
         });
}

/// Of which order of dimensions `value` is a transpose, itself or what
/// pointwise ops that it alone needs make of it.
static std::optional<ArrayRef<int64_t>> getOrder(Value value, int depth = 8) {
  if (auto transpose = value.getDefiningOp<TransposeOp>())
    return isFree(value) ? std::optional(transpose.getPerm()) : std::nullopt;
  Operation *op = getFreePointwise(value);
  if (!op || depth == 0 || op->getNumOperands() == 0)
    return std::nullopt;
  std::optional<ArrayRef<int64_t>> order =
      getOrder(op->getOperand(0), depth - 1);
  for (Value operand : op->getOperands().drop_front())
    if (order && getOrder(operand, depth - 1) != order)
      return std::nullopt;
  return order;
}

/// What `value`, of such an order, is a transpose of.
static Value withoutTranspose(PatternRewriter &rewriter, Value value,
                              ArrayRef<int64_t> order) {
  if (auto transpose = value.getDefiningOp<TransposeOp>())
    return transpose.getInput();
  Operation *op = value.getDefiningOp();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(withoutTranspose(rewriter, operand, order));
  rewriter.setInsertionPoint(op);
  Operation *made = rewriter.clone(*op);
  made->setOperands(operands);
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getRank());
  for (auto [to, from] : llvm::enumerate(order))
    shape[from] = type.getDimSize(to);
  made->getResult(0).setType(
      RankedTensorType::get(shape, type.getElementType()));
  return made->getResult(0);
}

namespace {
struct MergeTransposes : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto first = op.getInput().getDefiningOp<TransposeOp>();
    if (!first || !isFree(first.getResult()))
      return failure();
    SmallVector<int64_t> perm;
    for (int64_t dim : op.getPerm())
      perm.push_back(first.getPerm()[dim]);
    if (!llvm::is_sorted(perm))
      rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(),
                                               first.getInput(), perm);
    else if (mayBe(op.getResult(), first.getInput()))
      rewriter.replaceOp(op, first.getInput());
    else
      return failure();
    return success();
  }
};

struct DropReshapes : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op,
                                PatternRewriter &rewriter) const override {
    // One dynamic extent is what the others leave; of two nobody knows.
    auto shapeOf = [](Value value) {
      return cast<RankedTensorType>(value.getType()).getShape();
    };
    auto first = op.getInput().getDefiningOp<ReshapeOp>();
    if (!first || !isFree(first.getResult()) ||
        !mayBe(op.getResult(), first.getInput()) ||
        shapeOf(first.getInput()) != shapeOf(op.getResult()) ||
        llvm::count_if(shapeOf(op.getResult()), ShapedType::isDynamic) > 1)
      return failure();
    rewriter.replaceOp(op, first.getInput());
    return success();
  }
};

/// A product of a transpose is one of its operand, with other labels.
struct ProductOfTranspose : OpInterfaceRewritePattern<ContractionOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(ContractionOpInterface op,
                                PatternRewriter &rewriter) const override {
    if (op->hasAttr(kLocalOpAttr))
      return failure();
    ContractionLabels labels = op.getContractionLabels();
    bool changed = false;
    auto fold = [&](Value factor, SmallVector<int32_t> &of) {
      std::optional<ArrayRef<int64_t>> order = getOrder(factor);
      if (!order)
        return factor;
      changed = true;
      SmallVector<int32_t> source(of.size());
      for (auto [to, from] : llvm::enumerate(*order))
        source[from] = of[to];
      of = source;
      return withoutTranspose(rewriter, factor, *order);
    };
    Value a = fold(op.getA(), labels.a), b = fold(op.getB(), labels.b);
    if (!changed)
      return failure();
    nameLocation(op);
    rewriter.setInsertionPoint(op);
    auto made = ContractOp::create(
        rewriter, op.getLoc(), op->getResult(0).getType(), a, b, op.getBias(),
        op.getAddend(), labels.a, labels.b, labels.result);
    if (Attribute view = op->getAttr(kUserViewAttr))
      made->setAttr(kUserViewAttr, view);
    rewriter.replaceOp(op, made.getResult());
    return success();
  }
};

struct TransposeOfProduct : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    ContractionOpInterface product = getFreeProduct(op.getInput());
    if (!product)
      return failure();
    ContractionLabels labels = product.getContractionLabels();
    SmallVector<int32_t> result;
    for (int64_t dim : op.getPerm())
      result.push_back(labels.result[dim]);
    nameLocation(product);
    rewriter.setInsertionPoint(product);
    auto made = ContractOp::create(rewriter, product.getLoc(), op.getType(),
                                   product.getA(), product.getB(), Value(),
                                   Value(), labels.a, labels.b, result);
    if (Attribute view = op->getAttr(kUserViewAttr))
      made->setAttr(kUserViewAttr, view);
    rewriter.replaceOp(op, made.getResult());
    rewriter.eraseOp(product);
    return success();
  }
};

/// Above pointwise ops, where something takes it.
struct TransposeBefore : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    Operation *pointwise = getFreePointwise(op.getInput());
    if (!pointwise || !takesTranspose(op.getInput()))
      return failure();
    rewriter.setInsertionPoint(pointwise);
    Operation *moved = rewriter.clone(*pointwise);
    for (OpOperand &operand : moved->getOpOperands()) {
      auto type = cast<RankedTensorType>(operand.get().getType());
      SmallVector<int64_t> shape;
      for (int64_t dim : op.getPerm())
        shape.push_back(type.getDimSize(dim));
      rewriter.setInsertionPoint(moved);
      auto transpose = TransposeOp::create(
          rewriter, op.getLoc(),
          RankedTensorType::get(shape, type.getElementType()), operand.get(),
          op.getPerm());
      rewriter.modifyOpInPlace(moved, [&] { operand.set(transpose); });
    }
    moved->getResult(0).setType(op.getType());
    if (Attribute view = op->getAttr(kUserViewAttr))
      moved->setAttr(kUserViewAttr, view);
    rewriter.replaceOp(op, moved->getResults());
    rewriter.eraseOp(pointwise);
    return success();
  }
};

struct SimplifyIndices : tv::impl::SimplifyIndicesPassBase<SimplifyIndices> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    set.add<MergeTransposes, DropReshapes, ProductOfTranspose,
            TransposeOfProduct, TransposeBefore>(context);
    patterns = std::move(set);
    return success();
  }

  void runOnContract() override {
    SmallVector<Operation *> ops;
    for (Operation &op : getOperation().getBody().front())
      if (isa<TransposeOp, ReshapeOp, ContractionOpInterface>(op))
        ops.push_back(&op);
    bool changed = false;
    if (failed(applyOpPatternsGreedily(
            ops, patterns,
            GreedyRewriteConfig()
                .setStrictness(GreedyRewriteStrictness::ExistingAndNewOps)
                .enableFolding(false)
                .enableConstantCSE(false),
            &changed)))
      return signalPassFailure();
    if (!changed)
      return markAllAnalysesPreserved(); // and nothing is verified again
    // What nobody reads any more would still get a view, and moves.
    for (Operation &op : llvm::make_early_inc_range(
             llvm::reverse(getOperation().getBody().front())))
      if (op.use_empty() && !op.hasAttr(kLocalOpAttr) &&
          (isa<TransposeOp, ReshapeOp, ContractionOpInterface>(op) ||
           op.hasTrait<OpTrait::Pointwise>()))
        op.erase();
  }

  FrozenRewritePatternSet patterns;
};
} // namespace
