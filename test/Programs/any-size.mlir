// Functions that are written for any size: each call has its own extents.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=local" --interpret=2 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels" --interpret=4 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=local" | FileCheck %s %no_other_collective

// Rotary positions once, for four heads of queries and two of keys; a function calls
// another one.
// CHECK-LABEL: @main
// CHECK-NOT: tv.call
// CHECK: tv.rope %{{.*}} -> tensor<3x2x5x8xf32
// CHECK: tv.rope %{{.*}} -> tensor<3x1x5x8xf32
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: all-to-all 480 bytes 1 copies
#m = #tv.mesh<tp = 2>
!x = tensor<3x5x16xf32>
!wq = tensor<32x16xf32, #tv.view<#m, [(did(tp) * _ | 4) * 8, _]>>
!wk = tensor<16x16xf32, #tv.view<#m, [(did(tp) * _ | 2) * 8, _]>>
!q = tensor<3x4x5x8xf32>
!k = tensor<3x2x5x8xf32>
!any = tensor<?x?x?x8xf32>
func.func private @turned(%x: !any) -> !any {
  %t = tv.transpose %x perm [0, 2, 1, 3] : (!any) -> !any
  return %t : !any
}
func.func private @rotated(%x: !any) -> !any {
  %t = tv.call @turned(%x) : (!any) -> !any
  %r = tv.rope %t base(10000.0) : (!any) -> !any
  return %r : !any
}
func.func @main(%x: !x, %wq: !wq, %wk: !wk) -> !q {
  %q0 = tv.linear %x, %wq : (!x, !wq) -> tensor<3x5x32xf32>
  %k0 = tv.linear %x, %wk : (!x, !wk) -> tensor<3x5x16xf32>
  %q1 = tv.reshape %q0 : (tensor<3x5x32xf32>) -> tensor<3x5x4x8xf32>
  %k1 = tv.reshape %k0 : (tensor<3x5x16xf32>) -> tensor<3x5x2x8xf32>
  %q = tv.call @rotated(%q1) : (tensor<3x5x4x8xf32>) -> !q
  %k = tv.call @rotated(%k1) : (tensor<3x5x2x8xf32>) -> !k
  %o, %lse = tv.attention %q, %k, %k scale(0.35) causal : (!q, !k, !k) -> (!q, tensor<3x4x5xf32>)
  return %o : !q
}

// -----

// Their gradients. The view of a call's result is that of the value.
// CHECK-LABEL: @main
// CHECK: tv.gelu tanh %{{.*}} -> tensor<5x8xf32{{.*}}[5, did(tp) * 8]
// CHECK: comm.all_reduce
// CHECK: tv.gelu tanh %{{.*}} -> tensor<5x8xf32{{.*}}[5, 8]
// RAN tp=1: nothing
// RAN tp=2: all-reduce 160 bytes 0 copies
// RAN tp=3: all-reduce 216 bytes 0 copies
// RAN tp=4: all-reduce 240 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<5x16xf32>
!w = tensor<16x16xf32>
!v = tensor<8x16xf32>
!h = tensor<5x16xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<5x8xf32>
func.func private @layer(%x: tensor<?x?xf32>, %w: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %h = tv.linear %x, %w : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  %g = tv.gelu tanh %h : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %g : tensor<?x?xf32>
}
func.func private @loss(%x: !x, %w: !w, %v: !v) -> tensor<f32> {
  %h = tv.call @layer(%x, %w) : (!x, !w) -> !h
  %y = tv.call @layer(%h, %v) : (!h, !v) -> !y
  %l = tv.reduce sum %y dims [0, 1] : (!y) -> tensor<f32>
  return %l : tensor<f32>
}
func.func @main(%x: !x, %w: !w, %v: !v) -> (tensor<f32>, !w, !v) {
  %l, %dw, %dv = tv.gradient @loss(%x, %w, %v) of [0] to [1, 2] : (!x, !w, !v) -> (tensor<f32>, !w, !v)
  return %l, %dw, %dv : tensor<f32>, !w, !v
}
