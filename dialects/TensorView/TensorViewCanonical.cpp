//===- TensorViewCanonical.cpp - folders and canonical forms of ops -------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For local tensors, whose types say all of how they lie. What is replaced has
// the type of what replaces it, view, order in memory and partial state
// included. On global tensors without views this would take away places where
// propagation may still decide how data lies.
//
//===----------------------------------------------------------------------===//

#include "TensorView/TensorView.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

static bool isLocal(Value tensor) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  return type && isa_and_nonnull<LocalAttr>(type.getEncoding());
}

/// The operand, if the op leaves it as it is.
static OpFoldResult foldSame(Value input, Value result, bool isIdentity) {
  if (isIdentity && isLocal(input) && input.getType() == result.getType())
    return input;
  return {};
}

static bool isZero(ArrayRef<int64_t> offsets) {
  return llvm::all_of(offsets, [](int64_t offset) { return offset == 0; });
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  return foldSame(getInput(), getResult(), llvm::is_sorted(getPerm()));
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (OpFoldResult same = foldSame(getInput(), getResult(), true))
    return same;
  // And back.
  auto first = getInput().getDefiningOp<ReshapeOp>();
  return first ? foldSame(first.getInput(), getResult(), true) : OpFoldResult();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  return foldSame(getInput(), getResult(), isZero(getOffsets()));
}

OpFoldResult ConcatOp::fold(FoldAdaptor) {
  return foldSame(getInputs().front(), getResult(), getInputs().size() == 1);
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  return foldSame(getInput(), getResult(),
                  isZero(getLow()) && isZero(getHigh()));
}

namespace {
/// A transpose of a transpose is one.
struct MergeTransposes : public OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto first = op.getInput().getDefiningOp<TransposeOp>();
    if (!first || !isLocal(op.getInput()))
      return failure();
    SmallVector<int64_t> perm;
    for (int64_t dim : op.getPerm())
      perm.push_back(first.getPerm()[dim]);
    rewriter.replaceOpWithNewOp<TransposeOp>(op, op.getType(), first.getInput(),
                                             perm);
    return success();
  }
};

/// A product of a transpose is one of its operand, with other labels: a matrix
/// library reads either order.
struct FoldTransposesIntoLabels
    : public OpInterfaceRewritePattern<ContractionOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(ContractionOpInterface op,
                                PatternRewriter &rewriter) const override {
    ContractionLabels labels = op.getContractionLabels();
    bool changed = false;
    auto fold = [&](Value factor, SmallVector<int32_t> &of) {
      auto transpose = factor.getDefiningOp<TransposeOp>();
      if (!transpose || !isLocal(factor))
        return factor;
      SmallVector<int32_t> source(of.size());
      for (auto [to, from] : llvm::enumerate(transpose.getPerm()))
        source[from] = of[to];
      of = source;
      changed = true;
      return Value(transpose.getInput());
    };
    Value a = fold(op.getA(), labels.a), b = fold(op.getB(), labels.b);
    if (!changed)
      return failure();
    rewriter.replaceOpWithNewOp<ContractOp>(op, op->getResult(0).getType(), a,
                                            b, op.getBias(), op.getAddend(),
                                            labels.a, labels.b, labels.result);
    return success();
  }
};

/// A transpose that a reduction alone reads (a kernel that read its rows again
/// would fall apart) is not needed, if what is left keeps its order.
struct ReduceBeforeTranspose : public OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    if (!op->hasOneUse() || !isLocal(op.getInput()))
      return failure();
    auto reduce = dyn_cast<ReduceOp>(*op->user_begin());
    if (!reduce)
      return failure();
    SmallVector<int64_t> reduced, kept;
    for (auto [to, from] : llvm::enumerate(op.getPerm()))
      (llvm::is_contained(reduce.getDims(), to) ? reduced : kept)
          .push_back(from);
    if (!llvm::is_sorted(kept))
      return failure();
    llvm::sort(reduced);
    rewriter.setInsertionPoint(reduce);
    rewriter.replaceOpWithNewOp<ReduceOp>(
        reduce, reduce.getType(), reduce.getCombiner(), op.getInput(), reduced);
    return success();
  }
};
} // namespace

void TensorViewDialect::getCanonicalizationPatterns(
    RewritePatternSet &patterns) const {
  patterns
      .add<MergeTransposes, FoldTransposesIntoLabels, ReduceBeforeTranspose>(
          getContext());
}
