// The gradients of two captured tensors of one rank have the extents of their own.
// RUN: tessera-opt %s --tessera="mesh=tp=2 to=local" --interpret=2 --interpret-sizes=s=5 -o /dev/null | FileCheck %s
// CHECK: interpret: @main equals the source on 2 ranks
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x?x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<1x2x?x4xf32>
!lse = tensor<1x2x?xf32>
!row_of_lse = tensor<2x?xf32>
!far_of_lse = tensor<2x3xf32>
func.func @main(%do: !q {tv.dims = ["s"]}, %q: !q {tv.dims = ["s"]}, %k: !q {tv.dims = ["s"]}, %v: !q {tv.dims = ["s"]}, %factor: !row_of_lse {tv.dims = ["s"]}, %far: !far_of_lse)
    -> (!a, !a, !a, !row_of_lse, !far_of_lse) attributes {tv.sizes = {s = 8 : i64}} {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !q, !q) -> (!a, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %f = tv.load %factor[%h, %qi] : !row_of_lse -> f32
      %d = arith.subi %qi, %ki : index
      %most = arith.constant 2 : index
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
      %most = arith.constant 2 : index
      %at = arith.minsi %d, %most : index
      %r = tv.load %far[%h, %at] : !far_of_lse -> f32
      %x = arith.mulf %s, %f : f32
      %y = arith.addf %x, %r : f32
      tv.yield %y : f32
    }
  return %dq, %dk, %dv, %dfactor, %dfar : !a, !a, !a, !row_of_lse, !far_of_lse
}
