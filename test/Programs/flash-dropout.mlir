// Dropout of attention's weights in kernels that have no weight in memory: which ones stay
// comes of their numbers, eight at a time (attention_dropout.cuh), forward and backward.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels target=cuda:sm_90a attention=flash" --interpret=2 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=kernels target=cuda:sm_90a attention=flash" --interpret=3 | FileCheck %s

// By heads, grouped, causal, with a step; and without a gradient.
// CHECK: plan.attention {{.*}} causal dropout(2.500000e-01) seed %{{.*}} stream %{{.*}} step
// CHECK: number_mod
// CHECK: plan.attention_grad {{.*}} causal dropout(2.500000e-01) seed %{{.*}} stream %{{.*}} step
// CHECK: number_mod
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<2x8x150x64xbf16, #tv.view<#m, [_, (did(tp) * _ | 4) * 2, _, _]>>
!k = tensor<2x4x152x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<2x8x150xf32>
!step = tensor<i64>
func.func @main(%dy: !q, %q: !q, %k: !k, %v: !k, %step: !step {tv.range = [0, 100]}) -> (!q, !q, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal dropout(0.25) seed(7) stream(3) step %step
      : (!q, !k, !k, !step) -> (!q, !lse)
  %dq, %dk, %dv = tv.attention_grad %dy, %q, %k, %v, %o, %lse scale(0.125) causal dropout(0.25) seed(7) stream(3) step %step
      : (!q, !q, !k, !k, !q, !lse, !step) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// By batch, of another type and width, a factor with its gradient, and packed sequences as a
// mask: kernels may spill 140 bytes.
// CHECK: plan.attention {{.*}} dropout(1.000000e-01)
// CHECK: plan.attention_grad {{.*}} dropout(1.000000e-01)
// CHECK: comm.all_reduce
// CHECK-NOT: comm.
// RAN tp=1: nothing
// RAN tp=2: all-reduce 1216 bytes 0 copies
// RAN tp=3: all-reduce 1624 bytes 0 copies
// RAN tp=4: all-reduce 1824 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<4x2x152x128xf16, #tv.view<#m, [did(tp) * _, _, _, _]>>
!lse = tensor<4x2x152xf32>
!bias_of_lse = tensor<2x152xf32, #tv.view<#m, [_, _]>>
!begins = tensor<4x5xi32>
func.func @main(%dy: !x, %q: !x, %k: !x, %v: !x, %bias: !bias_of_lse, %begins: !begins {tv.range = [0, 152]}) -> (!x, !x, !x, !x, !bias_of_lse) {
  %o, %lse = tv.attention %q, %k, %v scale(0.0883883) dropout(0.1) seed(1) stream(-2) sequences(%begins)
      : (!x, !x, !x, !begins) -> (!x, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) { // as the lse
      %c = tv.load %bias[%h, %qi] : !bias_of_lse -> f32
      %t = arith.mulf %s, %c : f32 // as the lse
      tv.yield %t : f32 // as the lse
    }
  %dq, %dk, %dv, %dbias = tv.attention_grad %dy, %q, %k, %v, %o, %lse scale(0.0883883) dropout(0.1) seed(1) stream(-2)
      captured %bias sequences(%begins)
      : (!x, !x, !x, !x, !x, !lse, !bias_of_lse, !begins) -> (!x, !x, !x, !bias_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) { // as the lse
      %c = tv.load %bias[%h, %qi] : !bias_of_lse -> f32
      %t = arith.mulf %s, %c : f32 // as the lse
      tv.yield %t : f32 // as the lse
    }
  return %o, %dq, %dk, %dv, %dbias : !x, !x, !x, !x, !bias_of_lse
}

// -----

// Numbers of keys that are no multiple of four: those of a query begin anywhere.
// CHECK: plan.attention {{.*}} causal dropout(2.500000e-01)
// CHECK: plan.attention_grad {{.*}} causal dropout(2.500000e-01)
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x70x64xbf16, #tv.view<#m, [_, (did(tp) * _ | 2) * 2, _, _]>>
!k = tensor<1x2x139x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<1x4x70xf32>
func.func @main(%dy: !q, %q: !q, %k: !k, %v: !k) -> (!q, !q, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal dropout(0.25) seed(7) stream(3) : (!q, !k, !k) -> (!q, !lse)
  %dq, %dk, %dv = tv.attention_grad %dy, %q, %k, %v, %o, %lse scale(0.125) causal dropout(0.25) seed(7) stream(3)
      : (!q, !q, !k, !k, !q, !lse) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// The same of values without a mask, and of few keys.
// CHECK: plan.attention {{.*}} dropout(1.000000e-01)
// CHECK: plan.attention_grad {{.*}} dropout(1.000000e-01)
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<4x1x35x128xf16, #tv.view<#m, [did(tp) * _, _, _, _]>>
!k = tensor<4x1x7x128xf16, #tv.view<#m, [did(tp) * _, _, _, _]>>
!lse = tensor<4x1x35xf32>
func.func @main(%dy: !q, %q: !q, %k: !k, %v: !k) -> (!q, !q, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.0883883) dropout(0.1) seed(1) stream(-2) : (!q, !k, !k) -> (!q, !lse)
  %dq, %dk, %dv = tv.attention_grad %dy, %q, %k, %v, %o, %lse scale(0.0883883) dropout(0.1) seed(1) stream(-2)
      : (!q, !q, !k, !k, !q, !lse) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}
