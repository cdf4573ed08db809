//===- Sources.cpp - ops that make elements of their indices -------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Interpreter/Ops/Evaluators.h"
#include "Plan/Plan.h"
#include "TensorView/TensorView.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::interp;

double interp::randomNumber(uint64_t seed, uint64_t stream, uint64_t index,
                            int bits) {
  // Philox 4x32, as in the description of tv.random.
  const bool halves = bits == 16;
  const uint64_t block = index / (halves ? 8 : 4);
  uint32_t key[2] = {uint32_t(seed), uint32_t(seed >> 32)};
  uint32_t counter[4] = {uint32_t(block), uint32_t(block >> 32),
                         uint32_t(stream), uint32_t(stream >> 32)};
  for (int round = 0; round < (halves ? 7 : 10); ++round) {
    uint64_t a = uint64_t(0xD2511F53) * counter[0];
    uint64_t b = uint64_t(0xCD9E8D57) * counter[2];
    uint32_t next[4] = {uint32_t(b >> 32) ^ counter[1] ^ key[0], uint32_t(b),
                        uint32_t(a >> 32) ^ counter[3] ^ key[1], uint32_t(a)};
    std::copy(next, next + 4, counter);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  if (halves)
    return double(counter[index % 8 / 2] >> index % 2 * 16 & 0xffff) * 0x1p-16;
  return double(counter[index % 4] >> 8) * 0x1p-24;
}

static LogicalResult evalElements(OpRun &run, ElementsAttr elements) {
  auto value = dyn_cast<DenseElementsAttr>(elements);
  if (!value)
    return run.fail("the interpreter reads only dense<...> values");
  bool one = value.getType().getRank() == 0 || value.isSplat();
  auto floats = value.tryGetValues<APFloat>();
  auto integers = value.tryGetValues<APInt>();
  Type type = value.getElementType();
  run.fill(0, [&](ArrayRef<int64_t> index) {
    int64_t at = one ? 0 : linearize(index, run.resultShape(0));
    return isFloat(type) ? scalarOf(FloatAttr::get(type, (*floats)[at]))
                         : scalarOf(IntegerAttr::get(type, (*integers)[at]));
  });
  return success();
}

template <typename Op> static LogicalResult evalConstant(OpRun &run) {
  return evalElements(run, cast<Op>(run.op).getValue());
}

/// An integer as an element of the result's type.
static Scalar number(OpRun &run, int64_t value) {
  Type type = run.resultType(0);
  return isFloat(type) ? real(double(value)) : whole(wrapTo(value, type));
}

static LogicalResult evalIota(OpRun &run) {
  size_t dim = cast<tv::IotaOp>(run.op).getDim();
  run.fill(0, [&](ArrayRef<int64_t> index) { return number(run, index[dim]); });
  return success();
}

static LogicalResult evalSize(OpRun &run) {
  size_t dim = cast<tv::SizeOp>(run.op).getDim();
  run.fill(0,
           [&](ArrayRef<int64_t>) { return number(run, run.shapeOf(0)[dim]); });
  return success();
}

static LogicalResult evalRandom(OpRun &run) {
  auto op = cast<tv::RandomOp>(run.op);
  const uint64_t stream =
      op.getStream() + (op.getStep() ? run.read(0, {}).whole << 32 : 0);
  run.fill(0, [&](ArrayRef<int64_t> index) {
    return real(randomNumber(op.getSeed(), stream,
                             linearize(index, run.resultShape(0)),
                             op.getBits()));
  });
  return success();
}

void interp::addSources(EvaluatorTable &table) {
  add<tv::ConstantOp>(table, evalConstant<tv::ConstantOp>);
  add<plan::ConstantOp>(table, evalConstant<plan::ConstantOp>);
  add<tv::IotaOp>(table, evalIota);
  add<tv::SizeOp>(table, evalSize);
  add<tv::RandomOp>(table, evalRandom);
}
