//===- TensorViewGradients.cpp - the gradient of each op ------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// DifferentiableOpInterface. Of a product's two gradients that of the input
// comes first: what follows waits for it. Scalars are computed in f32 (f64 for
// f64) and rounded once.
//
//===----------------------------------------------------------------------===//

#include "TensorView/CoreBuilder.h"
#include "TensorView/Cotangents.h"
#include "TensorView/ScalarGradient.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tv;

using Body = ImplicitLocOpBuilder &;
using Args = ArrayRef<Value>;
using Values = SmallVector<Value>;

namespace {
/// Core ops at the location of an op's gradient.
class GradientCore : public Core {
public:
  GradientCore(ImplicitLocOpBuilder &builder, Operation *op)
      : Core(builder, op, builder.getLoc()), b(builder) {}

  static int64_t rankOf(Value value) {
    return getGlobalShape(value.getType()).size();
  }
  /// All dimensions of `value` but `dims`.
  static SmallVector<int64_t> others(Value value, ArrayRef<int64_t> dims) {
    SmallVector<int64_t> rest;
    for (int64_t d = 0, e = rankOf(value); d < e; ++d)
      if (!llvm::is_contained(dims, d))
        rest.push_back(d);
    return rest;
  }
  /// Of the type of `like`.
  Value sum(Value value, ArrayRef<int64_t> dims, Value like) {
    if (dims.empty())
      return value;
    return ReduceOp::create(b, Core::like(like), Combiner::Sum, value, dims);
  }
  /// `x` where `condition` is true, else 0.
  static Value keep(Body b, Value condition, Value x) {
    return arith::SelectOp::create(b, condition, x,
                                   constant(b, x.getType(), 0));
  }
  static Value equal(Body b, Value x, Value y) {
    return arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, x, y);
  }
  static Value multiply(Body b, Value x, Value y) {
    return arith::MulFOp::create(b, x, y);
  }
  /// 1 where two tensors are equal, else 0.
  Value areEqual(Value x, Value y) {
    return map({x, y}, Core::like(x, wide(x)), [&](Body b, Args in) {
      return Values{
          keep(b, equal(b, in[0], in[1]), constant(b, in[0].getType(), 1))};
    });
  }
  /// `share` where two tensors are equal, else 0.
  Value whereEqual(Value x, Value y, Value share) {
    return map({x, y, share}, Core::like(x), [&](Body b, Args in) {
      return Values{keep(b, equal(b, in[0], in[1]), in[2])};
    });
  }
  Value divide(Value x, Value y) {
    return map({x, y}, Core::like(x), [&](Body b, Args in) {
      return Values{arith::DivFOp::create(b, in[0], in[1])};
    });
  }
  Value transpose(Value value, ArrayRef<int64_t> perm) {
    layout::Shape from = getGlobalShape(value.getType());
    SmallVector<int64_t> shape;
    for (int64_t d : perm)
      shape.push_back(from[d]);
    auto type = RankedTensorType::get(shape, elementOf(value));
    return TransposeOp::create(b, type, value, perm);
  }

  /// Of two factors that with the result's first row first.
  Value product(RankedTensorType type, ArrayRef<int32_t> labels, Value left,
                ArrayRef<int32_t> leftLabels, Value right,
                ArrayRef<int32_t> rightLabels) {
    for (int32_t label : labels) {
      bool inLeft = llvm::is_contained(leftLabels, label);
      if (inLeft && llvm::is_contained(rightLabels, label))
        continue;
      if (!inLeft) {
        std::swap(left, right);
        std::swap(leftLabels, rightLabels);
      }
      break;
    }
    return ContractOp::create(b, type, left, right, /*bias=*/Value(),
                              /*addend=*/Value(), leftLabels, rightLabels,
                              labels);
  }

  ImplicitLocOpBuilder &b;
};
} // namespace

//===----------------------------------------------------------------------===//
// Pointwise, reductions, broadcasts
//===----------------------------------------------------------------------===//

LogicalResult MapOp::addCotangents(ImplicitLocOpBuilder &builder,
                                   Cotangents &cotangents) {
  return addScalarCotangents(builder, *this, getBody().front(), cotangents);
}

LogicalResult GeluOp::addCotangents(ImplicitLocOpBuilder &builder,
                                    Cotangents &cotangents) {
  GradientCore core(builder, *this);
  Value dy = cotangents.take(builder, getResult());
  cotangents.add(getInput(), GeluGradOp::create(builder, core.like(getInput()),
                                                dy, getInput(), getTanh()));
  return success();
}

LogicalResult CastOp::addCotangents(ImplicitLocOpBuilder &builder,
                                    Cotangents &cotangents) {
  GradientCore core(builder, *this);
  Value dy = cotangents.take(builder, getResult());
  cotangents.add(getInput(),
                 CastOp::create(builder, core.like(getInput()), dy));
  return success();
}

LogicalResult DropoutOp::addCotangents(ImplicitLocOpBuilder &builder,
                                       Cotangents &cotangents) {
  GradientCore core(builder, *this);
  Value dy = cotangents.take(builder, getResult());
  cotangents.add(getInput(),
                 DropoutOp::create(builder, core.like(dy), dy, getRateAttr(),
                                   getSeedAttr(), getStreamAttr(), getStep()));
  return success();
}

LogicalResult ReduceOp::addCotangents(ImplicitLocOpBuilder &builder,
                                      Cotangents &cotangents) {
  GradientCore core(builder, *this);
  Value dy = cotangents.take(builder, getResult()), x = getInput();
  auto back = [&](Value value) {
    return core.broadcast(value, core.others(x, getDims()), x);
  };
  if (getCombiner() == Combiner::Sum) {
    cotangents.add(x, back(dy));
    return success();
  }
  // Evenly to all that are the result.
  Value y = back(getResult());
  Value ones = core.areEqual(x, y);
  Value count = ReduceOp::create(builder, core.like(dy, core.elementOf(ones)),
                                 Combiner::Sum, ones, getDims());
  cotangents.add(x, core.whereEqual(x, y, back(core.divide(dy, count))));
  return success();
}

LogicalResult BroadcastOp::addCotangents(ImplicitLocOpBuilder &builder,
                                         Cotangents &cotangents) {
  GradientCore core(builder, *this);
  Value dy = cotangents.take(builder, getResult());
  cotangents.add(getInput(),
                 core.sum(dy, core.others(dy, getDims()), getInput()));
  return success();
}

LogicalResult SoftmaxOp::addCotangents(ImplicitLocOpBuilder &builder,
                                       Cotangents &cotangents) {
  GradientCore core(builder, *this);
  Value dy = cotangents.take(builder, getResult()), y = getResult();
  int64_t dim = getDim();
  Value products =
      core.map({y, dy}, core.like(y, core.wide(y)), [&](Body b, Args in) {
        return Values{core.multiply(b, in[0], in[1])};
      });
  Value sum = core.reduce(Combiner::Sum, products, dim);
  cotangents.add(getInput(),
                 core.map({y, dy, core.broadcastBack(sum, dim, y)},
                          core.like(y), [&](Body b, Args in) {
                            Value rest = arith::SubFOp::create(b, in[1], in[2]);
                            return Values{core.multiply(b, in[0], rest)};
                          }));
  return success();
}

LogicalResult CrossEntropyOp::addCotangents(ImplicitLocOpBuilder &builder,
                                            Cotangents &cotangents) {
  GradientCore core(builder, *this);
  Value dy = cotangents.take(builder, getResult()), x = getLogits();
  Value labels = getLabels();
  Type wide = core.wide(x), index = core.elementOf(labels);
  int64_t last = core.rankOf(x) - 1;
  Value lse = getLse();
  Value lseGrad = lse ? cotangents.take(builder, lse) : Value();
  if (!lse) {
    OpBuilder forward(*this);
    auto both = CrossEntropyOp::create(
        forward, getLoc(),
        TypeRange{getResult().getType(), core.like(getResult(), wide)},
        getOperands());
    getResult().replaceAllUsesWith(both.getResult());
    lse = both.getLse();
  }
  if (!dy)
    dy = buildSplat(builder, 0, core.like(getResult()), labels);
  // Nothing where the label is no class: a label below 0 is a large unsigned
  // number.
  Value known = core.map({dy, labels, core.extentLike(labels, index, x, last)},
                         core.like(dy), [&](Body b, Args in) {
                           Value isClass = arith::CmpIOp::create(
                               b, arith::CmpIPredicate::ult, in[1], in[2]);
                           return Values{core.keep(b, isClass, in[0])};
                         });
  auto back = [&](Value value) { return core.broadcastBack(value, last, x); };
  SmallVector<Value> inputs = {x, back(lse), core.iota(last, x, index),
                               back(labels), back(known)};
  if (lseGrad)
    inputs.push_back(back(lseGrad));
  cotangents.add(x, core.map(inputs, core.like(x), [&](Body b, Args in) {
    Value share =
        math::ExpOp::create(b, arith::SubFOp::create(b, in[0], in[1]));
    Value isLabel =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, in[2], in[3]);
    Value own = core.keep(b, isLabel, core.constant(b, wide, 1));
    Value slope = arith::SubFOp::create(b, share, own);
    Value grad = core.multiply(b, slope, in[4]);
    if (lseGrad)
      grad = arith::AddFOp::create(b, grad, core.multiply(b, share, in[5]));
    return Values{grad};
  }));
  return success();
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

static LogicalResult addProductCotangents(ContractionOpInterface op,
                                          ImplicitLocOpBuilder &builder,
                                          Cotangents &cotangents) {
  GradientCore core(builder, op);
  Value result = op->getResult(0);
  Value dy = cotangents.take(builder, result), bias = op.getBias();
  ContractionLabels labels = op.getContractionLabels();
  if (Value addend = op.getAddend())
    cotangents.add(addend, dy);
  // Of an f32 result, as narrow as what it is multiplied with.
  Value factor = dy;
  if (Type element = core.elementOf(op.getA()); core.elementOf(dy) != element)
    factor = CastOp::create(builder, core.like(dy, element), dy);
  auto add = [&](Value to, ArrayRef<int32_t> toLabels, Value other,
                 ArrayRef<int32_t> otherLabels) {
    if (cotangents.isNeeded(to))
      cotangents.add(to, core.product(core.like(to), toLabels, factor,
                                      labels.result, other, otherLabels));
  };
  add(op.getA(), labels.a, op.getB(), labels.b);
  add(op.getB(), labels.b, op.getA(), labels.a);
  if (bias && cotangents.isNeeded(bias))
    cotangents.add(bias,
                   core.sum(dy, core.others(dy, core.rankOf(dy) - 1), bias));
  return success();
}

LogicalResult ContractOp::addCotangents(ImplicitLocOpBuilder &builder,
                                        Cotangents &cotangents) {
  return addProductCotangents(*this, builder, cotangents);
}
LogicalResult LinearOp::addCotangents(ImplicitLocOpBuilder &builder,
                                      Cotangents &cotangents) {
  return addProductCotangents(*this, builder, cotangents);
}
LogicalResult MatmulOp::addCotangents(ImplicitLocOpBuilder &builder,
                                      Cotangents &cotangents) {
  return addProductCotangents(*this, builder, cotangents);
}

LogicalResult GroupedMatmulOp::addCotangents(ImplicitLocOpBuilder &builder,
                                             Cotangents &cotangents) {
  GradientCore core(builder, *this);
  Value dy = cotangents.take(builder, getResult());
  Value x = getInput(), weight = getWeight(), counts = getCounts();
  if (cotangents.isNeeded(x))
    cotangents.add(x, GroupedMatmulOp::create(builder, core.like(x), dy,
                                              core.transpose(weight, {0, 2, 1}),
                                              counts));
  if (!cotangents.isNeeded(weight))
    return success();
  // Rows beyond an expert's count had no part in it.
  Value row = core.iota(1, dy, core.elementOf(counts));
  Value valid = core.map({dy, row, core.broadcast(counts, {0}, dy)},
                         core.like(dy), [&](Body b, Args in) {
                           Value isRow = arith::CmpIOp::create(
                               b, arith::CmpIPredicate::slt, in[1], in[2]);
                           return Values{core.keep(b, isRow, in[0])};
                         });
  const int32_t ofResult[] = {0, 1, 2}, ofInput[] = {0, 1, 3},
                ofWeight[] = {0, 2, 3};
  cotangents.add(weight, core.product(core.like(weight), ofWeight, valid,
                                      ofResult, x, ofInput));
  return success();
}

LogicalResult AttentionOp::addCotangents(ImplicitLocOpBuilder &builder,
                                         Cotangents &cotangents) {
  if (getPages())
    return emitOpError() << "has no gradient with pages; gather the keys and "
                            "values first";
  GradientCore core(builder, *this);
  Value grad = cotangents.take(builder, getResult());
  Value lseGrad = cotangents.take(builder, getLse());
  if (!grad)
    grad = buildSplat(builder, 0, core.like(getResult()), getResult());
  llvm::SetVector<Value> captured;
  getScoreMod().walk([&](LoadOp load) {
    if (cotangents.isNeeded(load.getTensor()))
      captured.insert(load.getTensor());
  });
  SmallVector<Type> types;
  for (Value value : {getQuery(), getKey(), getValue()})
    types.push_back(core.like(value));
  for (Value value : captured)
    types.push_back(core.like(value));
  auto op = AttentionGradOp::create(
      builder, types[0], types[1], types[2], ArrayRef(types).drop_front(3),
      grad, getQuery(), getKey(), getValue(), getResult(), getLse(), lseGrad,
      captured.getArrayRef(), getStep(), getBlockMask(), getSequences(),
      getUsed(), getTiles(), getScaleAttr(), getCausalAttr(), getDropoutAttr(),
      getSeedAttr(), getStreamAttr(), getBlocksAttr());
  for (auto [from, to] : {std::pair(&getScoreMod(), &op.getScoreMod()),
                          std::pair(&getMaskMod(), &op.getMaskMod())}) {
    IRMapping mapping;
    from->cloneInto(to, mapping);
  }
  if (!op.getScoreMod().empty() && failed(addScoreGrad(op)))
    return failure();
  cotangents.add(getQuery(), op.getQueryGrad());
  cotangents.add(getKey(), op.getKeyGrad());
  cotangents.add(getValue(), op.getValueGrad());
  for (auto [value, gradient] : llvm::zip(captured, op.getCapturedGrads()))
    cotangents.add(value, gradient);
  return success();
}

//===----------------------------------------------------------------------===//
// Same elements, other indices
//===----------------------------------------------------------------------===//

LogicalResult ReshapeOp::addCotangents(ImplicitLocOpBuilder &builder,
                                       Cotangents &cotangents) {
  GradientCore core(builder, *this);
  Value dy = cotangents.take(builder, getResult());
  cotangents.add(getInput(),
                 ReshapeOp::create(builder, core.like(getInput()), dy));
  return success();
}

LogicalResult TransposeOp::addCotangents(ImplicitLocOpBuilder &builder,
                                         Cotangents &cotangents) {
  GradientCore core(builder, *this);
  Value dy = cotangents.take(builder, getResult());
  SmallVector<int64_t> back(getPerm().size());
  for (auto [i, dim] : llvm::enumerate(getPerm()))
    back[dim] = i;
  // A product that nothing else reads is made transposed.
  auto product = dy.getDefiningOp<ContractOp>();
  if (!product || !dy.use_empty() || product.getBias() || product.getAddend()) {
    cotangents.add(getInput(), core.transpose(dy, back));
    return success();
  }
  SmallVector<int32_t> labels;
  for (int64_t dim : back)
    labels.push_back(product.getLabels()[dim]);
  cotangents.add(getInput(),
                 core.product(core.like(getInput()), labels, product.getA(),
                              product.getALabels(), product.getB(),
                              product.getBLabels()));
  return success();
}

LogicalResult SliceOp::addCotangents(ImplicitLocOpBuilder &builder,
                                     Cotangents &cotangents) {
  cotangents.addBox(getInput(), getOffsets(),
                    cotangents.take(builder, getResult()));
  return success();
}

/// The boxes of the whole's cotangent, each to its operand.
static LogicalResult addBoxCotangents(WindowOpInterface op,
                                      ImplicitLocOpBuilder &builder,
                                      Cotangents &cotangents) {
  GradientCore core(builder, op);
  Value dy = cotangents.take(builder, op.getWhole());
  for (auto [operand, offsets] :
       llvm::zip_equal(op->getOperands(), op.getBoxOffsets())) {
    if (!cotangents.isNeeded(operand))
      continue;
    layout::Shape box = getGlobalShape(operand.getType());
    layout::Shape whole = getGlobalShape(dy.getType());
    for (auto [dim, extent] : llvm::enumerate(whole))
      // A slice takes a dynamic dimension whole.
      if (extent == layout::kDynamic && offsets[dim] != 0)
        return op->emitOpError()
               << "has no gradient along dimension " << dim
               << ", which is dynamic and not one operand's alone";
    cotangents.add(operand, SliceOp::create(builder, core.like(operand), dy,
                                            ArrayRef<int64_t>(offsets)));
  }
  return success();
}

LogicalResult ConcatOp::addCotangents(ImplicitLocOpBuilder &builder,
                                      Cotangents &cotangents) {
  return addBoxCotangents(cast<WindowOpInterface>(getOperation()), builder,
                          cotangents);
}
LogicalResult PadOp::addCotangents(ImplicitLocOpBuilder &builder,
                                   Cotangents &cotangents) {
  return addBoxCotangents(cast<WindowOpInterface>(getOperation()), builder,
                          cotangents);
}

//===----------------------------------------------------------------------===//
// Elements at run-time indices
//===----------------------------------------------------------------------===//

LogicalResult CumsumOp::addCotangents(ImplicitLocOpBuilder &builder,
                                      Cotangents &cotangents) {
  GradientCore core(builder, *this);
  Value dy = cotangents.take(builder, getResult());
  cotangents.add(getInput(), CumsumOp::create(builder, core.like(dy), dy,
                                              getDim(), !getReverse()));
  return success();
}

LogicalResult GatherOp::addCotangents(ImplicitLocOpBuilder &builder,
                                      Cotangents &cotangents) {
  GradientCore core(builder, *this);
  Value dy = cotangents.take(builder, getResult()), table = getTable();
  Value zeros = buildSplat(builder, 0, core.like(table), table);
  cotangents.add(table,
                 ScatterOp::create(builder, core.like(table), Update::Sum,
                                   zeros, getIndices(), dy, getDim()));
  return success();
}

/// Of `set`: the last update of a row alone has a part.
static LogicalResult addSetCotangents(ScatterOp op,
                                      ImplicitLocOpBuilder &builder,
                                      Cotangents &cotangents, Value dy,
                                      function_ref<Value(Value)> atUpdates) {
  GradientCore core(builder, op);
  Value init = op.getInit(), updates = op.getUpdates();
  layout::Shape places = getGlobalShape(op.getIndices().getType());
  const int64_t rows = getGlobalShape(init.getType())[op.getDim()];
  if (rows == layout::kDynamic ||
      llvm::is_contained(ArrayRef(places).drop_front(!places.empty()),
                         layout::kDynamic))
    return op.emitOpError()
           << "of 'set' has no gradient where the dimension that "
              "is set is dynamic, or one of the indices' but "
              "their first";
  // The number of each update, and of the last one of each row, -1 of none.
  Type number = core.elementOf(op.getIndices());
  SmallVector<Value> digits = {op.getIndices()};
  for (size_t d = 0; d < places.size(); ++d)
    digits.push_back(core.iota(d, op.getIndices(), number));
  Value own =
      core.map(digits, core.like(op.getIndices()), [&](Body b, Args in) {
        auto constant = [&](int64_t value) -> Value {
          return arith::ConstantOp::create(b, b.getIntegerAttr(number, value));
        };
        Value at = constant(0);
        for (auto [d, digit] : llvm::enumerate(in.drop_front())) {
          if (d)
            at = arith::MulIOp::create(b, at, constant(places[d]));
          at = arith::AddIOp::create(b, at, digit);
        }
        return Values{at};
      });
  auto rowType = RankedTensorType::get({rows}, number);
  Value none = ConstantOp::create(
      builder, rowType,
      DenseElementsAttr::get(RankedTensorType::get({}, number),
                             builder.getIntegerAttr(number, -1)),
      Value());
  Value last = ScatterOp::create(builder, rowType, Update::Max, none,
                                 op.getIndices(), own, 0);
  auto whereEqual = [&](Value x, Value y, ArrayRef<int64_t> dims, Value value) {
    return core.map(
        {core.broadcast(x, dims, value), core.broadcast(y, dims, value), value},
        core.like(value), [&](Body b, Args in) {
          Value isEqual =
              arith::CmpIOp::create(b, arith::CmpIPredicate::eq, in[0], in[1]);
          return Values{core.keep(b, isEqual, in[2])};
        });
  };
  if (cotangents.isNeeded(init))
    cotangents.add(init, whereEqual(none, last, op.getDim(), dy));
  if (cotangents.isNeeded(updates)) {
    auto dims = llvm::to_vector(
        llvm::seq<int64_t>(op.getDim(), op.getDim() + places.size()));
    Value held =
        GatherOp::create(builder, core.like(own), last, op.getIndices(), 0);
    cotangents.add(updates, whereEqual(own, held, dims, atUpdates(dy)));
  }
  return success();
}

LogicalResult ScatterOp::addCotangents(ImplicitLocOpBuilder &builder,
                                       Cotangents &cotangents) {
  GradientCore core(builder, *this);
  Value dy = cotangents.take(builder, getResult());
  Value init = getInit(), updates = getUpdates();
  auto atUpdates = [&](Value value) -> Value {
    return GatherOp::create(builder, core.like(updates, core.elementOf(value)),
                            value, getIndices(), getDim());
  };
  if (getUpdate() == Update::Set)
    return addSetCotangents(*this, builder, cotangents, dy, atUpdates);
  if (getUpdate() == Update::Sum) {
    cotangents.add(init, dy);
    if (cotangents.isNeeded(updates))
      cotangents.add(updates, atUpdates(dy));
    return success();
  }
  // Evenly to all that are the result.
  Value result = getResult();
  Value ofInit = core.areEqual(init, result);
  Value there = atUpdates(result);
  Value ofUpdates = core.areEqual(updates, there);
  Value count = ScatterOp::create(builder, core.like(ofInit), Update::Sum,
                                  ofInit, getIndices(), ofUpdates, getDim());
  Value share = core.divide(dy, count);
  if (cotangents.isNeeded(init))
    cotangents.add(init, core.whereEqual(init, result, share));
  if (cotangents.isNeeded(updates))
    cotangents.add(updates, core.whereEqual(updates, there, atUpdates(share)));
  return success();
}

LogicalResult DispatchOp::addCotangents(ImplicitLocOpBuilder &builder,
                                        Cotangents &cotangents) {
  GradientCore core(builder, *this);
  Value dy = cotangents.take(builder, getResult());
  Value ones = buildSplat(
      builder, 1, core.like(getExperts(), core.elementOf(dy)), getExperts());
  cotangents.add(getTokens(),
                 CombineOp::create(builder, core.like(getTokens()), dy,
                                   getExperts(), getSlots(), ones));
  return success();
}

LogicalResult CombineOp::addCotangents(ImplicitLocOpBuilder &builder,
                                       Cotangents &cotangents) {
  GradientCore core(builder, *this);
  Value dy = cotangents.take(builder, getResult());
  Value buffers = getBuffers(), experts = getExperts(), slots = getSlots();
  layout::Shape shape = getGlobalShape(buffers.getType());
  if (llvm::is_contained(shape, layout::kDynamic))
    return emitOpError() << "has no gradient by buffers of dynamic extents";
  // Buffers by row, and the row of each choice; -1 if it has none.
  auto rowsType = RankedTensorType::get({shape[0] * shape[1], shape[2]},
                                        core.elementOf(buffers));
  Value row =
      core.map({experts, slots}, core.like(experts), [&](Body b, Args in) {
        Type type = in[0].getType();
        auto number = [&](int64_t value) -> Value {
          return arith::ConstantOp::create(b, b.getIntegerAttr(type, value));
        };
        auto isBelow = [&](Value x, int64_t limit) -> Value {
          return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x,
                                       number(limit));
        };
        Value first = arith::MulIOp::create(b, in[0], number(shape[1]));
        Value held = arith::AndIOp::create(b, isBelow(in[0], shape[0]),
                                           isBelow(in[1], shape[1]));
        return Values{arith::SelectOp::create(
            b, held, arith::AddIOp::create(b, first, in[1]), number(-1))};
      });
  // What each row of the buffers has to do with, once at most, comes to where
  // that lies: the result's cotangent, and the choice's weight.
  layout::Shape chosen = getGlobalShape(experts.getType());
  auto chosenType = RankedTensorType::get({chosen[0], chosen[1], shape[2]},
                                          core.elementOf(buffers));
  bool isDynamic = llvm::is_contained(chosen, layout::kDynamic);
  auto perRowType =
      RankedTensorType::get({shape[0] * shape[1]}, core.elementOf(buffers));
  auto toRows = [&](RankedTensorType type, Value updates) -> Value {
    return ScatterOp::create(builder, type, Update::Sum,
                             buildSplat(builder, 0, type), row, updates, 0);
  };
  auto times = [&](Value x, Value y) {
    return core.map({x, y}, rowsType, [&](Body b, Args in) {
      return Values{core.multiply(b, in[0], in[1])};
    });
  };
  // Extents of the choices, if they are dynamic.
  Value like;
  if (isDynamic)
    like =
        GatherOp::create(builder, chosenType,
                         ReshapeOp::create(builder, rowsType, buffers), row, 0);
  Value dyOfRow =
      toRows(rowsType, BroadcastOp::create(builder, chosenType, dy,
                                           ArrayRef<int64_t>{0, 2}, like));
  if (cotangents.isNeeded(buffers)) {
    Value weights =
        core.broadcast(toRows(perRowType, getWeights()), {0}, dyOfRow);
    cotangents.add(buffers, ReshapeOp::create(builder, core.like(buffers),
                                              times(dyOfRow, weights)));
  }
  if (cotangents.isNeeded(getWeights())) {
    Value rows = ReshapeOp::create(builder, rowsType, buffers);
    Value products = times(rows, dyOfRow);
    Value sums = ReduceOp::create(builder, perRowType, Combiner::Sum, products,
                                  ArrayRef<int64_t>{1});
    cotangents.add(
        getWeights(),
        GatherOp::create(builder, core.like(getWeights()), sums, row, 0));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// How data lies
//===----------------------------------------------------------------------===//

/// The cotangent of what was moved from a view, its partial states apart, moves
/// back to it.
static void moveBack(ImplicitLocOpBuilder &builder, Value from, Value cotangent,
                     Cotangents &cotangents) {
  if (ViewAttr attribute = getView(from)) {
    layout::View view = attribute.getView();
    view.partial.clear();
    cotangent = ConstrainOp::create(builder, withEncoding(from.getType(), {}),
                                    cotangent, attribute.with(view));
  }
  cotangents.add(from, cotangent);
}

LogicalResult ReshardOp::addCotangents(ImplicitLocOpBuilder &builder,
                                       Cotangents &cotangents) {
  for (auto [input, result] : llvm::zip_equal(getInputs(), getResults()))
    if (Value dy = cotangents.take(builder, result))
      moveBack(builder, input, dy, cotangents);
  return success();
}

LogicalResult ConstrainOp::addCotangents(ImplicitLocOpBuilder &builder,
                                         Cotangents &cotangents) {
  moveBack(builder, getInput(), cotangents.take(builder, getResult()),
           cotangents);
  return success();
}

LogicalResult SameViewOp::addCotangents(ImplicitLocOpBuilder &builder,
                                        Cotangents &cotangents) {
  for (auto [input, result] : llvm::zip_equal(getInputs(), getResults()))
    if (Value dy = cotangents.take(builder, result))
      cotangents.add(input, dy);
  return success();
}

/// The cotangent comes from the other side.
static Passage mirrored(Passage passage) {
  switch (passage) {
  case Passage::None:
    return Passage::None;
  case Passage::Forward:
    return Passage::Backward;
  case Passage::Backward:
    return Passage::Forward;
  }
  llvm_unreachable("all passages are covered");
}

LogicalResult BarrierOp::addCotangents(ImplicitLocOpBuilder &builder,
                                       Cotangents &cotangents) {
  Value dy = cotangents.take(builder, getResult());
  cotangents.add(getInput(),
                 BarrierOp::create(builder, withEncoding(dy.getType(), {}),
                                   mirrored(getPassage()), dy));
  return success();
}
