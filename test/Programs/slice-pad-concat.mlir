// Slices, pads and concatenations whose box crosses the borders of shards.
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=2 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=local" --interpret=4 | FileCheck %s

// CHECK: tv.slice
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-to-all 12 bytes 0 copies
// RAN tp=3: all-to-all 24 bytes 0 copies
// RAN tp=4: all-to-all 24 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<12x3xf32, #tv.view<#m, [did(tp) * _, _]>>
!y = tensor<7x3xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%x: !x) -> !y {
  %s = tv.slice %x offsets [3, 0] : (!x) -> !y
  return %s : !y
}

// -----

// CHECK: tv.pad
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: all-to-all 12 bytes 0 copies
// RAN tp=4: all-to-all 12 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<6x3xf32, #tv.view<#m, [did(tp) * _, _]>>
!y = tensor<9x3xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%x: !x) -> !y {
  %s = tv.pad %x low [2, 0] high [1, 0] value 0.5 : f32 : (!x) -> !y
  return %s : !y
}

// -----

// CHECK: tv.concat
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-to-all 24 bytes 0 copies, all-to-all 24 bytes 0 copies
// RAN tp=3: all-to-all 12 bytes 0 copies, all-to-all 24 bytes 0 copies
// RAN tp=4: all-to-all 12 bytes 0 copies, all-to-all 12 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<5x3xf32, #tv.view<#m, [did(tp) * _, _]>>
!z = tensor<4x3xf32, #tv.view<#m, [did(tp) * _, _]>>
!y = tensor<9x3xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%x: !x, %z: !z) -> !y {
  %s = tv.concat %x, %z dim 0 : (!x, !z) -> !y
  return %s : !y
}

// -----

// Along a dimension that is whole nothing moves, however the other is split.
// CHECK-NOT: comm.{{all|reduce|exchange|permute|broadcast}}
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<5x6xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%x: !x) -> tensor<5x8xf32> {
  %a = tv.slice %x offsets [0, 1] : (!x) -> tensor<5x3xf32>
  %b = tv.pad %a low [0, 1] high [0, 1] value 0.0 : f32 : (tensor<5x3xf32>) -> tensor<5x5xf32>
  %c = tv.concat %a, %b dim 1 : (tensor<5x3xf32>, tensor<5x5xf32>) -> tensor<5x8xf32>
  return %c : tensor<5x8xf32>
}
