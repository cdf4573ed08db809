//===- Passes.td - orders in memory ------------------------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the order in which the pipeline runs them.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_ALLOCATE_PASSES_TD
#define TESSERA_ALLOCATE_PASSES_TD

include "TensorView/ContractPass.td"

def ReorderShardedAxisPass
    : ContractPass<"tv-reorder-sharded-axis", "Planned"> {
  let summary = "Orders both ends of a collective so that it works in place";
  let description = [{
    An all-gather or reduce-scatter over a dimension that is not outermost needs no
    packing when both ends have that dimension outermost in memory. Values that the
    program is free to lay out get such an `alloc`; arguments and results of the
    function are row-major unless the user's view says otherwise.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3]>>
    !y = tensor<4x6xf32, #tv.view<#m, [4, 6]>>
    func.func @f(%x: !x) -> !y {
      %g = tv.gelu tanh %x : (!x) -> !x
      %a = tv.reshard %g plan <all_gather over #m [tp]> : (!x) -> !y
      %y = tv.gelu tanh %a : (!y) -> !y
      return %y : !y
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3]>>
    !y = tensor<4x6xf32, #tv.view<#m, [4, 6]>>
    !g = tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3], alloc = (1, 0)>>
    !a = tensor<4x6xf32, #tv.view<#m, [4, 6], alloc = (1, 0)>>
    func.func @f(%x: !x) -> !y {
      %g = tv.gelu tanh %x : (!x) -> !g
      %a = tv.reshard %g plan <all_gather over #m [tp]> : (!g) -> !a
      %y = tv.gelu tanh %a : (!a) -> !y
      return %y : !y
    }
    ```
  }];
}

def MakeReshardingContiguousPass
    : ContractPass<"tv-make-resharding-contiguous", "Planned"> {
  let summary = "Gives every value an order in memory, copying where it must";
  let description = [{
    Decides `alloc` of every value. Where the shard of an all-gather or
    reduce-scatter could not get the order of the whole, as an argument that is
    row-major, one copy brings it there: a step that moves nothing and changes
    `alloc` alone.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3]>>
    !a = tensor<4x6xf32, #tv.view<#m, [4, 6], alloc = (1, 0)>>
    !y = tensor<4x6xf32, #tv.view<#m, [4, 6]>>
    func.func @f(%x: !x) -> !y {
      %a = tv.reshard %x plan <all_gather over #m [tp]> : (!x) -> !a
      %y = tv.gelu tanh %a : (!a) -> !y
      return %y : !y
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3], alloc = (0, 1)>>
    !c = tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3], alloc = (1, 0)>>
    !a = tensor<4x6xf32, #tv.view<#m, [4, 6], alloc = (1, 0)>>
    !y = tensor<4x6xf32, #tv.view<#m, [4, 6], alloc = (0, 1)>>
    func.func @f(%x: !x) -> !y {
      %c = tv.reshard %x plan <slice over #m []> : (!x) -> !c
      %a = tv.reshard %c plan <all_gather over #m [tp]> : (!c) -> !a
      %y = tv.gelu tanh %a : (!a) -> !y
      return %y : !y
    }
    ```
  }];
}

def VerifyAllocatedPass : Pass<"tv-verify-allocated", "::mlir::func::FuncOp"> {
  let summary = "Checks that every value has an order in memory";
  let description = [{
    The contract of the phase after `tv-make-resharding-contiguous`: `alloc` on
    every view, and the ends of an all-gather or reduce-scatter in one order where
    that makes the shards chunks of the whole.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>
    // rejected: argument #0 has no 'alloc'
    func.func @f(%x: !x) -> !x {
      return %x : !x
    }
    ```
  }];
}

#endif // TESSERA_ALLOCATE_PASSES_TD
