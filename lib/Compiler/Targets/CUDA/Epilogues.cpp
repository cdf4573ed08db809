//===- Epilogues.cpp - what cuBLASLt does beside a product ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// It adds a bias, goes through a gelu or multiplies by the slope of one, and
// sums columns of what it reads or writes anyway, as the gradient of a bias
// does. What it makes is a plan.contract; Backends/CUDA/Blas.cpp says it to the
// library.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/Target.h"
#include "Kernels/LoopKernels.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

static RankedTensorType getType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

static bool isSmallFloat(Type element) {
  return element.isBF16() || element.isF16();
}

static bool isWhole(Value tensor) {
  return cast<tv::LocalAttr>(getType(tensor).getEncoding())
      .getLayoutView()
      .partial.empty();
}

//===----------------------------------------------------------------------===//
// Behind a product
//===----------------------------------------------------------------------===//

/// Whether the library has epilogues for the product.
static bool hasEpilogues(tv::LinearOp op) {
  Type element = op.getResult().getType().getElementType();
  int64_t sums = op.getWeight().getType().getDimSize(1);
  return (element.isF32() || isSmallFloat(element)) &&
         !ShapedType::isDynamic(sums) && sums > 0 && isPlain(op.getResult());
}

bool GPUTarget::fusesBias(Operation *product) const {
  auto linear = dyn_cast<tv::LinearOp>(product);
  return linear && linear.getBias() && hasEpilogues(linear);
}

/// The first gelu of what is summed; f32 asks for a closer tanh than the
/// library's.
static bool isEpilogue(Operation *product, tv::GeluOp gelu) {
  auto linear = dyn_cast<tv::LinearOp>(product);
  if (!linear || gelu.getInput() != linear.getResult() || !gelu.getTanh() ||
      getType(gelu.getInput()).getElementType().isF32())
    return false;
  return hasEpilogues(linear) && isWhole(gelu.getInput()) &&
         llvm::none_of(product->getUsers(), [&](Operation *user) {
           auto other = dyn_cast<tv::GeluOp>(user);
           return other && other.getTanh() && other->isBeforeInBlock(gelu);
         });
}

/// The slope of a gelu, times what is summed: what else needs the sums, has a
/// bias in them, or a slope elsewhere than they are or in rows that are not of
/// 16 bytes, has a kernel.
static bool isEpilogue(Operation *product, tv::GeluGradOp grad) {
  auto type = getType(grad.getResult());
  if (grad.getGrad().getDefiningOp() != product || !grad.getTanh() ||
      !isSmallFloat(type.getElementType()) ||
      grad.getGrad().getType() != type || grad.getInput().getType() != type ||
      !grad.getGrad().hasOneUse())
    return false;
  auto linear = dyn_cast<tv::LinearOp>(product);
  bool isMatmul = isa<tv::MatmulOp>(product) && type.getRank() == 2;
  return ((linear && !linear.getBias()) || isMatmul) &&
         isPlain(grad.getResult()) && isWhole(grad.getResult()) &&
         getOwnMemory(type).isRowMajor() &&
         hasBoxes(grad.getResult(), type.getRank() - 1);
}

/// What follows all that a product sums.
static std::optional<plan::Fusion> getEpilogue(Operation *product,
                                               Operation *op) {
  if (auto gelu = dyn_cast<tv::GeluOp>(op))
    if (isEpilogue(product, gelu))
      return plan::Fusion{op, plan::Epilogue::GeluTanh};
  if (auto grad = dyn_cast<tv::GeluGradOp>(op))
    if (isEpilogue(product, grad))
      return plan::Fusion{op, plan::Epilogue::GeluTanhGrad, grad.getInput()};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Beside a product
//===----------------------------------------------------------------------===//

/// The value that another is a transpose of, and which of its dimensions each
/// of the other's is.
static std::pair<Value, SmallVector<int64_t>> getTransposed(Value value) {
  auto dims = llvm::to_vector(
      llvm::seq<int64_t>(0, cast<RankedTensorType>(value.getType()).getRank()));
  while (auto transpose = value.getDefiningOp<tv::TransposeOp>()) {
    for (int64_t &dim : dims)
      dim = transpose.getPerm()[dim];
    value = transpose.getInput();
  }
  return {value, dims};
}

/// Whether a reduction's input, but for transposes, is a factor of a product or
/// made of its result. (All pairs of them are asked for.)
static bool isBeside(Operation *product, tv::ReduceOp reduce) {
  auto strip = [](Value value) {
    while (auto transpose = value.getDefiningOp<tv::TransposeOp>())
      value = transpose.getInput();
    return value;
  };
  Value source = strip(reduce.getInput());
  Operation *maker = source.getDefiningOp();
  return (maker &&
          llvm::is_contained(maker->getOperands(), product->getResult(0))) ||
         source == strip(product->getOperand(0)) ||
         source == strip(product->getOperand(1));
}

/// What of `product` a reduction sums; nothing if that is not what the library
/// can sum as well.
static std::optional<plan::Summed> getSummed(Operation *product,
                                             tv::ReduceOp reduce) {
  if (!isBeside(product, reduce) || reduce.getCombiner() != tv::Combiner::Sum ||
      !isSmallFloat(getType(reduce.getResult()).getElementType()) ||
      !isPlain(reduce.getInput()) ||
      getSpace(reduce.getInput().getType()).size() !=
          reduce.getDims().size() + 1)
    return std::nullopt;
  auto [summed, dims] = getTransposed(reduce.getInput());
  llvm::SmallSet<int64_t, 4> reduced;
  for (int64_t dim : reduce.getDims())
    reduced.insert(dims[dim]);
  std::optional<plan::Fusion> epilogue;
  for (Operation *user : product->getUsers())
    if (!epilogue)
      epilogue = getEpilogue(product, user);
  if (epilogue && epilogue->x)
    // All but the columns.
    return summed == epilogue->op->getResult(0) &&
                   !reduced.contains(int64_t(dims.size()) - 1)
               ? std::optional(plan::Summed::Result)
               : std::nullopt;
  auto linear = dyn_cast<tv::LinearOp>(product);
  auto result = cast<RankedTensorType>(product->getResult(0).getType());
  if (epilogue || (linear && linear.getBias()) || result.getRank() != 2 ||
      !result.hasStaticShape() || !hasBoxes(product->getResult(0), 1))
    return std::nullopt;
  std::optional<plan::Summed> which;
  for (plan::Summed each : {plan::Summed::A, plan::Summed::B}) {
    bool isB = each == plan::Summed::B;
    Value factor = product->getOperand(isB);
    // What is multiplied away; the rows of both factors, in memory.
    int64_t sum = isB && !linear ? 0 : 1;
    auto [source, places] = getTransposed(factor);
    if (places.size() != 2 || !hasBoxes(factor, 1 - sum))
      return std::nullopt;
    if (!which && source == summed && reduced.contains(places[sum]))
      which = each;
  }
  return which;
}

std::optional<plan::Fusion> GPUTarget::fuse(Operation *product,
                                            Operation *op) const {
  if (!isa<tv::LinearOp, tv::MatmulOp>(product))
    return std::nullopt;
  if (auto reduce = dyn_cast<tv::ReduceOp>(op)) {
    if (auto summed = getSummed(product, reduce))
      return plan::Fusion{op, std::nullopt, Value(), *summed};
    return std::nullopt;
  }
  return getEpilogue(product, op);
}
