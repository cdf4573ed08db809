//===- Passes.td - from the global program to one device's -*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LOCALIZE_PASSES_TD
#define TESSERA_LOCALIZE_PASSES_TD

include "TensorView/ContractPass.td"

def InlineRegionsPass : Pass<"tv-inline-regions", "::mlir::ModuleOp"> {
  let summary = "Puts what is written for each device into the program";
  let description = [{
    The body of a `tv.local_region` takes the region's place. A device's part becomes the
    tensor that it is of, in the same view, which is the user's; what stood between the
    parts holds between the tensors, for an op on parts means its part of the op on
    tensors. A `comm` op becomes a `tv.reshard` that `tv-plan-reshards` makes one step of
    the same kind. Other ops are marked: `tv-decompose-reshardings` moves nothing for
    them.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !part = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * _, _]>, of [8, 8]>>
    !sum = tensor<8xf32, #tv.local<#tv.view<#m, [_], partial = [tp : sum]>, of [8]>>
    !whole = tensor<8xf32, #tv.local<#tv.view<#m, [_]>, of [8]>>
    func.func @f(%x: tensor<8x8xf32>) -> tensor<8xf32> {
      %s = tv.local_region %x : (tensor<8x8xf32>) -> tensor<8xf32> {
      ^bb0(%own: !part):
        %0 = tv.reduce sum %own dims [0] : (!part) -> !sum
        %1 = comm.all_reduce %0 over #m [tp] id 0 : (!sum) -> !whole
        tv.yield %1 : !whole
      }
      return %s : tensor<8xf32>
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    #rows = #tv.view<#m, [did(tp) * _, _]>
    #whole = #tv.view<#m, [_]>
    !sum = tensor<8xf32, #tv.view<#m, [_], partial = [tp : sum]>>
    func.func @f(%x: tensor<8x8xf32>) -> tensor<8xf32> {
      %own = tv.constrain %x : (tensor<8x8xf32>) -> tensor<8x8xf32, #rows> to #rows
      %0 = tv.reduce sum %own dims [0] {tv.local} : (tensor<8x8xf32, #rows>) -> !sum
      %1 = tv.reshard %0 {tv.step = "all_reduce"} : (!sum) -> tensor<8xf32, #whole>
      %s = tv.constrain %1 : (tensor<8xf32, #whole>) -> tensor<8xf32> to #whole
      return %s : tensor<8xf32>
    }
    ```
  }];
  let dependentDialects = ["::tessera::comm::CommDialect"];
}

def LocalizePass : ContractPass<"tv-localize", "Planned", "::mlir::ModuleOp"> {
  let summary = "Makes the program one device's: local types and comm ops";
  let description = [{
    Transcribes and decides nothing. Every view becomes the local type of the part
    that it gives a device; ops stay what they are, for their meaning on local
    types is that of their part of the global op; each planned `tv.reshard` becomes
    the `comm` op of its step, numbered in program order, with its location; a remark
    tells of which moves (`tv.move`) that op is a step.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<8xf32, #tv.view<#m, [did(tp) * 4], alloc = (0)>>
    !y = tensor<8xf32, #tv.view<#m, [8], alloc = (0)>>
    func.func @f(%x: !x) -> !y {
      %y = tv.reshard %x plan <all_gather over #m [tp]> : (!x) -> !y
      return %y : !y
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4xf32, #tv.local<#tv.view<#m, [did(tp) * 4], alloc = (0)>, of [8]>>
    !y = tensor<8xf32, #tv.local<#tv.view<#m, [8], alloc = (0)>, of [8]>>
    func.func @f(%x: !x) -> !y {
      %y = comm.all_gather %x over #m [tp] id 0 : (!x) -> !y
      return %y : !y
    }
    ```
  }];
  let dependentDialects = ["::tessera::comm::CommDialect"];
}

def VerifyLocalizedPass : Pass<"tv-verify-localized", "::mlir::ModuleOp"> {
  let summary = "Checks that every tensor is one device's part";
  let description = [{
    The contract of the phase after `tv-localize`: tensors have a `#tv.local`
    encoding, and no op that moves data is left but those of `comm`, each with a
    number of its own.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>
    // rejected: which is not one device's part
    func.func @f(%x: !x) -> !x {
      return %x : !x
    }
    ```
  }];
}

def FetchRowsPass : Pass<"tv-fetch-rows", "::mlir::ModuleOp"> {
  let summary = "Moves the rows that indices name, not the table that has them";
  let description = [{
    A `tv.gather` along its first
    dimension, a `tv.dispatch` or a `tv.combine` reads rows of a table that lies in blocks
    over devices: the whole table, which an all-gather brings, or its own rows, of which a
    reduce-scatter or an all-reduce makes the result. Instead each device fetches the rows
    that it needs, if that takes less time: as many latencies as `phases`, and of its rows
    those that others hold, as if these were spread evenly. `tv.step = "fetch"` on the op
    asks for it in any case. On CPUs a fetch has three phases, in which ranks send how many
    rows each wants, which, and the rows; GPUs read rows in each other's memory between two
    meetings. A remark tells both prices, whichever is less.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !table = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 8], alloc = (0, 1)>, of [8, 8]>>
    !at = tensor<3xi32, #tv.local<#tv.view<#m, [did(tp) * 3], alloc = (0)>, of [6]>>
    !all = tensor<6xi32, #tv.local<#tv.view<#m, [6], alloc = (0)>, of [6]>>
    !part = tensor<6x8xf32, #tv.local<#tv.view<#m, [6, 8], alloc = (0, 1), partial = [tp : sum]>, of [6, 8]>>
    !rows = tensor<3x8xf32, #tv.local<#tv.view<#m, [did(tp) * 3, 8], alloc = (0, 1)>, of [6, 8]>>
    func.func @f(%table: !table, %at: !at) -> !rows {
      %0 = comm.all_gather %at over #m [tp] id 0 : (!at) -> !all
      %1 = tv.gather %table, %0 dim 0 {tv.step = "fetch"} : (!table, !all) -> !part
      %2 = comm.reduce_scatter %1 over #m [tp] id 1 : (!part) -> !rows
      return %2 : !rows
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !table = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 8], alloc = (0, 1)>, of [8, 8]>>
    !at = tensor<3xi32, #tv.local<#tv.view<#m, [did(tp) * 3], alloc = (0)>, of [6]>>
    !rows = tensor<3x8xf32, #tv.local<#tv.view<#m, [did(tp) * 3, 8], alloc = (0, 1)>, of [6, 8]>>
    func.func @f(%table: !table, %at: !at) -> !rows {
      %0 = comm.fetch %table at %at over #m [tp] id 2 loser "reduce-scatter over [tp], 96 bytes, 5.0 us" : (!table, !at) -> !rows
      return %0 : !rows
    }
    ```
  }];
  let options = [Option<"phases", "phases", "unsigned", "3",
                        "Latencies of a fetch">,
                 Option<"chooses", "chooses", "bool", "true",
                        "Whether to fetch where that takes less time; else only what "
                        "tv.step tells">];
  let dependentDialects = ["::tessera::comm::CommDialect",
                           "::mlir::arith::ArithDialect"];
}

#endif // TESSERA_LOCALIZE_PASSES_TD
