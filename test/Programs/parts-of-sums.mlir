// Parts of a value become addends: each device keeps what it has of what it needs, and
// only what the devices of a sum lack together moves.
// RUN: tessera-opt %s --split-input-file --tessera="to=local" --interpret=4 | FileCheck %s %no_other_collective

// A bias in rows over x is added once to columns over y.
// CHECK-NOT: comm.exchange
// CHECK: comm.slice
// CHECK: comm.all_reduce
// RAN here: all-reduce 256 bytes 0 copies
#m = #tv.mesh<x = 2, y = 2>
!a = tensor<8x8xf32, #tv.view<#m, [_, did(x) * _]>>
!w = tensor<16x8xf32, #tv.view<#m, [did(y) * _, did(x) * _]>>
!b = tensor<8x16xf32, #tv.view<#m, [did(x) * _, _]>>
!y = tensor<8x16xf32, #tv.view<#m, [_, did(y) * _]>>
func.func @main(%a: !a, %w: !w, %b: !b) -> !y {
  %p = tv.linear %a, %w : (!a, !w) -> !y
  %y = tv.add %p, %b : (!y, !b) -> !y
  return %y : !y
}

// -----

// Rows over x are cut to those over y: a device has half of them or none.
// CHECK-NOT: comm.exchange
// CHECK: comm.slice
// CHECK: comm.all_reduce
// RAN here: all-reduce 280 bytes 0 copies
#m = #tv.mesh<x = 2, y = 2>
!a = tensor<9x8xf32, #tv.view<#m, [did(y) * _, did(x) * _]>>
!w = tensor<14x8xf32, #tv.view<#m, [_, did(x) * _]>>
!b = tensor<9x14xf32, #tv.view<#m, [did(x) * _, _]>>
!y = tensor<9x14xf32, #tv.view<#m, [did(y) * _, _]>>
func.func @main(%a: !a, %w: !w, %b: !b) -> !y {
  %p = tv.linear %a, %w : (!a, !w) -> !y
  %y = tv.add %p, %b : (!y, !b) -> !y
  return %y : !y
}
