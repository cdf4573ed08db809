// A table whose vocabulary is split: each device gathers the rows that it has, 0 for
// others, and one all-reduce adds them up. 61 words are uneven; some ids are outside.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=local" --interpret=4 | FileCheck %s %no_other_collective
// RUN: sed s/f32/bf16/g %s | tessera-opt --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program | FileCheck %s %no_other_collective

// CHECK: tv.gather
// CHECK: comm.all_reduce
// CHECK: tv.add
// CHECK-NEXT: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 160 bytes 0 copies
// RAN tp=3: all-reduce 216 bytes 0 copies
// RAN tp=4: all-reduce 240 bytes 0 copies
#m = #tv.mesh<tp = 2>
!words = tensor<61x4xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%ids: tensor<2x5xi32> {tv.range = [-1, 63]}, %words: !words {tv.role = "weight"},
                %positions: tensor<5x4xf32> {tv.role = "weight"}) -> tensor<2x5x4xf32> {
  %e = tv.gather %words, %ids dim 0 : (!words, tensor<2x5xi32>) -> tensor<2x5x4xf32>
  %p = tv.broadcast %positions dims [1, 2] : (tensor<5x4xf32>) -> tensor<2x5x4xf32>
  %y = tv.add %e, %p : (tensor<2x5x4xf32>, tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %y : tensor<2x5x4xf32>
}

// -----

// The gradient of a table, of so many equal words that sums of small floats would
// stop to grow: they are added in f32.
// CHECK: tv.scatter
// CHECK: tv.scatter
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!ids = tensor<2000xi32>
!x = tensor<2000x5xbf16>
!w = tensor<3x5xbf16, #tv.view<#m, [did(tp) * _, _]>>
!u = tensor<2000xf16>
!v = tensor<3xf16>
func.func @main(%ids: !ids {tv.range = [-1, 3]}, %x: !x, %w: !w, %u: !u, %v: !v) -> (!w, !v) {
  %0 = tv.mul %x, %x : (!x, !x) -> !x
  %1 = tv.scatter sum %w, %ids, %0 dim 0 : (!w, !ids, !x) -> !w
  %2 = tv.mul %u, %u : (!u, !u) -> !u
  %3 = tv.scatter sum %v, %ids, %2 dim 0 : (!v, !ids, !u) -> !v
  return %1, %3 : !w, !v
}

// -----

// The same from zeros, of which a device makes its rows alone.
// CHECK: tv.constant {{.*}} -> tensor<{{.*}}[did(tp) * {{.*}}, 4]
// CHECK: tv.scatter
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!ids = tensor<2x5xi32>
!x = tensor<2x5x4xf32>
!w = tensor<61x4xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%ids: !ids {tv.range = [-1, 63]}, %x: !x) -> !w {
  %zeros = tv.constant dense<0.0> : tensor<f32> : () -> tensor<61x4xf32>
  %0 = tv.scatter sum %zeros, %ids, %x dim 0 : (tensor<61x4xf32>, !ids, !x) -> !w
  return %0 : !w
}
