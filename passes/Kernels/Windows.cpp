//===- Windows.cpp - slices that move no data -----------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a slice keeps is a window where views leave it in one piece on each
// device: then it is an alias, else a kernel copies it.
//
//===----------------------------------------------------------------------===//

#include "Kernels/Windows.h"
#include "Kernels/KernelEmitter.h"

using namespace mlir;
using namespace tessera;

std::optional<SmallVector<int64_t>> tessera::getWindow(Operation *op) {
  auto box = dyn_cast<tv::WindowOpInterface>(op);
  if (!box || box.getWhole().getDefiningOp() == op)
    return std::nullopt;
  tv::LocalAttr from = getLocal(box.getWhole());
  std::vector<layout::Dim> sources = from.getLayoutView().dims,
                           targets =
                               getLocal(op->getResult(0)).getLayoutView().dims;
  Result<std::vector<layout::View>> views =
      tv::getBoxViews(box, from.getLayoutView(), from.getLayoutMesh());
  if (!views || views->front().dims != targets ||
      sources.size() != targets.size())
    return std::nullopt;
  SmallVector<int64_t> at;
  const layout::Shape all = box.getBoxOffsets().front();
  ArrayRef<int64_t> offsets = all;
  for (auto [source, target] : llvm::zip_equal(sources, targets)) {
    bool kept = source == target && offsets.front() == 0;
    if (source.span != target.span || (source.span > 1 && !kept))
      return std::nullopt;
    at.push_back(offsets.front());
    offsets = offsets.drop_front(source.span);
  }
  return at;
}

std::optional<SmallVector<int64_t>> tessera::getPermutation(Operation *op) {
  // Shares memory, and says of all dimensions whose they are.
  auto rule = dyn_cast_or_null<tv::ShardingRuleOpInterface>(op);
  if (!rule || !op->hasTrait<OpTrait::SharesMemory>() ||
      isa<tv::WindowOpInterface>(op))
    return std::nullopt;
  const layout::Rule dims = rule.getShardingRule();
  return llvm::map_to_vector(
      dims.results.front(), [&](const layout::DimFactors &factors) -> int64_t {
        return llvm::find(dims.operands.front(), factors) -
               dims.operands.front().begin();
      });
}

/// Whether all who read a value that lies so copy it.
static bool isCopied(Value value, const Memory &memory) {
  return !value.use_empty() &&
         llvm::all_of(value.getUsers(), [&](Operation *user) {
           if (isa<func::ReturnOp>(user))
             return true;
           if (!isa<tv::ReinterpretOpInterface>(user))
             return false;
           Type from = value.getType(), to = user->getResult(0).getType();
           return !mayBeReshaped(memory, from, to) ||
                  isCopied(user->getResult(0),
                           *getReshapedMemory(memory, from, to));
         });
}

bool tessera::isCopiedWindow(Operation *op) {
  if (!getWindow(op))
    return false;
  Type whole = cast<tv::WindowOpInterface>(op).getWhole().getType(),
       box = op->getResult(0).getType();
  return isCopied(op->getResult(0),
                  getBoxMemory(getOwnMemory(whole), whole, box));
}

/// Whether what a device keeps of a whole dimension is one run of it.
static bool isOneRun(const layout::Product &product) {
  bool stored = false;
  for (const layout::Factor &factor : product) {
    if (factor.kind == layout::Factor::Kind::Group)
      return false;
    if (factor.kind != layout::Factor::Kind::Device)
      stored = true;
    else if (stored)
      return false;
  }
  return true;
}

bool tessera::isWindow(comm::SliceOp slice) {
  if (slice.getNumOperands() != 1)
    return false;
  Type input = slice.getInputs().front().getType(),
       result = slice.getResults().front().getType();
  if (getLocal(input).getLayoutView().partial !=
      getLocal(result).getLayoutView().partial)
    return false;
  Space from = getSpace(input), to = getSpace(result);
  if (from.size() != to.size())
    return false;
  for (auto [a, b] : llvm::zip_equal(from, to)) {
    bool whole = llvm::all_of(a.product, [](const layout::Factor &factor) {
      return factor.kind == layout::Factor::Kind::Stored ||
             factor.kind == layout::Factor::Kind::Rest;
    });
    if (a.extents != b.extents || (a != b && !(whole && isOneRun(b.product))))
      return false;
  }
  return true;
}
