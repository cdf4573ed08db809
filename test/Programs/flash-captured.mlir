// Gradients of captured tensors by the kernels of flash-grad.mlir: here from sums by query and
// by distance. (They may spill.)
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels target=cuda:sm_90a attention=flash" --interpret=4 | FileCheck %s

// CHECK: plan.attention_grad {{.*}} ["distance", "query"]
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 1552 bytes 0 copies
// RAN tp=3: all-reduce of 2 2072 bytes 0 copies
// RAN tp=4: all-reduce of 2 2328 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x130x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<1x2x130x64xbf16>
!lse = tensor<1x2x130xf32>
!row_of_lse = tensor<2x130xf32>
!far_of_lse = tensor<2x64xf32>
func.func @main(%do: !q, %q: !q, %k: !q, %v: !q, %factor: !row_of_lse, %far: !far_of_lse)
    -> (!a, !a, !a, !row_of_lse, !far_of_lse) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !q, !q) -> (!a, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %f = tv.load %factor[%h, %qi] : !row_of_lse -> f32
      %d = arith.subi %qi, %ki : index
      %most = arith.constant 63 : index
      %at = arith.minsi %d, %most : index
      %r = tv.load %far[%h, %at] : !far_of_lse -> f32
      %x = arith.mulf %s, %f : f32
      %y = arith.addf %x, %r : f32
      tv.yield %y : f32
    }
  %dq, %dk, %dv, %dfactor, %dfar = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
      captured %factor, %far
      : (!q, !q, !q, !q, !a, !lse, !row_of_lse, !far_of_lse) -> (!a, !a, !a, !row_of_lse, !far_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %f = tv.load %factor[%h, %qi] : !row_of_lse -> f32
      %d = arith.subi %qi, %ki : index
      %most = arith.constant 63 : index
      %at = arith.minsi %d, %most : index
      %r = tv.load %far[%h, %at] : !far_of_lse -> f32
      %x = arith.mulf %s, %f : f32
      %y = arith.addf %x, %r : f32
      tv.yield %y : f32
    }
  return %dq, %dk, %dv, %dfactor, %dfar : !a, !a, !a, !row_of_lse, !far_of_lse
}

// -----

// By score: of a table of two loaded indices; and by key. Two heads a group.
// (It may spill 100 bytes.)
// CHECK: plan.attention_grad {{.*}} ["key", "score"]
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 2160 bytes 0 copies
// RAN tp=3: all-reduce of 2 2892 bytes 0 copies
// RAN tp=4: all-reduce of 2 3352 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x66x64xf16, #tv.view<#m, [_, (did(tp) * _ | 2) * 2, _, _]>>
!k = tensor<1x2x130x64xf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<1x4x66x64xf16>
!lse = tensor<1x4x66xf32>
!table_of_lse = tensor<5x4xf32>
!bias_of_lse = tensor<4x130xf32>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k, %table: !table_of_lse, %bias: !bias_of_lse,
                %of_query: tensor<66xi32> {tv.range = [0, 4]},
                %of_key: tensor<130xi32> {tv.range = [0, 3]}) -> (!a, !k, !k, !table_of_lse, !bias_of_lse) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) : (!q, !k, !k) -> (!a, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %i32 = tv.load %of_query[%qi] : tensor<66xi32> -> i32
      %j32 = tv.load %of_key[%ki] : tensor<130xi32> -> i32
      %i = arith.index_cast %i32 : i32 to index
      %j = arith.index_cast %j32 : i32 to index
      %c = tv.load %table[%i, %j] : !table_of_lse -> f32
      %g = tv.load %bias[%h, %ki] : !bias_of_lse -> f32
      %x = arith.addf %s, %g : f32
      %y = arith.addf %x, %c : f32
      tv.yield %y : f32
    }
  %dq, %dk, %dv, %dtable, %dbias = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125)
      captured %table, %bias
      : (!q, !q, !k, !k, !a, !lse, !table_of_lse, !bias_of_lse) -> (!a, !k, !k, !table_of_lse, !bias_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %i32 = tv.load %of_query[%qi] : tensor<66xi32> -> i32
      %j32 = tv.load %of_key[%ki] : tensor<130xi32> -> i32
      %i = arith.index_cast %i32 : i32 to index
      %j = arith.index_cast %j32 : i32 to index
      %c = tv.load %table[%i, %j] : !table_of_lse -> f32
      %g = tv.load %bias[%h, %ki] : !bias_of_lse -> f32
      %x = arith.addf %s, %g : f32
      %y = arith.addf %x, %c : f32
      tv.yield %y : f32
    }
  return %dq, %dk, %dv, %dtable, %dbias : !a, !k, !k, !table_of_lse, !bias_of_lse
}

// -----

// How far positions may be apart is not known.
// CHECK: plan.attention_grad {{.*}} ["distance", "query"]
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 1088 bytes 0 copies
// RAN tp=3: all-reduce of 2 1452 bytes 0 copies
// RAN tp=4: all-reduce of 2 1632 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x130x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<1x2x130x64xbf16>
!lse = tensor<1x2x130xf32>
!row_of_lse = tensor<2x130xf32>
!far_of_lse = tensor<2x?xf32>
func.func @main(%do: !q, %q: !q, %k: !q, %v: !q, %factor: !row_of_lse, %far: !far_of_lse {tv.dims = ["m"]})
    -> (!a, !a, !a, !row_of_lse, !far_of_lse)
    attributes {tv.sizes = {m = 64}} {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !q, !q) -> (!a, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %f = tv.load %factor[%h, %qi] : !row_of_lse -> f32
      %d = arith.subi %qi, %ki : index
      %most = arith.constant 63 : index
      %at = arith.minsi %d, %most : index
      %r = tv.load %far[%h, %at] : !far_of_lse -> f32
      %x = arith.mulf %s, %f : f32
      %y = arith.addf %x, %r : f32
      tv.yield %y : f32
    }
  %dq, %dk, %dv, %dfactor, %dfar = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
      captured %factor, %far
      : (!q, !q, !q, !q, !a, !lse, !row_of_lse, !far_of_lse) -> (!a, !a, !a, !row_of_lse, !far_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %f = tv.load %factor[%h, %qi] : !row_of_lse -> f32
      %d = arith.subi %qi, %ki : index
      %most = arith.constant 63 : index
      %at = arith.minsi %d, %most : index
      %r = tv.load %far[%h, %at] : !far_of_lse -> f32
      %x = arith.mulf %s, %f : f32
      %y = arith.addf %x, %r : f32
      tv.yield %y : f32
    }
  return %dq, %dk, %dv, %dfactor, %dfar : !a, !a, !a, !row_of_lse, !far_of_lse
}
