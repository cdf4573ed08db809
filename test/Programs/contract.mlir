// Products by labels. A weight's gradient sums over rows, which are split: its addends
// are combined once.
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: sed s/f32/bf16/g %s | tessera-opt --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program | FileCheck %s %no_other_collective

// CHECK: tv.contract %arg0 [0, 1, 2], %arg1 [0, 1, 3] to [3, 2]
// CHECK: comm.all_reduce
// RAN tp=1: nothing
// RAN tp=2: all-reduce 120 bytes 0 copies
// RAN tp=3: all-reduce 160 bytes 0 copies
// RAN tp=4: all-reduce 184 bytes 0 copies
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
// in the result. Nothing moves, and the transpose is in the labels.
// CHECK-NOT: tv.transpose
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

// -----

// A gradient that two halves of a batch add up, in f32 whatever they are in: one move
// for both, and what is added from outside joins once.
// CHECK: tv.contract {{.*}} add {{.*}} to [3, 2] {{.*}}partial = [tp : sum]
// CHECK: tv.contract {{.*}} add {{.*}} to [3, 2] {{.*}}partial = [tp : sum]
// CHECK: comm.all_reduce
// RAN tp=1: nothing
// RAN tp=2: all-reduce 120 bytes 0 copies
// RAN tp=3: all-reduce 160 bytes 0 copies
// RAN tp=4: all-reduce 184 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<4x3x6xbf16, #tv.view<#m, [did(tp) * _, _, _]>>
!d = tensor<4x3x5xbf16, #tv.view<#m, [did(tp) * _, _, _]>>
!g = tensor<5x6xf32, #tv.view<#m, [_, _]>>
!t = tensor<5x6xf32>
func.func @main(%x0: !x, %d0: !d, %x1: !x, %d1: !d, %before: !g) -> !g {
  %0 = tv.contract %x0 [0, 1, 2], %d0 [0, 1, 3] add %before to [3, 2] : (!x, !d, !g) -> !t
  %1 = tv.contract %x1 [0, 1, 2], %d1 [0, 1, 3] add %0 to [3, 2] : (!x, !d, !t) -> !g
  return %1 : !g
}

// -----

// An addend in another order, that begins inside of another tensor, beside a bias; a
// product that sums over nothing is its addend.
// CHECK: tv.contract {{.*}} bias {{.*}} add
// CHECK: tv.contract {{.*}} add
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<7x6xf32, #tv.view<#m, [_, _]>>
!w = tensor<8x6xf32, #tv.view<#m, [did(tp) * _, _]>>
!b = tensor<8xf32, #tv.view<#m, [did(tp) * _]>>
!s = tensor<8x9xf32, #tv.view<#m, [did(tp) * _, _]>>
!y = tensor<7x8xf32>
!e = tensor<7x0xf32, #tv.view<#m, [_, _]>>
!f = tensor<8x0xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%x: !x, %w: !w, %b: !b, %s: !s, %e: !e, %f: !f) -> (!y, !y) {
  %0 = tv.slice %s offsets [0, 1] : (!s) -> tensor<8x7xf32>
  %1 = tv.transpose %0 perm [1, 0] : (tensor<8x7xf32>) -> !y
  %2 = tv.contract %x [0, 1], %w [2, 1] bias %b add %1 to [0, 2] : (!x, !w, !b, !y) -> !y
  %3 = tv.contract %e [0, 1], %f [2, 1] add %2 to [0, 2] : (!e, !f, !y) -> !y
  return %2, %3 : !y, !y
}
