//===- Passes.td - the memory of a plan -------------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_MEMORY_PASSES_TD
#define TESSERA_MEMORY_PASSES_TD

include "mlir/Pass/PassBase.td"

def Recompute : Pass<"tv-recompute", "::mlir::ModuleOp"> {
  let summary = "Makes values again that memory does not hold until they are read";
  let description = [{
    What a plan holds between its steps at a time, with `memory` bytes at most: what the
    runtime reports as local and symmetric memory, but for what steps need while they run.
    Where that is more, a value that waits for a later step is dropped, and its step runs
    again before that one. What the step reads and is gone by then is made again
    before it, or kept instead. Of all that could be dropped it is what costs the least
    time a byte, until the rest fits: norms and pointwise ops, gathered weights, products.
    Dynamic sizes are at their maximum, and of a choice the preferred variant runs;
    what variants share is not made again, nor what kernels make on tensor cores. The
    search is greedy: the error names the least that it found, not the least there is.

    This is the last pass over the steps: it knows their memory to the byte, and nothing
    after it joins what it takes apart.

    With `memory=3072`

    ```mlir
    #m = #tv.mesh<dp = 2>
    !shard = tensor<8x16xf32, #tv.local<#tv.view<#m, [did(dp) * 8, 16], alloc = (0, 1)>, of [16, 16]>>
    !x = tensor<16x16xf32, #tv.local<#tv.view<#m, [16, 16], alloc = (0, 1)>, of [16, 16]>>
    func.func @main(%x: !x, %s0: !shard, %s1: !shard) -> !x {
      %w0 = comm.all_gather %s0 over #m [dp] id 0 : (!shard) -> !x
      %a = plan.contract %x [0, 1], %w0 [1, 2] to [0, 2] from "tv.matmul" : (!x, !x) -> !x
      %w1 = comm.all_gather %s1 over #m [dp] id 1 : (!shard) -> !x
      %b = plan.contract %a [0, 1], %w1 [1, 2] to [0, 2] from "tv.matmul" : (!x, !x) -> !x
      %c = plan.contract %b [0, 1], %w1 [2, 1] to [0, 2] from "tv.matmul" : (!x, !x) -> !x
      %d = plan.contract %c [0, 1], %w0 [2, 1] to [0, 2] from "tv.matmul" : (!x, !x) -> !x
      return %d : !x
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<dp = 2>
    !shard = tensor<8x16xf32, #tv.local<#tv.view<#m, [did(dp) * 8, 16], alloc = (0, 1)>, of [16, 16]>>
    !x = tensor<16x16xf32, #tv.local<#tv.view<#m, [16, 16], alloc = (0, 1)>, of [16, 16]>>
    func.func @main(%x: !x, %s0: !shard, %s1: !shard) -> !x {
      %w0 = comm.all_gather %s0 over #m [dp] id 0 : (!shard) -> !x
      %a = plan.contract %x [0, 1], %w0 [1, 2] to [0, 2] from "tv.matmul" : (!x, !x) -> !x
      %w1 = comm.all_gather %s1 over #m [dp] id 1 : (!shard) -> !x
      %b = plan.contract %a [0, 1], %w1 [1, 2] to [0, 2] from "tv.matmul" : (!x, !x) -> !x
      %c = plan.contract %b [0, 1], %w1 [2, 1] to [0, 2] from "tv.matmul" : (!x, !x) -> !x
      %w2 = comm.all_gather %s0 over #m [dp] id 2 : (!shard) -> !x
      %d = plan.contract %c [0, 1], %w2 [2, 1] to [0, 2] from "tv.matmul" : (!x, !x) -> !x
      return %d : !x
    }
    ```

    With `memory=2000`, less than the steps themselves need:

    ```mlir
    #m = #tv.mesh<dp = 2>
    !x = tensor<16x16xf32, #tv.local<#tv.view<#m, [16, 16], alloc = (0, 1)>, of [16, 16]>>
    // rejected: between its steps a device holds 2048 bytes in the least way found, more than the 2000 allowed
    func.func @main(%x: !x, %w: !x) -> !x {
      %a = plan.contract %x [0, 1], %w [1, 2] to [0, 2] from "tv.matmul" : (!x, !x) -> !x
      %b = plan.contract %a [0, 1], %w [1, 2] to [0, 2] from "tv.matmul" : (!x, !x) -> !x
      %c = plan.contract %b [0, 1], %w [1, 2] to [0, 2] from "tv.matmul" : (!x, !x) -> !x
      return %c : !x
    }
    ```
  }];
  let options = [
    Option<"bytes", "memory", "int64_t", /*default=*/"INT64_MAX",
           "Bytes that a device may hold between steps">,
    Option<"explain", "explain", "bool", /*default=*/"false",
           "Report what is made again, and the peak, as remark diagnostics too">
  ];
}

#endif // TESSERA_MEMORY_PASSES_TD
