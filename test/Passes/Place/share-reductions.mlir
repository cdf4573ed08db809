// RUN: tessera-opt %s --tv-share-reductions | FileCheck %s

#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [4, did(tp) * 4]>>
!w = tensor<6x8xf32, #tv.view<#m, [6, did(tp) * 4]>>
!y = tensor<4x6xf32, #tv.view<#m, [4, 6]>>
!row = tensor<4xf32, #tv.view<#m, [4]>>
!split = tensor<4xf32, #tv.view<#m, [did(tp) * 2]>>

// The variance once more: its mean is equal, and so are the squares of what is left.
// What only it read is gone; what others read stays as it was, as often.
// CHECK-LABEL: @norm
// CHECK-NEXT: tv.reduce sum
// CHECK-NEXT: tv.broadcast
// CHECK-NEXT: tv.map
// CHECK: %[[V:.*]] = tv.reduce max
// CHECK-NEXT: %[[M:.*]] = tv.broadcast
// CHECK-NEXT: return %[[V]], %[[V]], %[[M]] :
func.func @norm(%x: !x) -> (!row, !row, !x) {
  %s = tv.reduce sum %x dims [1] : (!x) -> !row
  %m = tv.broadcast %s dims [0] : (!row) -> !x
  %d = tv.map %x, %m : (!x, !x) -> !x (%a: f32, %b: f32) {
    %0 = arith.subf %a, %b : f32
    tv.yield %0 : f32
  }
  %v = tv.reduce max %d dims [1] : (!x) -> !row
  %s2 = tv.reduce sum %x dims [1] : (!x) -> !row
  %m2 = tv.broadcast %s2 dims [0] : (!row) -> !x
  %d2 = tv.map %x, %m2 : (!x, !x) -> !x (%a: f32, %b: f32) {
    %0 = arith.subf %a, %b : f32
    tv.yield %0 : f32
  }
  %v2 = tv.reduce max %d2 dims [1] : (!x) -> !row
  return %v, %v2, %m2 : !row, !row, !x
}

// Products; another combiner, another dimension, another view, another function.
// CHECK-LABEL: @others
// CHECK-COUNT-1: tv.linear
// CHECK-NOT: tv.linear
// CHECK-COUNT-5: tv.reduce
// CHECK: return
func.func @others(%x: !x, %w: !w) -> (!y, !y, !row, !row, !split, !row, !row) {
  %0 = tv.linear %x, %w : (!x, !w) -> !y
  %1 = tv.linear %x, %w : (!x, !w) -> !y
  %2 = tv.reduce sum %x dims [1] : (!x) -> !row
  %3 = tv.reduce max %x dims [1] : (!x) -> !row
  %4 = tv.reduce sum %x dims [1] : (!x) -> !split
  %a = tv.map %x : (!x) -> !x (%e: f32) {
    %n = arith.negf %e : f32
    tv.yield %n : f32
  }
  %b = tv.map %x : (!x) -> !x (%e: f32) {
    %n = math.absf %e : f32
    tv.yield %n : f32
  }
  %5 = tv.reduce sum %a dims [1] : (!x) -> !row
  %6 = tv.reduce sum %b dims [1] : (!x) -> !row
  return %0, %1, %2, %3, %4, %5, %6 : !y, !y, !row, !row, !split, !row, !row
}

// Masks are equal where seed and stream are, and sums of them one; the masks are made
// where they are used.
// CHECK-LABEL: @masks
// CHECK-COUNT-3: tv.random
// CHECK-COUNT-2: tv.reduce
// CHECK: return %[[A:.*]], %[[A]], %[[B:.*]], %{{.*}} :
func.func @masks() -> (!row, !row, !row, !x) {
  %a = tv.random seed(1) stream(2) : () -> !x
  %b = tv.random seed(1) stream(2) : () -> !x
  %c = tv.random seed(1) stream(3) : () -> !x
  %d = tv.random seed(1) stream(2) : () -> !x
  %0 = tv.reduce sum %a dims [1] : (!x) -> !row
  %1 = tv.reduce sum %b dims [1] : (!x) -> !row
  %2 = tv.reduce sum %c dims [1] : (!x) -> !row
  return %0, %1, %2, %d : !row, !row, !row, !x
}
