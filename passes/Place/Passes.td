//===- Passes.td - ops that move nothing, and reshards -----*- tablegen -*-===//
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

#ifndef TESSERA_PLACE_PASSES_TD
#define TESSERA_PLACE_PASSES_TD

include "TensorView/ContractPass.td"

def DecomposeCompositesPass : Pass<"tv-decompose-composites"> {
  let summary = "Replaces composites whose loops are split by core ops";
  let description = [{
    A composite such as `tv.softmax` or `tv.layer_norm` needs the dimension that it
    normalizes whole on each device. Where a view splits it, the composite becomes
    the core ops that define it, whose reductions may be split. Their values have no
    view yet: propagate again. One of which results alone are split stays where it takes
    no longer than two latencies, which its sums would: each device makes them whole.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !columns = tensor<4x8xf32, #tv.view<#m, [4, did(tp) * 4]>>
    func.func @f(%x: !columns) -> !columns {
      %r = tv.softmax %x dim 1 : (!columns) -> !columns
      return %r : !columns
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !columns = tensor<4x8xf32, #tv.view<#m, [4, did(tp) * 4]>>
    !rows = tensor<4xf32>
    !full = tensor<4x8xf32>
    func.func @f(%x: !columns) -> !columns {
      %max = tv.reduce max %x dims [1] : (!columns) -> !rows
      %maxes = tv.broadcast %max dims [0] : (!rows) -> !full
      %e = tv.map %x, %maxes : (!columns, !full) -> !full (%u: f32, %v: f32) {
        %d = arith.subf %u, %v : f32
        %p = math.exp %d : f32
        tv.yield %p : f32
      }
      %sum = tv.reduce sum %e dims [1] : (!full) -> !rows
      %sums = tv.broadcast %sum dims [0] : (!rows) -> !full
      %r = tv.map %e, %sums : (!full, !full) -> !columns (%u: f32, %v: f32) {
        %q = arith.divf %u, %v : f32
        tv.yield %q : f32
      }
      return %r : !columns
    }
    ```

    A composite without a sharding rule, as `tv.conv`, is always replaced; where
    `ruleless` is given, before views are propagated, those alone.

    With `all`, others too:

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = tv.silu %x : (tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    }
    ```

    becomes

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = tv.map %x : (tensor<4xf32>) -> tensor<4xf32> (%u: f32) {
        %m = arith.negf %u : f32
        %e = math.exp %m : f32
        %one = arith.constant 1.0 : f32
        %s = arith.addf %one, %e : f32
        %r = arith.divf %u, %s : f32
        tv.yield %r : f32
      }
      return %y : tensor<4xf32>
    }
    ```
  }];
  let options = [
    Option<"all", "all", "bool", /*default=*/"false",
           "Replace every composite, split or not">,
    Option<"ruleless", "ruleless", "bool", /*default=*/"false",
           "Replace those without a sharding rule alone">
  ];
  let dependentDialects = ["::tessera::tv::TensorViewDialect"];
}

def SplitKeysPass : Pass<"tv-split-keys", "::mlir::func::FuncOp"> {
  let summary = "Attention over keys that devices share joins what each makes of its own";
  let description = [{
    Where devices share the keys of an attention, and each has its queries, each may attend
    to its own keys: a run of keys becomes a head. The log-sum-exps of all runs, which move
    in one all-gather, say what each counts, and the results are one sum over the devices
    (FlashDecoding). Done where that takes less time than to gather keys and values: queries
    are few, as a decoder's. Not of block masks, sequences, pages, dropout or dynamic
    numbers of keys, which are gathered. Values in between have no view yet: propagate again.

    ```mlir
    #m = #tv.mesh<cp = 2>
    !q = tensor<1x1x1x4xf32, #tv.view<#m, [1, 1, 1, 4]>>
    !k = tensor<1x1x262144x4xf32, #tv.view<#m, [1, 1, did(cp) * 131072, 4]>>
    !l = tensor<1x1x1xf32, #tv.view<#m, [1, 1, 1]>>
    func.func @f(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
      %o, %lse = tv.attention %q, %k, %v scale(0.5) : (!q, !k, !k) -> (!q, !l)
      return %o, %lse : !q, !l
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<cp = 2>
    !q = tensor<1x1x1x4xf32, #tv.view<#m, [1, 1, 1, 4]>>
    !k = tensor<1x1x262144x4xf32, #tv.view<#m, [1, 1, did(cp) * 131072, 4]>>
    !l = tensor<1x1x1xf32, #tv.view<#m, [1, 1, 1]>>
    !all = tensor<1x1x2x1xf32, #tv.view<#m, [1, 1, 2, 1]>>
    func.func @f(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
      %q0 = tv.reshape %q : (!q) -> tensor<1x1x1x1x4xf32>
      %q1 = tv.broadcast %q0 dims [0, 1, 3, 4, 5] : (tensor<1x1x1x1x4xf32>) -> tensor<1x1x2x1x1x4xf32>
      %qs = tv.reshape %q1 : (tensor<1x1x2x1x1x4xf32>) -> tensor<1x2x1x4xf32>
      %k0 = tv.reshape %k : (!k) -> tensor<1x1x2x131072x4xf32>
      %ks = tv.reshape %k0 : (tensor<1x1x2x131072x4xf32>) -> tensor<1x2x131072x4xf32>
      %v0 = tv.reshape %v : (!k) -> tensor<1x1x2x131072x4xf32>
      %vs = tv.reshape %v0 : (tensor<1x1x2x131072x4xf32>) -> tensor<1x2x131072x4xf32>
      %o, %lses = tv.attention %qs, %ks, %vs scale(0.5)
          : (tensor<1x2x1x4xf32>, tensor<1x2x131072x4xf32>, tensor<1x2x131072x4xf32>) -> (tensor<1x2x1x4xf32>, tensor<1x2x1xf32>)
      %own = tv.reshape %lses : (tensor<1x2x1xf32>) -> tensor<1x1x2x1x1xf32>
      %own1 = tv.transpose %own perm [0, 1, 3, 2, 4] : (tensor<1x1x2x1x1xf32>) -> tensor<1x1x1x2x1xf32>
      %all = tv.reshape %own1 : (tensor<1x1x1x2x1xf32>) -> !all
      %most = tv.reduce max %all dims [2] : (!all) -> tensor<1x1x1xf32>
      %most1 = tv.broadcast %most dims [0, 1, 3] : (tensor<1x1x1xf32>) -> tensor<1x1x2x1xf32>
      %weights = tv.map %all, %most1 : (!all, tensor<1x1x2x1xf32>) -> tensor<1x1x2x1xf32> (%a: f32, %b: f32) {
        %d = arith.subf %a, %b : f32
        %e = math.exp %d : f32
        %lowest = arith.constant 0xFF800000 : f32
        %none = arith.cmpf oeq, %a, %lowest : f32
        %zero = arith.constant 0.0 : f32
        %w = arith.select %none, %zero, %e : f32
        tv.yield %w : f32
      }
      %sum = tv.reduce sum %weights dims [2] : (tensor<1x1x2x1xf32>) -> tensor<1x1x1xf32>
      %lse = tv.map %most, %sum : (tensor<1x1x1xf32>, tensor<1x1x1xf32>) -> !l (%a: f32, %b: f32) {
        %d = math.log %b : f32
        %e = arith.addf %a, %d : f32
        %lowest = arith.constant 0xFF800000 : f32
        %none = arith.cmpf oeq, %a, %lowest : f32
        %w = arith.select %none, %a, %e : f32
        tv.yield %w : f32
      }
      %lse0 = tv.reshape %lse : (!l) -> tensor<1x1x1x1xf32>
      %lse1 = tv.broadcast %lse0 dims [0, 1, 3, 4] : (tensor<1x1x1x1xf32>) -> tensor<1x1x2x1x1xf32>
      %weight = tv.map %own, %lse1
          : (tensor<1x1x2x1x1xf32>, tensor<1x1x2x1x1xf32>) -> tensor<1x1x2x1x1xf32> (%a: f32, %b: f32) {
        %d = arith.subf %a, %b : f32
        %e = math.exp %d : f32
        %lowest = arith.constant 0xFF800000 : f32
        %none = arith.cmpf oeq, %a, %lowest : f32
        %zero = arith.constant 0.0 : f32
        %w = arith.select %none, %zero, %e : f32
        tv.yield %w : f32
      }
      %parts = tv.reshape %o : (tensor<1x2x1x4xf32>) -> tensor<1x1x2x1x1x4xf32>
      %weight1 = tv.broadcast %weight dims [0, 1, 2, 3, 4] : (tensor<1x1x2x1x1xf32>) -> tensor<1x1x2x1x1x4xf32>
      %weighted = tv.map %parts, %weight1
          : (tensor<1x1x2x1x1x4xf32>, tensor<1x1x2x1x1x4xf32>) -> tensor<1x1x2x1x1x4xf32> (%a: f32, %b: f32) {
        %d = arith.mulf %a, %b : f32
        tv.yield %d : f32
      }
      %joined = tv.reduce sum %weighted dims [2] : (tensor<1x1x2x1x1x4xf32>) -> tensor<1x1x1x1x4xf32>
      %y = tv.reshape %joined : (tensor<1x1x1x1x4xf32>) -> !q
      return %y, %lse : !q, !l
    }
    ```
  }];
  let options = [
    Option<"explain", "explain", "bool", /*default=*/"false",
           "Report each choice as a remark diagnostic">
  ];
  let dependentDialects = ["::tessera::tv::TensorViewDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def SplitTopKPass : Pass<"tv-split-top-k", "::mlir::func::FuncOp"> {
  let summary = "The largest elements of a split dimension move as candidates";
  let description = [{
    The k largest elements are among the k largest of what each device has. Where that
    takes less time than to combine one maximum after the other, and its index, all
    devices get these candidates and choose again; or all elements, where these are fewer
    bytes. Values in between have no view yet: propagate again.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<10xf32, #tv.view<#m, [did(tp) * 5]>>
    !v = tensor<2xf32, #tv.view<#m, [2]>>
    !i = tensor<2xi32, #tv.view<#m, [2]>>
    func.func @f(%x: !x) -> (!v, !i) {
      %v, %i = tv.top_k %x dim 0 : (!x) -> (!v, !i)
      return %v, %i : !v, !i
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<10xf32, #tv.view<#m, [did(tp) * 5]>>
    !v = tensor<2xf32, #tv.view<#m, [2]>>
    !i = tensor<2xi32, #tv.view<#m, [2]>>
    !all_v = tensor<4xf32, #tv.view<#m, [4]>>
    !all_i = tensor<4xi32, #tv.view<#m, [4]>>
    func.func @f(%x: !x) -> (!v, !i) {
      %runs = tv.reshape %x : (!x) -> tensor<2x5xf32>
      %best, %at = tv.top_k %runs dim 1 : (tensor<2x5xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
      %run = tv.iota 0 : () -> tensor<2x2xi32>
      %index = tv.map %at, %run : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi32> (%a: i32, %r: i32) {
        %size = arith.constant 5 : i32
        %before = arith.muli %r, %size : i32
        %sum = arith.addi %a, %before : i32
        tv.yield %sum : i32
      }
      %values = tv.reshape %best : (tensor<2x2xf32>) -> !all_v
      %indices = tv.reshape %index : (tensor<2x2xi32>) -> !all_i
      %v, %place = tv.top_k %values dim 0 : (!all_v) -> (!v, !i)
      %wanted = tv.broadcast %place dims [0] : (!i) -> tensor<2x4xi32>
      %known = tv.broadcast %indices dims [1] : (!all_i) -> tensor<2x4xi32>
      %candidate = tv.iota 1 : () -> tensor<2x4xi32>
      %taken = tv.map %wanted, %candidate, %known
        : (tensor<2x4xi32>, tensor<2x4xi32>, tensor<2x4xi32>) -> tensor<2x4xi32> (%w: i32, %c: i32, %n: i32) {
        %is_it = arith.cmpi eq, %w, %c : i32
        %zero = arith.constant 0 : i32
        %t = arith.select %is_it, %n, %zero : i32
        tv.yield %t : i32
      }
      %i = tv.reduce sum %taken dims [1] : (tensor<2x4xi32>) -> !i
      return %v, %i : !v, !i
    }
    ```
  }];
  let options = [
    Option<"explain", "explain", "bool", /*default=*/"false",
           "Report each choice as a remark diagnostic">
  ];
  let dependentDialects = ["::tessera::tv::TensorViewDialect",
                           "::mlir::arith::ArithDialect"];
}

def SplitScansPass : Pass<"tv-split-scans"> {
  let summary = "Running sums along a split dimension move totals alone";
  let description = [{
    A device sums what it has; the total of what is before comes from the totals of
    all, one element of each run. Such values have no view yet: propagate again. The
    sum's operand and result lie alike, in runs of several elements.

    ```mlir
    #m = #tv.mesh<tp = 3>
    !x = tensor<7xi32, #tv.view<#m, [did(tp) * 3]>>
    func.func @f(%x: !x) -> !x {
      %y = tv.cumsum %x dim 0 : (!x) -> !x
      return %y : !x
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 3>
    !x = tensor<7xi32, #tv.view<#m, [did(tp) * 3]>>
    !all = tensor<3xi32, #tv.view<#m, [3]>>
    !one_more = tensor<4xi32, #tv.view<#m, [4]>>
    func.func @f(%x: !x) -> !x {
      %p = tv.pad %x low [0] high [2] value 0 : i32 : (!x) -> tensor<9xi32>
      %runs = tv.reshape %p : (tensor<9xi32>) -> tensor<3x3xi32>
      %sums = tv.cumsum %runs dim 1 : (tensor<3x3xi32>) -> tensor<3x3xi32>
      %last = tv.slice %sums offsets [0, 2] : (tensor<3x3xi32>) -> tensor<3x1xi32>
      %totals = tv.reshape %last : (tensor<3x1xi32>) -> tensor<3xi32>
      %after = tv.cumsum %totals dim 0 : (tensor<3xi32>) -> !all
      %shifted = tv.pad %after low [1] high [0] value 0 : i32 : (!all) -> !one_more
      %before = tv.slice %shifted offsets [0] : (!one_more) -> !all
      %each = tv.broadcast %before dims [0] : (!all) -> tensor<3x3xi32>
      %added = tv.add %sums, %each : (tensor<3x3xi32>, tensor<3x3xi32>) -> tensor<3x3xi32>
      %flat = tv.reshape %added : (tensor<3x3xi32>) -> tensor<9xi32>
      %y = tv.slice %flat offsets [0] : (tensor<9xi32>) -> !x
      return %y : !x
    }
    ```
  }];
  let dependentDialects = ["::tessera::tv::TensorViewDialect"];
}

def ShareReductionsPass : ContractPass<"tv-share-reductions", "Propagated"> {
  let summary = "Gives what is reduced twice to both who need it";
  let description = [{
    A gradient makes the statistics of a norm anew from the norm's input, and so
    would move them again where a view splits a row. Of equal ops that sum or
    otherwise combine, products too, the first one stays. Equal pointwise values
    stay as often as they are there, for a kernel makes them where it reads them:
    one alone would be kept in memory from its first use to its last.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !columns = tensor<4x8xf32, #tv.view<#m, [4, did(tp) * 4]>>
    !rows = tensor<4xf32, #tv.view<#m, [4]>>
    func.func @f(%x: !columns) -> (!rows, !rows, !columns) {
      %a = tv.exp %x : (!columns) -> !columns
      %r = tv.reduce sum %a dims [1] : (!columns) -> !rows
      %b = tv.exp %x : (!columns) -> !columns
      %s = tv.reduce sum %b dims [1] : (!columns) -> !rows
      %c = tv.exp %x : (!columns) -> !columns
      return %r, %s, %c : !rows, !rows, !columns
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !columns = tensor<4x8xf32, #tv.view<#m, [4, did(tp) * 4]>>
    !rows = tensor<4xf32, #tv.view<#m, [4]>>
    func.func @f(%x: !columns) -> (!rows, !rows, !columns) {
      %a = tv.exp %x : (!columns) -> !columns
      %r = tv.reduce sum %a dims [1] : (!columns) -> !rows
      %c = tv.exp %x : (!columns) -> !columns
      return %r, %r, %c : !rows, !rows, !columns
    }
    ```
  }];
}

def DecomposeReshardingsPass
    : ContractPass<"tv-decompose-reshardings", "Propagated"> {
  let summary = "Makes each op one that moves nothing, and adds tv.reshard";
  let description = [{
    Where the views of an op's operands and results disagree, the op is divided
    over the mesh in the way that takes the least time with the moves before and after
    it; what goes from peer to peer for its operands goes at once, and takes as long as
    the busiest device (tv-merge-reshards). On a tie weights stay where they are, then
    large operands do. A reduction over a
    split factor gives a partial result. What is added to such a result once, as
    the bias of a linear, becomes partial itself, which moves nothing. Partial
    values are combined later where that takes less time.

    `explain` says in a remark how each op is placed that is not changed again, and how
    otherwise, with the bytes and the time of the op and the moves around it.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x8xf32, #tv.view<#m, [4, did(tp) * 4]>>
    !w = tensor<6x8xf32, #tv.view<#m, [6, did(tp) * 4]>>
    !b = tensor<6xf32, #tv.view<#m, [6]>>
    !y = tensor<4x6xf32, #tv.view<#m, [4, 6]>>
    func.func @f(%x: !x, %w: !w, %b: !b) -> !y {
      %y = tv.linear %x, %w bias %b : (!x, !w, !b) -> !y
      return %y : !y
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x8xf32, #tv.view<#m, [4, did(tp) * 4]>>
    !w = tensor<6x8xf32, #tv.view<#m, [6, did(tp) * 4]>>
    !b = tensor<6xf32, #tv.view<#m, [6]>>
    !y = tensor<4x6xf32, #tv.view<#m, [4, 6]>>
    !c = tensor<6xf32, #tv.view<#m, [6], partial = [tp : sum]>>
    !p = tensor<4x6xf32, #tv.view<#m, [4, 6], partial = [tp : sum]>>
    func.func @f(%x: !x, %w: !w, %b: !b) -> !y {
      %c = tv.reshard %b : (!b) -> !c
      %p = tv.linear %x, %w bias %c : (!x, !w, !c) -> !p
      %y = tv.reshard %p : (!p) -> !y
      return %y : !y
    }
    ```

    With `explain`:

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<4x8xf32, #tv.view<#m, [4, did(tp) * 4]>>
    !y = tensor<4xf32, #tv.view<#m, [4]>>
    func.func @f(%x: !x) -> !y {
      // remark: takes [4, did(tp) * 4] and gives [4], partial = [tp : sum]
      %y = tv.reduce sum %x dims [1] : (!x) -> !y
      return %y : !y
    }
    ```
  }];
  let options = [
    Option<"explain", "explain", "bool", /*default=*/"false",
           "Report each choice that remains as a remark diagnostic">,
    Option<"explainLater", "explain-later", "bool", /*default=*/"false",
           "Leave that to tv-elide-reshards or tv-place-together">
  ];
}

def VerifyDecomposedPass
    : Pass<"tv-verify-decomposed", "::mlir::func::FuncOp"> {
  let summary = "Checks that each op is local or a tv.reshard";
  let description = [{
    The contract of the phase after `tv-decompose-reshardings`: for each op but
    `tv.reshard`, a device computes its part of the results from its parts of the
    operands.

    ```mlir
    #m = #tv.mesh<tp = 2>
    !x = tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>
    !y = tensor<f32, #tv.view<#m, []>>
    func.func @f(%x: !x) -> !y {
      // rejected: result #0 lies as [], but must lie as [], partial = [tp : sum]
      %y = tv.reduce sum %x dims [0] : (!x) -> !y
      return %y : !y
    }
    ```
  }];
}

def WarnIdleRanksPass : ContractPass<"tv-warn-idle-ranks", "Propagated"> {
  let summary = "Warns of ranks that have little or nothing to do";
  let description = [{
    A rank has nothing to do where a dimension has fewer elements than parts, or fewer
    runs of them, as `(did(tp) * _ | 2) * 4`, and does what others do where an axis of
    the mesh divides no loop. If the ranks with the least do nothing, or those with the
    most twice what is an even part or more, a warning tells both shares and whose they
    are, and notes tell the views that would use all. Work is counted in loop iterations,
    of each rank; sizes that `tv.sizes` declares count at their maximum. Where all work, but
    some hold nothing of an argument, a warning tells the shares and that.

    ```mlir
    #m = #tv.mesh<tp = 4>
    !x = tensor<2x8xf32, #tv.view<#m, [did(tp), 8]>>
    // warning: of the work ranks 0 and 1 do 50.0 % each and ranks 2 and 3 do 0.0 % each, where 25.0 % is an even part
    func.func @f(%x: !x) -> !x {
      %y = tv.exp %x : (!x) -> !x
      return %y : !x
    }
    ```

    A note says that with `[did(tp:(1)2) * _, _]` two ranks share each row.
  }];
}

def MoveBetweenDevicesPass
    : ContractPass<"tv-move-between-devices", "Propagated"> {
  let summary = "Moves arguments and results that lie on others' devices";
  let description = [{
    All values lie on the devices of one mesh. An argument or result that is to lie on
    those of another, which its `tv.user_view` names, gets a reshard of whole blocks to or
    from these, unless each device has the same there. An argument that is returned as it
    lies stays.

    Such a move goes through pointwise ops, and those that only give elements other
    indices. With others that it meets it is one exchange, or none, where that takes less
    time: `tv.exp` of an argument runs on its devices if the result is there, too, and
    `tv.add` of values on two devices on those of the result. Where others need what such
    ops compute they run there once more. None goes past a reshard that the source has and
    that changes the view.

    ```mlir
    #m = #tv.mesh<x = 2>
    #n = #tv.mesh<x = 2, devices = [1, 0]>
    !x = tensor<8xf32, #tv.view<#m, [did(x) * 4]>>
    func.func @f(%x: !x {tv.user_view = #tv.view<#n, [did(x) * _]>}) -> !x {
      return %x : !x
    }
    ```

    becomes

    ```mlir
    #m = #tv.mesh<x = 2>
    #n = #tv.mesh<x = 2, devices = [1, 0]>
    !x = tensor<8xf32, #tv.view<#m, [did(x) * 4]>>
    !y = tensor<8xf32, #tv.view<#n, [did(x) * 4]>>
    func.func @f(%x: !y {tv.user_view = #tv.view<#n, [did(x) * _]>}) -> !x {
      %0 = tv.reshard %x : (!y) -> !x
      return %0 : !x
    }
    ```

    With the result on `#n`, too, `tv.exp` needs no move:

    ```mlir
    #m = #tv.mesh<x = 2>
    #n = #tv.mesh<x = 2, devices = [1, 0]>
    !x = tensor<8xf32, #tv.view<#m, [did(x) * 4]>>
    func.func @f(%x: !x {tv.user_view = #tv.view<#n, [did(x) * _]>})
        -> (!x {tv.user_view = #tv.view<#n, [did(x) * _]>}) {
      %0 = tv.exp %x : (!x) -> !x
      return %0 : !x
    }
    ```

    becomes

    ```mlir
    #n = #tv.mesh<x = 2, devices = [1, 0]>
    !y = tensor<8xf32, #tv.view<#n, [did(x) * 4]>>
    func.func @f(%x: !y {tv.user_view = #tv.view<#n, [did(x) * _]>})
        -> (!y {tv.user_view = #tv.view<#n, [did(x) * _]>}) {
      %0 = tv.exp %x : (!y) -> !y
      return %0 : !y
    }
    ```
  }];
}

#endif // TESSERA_PLACE_PASSES_TD
