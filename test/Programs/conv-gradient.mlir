// The gradient by images, weight and bias: of a batch that is split the last two are summed
// over devices.
// RUN: tessera-opt %s --tv-inline --tv-differentiate | tessera-opt --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s
// RUN: tessera-opt %s --tv-inline --tv-differentiate | tessera-opt --tessera="mesh=tp=3 to=kernels" --interpret=3 -o /dev/null
// RUN: sed s/f32/bf16/g %s | tessera-opt --tv-inline --tv-differentiate | tessera-opt --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program -o /dev/null

// CHECK: tv.scatter sum
// CHECK: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 448 bytes 0 copies
// RAN tp=3: all-reduce of 2 600 bytes 0 copies
// RAN tp=4: all-reduce of 2 672 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<4x3x5x6xf32, #tv.view<#m, [did(tp) * _, _, _, _]>>
!w = tensor<4x3x3x3xf32>
!b = tensor<4xf32>
!y = tensor<4x4x3x3xf32>
!z = tensor<4x4x2x2xf32>
func.func private @front(%x: !x, %w: !w, %b: !b) -> !z {
  %0 = tv.conv %x, %w bias %b strides [2, 2] low [1, 1] high [1, 1] : (!x, !w, !b) -> !y
  %1 = tv.pool mean %0 sizes [2, 2] : (!y) -> !z
  return %1 : !z
}
func.func @main(%x: !x, %w: !w, %b: !b, %dz: !z) -> (!z, !x, !w, !b) {
  %z, %dx, %dw, %db = tv.gradient @front(%x, %w, %b) of [0] with (%dz) to [0, 1, 2] : (!x, !w, !b, !z) -> (!z, !x, !w, !b)
  return %z, %dx, %dw, %db : !z, !x, !w, !b
}
