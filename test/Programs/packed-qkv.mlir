// Query, key and value of one product are windows on it, and their gradients are written
// into one tensor: nothing is copied.
// RUN: tessera-opt %s --split-input-file --tessera=to=differentiated -o %t
// RUN: tessera-opt %t --split-input-file --tessera="from=differentiated to=kernels mesh=tp=1" --interpret=1 | FileCheck %s %no_other_collective
// RUN: tessera-opt %t --split-input-file --tessera="from=differentiated to=kernels mesh=tp=2" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %t --split-input-file --tessera="from=differentiated to=kernels mesh=tp=3" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %t --split-input-file --tessera="from=differentiated to=kernels mesh=tp=4 target=cuda:sm_90a" --interpret=4 | FileCheck %s %no_other_collective
// RUN: tessera-opt %t --split-input-file --tessera="from=differentiated to=kernels mesh=tp=3 target=cuda:sm_90a attention=cudnn" --interpret=3 | FileCheck %s %no_other_collective

// A dimension of the three, taken one by one.
// CHECK: func.func @main
// CHECK-NOT: {{plan.copy|@concat}}
// CHECK: plan.join {{.*}} dim 2
// CHECK-NOT: {{plan.copy|@concat}}
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<2x6x8xbf16>
!w = tensor<768x8xbf16, #tv.view<#m, [3 * (did(tp) * _ | 4) * 64, _]>>
!p = tensor<2x6x768xbf16>
!p5 = tensor<2x6x3x4x64xbf16>
!s5 = tensor<2x6x1x4x64xbf16>
!b = tensor<2x6x4x64xbf16>
!h = tensor<2x4x6x64xbf16>
func.func private @f(%x: !x, %w: !w) -> !h {
  %p0 = tv.linear %x, %w : (!x, !w) -> !p
  %p = tv.reshape %p0 : (!p) -> !p5
  %q0 = tv.slice %p offsets [0, 0, 0, 0, 0] : (!p5) -> !s5
  %k0 = tv.slice %p offsets [0, 0, 1, 0, 0] : (!p5) -> !s5
  %v0 = tv.slice %p offsets [0, 0, 2, 0, 0] : (!p5) -> !s5
  %q1 = tv.reshape %q0 : (!s5) -> !b
  %k1 = tv.reshape %k0 : (!s5) -> !b
  %v1 = tv.reshape %v0 : (!s5) -> !b
  %q = tv.transpose %q1 perm [0, 2, 1, 3] : (!b) -> !h
  %k = tv.transpose %k1 perm [0, 2, 1, 3] : (!b) -> !h
  %v = tv.transpose %v1 perm [0, 2, 1, 3] : (!b) -> !h
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!h, !h, !h) -> (!h, tensor<2x4x6xf32>)
  return %o : !h
}
func.func @main(%x: !x, %w: !w, %do: !h) -> (!h, !w) {
  %o, %dw = tv.gradient @f(%x, %w) of [0] with (%do) to [1] : (!x, !w, !h) -> (!h, !w)
  return %o, %dw : !h, !w
}

// -----

// The same, transposed before.
// CHECK: func.func @main
// CHECK-NOT: {{plan.copy|@concat}}
// CHECK: plan.join {{.*}} dim 0
// CHECK-NOT: {{plan.copy|@concat}}
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<2x6x8xbf16>
!w = tensor<768x8xbf16, #tv.view<#m, [3 * (did(tp) * _ | 4) * 64, _]>>
!p = tensor<2x6x768xbf16>
!p5 = tensor<2x6x3x4x64xbf16>
!t5 = tensor<3x2x4x6x64xbf16>
!s5 = tensor<1x2x4x6x64xbf16>
!h = tensor<2x4x6x64xbf16>
func.func private @f(%x: !x, %w: !w) -> !h {
  %p0 = tv.linear %x, %w : (!x, !w) -> !p
  %p1 = tv.reshape %p0 : (!p) -> !p5
  %p = tv.transpose %p1 perm [2, 0, 3, 1, 4] : (!p5) -> !t5
  %q0 = tv.slice %p offsets [0, 0, 0, 0, 0] : (!t5) -> !s5
  %k0 = tv.slice %p offsets [1, 0, 0, 0, 0] : (!t5) -> !s5
  %v0 = tv.slice %p offsets [2, 0, 0, 0, 0] : (!t5) -> !s5
  %q = tv.reshape %q0 : (!s5) -> !h
  %k = tv.reshape %k0 : (!s5) -> !h
  %v = tv.reshape %v0 : (!s5) -> !h
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!h, !h, !h) -> (!h, tensor<2x4x6xf32>)
  return %o : !h
}
func.func @main(%x: !x, %w: !w, %do: !h) -> (!h, !w) {
  %o, %dw = tv.gradient @f(%x, %w) of [0] with (%do) to [1] : (!x, !w, !h) -> (!h, !w)
  return %o, %dw : !h, !w
}

// -----

// Parts of the last dimension, each then cut into heads.
// CHECK: func.func @main
// CHECK-NOT: {{plan.copy|@concat}}
// CHECK: plan.join {{.*}} dim 2
// CHECK-NOT: {{plan.copy|@concat}}
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<2x6x8xbf16>
!w = tensor<768x8xbf16, #tv.view<#m, [3 * (did(tp) * _ | 4) * 64, _]>>
!p = tensor<2x6x768xbf16>
!s = tensor<2x6x256xbf16>
!b = tensor<2x6x4x64xbf16>
!h = tensor<2x4x6x64xbf16>
func.func private @f(%x: !x, %w: !w) -> !h {
  %p = tv.linear %x, %w : (!x, !w) -> !p
  %q0 = tv.slice %p offsets [0, 0, 0] : (!p) -> !s
  %k0 = tv.slice %p offsets [0, 0, 256] : (!p) -> !s
  %v0 = tv.slice %p offsets [0, 0, 512] : (!p) -> !s
  %q1 = tv.reshape %q0 : (!s) -> !b
  %k1 = tv.reshape %k0 : (!s) -> !b
  %v1 = tv.reshape %v0 : (!s) -> !b
  %q = tv.transpose %q1 perm [0, 2, 1, 3] : (!b) -> !h
  %k = tv.transpose %k1 perm [0, 2, 1, 3] : (!b) -> !h
  %v = tv.transpose %v1 perm [0, 2, 1, 3] : (!b) -> !h
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!h, !h, !h) -> (!h, tensor<2x4x6xf32>)
  return %o : !h
}
func.func @main(%x: !x, %w: !w, %do: !h) -> (!h, !w) {
  %o, %dw = tv.gradient @f(%x, %w) of [0] with (%do) to [1] : (!x, !w, !h) -> (!h, !w)
  return %o, %dw : !h, !w
}
