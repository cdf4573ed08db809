// A residual that is split comes first in the way of the sum: its view is carried
// backward to the projection before it, so the partial sums are combined and split
// in one step: exactly one reduce-scatter. Rows of 4 and of 5 (uneven).
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=local" --interpret=4 | FileCheck %s %no_other_collective
// RUN: sed s/f32/bf16/g %s | tessera-opt --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program | FileCheck %s %no_other_collective

// CHECK: tv.linear
// CHECK: comm.reduce_scatter
// CHECK: tv.add
// CHECK-NEXT: return
// RAN tp=1: nothing
// RAN tp=2: reduce-scatter 96 bytes 0 copies
// RAN tp=3: reduce-scatter 192 bytes 0 copies
// RAN tp=4: reduce-scatter 144 bytes 0 copies
#m = #tv.mesh<tp = 2>
!r = tensor<2x4x6xf32, #tv.view<#m, [_, did(tp) * _, _]>>
!w = tensor<6x8xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: tensor<2x4x8xf32>, %w: !w {tv.role = "weight"}, %r: !r) -> tensor<2x4x6xf32> {
  %p = tv.linear %x, %w : (tensor<2x4x8xf32>, !w) -> tensor<2x4x6xf32>
  %y = tv.add %p, %r : (tensor<2x4x6xf32>, !r) -> tensor<2x4x6xf32>
  return %y : tensor<2x4x6xf32>
}

// -----

// Through a dropout and a transpose of the sum, and with the operands of the add
// swapped.
// CHECK: tv.contract
// CHECK: comm.reduce_scatter
// CHECK: tv.add
// CHECK-NEXT: return
// RAN tp=1: nothing
// RAN tp=2: reduce-scatter 72 bytes 0 copies
// RAN tp=3: reduce-scatter 96 bytes 0 copies
// RAN tp=4: reduce-scatter 120 bytes 0 copies
#m = #tv.mesh<tp = 2>
!r = tensor<5x6xf32, #tv.view<#m, [did(tp) * _, _]>>
!x = tensor<6x8xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x, %w: tensor<5x8xf32> {tv.role = "weight"}, %r: !r) -> tensor<5x6xf32> {
  %p = tv.linear %x, %w : (!x, tensor<5x8xf32>) -> tensor<6x5xf32>
  %t = tv.transpose %p perm [1, 0] : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %d = tv.dropout %t rate(0.25) seed(3) stream(1) : (tensor<5x6xf32>) -> tensor<5x6xf32>
  %y = tv.add %r, %d : (!r, tensor<5x6xf32>) -> tensor<5x6xf32>
  return %y : tensor<5x6xf32>
}
