// Rows of a table whose first dimension is split: each device fetches those of its ids,
// or, where it has all ids, all that it lacks. 61 words are uneven; some ids are outside.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=kernels" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels" --interpret=4 | FileCheck %s %no_other_collective
// RUN: sed s/f32/bf16/g %s | tessera-opt --split-input-file --tessera="mesh=tp=3 to=kernels" --interpret=3 --interpret-precision=program -o /dev/null

// CHECK: comm.fetch
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: fetch 80 bytes 0 copies
// RAN tp=3: fetch 96 bytes 0 copies
// RAN tp=4: fetch 72 bytes 0 copies
#m = #tv.mesh<tp = 2>
!words = tensor<61x4xf32, #tv.view<#m, [did(tp) * _, _]>>
!ids = tensor<2x5xi64, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<2x5x4xf32, #tv.view<#m, [_, did(tp) * _, _]>>
func.func @main(%ids: !ids {tv.range = [-1, 63]}, %words: !words {tv.role = "weight"}) -> !y {
  %y = tv.gather %words, %ids dim 0 {tv.step = "fetch"} : (!words, !ids) -> !y
  return %y : !y
}

// -----

// CHECK: comm.fetch
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: fetch 136 bytes 0 copies
// RAN tp=3: fetch 240 bytes 0 copies
// RAN tp=4: fetch 264 bytes 0 copies
#m = #tv.mesh<tp = 2>
!words = tensor<61x4xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%ids: tensor<2x5xi32> {tv.range = [-1, 63]}, %words: !words {tv.role = "weight"},
                %positions: tensor<5x4xf32> {tv.role = "weight"}) -> tensor<2x5x4xf32> {
  %e = tv.gather %words, %ids dim 0 {tv.step = "fetch"} : (!words, tensor<2x5xi32>) -> tensor<2x5x4xf32>
  %p = tv.broadcast %positions dims [1, 2] : (tensor<5x4xf32>) -> tensor<2x5x4xf32>
  %y = tv.add %e, %p : (tensor<2x5x4xf32>, tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %y : tensor<2x5x4xf32>
}

// -----

// A number of ids that varies, and rows of two dimensions in another order in memory.
// CHECK: comm.fetch
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: fetch 112 bytes 1 copies
// RAN tp=3: fetch 128 bytes 1 copies
// RAN tp=4: fetch 80 bytes 1 copies
#m = #tv.mesh<tp = 2>
!words = tensor<10x3x4xf32, #tv.view<#m, [did(tp) * _, _, _]>>
!ids = tensor<?xi32, #tv.view<#m, [did(tp) * _]>>
!y = tensor<?x3x4xf32, #tv.view<#m, [did(tp) * _, _, _]>>
func.func @main(%ids: !ids {tv.range = [-1, 11], tv.dims = ["s"]}, %words: tensor<10x4x3xf32, #tv.view<#m, [did(tp) * _, _, _]>>) -> !y attributes {tv.sizes = {s = 9}} {
  %t = tv.transpose %words perm [0, 2, 1] : (tensor<10x4x3xf32, #tv.view<#m, [did(tp) * _, _, _]>>) -> !words
  %y = tv.gather %t, %ids dim 0 {tv.step = "fetch"} : (!words, !ids) -> !y
  return %y : !y
}

// -----

// No id at all; of rows of no element nothing has to move.
// CHECK: comm.fetch
// CHECK-NOT: comm.fetch
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: fetch 8 bytes 0 copies
// RAN tp=3: fetch 16 bytes 0 copies
// RAN tp=4: fetch 24 bytes 0 copies
#m = #tv.mesh<tp = 2>
!words = tensor<61x4xf32, #tv.view<#m, [did(tp) * _, _]>>
!none = tensor<6x0xf32, #tv.view<#m, [did(tp) * _, _]>>
!ids = tensor<0xi32, #tv.view<#m, [did(tp) * _]>>
!at = tensor<6xi32, #tv.view<#m, [did(tp) * _]>>
!y = tensor<0x4xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%ids: !ids, %words: !words, %at: !at {tv.range = [0, 6]}, %rows: !none) -> (!y, !none) {
  %y = tv.gather %words, %ids dim 0 {tv.step = "fetch"} : (!words, !ids) -> !y
  %z = tv.gather %rows, %at dim 0 {tv.step = "fetch"} : (!none, !at) -> !none
  return %y, %z : !y, !none
}

// -----

// One id, of a table of one dimension: the row is a number, and so is the result.
// CHECK: comm.fetch
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: fetch 16 bytes 0 copies
// RAN tp=3: fetch 24 bytes 0 copies
// RAN tp=4: fetch 36 bytes 0 copies
#m = #tv.mesh<tp = 2>
!t = tensor<61xf32, #tv.view<#m, [did(tp) * _]>>
func.func @main(%id: tensor<i32> {tv.range = [0, 61]}, %t: !t) -> tensor<f32> {
  %y = tv.gather %t, %id dim 0 {tv.step = "fetch"} : (!t, tensor<i32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

// Rows of what was fetched.
// CHECK: comm.fetch
// CHECK: comm.fetch
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: fetch 24 bytes 0 copies, fetch 8 bytes 0 copies
// RAN tp=3: fetch 40 bytes 0 copies, fetch 32 bytes 0 copies
// RAN tp=4: fetch 40 bytes 0 copies, fetch 40 bytes 0 copies
#m = #tv.mesh<tp = 2>
!t = tensor<8x4xf32, #tv.view<#m, [did(tp) * _, _]>>
!i = tensor<6xi32, #tv.view<#m, [did(tp) * _]>>
!y = tensor<6x4xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%t: !t, %i: !i {tv.range = [-1, 9]}, %j: !i {tv.range = [-1, 7]}) -> !y {
  %x = tv.gather %t, %i dim 0 {tv.step = "fetch"} : (!t, !i) -> !y
  %y = tv.gather %x, %j dim 0 {tv.step = "fetch"} : (!y, !i) -> !y
  return %y : !y
}
