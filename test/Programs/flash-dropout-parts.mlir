// As flash-dropout.mlir, where devices share positions: a weight has the same number on any mesh.
// RUN: tessera-opt %s --split-input-file --tessera="to=kernels target=cuda:sm_90a attention=flash" --interpret=4 | FileCheck %s

// Blocks of the queries.
// CHECK: plan.attention {{.*}} causal dropout
// CHECK: plan.attention_grad {{.*}} causal dropout
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 311296 bytes 0 copies
// RAN tp=3: all-reduce of 2 415104 bytes 0 copies
// RAN tp=4: all-reduce of 2 466944 bytes 0 copies
#m = #tv.mesh<tp = 4>
!q = tensor<2x4x130x64xbf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!k = tensor<2x4x152x64xbf16, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<2x4x130xf32>
func.func @main(%q: !q, %k: !k, %v: !k, %do: !q) -> (!q, !q, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal dropout(0.25) seed(7) stream(1)
      : (!q, !k, !k) -> (!q, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal dropout(0.25)
      seed(7) stream(1) : (!q, !q, !k, !k, !q, !lse) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// Queries in turn, and a number of keys that is no multiple of four.
// CHECK: plan.attention {{.*}} dropout
// CHECK: plan.attention_grad {{.*}} dropout
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 72192 bytes 0 copies
// RAN tp=3: all-reduce of 2 96256 bytes 0 copies
// RAN tp=4: all-reduce of 2 108288 bytes 0 copies
#m = #tv.mesh<tp = 4>
!q = tensor<1x4x330x64xf16, #tv.view<#m, [_, _, _ * did(tp) * 12, _]>>
!k = tensor<1x2x141x64xf16, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<1x4x330xf32>
func.func @main(%q: !q, %k: !k, %v: !k, %do: !q) -> (!q, !q, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) dropout(0.25) seed(7) stream(1)
      : (!q, !k, !k) -> (!q, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) dropout(0.25)
      seed(7) stream(1) : (!q, !q, !k, !k, !q, !lse) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// Of a gradient's keys, uneven blocks, which begin anywhere.
// CHECK: plan.attention_grad {{.*}} causal dropout
// RAN here: all-reduce 33280 bytes 0 copies, all-reduce of 2 39936 bytes 0 copies
#m = #tv.mesh<x = 2, y = 2>
!q = tensor<1x4x130x64xbf16, #tv.view<#m, [_, _, did(x) * _, _]>>
!k = tensor<1x2x156x64xbf16, #tv.view<#m, [_, _, did(y) * _, _]>>
!lse = tensor<1x4x130xf32, #tv.view<#m, [_, _, did(x) * _]>>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k, %o: !q, %lse: !lse) -> (!q, !k, !k) {
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.0625) causal dropout(0.25)
      seed(7) stream(1) : (!q, !q, !k, !k, !q, !lse) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

// -----

// And both in turn.
// CHECK: plan.attention_grad {{.*}} dropout
// RAN here: all-reduce 86016 bytes 0 copies, all-reduce of 2 180224 bytes 0 copies
#m = #tv.mesh<x = 2, y = 2>
!q = tensor<1x4x330x64xbf16, #tv.view<#m, [_, _, _ * did(x) * 24, _]>>
!k = tensor<1x4x352x64xbf16, #tv.view<#m, [_, _, _ * did(y) * 16, _]>>
!lse = tensor<1x4x330xf32, #tv.view<#m, [_, _, _ * did(x) * 24]>>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k, %o: !q, %lse: !lse) -> (!q, !k, !k) {
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.0625) dropout(0.25)
      seed(7) stream(1) : (!q, !q, !k, !k, !q, !lse) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}
