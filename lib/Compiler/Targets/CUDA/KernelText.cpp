//===- KernelText.cpp - kernels as CUDA C++ -------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each top-level loop of a kernel becomes a `__global__` function, of the form
// that its schedule says (KernelForms.h), or that of an attention or a product.
//
//===----------------------------------------------------------------------===//

#include "Compiler/Targets/CUDA/KernelText.h"
#include "Compiler/Targets/CUDA/KernelForms.h"
#include "Compiler/Targets/CUDA/Scheduling.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::cuda;

static LogicalResult writeThread(KernelWriter &out, Operation *loop,
                                 DeviceFunction &function) {
  out.line() << "\n";
  out.openGlobal("1", function.symbol);
  out.line() << "if (blockIdx.x != 0 || threadIdx.x != 0)\n    return;\n";
  if (failed(out.enterFunction(loop)) || failed(out.writeOp(loop)))
    return failure();
  out.close();
  return success();
}

static LogicalResult writeFunction(KernelWriter &out, Operation *op,
                                   DeviceFunction &function) {
  if (auto attention = dyn_cast<plan::AttentionOp>(op))
    return writeAttention(out, attention, function);
  if (auto product = dyn_cast<plan::ProductOp>(op))
    return writeProduct(out, product, function);
  if (auto walks = dyn_cast<plan::BlockWalksOp>(op))
    return writeBlockWalks(out, walks, function);
  schedule::LoopAttr attribute = schedule::getLoop(op);
  function.threads = attribute.getThreads();
  function.items = attribute.getItems();
  function.shared = attribute.getShared();
  auto loop = dyn_cast<scf::ParallelOp>(op);
  if (!loop)
    return writeThread(out, op, function);
  FailureOr<std::vector<SpaceExtent>> space = getSpace(loop);
  if (failed(space))
    return failure();
  function.space = std::move(*space);
  return attribute.isOfRows() ? writeRows(out, loop, function)
                              : writePoints(out, loop, function);
}

FailureOr<KernelSource> cuda::emitKernel(func::FuncOp kernel) {
  KernelSource source;
  source.name = kernel.getName().str();
  if (failed(verifySchedule(kernel, plan::getTarget(kernel).getLimits())))
    return failure();
  KernelWriter out(kernel);
  if (failed(out.nameArguments()))
    return failure();
  SmallVector<Operation *> loops;
  for (Operation &op : kernel.getBody().front())
    if (isa<scf::ParallelOp, scf::ForOp, scf::IfOp, memref::StoreOp,
            plan::AttentionOp, plan::AttentionGradOp, plan::BlockWalksOp,
            plan::ProductOp>(op))
      loops.push_back(&op);
  for (auto [i, loop] : llvm::enumerate(loops)) {
    DeviceFunction function;
    function.symbol =
        loops.size() == 1 ? source.name : source.name + "_" + std::to_string(i);
    if (auto grad = dyn_cast<plan::AttentionGradOp>(loop)) {
      if (failed(
              writeAttentionGrad(out, grad, function.symbol, source.functions)))
        return failure();
      continue;
    }
    if (failed(writeFunction(out, loop, function)))
      return failure();
    source.functions.push_back(std::move(function));
  }
  source.text = "#include \"base/prelude.cuh\"\n#include \"base/random.cuh\"\n";
  if (llvm::any_of(loops, llvm::IsaPred<plan::AttentionGradOp>))
    source.text += "#include \"attention/attention_bwd.cuh\"\n";
  else if (auto attention =
               llvm::find_if(loops, llvm::IsaPred<plan::AttentionOp>);
           attention != loops.end())
    source.text += isOfFew(cast<plan::AttentionOp>(*attention))
                       ? "#include \"attention/attention_few.cuh\"\n"
                       : "#include \"attention/attention_fwd.cuh\"\n";
  else if (llvm::any_of(loops, llvm::IsaPred<plan::BlockWalksOp>))
    source.text += "#include \"attention/attention_walks.cuh\"\n";
  else if (llvm::any_of(loops, llvm::IsaPred<plan::ProductOp>))
    source.text += "#include \"gemm/gemm.cuh\"\n";
  else
    source.text += "#include \"rows/rows.cuh\"\n#include \"rows/tiles.cuh\"\n";
  source.text += "\nusing namespace tessera;\n\n" + out.getText();
  return source;
}
