//===- Hopper.cpp - H100 and H200 -----------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// sm_90a has kernels of ours for tensor cores (Kernels/cuda): attention,
// `flash`, and matrix products, `own`.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/Target.h"
#include "Kernels/LoopKernels.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

static RankedTensorType getType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Whether attention's variant `math` has made the op: then it is where the
/// attention was, of which a choice is left.
static bool isOfAttention(Operation *op) {
  return llvm::any_of(op->getBlock()->getOps<plan::ChooseOp>(),
                      [&](plan::ChooseOp choice) {
                        return choice.getKind() == "attention" &&
                               choice.getLoc() == op->getLoc();
                      });
}

/// What the kernel of gemm.cuh cannot do.
static std::optional<std::string> whyNotProduct(tv::ContractionOpInterface op) {
  Value result = op->getResult(0);
  Type element = getType(result).getElementType();
  if (!element.isBF16() && !element.isF16() &&
      element == getType(op.getA()).getElementType()) {
    std::string why = "its elements must be bf16 or f16";
    if (isOfAttention(op))
      why += ", but attention's variant math, which --attention can leave out, "
             "multiplies " +
             std::string(element.isF64() ? "f64" : "f32");
    return why;
  }
  if (element != getType(op.getA()).getElementType())
    return "its result must have the elements of what it multiplies";
  const int64_t rank = getSpace(result.getType()).size();
  if (rank != 2 && rank != 3)
    return "its result must be a matrix or a batch of matrices";
  for (Value tensor : {op.getA(), op.getB(), result})
    if (!isPlain(tensor))
      return "no dimensions may be merged";
  std::optional<ProductOrders> orders = getProductOrders(op);
  if (!orders || !hasBoxes(op.getA(), orders->a.back()) ||
      !hasBoxes(op.getB(), orders->b.back()))
    return "what it contracts must be innermost in memory, in rows of a "
           "multiple of 16 bytes";
  if (!hasOwnBoxes(getType(result), rank - 1))
    return "the columns of its result must be innermost in memory, in rows of "
           "a multiple of 16 bytes";
  return std::nullopt;
}

namespace {
class Hopper final : public GPUTarget {
public:
  explicit Hopper(StringRef name)
      : GPUTarget(name.str(), {.multiprocessors = 132,
                               .threads = 2048,
                               .sharedBytes = 228 << 10}) {}

  ArrayRef<StringLiteral> getVariants() const override {
    static constexpr StringLiteral variants[] = {"flash", "cudnn", "math",
                                                 "cublaslt", "own"};
    return variants;
  }

  // On four H100s experts' rows take 0.6 of what gathering takes.
  bool choosesFetches() const override { return true; }

private:
  std::optional<std::string> whyNotHere(StringRef variant,
                                        Operation *op) const override {
    if (variant == "flash")
      return whyNotFlash(op);
    if (variant == kOwnProduct)
      return whyNotProduct(cast<tv::ContractionOpInterface>(op));
    return GPUTarget::whyNotHere(variant, op);
  }
};
} // namespace

std::unique_ptr<plan::Target> cuda::makeHopper(StringRef name) {
  if (name != "cuda:sm_90a")
    return nullptr;
  return std::make_unique<Hopper>(name);
}
