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
#include "Plan/Target.h"

#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;
using namespace tessera;

namespace tessera {
#define GEN_PASS_DEF_EXPANDCOMPOSITES
#include "Kernels/Passes.h.inc"
} // namespace tessera

/// y = x w^T + c becomes a product and an addition.
static SmallVector<Value> expandBias(tv::ContractionOpInterface op,
                                     OpBuilder &b) {
  Build build{b, op.getLoc()};
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  const tv::ContractionLabels labels = op.getContractionLabels();
  Value product = tv::ContractOp::create(
      b, op.getLoc(), type, op.getA(), op.getB(), /*bias=*/Value(),
      op.getAddend(), labels.a, labels.b, labels.result);
  Value bias = tv::BroadcastOp::create(
      b, op.getLoc(), type, op.getBias(),
      b.getDenseI64ArrayAttr(int64_t(getLocal(type).getExtents().size()) - 1),
      product);
  return {build.map(
      {product, bias}, type, [&](OpBuilder &b, ValueRange args) -> Value {
        return arith::AddFOp::create(b, op.getLoc(), args[0], args[1]);
      })};
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
/// (The kernel of sorted ones does that itself.)
static FailureOr<SmallVector<Value>> expandScatter(tv::ScatterOp op,
                                                   OpBuilder &b) {
  Build build{b, op.getLoc()};
  RankedTensorType type = op.getResult().getType();
  Type element = type.getElementType();
  if (op.getUpdate() != tv::Update::Sum ||
      !(element.isBF16() || element.isF16()) || isSorted(op))
    return SmallVector<Value>();
  Value sums = tv::ScatterOp::create(
      b, op.getLoc(),
      RankedTensorType::get(type.getShape(), b.getF32Type(),
                            type.getEncoding()),
      op.getUpdateAttr(), build.widen(op.getInit(), b.getF32Type()),
      op.getIndices(), build.widen(op.getUpdates(), b.getF32Type()),
      op.getDimAttr());
  return SmallVector<Value>{
      build.map(sums, type, [&](OpBuilder &b, ValueRange args) -> Value {
        return arith::TruncFOp::create(b, op.getLoc(), element, args[0]);
      })};
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Of queries and keys, in kernels.
static constexpr int64_t kTile = 128;

namespace {
struct ExpandComposites
    : public tessera::impl::ExpandCompositesBase<ExpandComposites> {
  using ExpandCompositesBase::ExpandCompositesBase;

  void runOnContract() override {
    decided.clear();
    target = &plan::getTarget(getOperation());
    // While it is there that a block mask says what mask_mod does.
    auto fold = [&]<typename Op>() {
      for (auto op : getOperation().getBody().template getOps<Op>())
        if (op.getBlocks() && !knowsBlocks(op))
          foldBlockMask(op);
    };
    fold.template operator()<tv::AttentionOp>();
    fold.template operator()<tv::AttentionGradOp>();
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

  /// Whether kernels know which blocks of a block mask tiles of this device's
  /// queries are in. An order of gradients is that of all positions.
  static bool knowsBlocks(tv::AttentionOp op) {
    return hasRuns(getSpace(op.getQuery().getType())[2],
                   std::lcm((*op.getBlocks())[0], kTile));
  }
  static bool knowsBlocks(tv::AttentionGradOp op) {
    return !splitsPositions(op);
  }

  Operation *attendByCuDNN(tv::AttentionOp op, OpBuilder &b) {
    return plan::AttendOp::create(
        b, op.getLoc(), op.getResult().getType(), op.getLse().getType(),
        op.getQuery(), op.getKey(), op.getValue(), op.getScaleAttr(),
        op.getCausalAttr(), b.getStringAttr(op->getName().getStringRef()));
  }
  Operation *attendByCuDNN(tv::AttentionGradOp op, OpBuilder &b) {
    return plan::AttendGradOp::create(
        b, op.getLoc(), op.getQueryGrad().getType(), op.getKeyGrad().getType(),
        op.getValueGrad().getType(), op.getGrad(), op.getQuery(), op.getKey(),
        op.getValue(), op.getOutput(), op.getLse(), op.getScaleAttr(),
        op.getCausalAttr(), b.getStringAttr(op->getName().getStringRef()));
  }
  /// What an attention and its gradient have in common, and which variants fit
  /// depends on.
  template <typename Op> static std::string getProblem(Op op) {
    std::string text;
    llvm::raw_string_ostream os(text);
    for (Value tensor : {op.getQuery(), op.getKey(), op.getValue()}) {
      os << "[";
      llvm::interleaveComma(tv::getGlobalShape(tensor.getType()), os,
                            [&](int64_t size) {
                              if (size == layout::kDynamic)
                                os << "?";
                              else
                                os << size;
                            });
      os << "] ";
    }
    SmallString<24> scale; // all of its digits: other scales are other problems
    op.getScale().toString(scale);
    os << getElementTypeOrSelf(op.getQuery()) << " scale " << scale
       << (op.getCausal() ? " causal" : "");
    for (auto [has, what] :
         {std::pair(!op.getScoreMod().empty(), " score_mod"),
          std::pair(!op.getMaskMod().empty(), " mask_mod"),
          std::pair(bool(op.getBlockMask()), " blocks"),
          std::pair(bool(op.getSequences()), " sequences"),
          std::pair(op.getDropout().has_value(), " dropout")})
      os << (has ? what : "");
    return text;
  }
  /// Kernels leave out the blocks of a block mask that their tiles, of up to
  /// 128 queries and keys, divide, of smaller ones where two are alike, and
  /// have tiles of their own for packed sequences of one batch; sums for
  /// captured tensors, gradients of wide heads, dropout and parts of the
  /// positions have all.
  template <typename Op> static void skipWhatIsLeftOut(Op op) {
    auto hasTiles = [](int64_t size) { return size % kTile == 0; };
    if (op.getBlocks() && !llvm::all_of(*op.getBlocks(), hasTiles))
      coarsenBlockMask(op, kTile);
    auto query = cast<RankedTensorType>(op.getQuery().getType());
    bool cuts =
        !op.getDropout() && !splitsPositions(op) && query.getDimSize(0) == 1;
    if constexpr (std::is_same_v<Op, tv::AttentionGradOp>)
      cuts &=
          op.getCaptured().empty() && query.getDimSize(3) <= kMostNarrowDepth;
    if (cuts)
      cutSequences(op);
    else
      foldSequences(op);
  }
  /// Gives it the tiles of its sequences, which others share.
  template <typename Op> static void cutSequences(Op op) {
    Value begins = op.getSequences();
    if (!begins)
      return;
    OpBuilder b(op);
    const int64_t positions = tv::getGlobalShape(op.getQuery().getType())[2],
                  numbers = tv::getGlobalShape(begins.getType())[1];
    LocalShape words = LocalShape(op.getQuery()).take({0});
    words.add(layout::Extent(positions + 8 * numbers - 4));
    Value tiles = tv::PackedTilesOp::create(
        b, op.getLoc(), words.type(b.getI32Type()), begins, op.getUsed(),
        b.getI64IntegerAttr(plan::kPackedRows), op.getCausalAttr());
    op.getSequencesMutable().clear();
    op.getUsedMutable().clear();
    op.getTilesMutable().assign(tiles);
  }
  FailureOr<SmallVector<Value>> expandToFlash(tv::AttentionOp op,
                                              OpBuilder &b) {
    auto own = cast<tv::AttentionOp>(b.clone(*op));
    skipWhatIsLeftOut(own);
    decided.insert(own);
    return llvm::to_vector_of<Value>(own->getResults());
  }
  FailureOr<SmallVector<Value>> expandToFlash(tv::AttentionGradOp op,
                                              OpBuilder &b) {
    SmallVector<tv::AttentionGradOp> made;
    auto results = tessera::expandToFlash(op, b, made);
    for (tv::AttentionGradOp own : made) {
      if (succeeded(results))
        skipWhatIsLeftOut(own);
      decided.insert(own);
    }
    return results;
  }
  static FailureOr<SmallVector<Value>> expandByMath(tv::AttentionOp op,
                                                    OpBuilder &b) {
    foldPages(op);
    return expandAttention(op, b);
  }
  static FailureOr<SmallVector<Value>> expandByMath(tv::AttentionGradOp op,
                                                    OpBuilder &b) {
    return expandAttentionGrad(op, b);
  }
  template <typename Op>
  FailureOr<SmallVector<Value>> expandToMath(Op op, OpBuilder &b) {
    auto own = cast<Op>(b.clone(*op));
    foldSequences(own);
    FailureOr<SmallVector<Value>> results = expandByMath(own, b);
    own.erase();
    return results;
  }

  /// All variants that are compiled in and fit, the preferred first; `flash` is
  /// a kernel of its own, `cudnn` a step of its own.
  template <typename Op>
  FailureOr<SmallVector<Value>> expandToVariants(Op op, OpBuilder &b) {
    static constexpr StringLiteral kind = "attention";
    SmallVector<std::string> allowed(attention.begin(), attention.end());
    if (auto own = op->template getAttrOfType<ArrayAttr>(tv::kVariantsAttr)) {
      allowed.clear();
      for (StringAttr name : own.template getAsRange<StringAttr>())
        allowed.push_back(name.str());
    }
    FailureOr<FittingVariants> fitting = getFittingVariants(
        op, kind, allowed,
        [&](StringRef variant) -> std::optional<std::string> {
          if (op.getTiles() && variant != "flash")
            return "it has tiles, which flash alone takes; give it the "
                   "sequences";
          return target->whyNot(variant, op);
        });
    if (failed(fitting))
      return failure();

    SmallVector<SmallVector<Value>> made;
    for (StringRef variant : fitting->names) {
      if (variant == "cudnn") {
        made.push_back(
            llvm::to_vector_of<Value>(attendByCuDNN(op, b)->getResults()));
        continue;
      }
      FailureOr<SmallVector<Value>> values =
          variant == "math" ? expandToMath(op, b) : expandToFlash(op, b);
      if (failed(values))
        return failure();
      // An order in memory is the op's own.
      for (auto [value, result] : llvm::zip_equal(*values, op->getResults()))
        value.setType(result.getType());
      made.push_back(std::move(*values));
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
        fitting->without, op->getName().getStringRef(),
        b.getStringAttr(getProblem(op)));
    SmallVector<Value> results = made[0];
    auto chosen = choice.getResults().begin();
    for (OpResult result : op->getResults())
      if (!alone && !result.use_empty())
        results[result.getResultNumber()] = *chosen++;
    return results;
  }

  /// Whether a library does the op together with a product that it reads, or
  /// adds the bias of one.
  bool isTakenAlong(Operation *op) {
    if (isa<tv::ContractionOpInterface>(op))
      return target->fusesBias(op);
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      Operation *product = operand.getDefiningOp();
      return product && target->fuse(product, op);
    });
  }

  /// The values that take the place of the op's results; none if it stays.
  FailureOr<SmallVector<Value>> expand(Operation *op) {
    OpBuilder b(op);
    tv::nameLocation(op);
    using Results = FailureOr<SmallVector<Value>>;
    if (isTakenAlong(op))
      return SmallVector<Value>();
    return TypeSwitch<Operation *, Results>(op)
        .Case([&](tv::CompositeOpInterface composite) -> Results {
          SmallVector<Value> results;
          if (failed(composite.decompose(b, results)))
            return failure();
          return results;
        })
        .Case([&](tv::ContractionOpInterface op) -> Results {
          return op.getBias() ? expandBias(op, b) : SmallVector<Value>();
        })
        // How these are taken apart is a matter of what backends have.
        .Case([&](tv::GroupedMatmulOp op) -> Results {
          return expandGroupedMatmul(op, b);
        })
        // In which type it sums, too.
        .Case([&](tv::ScatterOp op) { return expandScatter(op, b); })
        // And which variants there are.
        .Case<tv::AttentionOp, tv::AttentionGradOp>([&](auto op) -> Results {
          return decided.contains(op) ? SmallVector<Value>()
                                      : expandToVariants(op, b);
        })
        .Default([](Operation *) -> Results { return SmallVector<Value>(); });
  }

  const plan::Target *target = nullptr;
  llvm::DenseSet<Operation *> decided; ///< attentions that stay
};
} // namespace
