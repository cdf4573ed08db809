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

#include "Bind/CopyPerUse.h"
#include "Bind/Passes.h"
#include "TensorView/TensorView.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
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

/// What the user wrote of how the result of `op` lies, which `other` is now.
static void copyView(Operation *op, Operation *other) {
  if (Attribute view = op->getAttr(kUserViewAttr))
    other->setAttr(kUserViewAttr, view);
}

/// Whether `op` goes if nobody reads what it computes.
static bool isErasable(Operation *op) {
  return op->use_empty() && !op->hasAttr(kLocalOpAttr) &&
         (isa<TransposeOp, ReshapeOp, ContractionOpInterface>(op) ||
          op->hasTrait<OpTrait::Pointwise>());
}

/// Replaces `op`, and erases what it alone read, so that what that read has as
/// many uses as if it had been written so.
static void replace(PatternRewriter &rewriter, Operation *op, Value other) {
  llvm::SmallSetVector<Operation *, 4> unread;
  auto add = [&](Operation *reader) {
    for (Value operand : reader->getOperands())
      if (Operation *above = operand.getDefiningOp())
        unread.insert(above);
  };
  add(op);
  rewriter.replaceOp(op, other);
  while (!unread.empty()) {
    Operation *last =
        *llvm::max_element(unread, [](Operation *a, Operation *b) {
          return a->isBeforeInBlock(b);
        });
    unread.remove(last);
    if (!isErasable(last))
      continue;
    add(last);
    rewriter.eraseOp(last);
  }
}

/// Puts `other` in the place of the result of `op`, which is `other` through
/// `first`, if nothing said of either is lost: where the result has a view,
/// `other` lies so, if it is free and that is its only use. What a function
/// returns has the type that its signature says.
static LogicalResult replaceBy(PatternRewriter &rewriter, Operation *op,
                               Operation *first, Value other) {
  Value value = op->getResult(0);
  auto isReturned = [&] {
    return llvm::any_of(value.getUsers(), [](Operation *user) {
      return user->hasTrait<OpTrait::IsTerminator>();
    });
  };
  if (op->hasAttr(kLocalOpAttr))
    return failure();
  if (isFree(value)) {
    if (value.getType() != other.getType() && isReturned())
      return failure();
    replace(rewriter, op, other);
    return success();
  }
  if (!isFree(other) || !other.hasOneUse() || !first->hasOneUse())
    return failure();
  Operation *made = other.getDefiningOp();
  if (made->getNumResults() != 1 || isa<MoveOpInterface>(made) ||
      made->hasTrait<OpTrait::GuidesPropagation>())
    return failure();
  rewriter.modifyOpInPlace(made, [&] {
    other.setType(value.getType());
    copyView(op, made);
  });
  replace(rewriter, op, other);
  return success();
}

/// A product whose result may as well be in another order, if who reads it
/// may.
static ContractionOpInterface getProduct(Value value) {
  auto product = value.getDefiningOp<ContractionOpInterface>();
  return product && isFree(value) && !product.getBias() && !product.getAddend()
             ? product
             : ContractionOpInterface();
}

static ContractionOpInterface getFreeProduct(Value value) {
  return value.hasOneUse() ? getProduct(value) : ContractionOpInterface();
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
/// pointwise ops that it alone needs make of it, and of products.
static std::optional<ArrayRef<int64_t>> getOrder(Value value, int depth = 8) {
  if (auto transpose = value.getDefiningOp<TransposeOp>())
    return isFree(value) ? std::optional(transpose.getPerm()) : std::nullopt;
  Operation *op = getFreePointwise(value);
  if (!op || depth == 0)
    return std::nullopt;
  std::optional<ArrayRef<int64_t>> order;
  for (Value operand : op->getOperands())
    if (!getFreeProduct(operand)) {
      std::optional<ArrayRef<int64_t>> own = getOrder(operand, depth - 1);
      if (!own || (order && own != order))
        return std::nullopt;
      order = own;
    }
  return order;
}

/// Whether `value` is a product, or what pointwise ops that it alone needs make
/// of products.
static bool hasAnyOrder(Value value, int depth = 8) {
  if (getFreeProduct(value))
    return true;
  Operation *op = getFreePointwise(value);
  return op && depth > 0 && op->getNumOperands() &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return hasAnyOrder(operand, depth - 1);
         });
}

/// Where each dimension of a factor with these labels stands in a batch of
/// matrices: those of the result before the ones that are summed in the left
/// factor, and behind them in the right one.
static SmallVector<int64_t> getMatrixOrder(ArrayRef<int32_t> of,
                                           ArrayRef<int32_t> other,
                                           ArrayRef<int32_t> result,
                                           bool isLeft) {
  auto keyOf = [&](int64_t dim) {
    const int32_t *kept = llvm::find(result, of[dim]);
    const int32_t *shared = llvm::find(other, of[dim]);
    if (kept == result.end())
      return std::pair(isLeft ? 2 : 1,
                       isLeft ? dim : int64_t(shared - other.begin()));
    const bool isBatch = shared != other.end();
    return std::pair(isBatch  ? 0
                     : isLeft ? 1
                              : 2,
                     int64_t(kept - result.begin()));
  };
  SmallVector<int64_t> sorted =
      llvm::to_vector(llvm::seq<int64_t>(0, of.size()));
  llvm::sort(sorted, [&](int64_t a, int64_t b) { return keyOf(a) < keyOf(b); });
  return invertPermutationVector(sorted);
}

/// The product `op` of these factors. In whatever order they come, the one of
/// the first dimension of the result that only one has is the left one, unless
/// a bias says which is.
static ContractOp makeProduct(PatternRewriter &rewriter,
                              ContractionOpInterface op, Type type, Value a,
                              Value b, ContractionLabels labels) {
  const int32_t *first = llvm::find_if(labels.result, [&](int32_t label) {
    return llvm::is_contained(labels.a, label) !=
           llvm::is_contained(labels.b, label);
  });
  if (!op.getBias() && first != labels.result.end() &&
      llvm::is_contained(labels.b, *first)) {
    std::swap(a, b);
    std::swap(labels.a, labels.b);
  }
  // And labels are numbered as they come.
  llvm::SmallDenseMap<int32_t, int32_t> numbers;
  for (SmallVector<int32_t> *each : {&labels.a, &labels.b, &labels.result})
    for (int32_t &label : *each)
      label = numbers.try_emplace(label, numbers.size()).first->second;
  nameLocation(op);
  return ContractOp::create(rewriter, op.getLoc(), type, a, b, op.getBias(),
                            op.getAddend(), labels.a, labels.b, labels.result);
}

/// `type`, in the order of dimensions of what it is a transpose of.
static Type typeBefore(Type type, ArrayRef<int64_t> order) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getRank());
  for (auto [to, from] : llvm::enumerate(order))
    shape[from] = tensor.getDimSize(to);
  return RankedTensorType::get(shape, tensor.getElementType());
}

/// What `value`, of such an order, is a transpose of.
static Value withoutTranspose(PatternRewriter &rewriter, Value value,
                              ArrayRef<int64_t> order) {
  if (auto transpose = value.getDefiningOp<TransposeOp>())
    return transpose.getInput();
  Operation *op = value.getDefiningOp();
  if (ContractionOpInterface product = getFreeProduct(value)) {
    ContractionLabels labels = product.getContractionLabels();
    SmallVector<int32_t> result(labels.result.size());
    for (auto [to, from] : llvm::enumerate(order))
      result[from] = labels.result[to];
    labels.result = result;
    rewriter.setInsertionPoint(op);
    return makeProduct(rewriter, product, typeBefore(value.getType(), order),
                       product.getA(), product.getB(), labels);
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(withoutTranspose(rewriter, operand, order));
  rewriter.setInsertionPoint(op);
  Operation *made = rewriter.clone(*op);
  made->setOperands(operands);
  made->getResult(0).setType(typeBefore(value.getType(), order));
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
    if (llvm::is_sorted(perm))
      return replaceBy(rewriter, op, first, first.getInput());
    auto merged = TransposeOp::create(rewriter, op.getLoc(), op.getType(),
                                      first.getInput(), perm);
    copyView(op, merged);
    replace(rewriter, op, merged.getResult());
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
        shapeOf(first.getInput()) != shapeOf(op.getResult()) ||
        llvm::count_if(shapeOf(op.getResult()), ShapedType::isDynamic) > 1)
      return failure();
    return replaceBy(rewriter, op, first, first.getInput());
  }
};

/// A product of a transpose is one of its operand, with other labels. And what
/// may as well come in another order comes as in a product of matrices.
struct ProductOfTranspose : OpInterfaceRewritePattern<ContractionOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(ContractionOpInterface op,
                                PatternRewriter &rewriter) const override {
    if (op->hasAttr(kLocalOpAttr))
      return failure();
    ContractionLabels labels = op.getContractionLabels();
    bool changed = false;
    auto fold = [&](Value factor, SmallVector<int32_t> &of,
                    ArrayRef<int32_t> other, bool isLeft) {
      SmallVector<int64_t> order;
      if (std::optional<ArrayRef<int64_t>> transposed = getOrder(factor)) {
        order.assign(transposed->begin(), transposed->end());
      } else {
        if (isa<ContractOp>(op) && hasAnyOrder(factor))
          order = getMatrixOrder(of, other, labels.result, isLeft);
        if (llvm::is_sorted(order))
          return factor;
      }
      changed = true;
      SmallVector<int32_t> source(of.size());
      for (auto [to, from] : llvm::enumerate(order))
        source[from] = of[to];
      of = source;
      return withoutTranspose(rewriter, factor, order);
    };
    Value a = fold(op.getA(), labels.a, labels.b, true),
          b = fold(op.getB(), labels.b, labels.a, false);
    if (!changed)
      return failure();
    rewriter.setInsertionPoint(op);
    ContractOp made =
        makeProduct(rewriter, op, op->getResult(0).getType(), a, b, labels);
    copyView(op, made);
    replace(rewriter, op, made.getResult());
    return success();
  }
};

/// A product in the order in which it is read. Other products read it in any.
struct TransposeOfProduct : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    ContractionOpInterface product = getProduct(op.getInput());
    if (!product)
      return failure();
    auto isProduct = [](Operation *reader) {
      auto of = dyn_cast<ContractionOpInterface>(reader);
      return of && !reader->hasAttr(kLocalOpAttr) && !of.getBias() &&
             !of.getAddend();
    };
    auto isSame = [&](Operation *reader) {
      auto other = dyn_cast<TransposeOp>(reader);
      return other && other.getPerm() == op.getPerm() && isFree(other);
    };
    SmallVector<Operation *> others;
    for (Operation *reader : product->getUsers())
      if (reader != op)
        others.push_back(reader);
    if (!others.empty() &&
        (!isFree(op) || llvm::all_of(op->getUsers(), isProduct) ||
         !llvm::all_of(others, [&](Operation *reader) {
           return isSame(reader) || isProduct(reader);
         })))
      return failure();
    ContractionLabels labels = product.getContractionLabels();
    SmallVector<int32_t> result;
    for (int64_t dim : op.getPerm())
      result.push_back(labels.result[dim]);
    labels.result = result;
    rewriter.setInsertionPoint(product);
    ContractOp made = makeProduct(rewriter, product, op.getType(),
                                  product.getA(), product.getB(), labels);
    copyView(op, made);
    TransposeOp back; // which a product takes as it is (ProductOfTranspose)
    for (Operation *reader : others) {
      if (isSame(reader)) {
        rewriter.replaceOp(reader, made);
        continue;
      }
      if (!back)
        back =
            TransposeOp::create(rewriter, op.getLoc(), op.getInput().getType(),
                                made, invertPermutationVector(op.getPerm()));
      rewriter.modifyOpInPlace(
          reader, [&] { reader->replaceUsesOfWith(op.getInput(), back); });
    }
    replace(rewriter, op, made);
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
    copyView(op, moved);
    replace(rewriter, op, moved->getResult(0));
    return success();
  }
};

struct SimplifyIndices : tv::impl::SimplifyIndicesPassBase<SimplifyIndices> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet first(context), set(context);
    first.add<MergeTransposes, DropReshapes>(context);
    set.add<MergeTransposes, DropReshapes, ProductOfTranspose,
            TransposeOfProduct, TransposeBefore>(context);
    merges = std::move(first);
    patterns = std::move(set);
    return success();
  }

  /// Changes what may be changed, from the first op on.
  LogicalResult simplify(const FrozenRewritePatternSet &set, bool &changed) {
    SmallVector<Operation *> ops;
    for (Operation &op : llvm::reverse(getOperation().getBody().front()))
      if (isa<TransposeOp, ReshapeOp, ContractionOpInterface>(op))
        ops.push_back(&op); // (the last is looked at first)
    bool any = false;
    LogicalResult result = applyOpPatternsGreedily(
        ops, set,
        GreedyRewriteConfig()
            .setStrictness(GreedyRewriteStrictness::ExistingAndNewOps)
            .enableFolding(false)
            .enableConstantCSE(false),
        &any);
    changed |= any;
    return result;
  }

  void runOnContract() override {
    bool changed = false;
    // What undoes each other first, or one of two would go elsewhere.
    if (failed(simplify(merges, changed)) ||
        failed(simplify(patterns, changed)))
      return signalPassFailure();
    if (!changed)
      return markAllAnalysesPreserved(); // and nothing is verified again
    // What nobody reads any more would still get a view, and moves.
    for (Operation &op : llvm::make_early_inc_range(
             llvm::reverse(getOperation().getBody().front())))
      if (isErasable(&op))
        op.erase();
    if (failed(copyPerUse(getOperation())))
      return signalPassFailure();
  }

  FrozenRewritePatternSet merges, patterns;
};
} // namespace
