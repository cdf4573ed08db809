// Rows of the input over y, rows of the weight over x: the result has both, and
// nothing moves.
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=4 | FileCheck %s %no_other_collective

// CHECK: tv.linear {{.*}} -> tensor<2x3xf32
// CHECK-NEXT: return
// RAN here: nothing
#m = #tv.mesh<x = 2, y = 2>
!x = tensor<4x5xf32, #tv.view<#m, [did(y) * _, _]>>
!w = tensor<6x5xf32, #tv.view<#m, [did(x) * _, _]>>
func.func @main(%x: !x, %w: !w {tv.role = "weight"}) -> tensor<4x6xf32> {
  %y = tv.linear %x, %w : (!x, !w) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

// Both over one axis: the smaller one moves. Here the input.
// CHECK: %[[X:.*]] = comm.all_gather %arg0
// CHECK: tv.linear %[[X]], %arg1
// CHECK-NEXT: return
// RAN x=1: nothing
// RAN x=2: all-gather 40 bytes 0 copies
// RAN x=3: all-gather 80 bytes 0 copies
// RAN x=4: all-gather 60 bytes 0 copies
#m = #tv.mesh<x = 4>
!x = tensor<4x5xf32, #tv.view<#m, [did(x) * _, _]>>
!w = tensor<8x5xf32, #tv.view<#m, [did(x) * _, _]>>
func.func @main(%x: !x, %w: !w {tv.role = "weight"}) -> tensor<4x8xf32> {
  %y = tv.linear %x, %w : (!x, !w) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// Here the weight.
// CHECK: %[[W:.*]] = comm.all_gather %arg1
// CHECK: tv.linear %arg0, %[[W]]
// CHECK-NEXT: return
// RAN x=1: nothing
// RAN x=2: all-gather 40 bytes 0 copies
// RAN x=3: all-gather 80 bytes 0 copies
// RAN x=4: all-gather 60 bytes 0 copies
#m = #tv.mesh<x = 4>
!x = tensor<8x5xf32, #tv.view<#m, [did(x) * _, _]>>
!w = tensor<4x5xf32, #tv.view<#m, [did(x) * _, _]>>
func.func @main(%x: !x, %w: !w {tv.role = "weight"}) -> tensor<8x4xf32> {
  %y = tv.linear %x, %w : (!x, !w) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

// Equal bytes: the weight stays.
// CHECK: %[[X:.*]] = comm.all_gather %arg0
// CHECK: tv.linear %[[X]], %arg1
// CHECK-NEXT: return
// RAN x=1: nothing
// RAN x=2: all-gather 80 bytes 0 copies
// RAN x=3: all-gather 120 bytes 0 copies
// RAN x=4: all-gather 120 bytes 0 copies
#m = #tv.mesh<x = 4>
!x = tensor<8x5xf32, #tv.view<#m, [did(x) * _, _]>>
!w = tensor<8x5xf32, #tv.view<#m, [did(x) * _, _]>>
func.func @main(%x: !x, %w: !w {tv.role = "weight"}) -> tensor<8x8xf32> {
  %y = tv.linear %x, %w : (!x, !w) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
