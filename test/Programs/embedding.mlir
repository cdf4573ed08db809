// A table whose vocabulary is split: each device gathers the rows that it has, 0 for
// others, and one all-reduce adds them up. 61 words are uneven; some ids are outside.
// RUN: tessera-opt %s --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --tessera="mesh=tp=4 to=local" --interpret=4 | FileCheck %s %no_other_collective
// RUN: sed s/f32/bf16/g %s | tessera-opt --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program | FileCheck %s %no_other_collective

// CHECK: tv.gather
// CHECK: comm.all_reduce
// CHECK: tv.add
// CHECK-NEXT: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 160 bytes 0 copies
// RAN tp=3: all-reduce 224 bytes 0 copies
// RAN tp=4: all-reduce 288 bytes 0 copies
#m = #tv.mesh<tp = 2>
!words = tensor<61x4xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%ids: tensor<2x5xi32> {tv.range = [-1, 63]}, %words: !words {tv.role = "weight"},
                %positions: tensor<5x4xf32> {tv.role = "weight"}) -> tensor<2x5x4xf32> {
  %e = tv.gather %words, %ids dim 0 : (!words, tensor<2x5xi32>) -> tensor<2x5x4xf32>
  %p = tv.broadcast %positions dims [1, 2] : (tensor<5x4xf32>) -> tensor<2x5x4xf32>
  %y = tv.add %e, %p : (tensor<2x5x4xf32>, tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %y : tensor<2x5x4xf32>
}
