// Remarks tell how each op is placed, and what is next best.
// RUN: tessera-opt %s --split-input-file --tv-decompose-reshardings=explain=1 -o /dev/null 2>&1 \
// RUN:   | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tv-decompose-reshardings=explain-later=1 2>&1 \
// RUN:   | FileCheck %s --check-prefix=LATER --implicit-check-not=remark:

#m = #tv.mesh<tp = 2>
!x = tensor<8x64xf32, #tv.view<#m, [8, did(tp) * 32]>>
!w = tensor<16x64xf32, #tv.view<#m, [did(tp) * 8, 64]>>
!y = tensor<8x16xf32, #tv.view<#m, [8, did(tp) * 8]>>

// CHECK: remark: takes [8, 64], [did(tp) * 8, 64] and gives [8, did(tp) * 8]: 1024 bytes, 5.005 us; otherwise takes [8, did(tp) * 32], [16, did(tp) * 32] and gives [8, 16], partial = [tp : sum]: 1280 bytes, 10.01 us
// LATER: tv.linear {{.*}} {tv.remarks = {{\[\[}}"takes
func.func @next_best(%x: !x, %w: !w) -> !y {
  %y = tv.linear %x, %w : (!x, !w) -> !y
  return %y : !y
}

// -----

#m = #tv.mesh<tp = 2>
!x = tensor<6x8xf32, #tv.view<#m, [6, did(tp) * 4]>>
!w = tensor<4x8xf32, #tv.view<#m, [4, did(tp) * 4]>>
!y = tensor<6x4xf32, #tv.view<#m, [6, 4]>>

// The sums are combined after the addition: of it there is one remark, which is true.
// CHECK: :[[#@LINE + 5]]:8: remark: takes [6, 4], partial = [tp : sum], [6, 4], partial = [tp : sum] and gives [6, 4], partial = [tp : sum]: {{.*}}; otherwise takes
// LATER: @combined_later
func.func @combined_later(%x: !x, %v: !w, %w: !w) -> !y {
  %0 = tv.linear %x, %v : (!x, !w) -> !y
  %1 = tv.linear %x, %w : (!x, !w) -> !y
  %2 = tv.add %0, %1 : (!y, !y) -> !y
  return %2 : !y
}
