//===- ExpandComposites.cpp - composites of local tensors to core ops -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Composites decompose themselves. Attention (ExpandAttention.h), the bias of a
// linear, grouped_matmul and sums of scatter are taken apart here, on local
// types, since how is a matter of the backend: scores in memory, sums in f32.
// What of attention's variants fits is all there, side by side, for the runtime
// to choose from.
//
//===----------------------------------------------------------------------===//

#include "Kernels/BuildLocal.h"
#include "Kernels/ExpandAttention.h"
#include "Kernels/LoopKernels.h"
#include "Kernels/Passes.h"
#include "Kernels/Variants.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_EXPANDCOMPOSITES
#include "Kernels/Passes.h.inc"
} // namespace tessera

/// y = x w^T + c becomes a product and an addition.
static FailureOr<SmallVector<Value>> expandLinear(tv::LinearOp op,
                                                  OpBuilder &b) {
  Location loc = op.getLoc();
  auto product =
      tv::LinearOp::create(b, loc, op.getResult().getType(), op.getInput(),
                           op.getWeight(), /*bias=*/Value());
  auto type = op.getResult().getType();
  auto bias = tv::BroadcastOp::create(
      b, loc, tv::withEncoding(type, type.getEncoding()), op.getBias(),
      b.getDenseI64ArrayAttr(
          int64_t(cast<tv::LocalAttr>(type.getEncoding()).getExtents().size()) -
          1),
      product.getResult());
  auto map =
      tv::MapOp::create(b, loc, TypeRange(type),
                        ValueRange{product.getResult(), bias.getResult()});
  Block &block = map.getBody().emplaceBlock();
  Type scalar = tv::getScalarType(type.getElementType());
  block.addArguments({scalar, scalar}, {loc, loc});
  OpBuilder inner = OpBuilder::atBlockBegin(&block);
  Value sum = arith::AddFOp::create(inner, loc, block.getArgument(0),
                                    block.getArgument(1));
  tv::YieldOp::create(inner, loc, sum);
  return SmallVector<Value>{map.getResult(0)};
}

/// A batched product; rows beyond an expert's count are 0.
static FailureOr<SmallVector<Value>> expandGroupedMatmul(tv::GroupedMatmulOp op,
                                                         OpBuilder &b) {
  Build build{b, op.getLoc()};
  LocalShape shape(op.getResult());
  if (!shape.isPlain() || !LocalShape(op.getWeight()).isPlain())
    return op.emitOpError() << "on merged dimensions needs a reshape first";
  Value weight = build.transpose(op.getWeight(), {0, 2, 1});
  Value product = tv::MatmulOp::create(b, op.getLoc(), op.getResult().getType(),
                                       op.getInput(), weight);
  Value counts = build.broadcast(op.getCounts(), {0}, shape, product);
  Value rows = build.iota(1, shape, product);
  Value result = build.map(
      {product, counts, rows}, shape, getElement(op.getResult()),
      [&](OpBuilder &b, ValueRange args) -> Value {
        Location loc = op.getLoc();
        Value count = args[1];
        if (count.getType() != b.getI64Type())
          count = arith::ExtSIOp::create(b, loc, b.getI64Type(), count);
        Value isRow = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                            args[2], count);
        Value zero =
            arith::ConstantOp::create(b, loc, b.getZeroAttr(args[0].getType()));
        return arith::SelectOp::create(b, loc, isRow, args[0], zero);
      });
  return SmallVector<Value>{result};
}

/// Small floats are added in f32: one element may get thousands of updates.
static FailureOr<SmallVector<Value>> expandScatter(tv::ScatterOp op,
                                                   OpBuilder &b) {
  Build build{b, op.getLoc()};
  RankedTensorType type = op.getResult().getType();
  Type element = type.getElementType();
  if (op.getCombiner() != tv::Combiner::Sum ||
      !(element.isBF16() || element.isF16()))
    return SmallVector<Value>();
  Value sums = tv::ScatterOp::create(
      b, op.getLoc(),
      RankedTensorType::get(type.getShape(), b.getF32Type(),
                            type.getEncoding()),
      op.getCombinerAttr(), build.widen(op.getInit(), b.getF32Type()),
      op.getIndices(), build.widen(op.getUpdates(), b.getF32Type()),
      op.getDimAttr());
  return SmallVector<Value>{
      build.map(sums, type, [&](OpBuilder &b, ValueRange args) -> Value {
        return arith::TruncFOp::create(b, op.getLoc(), element, args[0]);
      })};
}

//===----------------------------------------------------------------------===//
// Epilogues
//===----------------------------------------------------------------------===//

/// Whether matrix libraries have epilogues for the product.
static bool hasEpilogues(tv::LinearOp op) {
  Type element = getElement(op.getResult());
  int64_t sums = op.getWeight().getType().getDimSize(1);
  return (element.isF32() || element.isBF16() || element.isF16()) &&
         !ShapedType::isDynamic(sums) && sums > 0 &&
         LocalShape(op.getResult()).isPlain();
}

/// Whether a matrix library multiplies what it sums by the slope of a gelu:
/// what else needs the sums, has a bias in them, or a slope elsewhere than they
/// are or in rows that are not of 16 bytes, has a kernel.
static bool isEpilogue(tv::GeluGradOp grad) {
  auto type = cast<RankedTensorType>(grad.getResult().getType());
  Type element = type.getElementType();
  if (!grad.getTanh() || !(element.isBF16() || element.isF16()) ||
      grad.getGrad().getType() != type || grad.getInput().getType() != type ||
      !grad.getGrad().hasOneUse())
    return false;
  Operation *product = grad.getGrad().getDefiningOp();
  auto linear = dyn_cast_or_null<tv::LinearOp>(product);
  bool isMatmul = isa_and_nonnull<tv::MatmulOp>(product) && type.getRank() == 2;
  auto local = cast<tv::LocalAttr>(type.getEncoding());
  return ((linear && !linear.getBias()) || isMatmul) &&
         LocalShape(grad.getResult()).isPlain() &&
         local.getLayoutView().partial.empty() &&
         getOwnMemory(type).isRowMajor() &&
         hasBoxes(grad.getResult(), type.getRank() - 1);
}

/// Whether a matrix library does the op together with the product before: adds
/// a bias, or is the only gelu of its sums or its slope.
static bool isEpilogue(Operation *op) {
  if (auto linear = dyn_cast<tv::LinearOp>(op))
    return linear.getBias() && hasEpilogues(linear);
  if (auto grad = dyn_cast<tv::GeluGradOp>(op))
    return isEpilogue(grad);
  auto gelu = dyn_cast<tv::GeluOp>(op);
  if (!gelu || !gelu.getTanh() || getElement(gelu.getInput()).isF32())
    return false;
  auto linear = gelu.getInput().getDefiningOp<tv::LinearOp>();
  auto local = cast<tv::LocalAttr>(gelu.getInput().getType().getEncoding());
  return linear && hasEpilogues(linear) &&
         local.getLayoutView().partial.empty() &&
         llvm::none_of(linear.getResult().getUsers(), [&](Operation *user) {
           auto other = dyn_cast<tv::GeluOp>(user);
           return other && other.getTanh() && other->isBeforeInBlock(gelu);
         });
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct ExpandComposites
    : public tessera::impl::ExpandCompositesBase<ExpandComposites> {
  using ExpandCompositesBase::ExpandCompositesBase;

  void runOnContract() override {
    decided.clear();
    // Expansions may hold composites themselves.
    bool changed = true;
    while (changed) {
      changed = false;
      SmallVector<Operation *> ops;
      for (Operation &op : getOperation().getBody().getOps())
        ops.push_back(&op);
      for (Operation *op : ops) {
        FailureOr<SmallVector<Value>> results = expand(op);
        if (failed(results))
          return signalPassFailure();
        if (results->empty())
          continue;
        // An order in memory and a partial state are the op's own.
        for (auto [made, result] : llvm::zip_equal(*results, op->getResults()))
          made.setType(result.getType());
        op->replaceAllUsesWith(*results);
        op->erase();
        changed = true;
      }
    }
  }

  std::optional<std::string> whyNotCuDNN(tv::AttentionOp op) {
    return tessera::whyNotCuDNN(op, target);
  }
  std::optional<std::string> whyNotCuDNN(tv::AttentionGradOp) {
    return "it has no step for gradients";
  }
  Operation *attendByCuDNN(tv::AttentionOp op, OpBuilder &b) {
    return plan::AttendOp::create(
        b, op.getLoc(), op.getResult().getType(), op.getLse().getType(),
        op.getQuery(), op.getKey(), op.getValue(), op.getScaleAttr(),
        op.getCausalAttr(), b.getStringAttr(op->getName().getStringRef()));
  }
  Operation *attendByCuDNN(tv::AttentionGradOp, OpBuilder &) {
    llvm_unreachable("does not fit");
  }
  FailureOr<SmallVector<Value>> expandToMath(tv::AttentionOp op, OpBuilder &b) {
    return expandAttention(op, b);
  }
  FailureOr<SmallVector<Value>> expandToMath(tv::AttentionGradOp op,
                                             OpBuilder &b) {
    return expandAttentionGrad(op, b);
  }

  /// All variants that are compiled in and fit, the preferred first; `flash` is
  /// a kernel of its own, `cudnn` a step of its own.
  template <typename Op>
  FailureOr<SmallVector<Value>> expandToVariants(Op op, OpBuilder &b) {
    static constexpr StringLiteral kind = "attention";
    SmallVector<std::string> allowed(attention.begin(), attention.end());
    FailureOr<FittingVariants> fitting =
        getFittingVariants(op, kind, allowed, [&](StringRef variant) {
          return variant == "flash"   ? whyNotFlash(op, target)
                 : variant == "cudnn" ? whyNotCuDNN(op)
                                      : std::nullopt;
        });
    if (failed(fitting))
      return failure();

    SmallVector<SmallVector<Value>> made;
    for (StringRef variant : fitting->names) {
      if (variant == "math") {
        FailureOr<SmallVector<Value>> values = expandToMath(op, b);
        if (failed(values))
          return failure();
        // An order in memory is the op's own.
        for (auto [value, result] : llvm::zip_equal(*values, op->getResults()))
          value.setType(result.getType());
        made.push_back(std::move(*values));
        continue;
      }
      Operation *own = variant == "cudnn" ? attendByCuDNN(op, b) : nullptr;
      if (!own) {
        own = b.clone(*op);
        decided.insert(own);
      }
      made.push_back(llvm::to_vector_of<Value>(own->getResults()));
    }
    // A variant has values for what is used; one that is alone has none.
    SmallVector<Value> values;
    SmallVector<Type> types;
    bool alone = fitting->names.size() == 1;
    for (const SmallVector<Value> &results : made)
      for (OpResult result : op->getResults())
        if (!alone && !result.use_empty())
          values.push_back(results[result.getResultNumber()]);
    for (OpResult result : op->getResults())
      if (!alone && !result.use_empty())
        types.push_back(result.getType());
    auto choice = plan::ChooseOp::create(
        b, op.getLoc(), types, kind, b.getStrArrayAttr(fitting->names), values,
        fitting->without, op->getName().getStringRef());
    SmallVector<Value> results = made[0];
    auto chosen = choice.getResults().begin();
    for (OpResult result : op->getResults())
      if (!alone && !result.use_empty())
        results[result.getResultNumber()] = *chosen++;
    return results;
  }

  /// The values that take the place of the op's results; none if it stays.
  FailureOr<SmallVector<Value>> expand(Operation *op) {
    OpBuilder b(op);
    tv::nameLocation(op);
    using Results = FailureOr<SmallVector<Value>>;
    if (epilogues && isEpilogue(op))
      return SmallVector<Value>();
    return TypeSwitch<Operation *, Results>(op)
        .Case([&](tv::CompositeOpInterface composite) -> Results {
          SmallVector<Value> results;
          if (failed(composite.decompose(b, results)))
            return failure();
          return results;
        })
        .Case([&](tv::LinearOp op) -> Results {
          return op.getBias() ? expandLinear(op, b) : SmallVector<Value>();
        })
        .Case(
            [&](tv::GroupedMatmulOp op) { return expandGroupedMatmul(op, b); })
        .Case([&](tv::ScatterOp op) { return expandScatter(op, b); })
        .Case<tv::AttentionOp, tv::AttentionGradOp>([&](auto op) -> Results {
          return decided.contains(op) ? SmallVector<Value>()
                                      : expandToVariants(op, b);
        })
        .Default([](Operation *) -> Results { return SmallVector<Value>(); });
  }

  llvm::DenseSet<Operation *> decided; ///< attentions that stay
};
} // namespace
