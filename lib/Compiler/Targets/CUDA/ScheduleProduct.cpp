//===- ScheduleProduct.cpp - the tiles of a matrix product ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/Scheduling.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;
using namespace tessera::schedule;

/// Columns and stages, and what a column costs: wider tiles read less.
static constexpr std::array<int64_t, 3> kWidths[] = {
    {256, 4, 100}, {192, 5, 102}, {128, 6, 110}};

/// An epilogue of more ops: more follows a sum than a bias.
constexpr int kShortEpilogue = 4;

/// As GemmConfig of gemm.cuh has them.
constexpr int64_t kDepth = 64, kElement = 2, kPanel = 64 * 64 * kElement;

static int64_t getOperandBytes(ProductAttr tiles) {
  return tiles.getStages() * (kProductRows + tiles.getColumns()) * kDepth *
         kElement;
}

/// That each of two warp groups can have under way: what the stages leave.
static int64_t getStorePanels(ProductAttr tiles) {
  return ((226 << 10) - getOperandBytes(tiles)) / (2 * kPanel) > 1 ? 2 : 1;
}

int64_t cuda::getSharedBytes(ProductAttr tiles) {
  const int64_t barriers = tiles.getStages() * 16;
  return llvm::alignTo(getOperandBytes(tiles) +
                           getStorePanels(tiles) * 2 * kPanel + barriers,
                       1024);
}

void cuda::scheduleProduct(plan::ProductOp product,
                           const plan::Limits &limits) {
  ArrayRef<int64_t> shape =
      cast<MemRefType>(product.getOutputs().front().getType()).getShape();
  int ops = 0;
  product.getEpilogue().walk([&](Operation *) { ++ops; });
  auto set = [&](const std::array<int64_t, 3> &width, int64_t cluster) {
    product->setAttr(kProductAttr,
                     ProductAttr::get(product.getContext(), width[0], width[1],
                                      cluster, ops > kShortEpilogue));
  };
  if (ShapedType::isDynamicShape(shape))
    return set(kWidths[0], 2);
  const int64_t batch = shape.size() == 3 ? shape[0] : 1;
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  const int64_t cluster = rows <= kProductRows ? 1 : 2;
  auto getCost = [&](const std::array<int64_t, 3> &width) {
    const int64_t tiles = batch *
                          llvm::divideCeil(rows, kProductRows * cluster) *
                          llvm::divideCeil(columns, width[0]);
    return width[0] * width[2] *
           llvm::divideCeil(tiles, limits.multiprocessors / cluster);
  };
  set(*llvm::min_element(kWidths,
                         [&](const auto &x, const auto &y) {
                           return getCost(x) < getCost(y);
                         }),
      cluster);
}

LogicalResult cuda::verifyProduct(plan::ProductOp product,
                                  const plan::Limits &limits) {
  ProductAttr tiles = getProduct(product);
  if (!tiles)
    return product.emitError() << "has no schedule; cuda-schedule gives it one";
  if (!llvm::is_contained({128, 192, 256}, tiles.getColumns()))
    return product.emitError()
           << "tiles have 128, 192 or 256 columns, not " << tiles.getColumns();
  if (tiles.getStages() < 2 || tiles.getStages() > 8)
    return product.emitError()
           << "there are 2 to 8 stages, not " << tiles.getStages();
  if (tiles.getCluster() != 1 && tiles.getCluster() != 2)
    return product.emitError()
           << "a cluster has 1 or 2 blocks, not " << tiles.getCluster();
  if (getSharedBytes(tiles) > limits.sharedBytes - kSystemShared)
    return product.emitError()
           << "takes " << getSharedBytes(tiles) << " bytes of shared memory; a "
           << "block has " << limits.sharedBytes - kSystemShared;
  // The next tile begins with the panel that was used longest ago.
  const int64_t stored = tiles.getColumns() / 64 * product.getOutputs().size();
  if (stored % getStorePanels(tiles))
    return product.emitError()
           << "beside " << tiles.getStages() << " stages a warp group stores "
           << getStorePanels(tiles) << " panels at a time, of which the "
           << stored << " of a tile are no multiple";
  return success();
}
