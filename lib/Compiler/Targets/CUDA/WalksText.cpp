//===- WalksText.cpp - the order of gradients through a block mask --------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel is attention_walks.cuh, a template of the mask's blocks.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/KernelForms.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

LogicalResult cuda::writeBlockWalks(KernelWriter &out, plan::BlockWalksOp op,
                                    DeviceFunction &function) {
  ArrayRef<int64_t> of = op.getOf(), blocks = op.getBlocks();
  const Value mask = op.getMask();
  function.threads = 256;
  for (unsigned dim : {0, 1})
    function.space.push_back({SpaceExtent::Kind::Dimension, 0,
                              cast<BlockArgument>(mask).getArgNumber(), dim});
  // At least as many as a head's walks have parts, in both directions.
  function.space.push_back(
      {SpaceExtent::Kind::Constant,
       2 * int64_t(llvm::divideCeil(llvm::divideCeil(of[0], 64) + 255, 128))});
  const std::string walked = function.symbol + "_Walked";
  out.line() << "\nusing " << walked << " = WalkedMask<" << blocks[0] << ", "
             << blocks[1] << ", " << (op.getCausal() ? "true" : "false")
             << ">;\n";
  out.nameParameters();
  out.openGlobal("kWalkThreads", function.symbol);
  out.line() << "static_assert(kWalkThreads == " << function.threads
             << ", \"what the launch says\");\n";
  out.line() << "static_assert(WalkParts(" << of[0] << ", " << of[1] << ", "
             << walked << "::Passes).words() <= "
             << cast<MemRefType>(op.getWalks().getType()).getDimSize(3)
             << ", \"there is room for them\");\n";
  const std::string from = out.name(mask), to = out.name(op.getWalks());
  out.line() << "const " << walked << " mask = {" << from << ".data,\n";
  out.line() << "    {" << from << ".stride[0], " << from << ".stride[1], "
             << from << ".stride[2], " << from << ".stride[3]},\n";
  out.line() << "    " << to << ".data, " << to << ".stride[2], int(" << from
             << ".size[0]), int(" << from << ".size[1]), " << of[0] << ", "
             << of[1] << "};\n";
  out.line() << "for (int i = blockIdx.x; i < mask.count(); i += gridDim.x)\n";
  out.line() << "  make_walks(mask, i);\n";
  out.close();
  return success();
}
