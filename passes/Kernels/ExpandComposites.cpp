//===- ExpandComposites.cpp - composites of local tensors to core ops -----===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Composites decompose themselves. Attention, the bias of a linear,
// grouped_matmul and sums of scatter are taken apart here, on local types,
// since how is a matter of the backend: scores in memory, sums in f32. What of
// attention's variants fits is all there, side by side, for the runtime to
// choose from.
//
//===----------------------------------------------------------------------===//

#include "Kernels/BuildLocal.h"
#include "Kernels/LoopKernels.h"
#include "Kernels/Passes.h"
#include "Kernels/Variants.h"

#include "mlir/IR/IRMapping.h"
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
// Attention
//===----------------------------------------------------------------------===//

/// Emits a scalar region's ops; gives what it yields.
static Value inlineRegion(OpBuilder &b, Region &region, ValueRange arguments) {
  IRMapping mapping;
  mapping.map(region.getArguments(), arguments);
  for (Operation &op : region.front().without_terminator())
    b.clone(op, mapping);
  return mapping.lookup(region.front().getTerminator()->getOperand(0));
}

/// The keys or values of each query head: head h reads group h / (H / G).
static FailureOr<Value> repeatGroups(tv::AttentionOp op, Build &build,
                                     Value tensor) {
  LocalShape from(tensor), query(op.getQuery());
  int64_t heads = *query.extents[1].getStatic();
  int64_t groups = *from.extents[1].getStatic();
  if (heads == groups)
    return tensor;
  // The heads that this device has, as pairs of a group and a number in it; one
  // flat dimension where the view does not split into the two.
  layout::View ofHeads;
  ofHeads.dims = {query.dims[1]};
  Result<layout::View> pairs = layout::reshapeView(
      ofHeads, {heads}, {groups, heads / groups}, from.mesh.getMesh());
  if (!pairs)
    return op.emitOpError() << pairs.message();
  LocalShape split = query.take({0});
  llvm::append_range(split.dims, pairs->dims);
  split.extents.insert(split.extents.end(),
                       {from.extents[1], layout::Extent(heads / groups)});
  LocalShape merged = query.take({0, 1});
  for (int64_t dim : {2, 3}) {
    split.add(from, dim);
    merged.add(from, dim);
  }
  Value repeated = build.broadcast(tensor, {0, 1, 3, 4}, split, Value());
  return Value(tv::ReshapeOp::create(
      build.b, build.loc, merged.type(getElement(tensor)), repeated));
}

/// The `math` variant: all scores in memory.
static FailureOr<SmallVector<Value>> expandAttention(tv::AttentionOp op,
                                                     OpBuilder &b) {
  Build build{b, op.getLoc()};
  Location loc = op.getLoc();
  Type wide = getElement(op.getLse());
  LocalShape query(op.getQuery()), keyShape(op.getKey());
  if (!query.isPlain() || !keyShape.isPlain() ||
      !LocalShape(op.getValue()).isPlain())
    return op.emitOpError() << "on merged dimensions needs a reshape first";
  FailureOr<Value> key = repeatGroups(op, build, op.getKey());
  FailureOr<Value> value = repeatGroups(op, build, op.getValue());
  if (failed(key) || failed(value))
    return failure();

  LocalShape scoreShape = query.take({0, 1, 2});
  scoreShape.add(keyShape, 2);
  LocalShape rowShape = query.take({0, 1, 2});
  Value products = tv::MatmulOp::create(
      b, loc, scoreShape.type(wide), build.widen(op.getQuery(), wide),
      build.transpose(build.widen(*key, wide), {0, 1, 3, 2}));

  // Scale, score_mod, masks.
  SmallVector<Value> inputs = {products};
  for (int64_t dim = 0; dim < 4; ++dim)
    inputs.push_back(build.iota(dim, scoreShape, products));
  LocalShape scalar;
  scalar.mesh = query.mesh;
  for (Value tensor : {op.getQuery(), op.getKey()}) {
    Value size = tv::SizeOp::create(b, loc, scalar.type(b.getI64Type()), tensor,
                                    b.getI64IntegerAttr(2));
    inputs.push_back(build.broadcast(size, {}, scoreShape, products));
  }
  auto constant = [&](OpBuilder &b, double number) -> Value {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(wide, number));
  };
  double infinity = std::numeric_limits<double>::infinity();
  Value scores = build.map(
      inputs, scoreShape, wide, [&](OpBuilder &b, ValueRange args) -> Value {
        Value score = arith::MulFOp::create(
            b, loc, args[0], constant(b, op.getScale().convertToDouble()));
        SmallVector<Value> at;
        for (int64_t dim = 0; dim < 4; ++dim)
          at.push_back(arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                                  args[1 + dim]));
        if (!op.getScoreMod().empty()) {
          SmallVector<Value> arguments = {score};
          llvm::append_range(arguments, at);
          score = inlineRegion(b, op.getScoreMod(), arguments);
        }
        Value never = constant(b, -infinity);
        if (!op.getMaskMod().empty())
          score = arith::SelectOp::create(
              b, loc, inlineRegion(b, op.getMaskMod(), at), score, never);
        if (op.getCausal()) {
          // ki <= qi + T - S
          Value last = arith::SubIOp::create(
              b, loc, arith::AddIOp::create(b, loc, args[3], args[6]), args[5]);
          Value isSeen = arith::CmpIOp::create(
              b, loc, arith::CmpIPredicate::sle, args[4], last);
          score = arith::SelectOp::create(b, loc, isSeen, score, never);
        }
        return score;
      });

  // A row without keys has the maximum -inf; 0 in its place makes its weights
  // exp(-inf), and no NaN.
  Value maximum = build.reduce(tv::Combiner::Max, scores, 3, rowShape);
  Value shift = build.map(
      maximum, rowShape, wide, [&](OpBuilder &b, ValueRange args) -> Value {
        Value isEmpty = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                              args[0], constant(b, -infinity));
        return arith::SelectOp::create(b, loc, isEmpty, constant(b, 0),
                                       args[0]);
      });
  Value shifts = build.broadcast(shift, {0, 1, 2}, scoreShape, products);
  Value weights =
      build.map({scores, shifts}, scoreShape, wide,
                [&](OpBuilder &b, ValueRange args) -> Value {
                  return math::ExpOp::create(
                      b, loc, arith::SubFOp::create(b, loc, args[0], args[1]));
                });
  Value total = build.reduce(tv::Combiner::Sum, weights, 3, rowShape);
  Value lse =
      build.map({total, shift}, rowShape, wide,
                [&](OpBuilder &b, ValueRange args) -> Value {
                  return arith::AddFOp::create(
                      b, loc, math::LogOp::create(b, loc, args[0]), args[1]);
                });

  // Normalized after the product, which is smaller than the scores.
  LocalShape resultShape(op.getResult());
  Value sums = tv::MatmulOp::create(b, loc, resultShape.type(wide), weights,
                                    build.widen(*value, wide));
  Value totals = build.broadcast(total, {0, 1, 2}, resultShape, sums);
  Type element = getElement(op.getResult());
  Value result = build.map(
      {sums, totals}, resultShape, element,
      [&](OpBuilder &b, ValueRange args) -> Value {
        Value isEmpty = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                              args[1], constant(b, 0));
        Value divisor =
            arith::SelectOp::create(b, loc, isEmpty, constant(b, 1), args[1]);
        Value mean = arith::DivFOp::create(b, loc, args[0], divisor);
        return element == wide
                   ? mean
                   : arith::TruncFOp::create(b, loc, element, mean).getResult();
      });
  return SmallVector<Value>{result, lse};
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

  /// All variants that are compiled in and fit, the preferred first; `flash` is
  /// a kernel of its own, `cudnn` a step of its own.
  FailureOr<SmallVector<Value>> expandToVariants(tv::AttentionOp op,
                                                 OpBuilder &b) {
    static constexpr StringLiteral kind = "attention";
    SmallVector<std::string> allowed(attention.begin(), attention.end());
    FailureOr<FittingVariants> fitting =
        getFittingVariants(op, kind, allowed, [&](StringRef variant) {
          return variant == "flash"   ? whyNotFlash(op, target)
                 : variant == "cudnn" ? whyNotCuDNN(op, target)
                                      : std::nullopt;
        });
    if (failed(fitting))
      return failure();

    SmallVector<SmallVector<Value>> made;
    for (StringRef variant : fitting->names) {
      if (variant == "math") {
        FailureOr<SmallVector<Value>> values = expandAttention(op, b);
        if (failed(values))
          return failure();
        // An order in memory is the op's own.
        for (auto [value, result] : llvm::zip_equal(*values, op->getResults()))
          value.setType(result.getType());
        made.push_back(std::move(*values));
        continue;
      }
      Operation *own;
      if (variant == "cudnn") {
        own = plan::AttendOp::create(
            b, op.getLoc(), op.getResult().getType(), op.getLse().getType(),
            op.getQuery(), op.getKey(), op.getValue(), op.getScaleAttr(),
            op.getCausalAttr(), b.getStringAttr(op->getName().getStringRef()));
      } else {
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
        .Case([&](tv::AttentionOp op) -> Results {
          return decided.contains(op) ? SmallVector<Value>()
                                      : expandToVariants(op, b);
        })
        .Default([](Operation *) -> Results { return SmallVector<Value>(); });
  }

  llvm::DenseSet<Operation *> decided; ///< attentions that stay
};
} // namespace
