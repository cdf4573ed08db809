// Where two dimensions want one mesh axis, the other has the rest of what splits it.
// (Op by op, as what is larger is placed by default, too: of so few bytes, fewer steps
// that move as many or more take less time.)
// RUN: tessera-opt %s --split-input-file --tessera="to=local op-by-op" --interpret=8 | FileCheck %s %no_other_collective

// The product's rows take half of x, its columns the other half.
// CHECK: comm.slice
// CHECK: tv.matmul
// CHECK: comm.reduce_scatter
// CHECK: comm.exchange
// RAN here: all-reduce 384 bytes 0 copies
#m = #tv.mesh<y = 2, x = 4>
!a = tensor<8x32xf32, #tv.view<#m, [did(x:(2)2) * _, did(y) * _]>>
!b = tensor<32x16xf32, #tv.view<#m, [did(y) * _, _]>>
!c = tensor<8x16xf32, #tv.view<#m, [_, did(x) * _]>>
func.func @main(%a: !a, %b: !b) -> !c {
  %c = tv.matmul %a, %b : (!a, !b) -> !c
  return %c : !c
}

// -----

// Tensor parallel weights that are split over the batch's axis too (ZeRO): over that they
// are gathered, whichever is outside.
// CHECK: comm.all_gather %arg1
// CHECK-NEXT: tv.linear
// CHECK-NEXT: comm.all_gather %arg2
// CHECK-NEXT: tv.linear
// CHECK-NEXT: return
// RAN here: all-gather 768 bytes 0 copies
#m = #tv.mesh<dp = 4, tp = 2>
!x = tensor<32x8xf32, #tv.view<#m, [did(dp) * _, _]>>
!w = tensor<16x8xf32, #tv.view<#m, [did(tp) * did(dp) * _, _]>>
!v = tensor<16x8xf32, #tv.view<#m, [did(dp) * did(tp) * _, _]>>
func.func @main(%x: !x, %w: !w, %v: !v) -> (tensor<32x16xf32>, tensor<32x16xf32>) {
  %y = tv.linear %x, %w : (!x, !w) -> tensor<32x16xf32>
  %z = tv.linear %x, %v : (!x, !v) -> tensor<32x16xf32>
  return %y, %z : tensor<32x16xf32>, tensor<32x16xf32>
}

// -----

// The same where the result's rows are known, and the weight is larger than the batch.
// CHECK: comm.all_gather %arg1
// CHECK: tv.linear
// CHECK-NEXT: return
// RAN here: all-gather 192 bytes 0 copies
#m = #tv.mesh<dp = 4, tp = 2>
!x = tensor<8x8xf32, #tv.view<#m, [did(dp) * _, _]>>
!w = tensor<16x8xf32, #tv.view<#m, [did(tp) * did(dp) * _, _]>>
!y = tensor<8x16xf32, #tv.view<#m, [did(dp) * _, ?]>>
func.func @main(%x: !x, %w: !w) -> !y {
  %y = tv.linear %x, %w : (!x, !w) -> !y
  return %y : !y
}

// -----

// The columns have taken an axis of what splits the rows: these keep the other.
// CHECK: tv.exp
// CHECK: comm.all_to_all
// CHECK-NEXT: return
// RAN here: all-to-all 16 bytes 0 copies
#m = #tv.mesh<a = 2, b = 4>
!x = tensor<8x8xf32, #tv.view<#m, [did(a) * did(b) * _, _]>>
!y = tensor<8x8xf32, #tv.view<#m, [?, did(a) * _]>>
func.func @main(%x: !x) -> !y {
  %y = tv.exp %x : (!x) -> !y
  return %y : !y
}
