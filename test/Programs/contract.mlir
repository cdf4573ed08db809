// Products by labels. A weight's gradient sums over rows, which are split: its addends
// are combined once.
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: sed s/f32/bf16/g %s | tessera-opt --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program | FileCheck %s %no_other_collective

// CHECK: tv.contract %arg0 [0, 1, 2], %arg1 [0, 1, 3] to [3, 2]
// CHECK: comm.all_reduce
// RAN tp=1: nothing
// RAN tp=2: all-reduce 120 bytes 0 copies
// RAN tp=3: all-reduce 184 bytes 0 copies
// RAN tp=4: all-reduce 248 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<4x3x6xf32, #tv.view<#m, [did(tp) * _, _, _]>>
!d = tensor<4x3x5xf32, #tv.view<#m, [did(tp) * _, _, _]>>
!g = tensor<5x6xf32, #tv.view<#m, [_, _]>>
func.func @main(%x: !x, %d: !d) -> !g {
  %g = tv.contract %x [0, 1, 2], %d [0, 1, 3] to [3, 2] : (!x, !d) -> !g
  return %g : !g
}

// -----

// A batch; columns that are split, as is what is added to them; rows before the batch
// in the result. Nothing moves, the transpose neither.
// CHECK: tv.transpose
// CHECK: tv.contract {{.*}} bias
// CHECK-NEXT: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!b = tensor<2x8x6xf32, #tv.view<#m, [_, did(tp) * _, _]>>
!c = tensor<8xf32, #tv.view<#m, [did(tp) * _]>>
func.func @main(%a: tensor<2x6x3xf32>, %b: !b, %c: !c) -> tensor<3x2x8xf32> {
  %t = tv.transpose %a perm [0, 2, 1] : (tensor<2x6x3xf32>) -> tensor<2x3x6xf32>
  %y = tv.contract %t [0, 1, 2], %b [0, 3, 2] bias %c to [1, 0, 3]
     : (tensor<2x3x6xf32>, !b, !c) -> tensor<3x2x8xf32>
  return %y : tensor<3x2x8xf32>
}
