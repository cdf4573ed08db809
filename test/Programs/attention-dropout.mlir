// Dropout of attention's weights, that of tv.dropout on all of them: the same ones on any
// mesh, forward and backward, wherever batch, heads, queries or keys are split.
// RUN: tessera-opt %s --split-input-file --tessera="to=local" --interpret=2 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels" --interpret=4 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels target=cuda:sm_90a" --interpret=2 -o /dev/null

// By heads, grouped, causal, with the gradient of a bias.
// CHECK-LABEL: func.func @main
// CHECK: tv.attention {{.*}} causal dropout(2.500000e-01) seed(7) stream(3)
// CHECK: tv.attention_grad {{.*}} causal dropout(2.500000e-01) seed(7) stream(3) captured
// CHECK: comm.all_reduce
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 224 bytes 0 copies
// RAN tp=3: all-reduce 300 bytes 0 copies
// RAN tp=4: all-reduce 336 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<2x8x5x4xf32, #tv.view<#m, [_, (did(tp) * _ | 4) * 2, _, _]>>
!k = tensor<2x4x7x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<2x8x5xf32>
!bias_of_lse = tensor<8x7xf32, #tv.view<#m, [_, _]>>
func.func private @attend(%q: !q, %k: !k, %v: !k, %bias: !bias_of_lse) -> !q {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) causal dropout(0.25) seed(7) stream(3)
      : (!q, !k, !k) -> (!q, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %bias[%h, %ki] : !bias_of_lse -> f32
      %t = math.tanh %s : f32
      %y = arith.addf %t, %x : f32
      tv.yield %y : f32
    }
  return %o : !q
}
func.func @main(%dy: !q, %q: !q, %k: !k, %v: !k, %bias: !bias_of_lse) -> (!q, !q, !k, !k, !bias_of_lse) {
  %o, %dq, %dk, %dv, %dbias = tv.gradient @attend(%q, %k, %v, %bias) of [0] with (%dy) to [0, 1, 2, 3]
    : (!q, !k, !k, !bias_of_lse, !q) -> (!q, !q, !k, !k, !bias_of_lse)
  return %o, %dq, %dk, %dv, %dbias : !q, !q, !k, !k, !bias_of_lse
}

// -----

// By batch, packed sequences, a step of its own.
// CHECK-LABEL: func.func @main
// CHECK: tv.attention_grad {{.*}} dropout(1.000000e-01) seed(1) stream(2) step %{{.*}} sequences
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<4x2x9x4xf32, #tv.view<#m, [did(tp) * _, _, _, _]>>
!lse = tensor<4x2x9xf32>
!begins = tensor<4x4xi32>
!step = tensor<i64>
func.func private @attend(%q: !q, %k: !q, %v: !q, %begins: !begins, %step: !step) -> !q {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) dropout(0.1) seed(1) stream(2) step %step sequences(%begins)
      : (!q, !q, !q, !step, !begins) -> (!q, !lse)
  return %o : !q
}
func.func @main(%dy: !q, %q: !q, %k: !q, %v: !q, %begins: !begins {tv.range = [0, 9]}, %step: !step {tv.range = [0, 1000]}) -> (!q, !q, !q, !q) {
  %o, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v, %begins, %step) of [0] with (%dy) to [0, 1, 2]
    : (!q, !q, !q, !begins, !step, !q) -> (!q, !q, !q, !q)
  return %o, %dq, %dk, %dv : !q, !q, !q, !q
}

// -----

// Query blocks sum the gradients of keys and values.
// CHECK-LABEL: func.func @main
// CHECK: tv.attention_grad
// CHECK: :2 = comm.all_reduce
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 896 bytes 0 copies
// RAN tp=3: all-reduce of 2 1200 bytes 0 copies
// RAN tp=4: all-reduce of 2 1344 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<2x2x6x4xf32, #tv.view<#m, [_, _, did(tp) * _, _]>>
!k = tensor<2x2x7x4xf32, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<2x2x6xf32>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k) -> (!q, !q, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) causal dropout(0.5) seed(-1) stream(0) : (!q, !k, !k) -> (!q, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.5) causal dropout(0.5) seed(-1) stream(0)
      : (!q, !q, !k, !k, !q, !lse) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// Key blocks sum the gradient of queries; the gradient of the log-sum-exp comes in, too.
// CHECK-LABEL: func.func @main
// CHECK: tv.attention_grad
// CHECK: comm.all_reduce
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 512 bytes 0 copies
// RAN tp=3: all-reduce 684 bytes 0 copies
// RAN tp=4: all-reduce 768 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<2x2x8x4xf32, #tv.view<#m, [_, _, _, _]>>
!k = tensor<2x2x6x4xf32, #tv.view<#m, [_, _, did(tp) * _, _]>>
!all = tensor<2x2x6x4xf32, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<2x2x8xf32, #tv.view<#m, [_, _, _]>>
!step = tensor<i64>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k, %kall: !all, %vall: !all, %dlse: !lse, %step: !step {tv.range = [0, 1000]}) -> (!q, !q, !k, !k) {
  %o, %lse = tv.attention %q, %kall, %vall scale(0.5) dropout(0.2) seed(5) stream(6) step %step : (!q, !all, !all, !step) -> (!q, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse dlse %dlse scale(0.5) dropout(0.2) seed(5) stream(6) step %step
      : (!q, !q, !k, !k, !q, !lse, !lse, !step) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}
