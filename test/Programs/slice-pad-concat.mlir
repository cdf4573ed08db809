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
// RAN tp=2: all-to-all of 2 24 bytes 0 copies
// RAN tp=3: all-to-all of 2 36 bytes 0 copies
// RAN tp=4: all-to-all of 2 24 bytes 0 copies
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

// -----

// A view on the input alone: each value of a difference of neighbours is computed
// where the left one lies; one row comes from the next device.
// CHECK-NOT: comm.all_gather
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-to-all 12 bytes 0 copies
// RAN tp=3: all-to-all 12 bytes 0 copies
// RAN tp=4: all-to-all 12 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<12x3xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%x: !x) -> tensor<11x3xf32> {
  %a = tv.slice %x offsets [0, 0] : (!x) -> tensor<11x3xf32>
  %b = tv.slice %x offsets [1, 0] : (!x) -> tensor<11x3xf32>
  %d = tv.map %a, %b : (tensor<11x3xf32>, tensor<11x3xf32>) -> tensor<11x3xf32> (%l: f32, %r: f32) {
    %s = arith.subf %r, %l : f32
    tv.yield %s : f32
  }
  return %d : tensor<11x3xf32>
}

// -----

// Values that a rotation shifts by five, cyclic over the devices, and a border.
// CHECK-NOT: comm.all_gather
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: permute 16 bytes 0 copies
// RAN tp=4: permute of 2 16 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<16xf32, #tv.view<#m, [_ * did(tp) * 2]>>
func.func @main(%x: !x) -> tensor<19xf32> {
  %a = tv.slice %x offsets [5] : (!x) -> tensor<11xf32>
  %b = tv.slice %x offsets [0] : (!x) -> tensor<5xf32>
  %c = tv.concat %a, %b dim 0 : (tensor<11xf32>, tensor<5xf32>) -> tensor<16xf32>
  %p = tv.pad %c low [1] high [2] value 1.0 : f32 : (tensor<16xf32>) -> tensor<19xf32>
  return %p : tensor<19xf32>
}

// -----

// The padded rows exist in no memory: each device sums those it would hold, down
// columns and along rows.
// CHECK: tv.reduce
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 12 bytes 0 copies
// RAN tp=3: all-to-all 32 bytes 1 copies
// RAN tp=4: all-to-all 24 bytes 1 copies
#m = #tv.mesh<tp = 2>
!x = tensor<10x3xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%x: !x) -> tensor<3xf32> {
  %p = tv.pad %x low [2, 0] high [1, 0] value 0.5 : f32 : (!x) -> tensor<13x3xf32>
  %s = tv.reduce sum %p dims [0] : (tensor<13x3xf32>) -> tensor<3xf32>
  return %s : tensor<3xf32>
}

// -----

// CHECK: tv.reduce
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 12 bytes 0 copies
// RAN tp=3: all-to-all 32 bytes 0 copies
// RAN tp=4: all-to-all 24 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<3x10xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x) -> tensor<3xf32> {
  %p = tv.pad %x low [0, 2] high [0, 1] value 0.5 : f32 : (!x) -> tensor<3x13xf32>
  %s = tv.reduce sum %p dims [1] : (tensor<3x13xf32>) -> tensor<3xf32>
  return %s : tensor<3xf32>
}
