// Reshapes move nothing whenever the data allow it, on even and uneven splits.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=2 to=local" --interpret=4 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=3 to=local" --interpret=6 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=4 to=local" --interpret=8 | FileCheck %s %no_other_collective

// Splits and merges at once: 8 becomes 2 * 4, 4 * 6 becomes 24, 10 becomes 2 * 5.
// CHECK: tv.gelu
// CHECK: return
// RAN here: nothing
#m = #tv.mesh<x = 2, y = 2>
!a = tensor<8x6x10xf32, #tv.view<#m, [did(x) * _, _, did(y) * _]>>
func.func @main(%a: !a) -> tensor<2x24x2x5xf32> {
  %r = tv.reshape %a : (!a) -> tensor<2x24x2x5xf32>
  %g = tv.gelu %r : (tensor<2x24x2x5xf32>) -> tensor<2x24x2x5xf32>
  return %g : tensor<2x24x2x5xf32>
}

// -----

// The inner dimension is split: the merged one is strided.
// CHECK: tv.gelu
// CHECK: return
// RAN here: nothing
#m = #tv.mesh<x = 2, y = 2>
!a = tensor<3x10xf32, #tv.view<#m, [_, did(x) * _]>>
func.func @main(%a: !a) -> tensor<30xf32> {
  %r = tv.reshape %a : (!a) -> tensor<30xf32>
  %g = tv.gelu %r : (tensor<30xf32>) -> tensor<30xf32>
  return %g : tensor<30xf32>
}

// -----

// Two reshapes of one value that split it differently.
// CHECK: tv.gelu
// CHECK: tv.gelu
// CHECK: return
// RAN here: nothing
#m = #tv.mesh<x = 2, y = 2>
!a = tensor<24xf32, #tv.view<#m, [did(x) * _]>>
func.func @main(%a: !a) -> (tensor<4x6xf32>, tensor<12x2xf32>) {
  %r = tv.reshape %a : (!a) -> tensor<4x6xf32>
  %s = tv.reshape %a : (!a) -> tensor<12x2xf32>
  %g = tv.gelu %r : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %h = tv.gelu %s : (tensor<12x2xf32>) -> tensor<12x2xf32>
  return %g, %h : tensor<4x6xf32>, tensor<12x2xf32>
}
// -----

// Two reshapes of one value whose users' weights split it over different axes, one a
// factor of the value each: the value is split over both.
// CHECK: tv.mul
// CHECK: tv.mul
// CHECK: return
// RAN here: nothing
#m = #tv.mesh<x = 2, y = 2>
!b = tensor<4x6xf32, #tv.view<#m, [did(x) * _, _]>>
!c = tensor<8x3xf32, #tv.view<#m, [did(x) * _, _]>>
func.func @main(%a: tensor<24xf32>, %b: !b, %c: !c) -> (tensor<4x6xf32>, tensor<8x3xf32>) {
  %r = tv.reshape %a : (tensor<24xf32>) -> tensor<4x6xf32>
  %s = tv.reshape %a : (tensor<24xf32>) -> tensor<8x3xf32>
  %g = tv.mul %r, %b : (tensor<4x6xf32>, !b) -> tensor<4x6xf32>
  %h = tv.mul %s, %c : (tensor<8x3xf32>, !c) -> tensor<8x3xf32>
  return %g, %h : tensor<4x6xf32>, tensor<8x3xf32>
}
