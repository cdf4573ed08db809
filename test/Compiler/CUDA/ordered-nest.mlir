// A nest of updates in order, by one thread, is not unrolled: NVRTC 13.0 crashed on this one.
// RUN: tessera-compile %s --quiet --target=cuda:sm_90a --dump-dir=%t -o %t.tsr
// RUN: FileCheck %s < %t/kernels.cu
// CHECK-COUNT-3: #pragma unroll 1
// CHECK-NOT: #pragma unroll 1
// CHECK: *p.y0.at(
#m = #tv.mesh<tp = 1>
!i = tensor<2x2x5x8xi64, #tv.view<#m, [_, _, _, _]>>
!u = tensor<2x2x5x8xf32>
func.func @main(%i: !i, %u: !u, %z: tensor<40xf32>) -> tensor<40xf32> {
  %r = tv.scatter sum %z, %i, %u dim 0 : (tensor<40xf32>, !i, !u) -> tensor<40xf32>
  return %r : tensor<40xf32>
}
