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
#include "Support/CuBLASLt.h"

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
  return getLocal(tensor).getLayoutView().partial.empty();
}

//===----------------------------------------------------------------------===//
// Behind a product
//===----------------------------------------------------------------------===//

/// Whether the product is stored as it is, with the elements that it has.
static bool isPlainProduct(tv::ContractionOpInterface op) {
  return !op.getAddend() && getType(op->getResult(0)).getElementType() ==
                                getType(op.getA()).getElementType();
}

/// Whether such a product is of rows, of any number of dimensions, and one
/// matrix, whose columns are last in the result.
static bool isOfMatrix(tv::ContractionOpInterface op) {
  const tv::ContractionLabels labels = op.getContractionLabels();
  return isPlainProduct(op) && labels.b.size() == 2 && isPlain(op.getB()) &&
         isPlain(op->getResult(0)) && !labels.result.empty() &&
         llvm::is_contained(labels.b, labels.result.back()) &&
         !llvm::is_contained(labels.a, labels.result.back());
}

/// Whether the library has epilogues for the product.
static bool hasEpilogues(tv::ContractionOpInterface op) {
  Type element = getType(op->getResult(0)).getElementType();
  if (!isOfMatrix(op) || !(element.isF32() || isSmallFloat(element)))
    return false;
  const tv::ContractionLabels labels = op.getContractionLabels();
  const int64_t sums =
      getType(op.getB()).getDimSize(labels.b[0] == labels.result.back());
  return !ShapedType::isDynamic(sums) && sums > 0;
}

bool GPUTarget::fusesBias(Operation *op) const {
  auto product = dyn_cast<tv::ContractionOpInterface>(op);
  return product && product.getBias() && hasEpilogues(product);
}

/// The first gelu of what is summed; f32 asks for a closer tanh than the
/// library's.
static bool isEpilogue(tv::ContractionOpInterface product, tv::GeluOp gelu) {
  if (gelu.getInput().getDefiningOp() != product || !gelu.getTanh() ||
      getType(gelu.getInput()).getElementType().isF32())
    return false;
  return hasEpilogues(product) && isWhole(gelu.getInput()) &&
         llvm::none_of(product->getUsers(), [&](Operation *user) {
           auto other = dyn_cast<tv::GeluOp>(user);
           return other && other.getTanh() && other->isBeforeInBlock(gelu);
         });
}

/// The slope of a gelu, times what is summed: what else needs the sums, has a
/// bias in them, or a slope elsewhere than they are or in rows that are not of
/// 16 bytes, has a kernel.
static bool isEpilogue(tv::ContractionOpInterface product,
                       tv::GeluGradOp grad) {
  auto type = getType(grad.getResult());
  if (grad.getGrad().getDefiningOp() != product || !grad.getTanh() ||
      !isSmallFloat(type.getElementType()) ||
      grad.getGrad().getType() != type || grad.getInput().getType() != type ||
      !grad.getGrad().hasOneUse())
    return false;
  return !product.getBias() && isOfMatrix(product) &&
         isWhole(grad.getResult()) && getOwnMemory(type).isRowMajor() &&
         hasBoxes(grad.getResult(), type.getRank() - 1);
}

/// What follows all that a product sums.
static std::optional<plan::Fusion>
getEpilogue(tv::ContractionOpInterface product, Operation *op) {
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

/// Of more elements the library is slower than a kernel of their own: on an
/// H200 it takes 250 us for [16384, 2048], a kernel 35.
static constexpr int64_t kMaxSummedResults = 1 << 19;

static bool isFewResults(Value tensor) {
  int64_t elements = 1;
  for (auto [size, whole] : llvm::zip_equal(getType(tensor).getShape(),
                                            getLocal(tensor).getExtents())) {
    if (ShapedType::isDynamic(size) && !whole.getStatic())
      return false;
    elements *= ShapedType::isDynamic(size) ? *whole.getStatic() : size;
  }
  return elements <= kMaxSummedResults;
}

/// What of `product` a reduction sums; nothing if that is not what the library
/// can sum as well.
static std::optional<plan::Summed> getSummed(tv::ContractionOpInterface product,
                                             tv::ReduceOp reduce) {
  if (reduce.getCombiner() != tv::Combiner::Sum ||
      !isSmallFloat(getType(reduce.getResult()).getElementType()) ||
      !isPlain(reduce.getInput()) ||
      getSpace(reduce.getInput().getType()).size() !=
          reduce.getDims().size() + 1)
    return std::nullopt;
  const Value summed = reduce.getInput();
  const ArrayRef<int64_t> reduced = reduce.getDims();
  std::optional<plan::Fusion> epilogue;
  for (Operation *user : product->getUsers())
    if (!epilogue)
      epilogue = getEpilogue(product, user);
  if (epilogue && epilogue->x)
    // All but the columns.
    return summed == epilogue->op->getResult(0) && isFewResults(summed) &&
                   !llvm::is_contained(reduced, int64_t(reduced.size()))
               ? std::optional(plan::Summed::Result)
               : std::nullopt;
  auto result = getType(product->getResult(0));
  if (epilogue || product.getBias() || !isPlainProduct(product) ||
      result.getRank() != 2 || !result.hasStaticShape() ||
      !hasBoxes(product->getResult(0), 1))
    return std::nullopt;
  const tv::ContractionLabels labels = product.getContractionLabels();
  std::optional<plan::Summed> which;
  for (plan::Summed each : {plan::Summed::A, plan::Summed::B}) {
    const bool isB = each == plan::Summed::B;
    Value factor = isB ? product.getB() : product.getA();
    ArrayRef<int32_t> of = isB ? labels.b : labels.a;
    if (of.size() != 2)
      return std::nullopt;
    // What is multiplied away; the rows of both factors, in memory.
    const int64_t sum = llvm::is_contained(labels.result, of[0]) ? 1 : 0;
    if (llvm::is_contained(labels.result, of[sum]) ||
        !hasBoxes(factor, 1 - sum))
      return std::nullopt;
    if (!which && factor == summed && llvm::is_contained(reduced, sum))
      which = each;
  }
  return which;
}

std::optional<plan::Fusion> GPUTarget::fuse(Operation *of,
                                            Operation *op) const {
  auto product = dyn_cast<tv::ContractionOpInterface>(of);
  if (!product)
    return std::nullopt;
  if (auto reduce = dyn_cast<tv::ReduceOp>(op)) {
    if (auto summed = getSummed(product, reduce))
      return plan::Fusion{op, std::nullopt, Value(), *summed};
    return std::nullopt;
  }
  return getEpilogue(product, op);
}

Status GPUTarget::runs(plan::ContractOp op) const {
  const std::optional<plan::Summed> summed = op.getSummed();
  return checkCuBLASLt(
      {.addend = bool(op.getAddend()),
       .bias = bool(op.getBias()),
       .aux = bool(op.getAux()),
       .gelu = op.getEpilogue() == plan::Epilogue::GeluTanh,
       .slope = op.getEpilogue() == plan::Epilogue::GeluTanhGrad,
       .sumsOfFactor = summed && summed != plan::Summed::Result,
       .sumsOfResult = summed == plan::Summed::Result,
       .a = op.getALabels(),
       .b = op.getBLabels(),
       .c = op.getLabels()});
}
