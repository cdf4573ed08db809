// The canonical forms of ops on local tensors; they keep views, orders in memory and
// partial states. What stands before localization stays (global.mlir).
// RUN: split-file %s %t
// RUN: tessera-opt %t/local.mlir --split-input-file --tv-simplify --mlir-print-local-scope | FileCheck %s
// RUN: tessera-opt %t/local.mlir --split-input-file --tv-simplify --interpret=2 -o /dev/null
// RUN: tessera-opt %t/global.mlir --canonicalize | FileCheck %s --check-prefix=GLOBAL

//--- local.mlir
// Both factors, through two transposes; a batch; the bias stays. The weight is read by
// another, so its transpose stays for that.
#m = #tv.mesh<tp = 2>
!x = tensor<2x8x4xf32, #tv.local<#tv.view<#m, [2, 8, 4]>, of [2, 8, 4]>>
!t = tensor<4x2x8xf32, #tv.local<#tv.view<#m, [4, 2, 8]>, of [4, 2, 8]>>
!u = tensor<2x4x8xf32, #tv.local<#tv.view<#m, [2, 4, 8]>, of [2, 4, 8]>>
!w = tensor<8x3xf32, #tv.local<#tv.view<#m, [8, did(tp) * 3]>, of [8, 6]>>
!v = tensor<3x8xf32, #tv.local<#tv.view<#m, [did(tp) * 3, 8], alloc = (1, 0)>, of [6, 8]>>
!b = tensor<3xf32, #tv.local<#tv.view<#m, [did(tp) * 3]>, of [6]>>
!y = tensor<2x4x3xf32, #tv.local<#tv.view<#m, [2, 4, did(tp) * 3]>, of [2, 4, 6]>>
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x8x4{{.*}}, %[[W:[^:]*]]: tensor<8x3{{.*}}, %[[B:[^:]*]]: tensor<3xf32
// CHECK-NEXT: %[[V:.*]] = tv.transpose %[[W]] perm [1, 0] : {{.*}} alloc = (1, 0)>
// CHECK-NEXT: %[[Y:.*]] = tv.contract %[[X]] [0, 2, 1], %[[W]] [2, 3] bias %[[B]] to [0, 1, 3]
// CHECK-NEXT: return %[[Y]], %[[V]]
func.func @main(%x: !x, %w: !w, %b: !b) -> (!y, !v) {
  %t = tv.transpose %x perm [2, 0, 1] : (!x) -> !t
  %u = tv.transpose %t perm [1, 0, 2] : (!t) -> !u
  %v = tv.transpose %w perm [1, 0] : (!w) -> !v
  %y = tv.linear %u, %v bias %b : (!u, !v, !b) -> !y
  return %y, %v : !y, !v
}

// -----

// A product that sums what is split; the result is as partial as it was.
#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 8]>, of [8, 8]>>
!t = tensor<8x4xf32, #tv.local<#tv.view<#m, [8, did(tp) * 4]>, of [8, 8]>>
!y = tensor<8x8xf32, #tv.local<#tv.view<#m, [8, 8], partial = [tp : sum]>, of [8, 8]>>
!s = tensor<8xf32, #tv.local<#tv.view<#m, [8], partial = [tp : sum]>, of [8]>>
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8{{.*}}, %[[D:[^:]*]]: tensor<4x8
// CHECK-NEXT: %[[Y:.*]] = tv.contract %[[D]] [1, 0], %[[X]] [1, 2] to [0, 2] : {{.*}} partial = [tp : sum]>
// CHECK-NEXT: %[[S:.*]] = tv.reduce sum %[[D]] dims [0] : {{.*}} partial = [tp : sum]>
// CHECK-NEXT: return %[[Y]], %[[S]]
func.func @main(%x: !x, %d: !x) -> (!y, !s) {
  %t = tv.transpose %d perm [1, 0] : (!x) -> !t
  %y = tv.matmul %t, %x : (!t, !x) -> !y
  %s = tv.reduce sum %t dims [1] : (!t) -> !s
  return %y, %s : !y, !s
}

// -----

// The rows of a kernel stay together: a map reads them as the reduction does. What is
// left of a reduction keeps its order.
#m = #tv.mesh<tp = 2>
!x = tensor<4x8x2xf32, #tv.local<#tv.view<#m, [4, 8, 2]>, of [4, 8, 2]>>
!t = tensor<8x4x2xf32, #tv.local<#tv.view<#m, [8, 4, 2]>, of [8, 4, 2]>>
!s = tensor<8x4xf32, #tv.local<#tv.view<#m, [8, 4]>, of [8, 4]>>
!r = tensor<8x2xf32, #tv.local<#tv.view<#m, [8, 2]>, of [8, 2]>>
// CHECK-LABEL: func.func @main(
// CHECK: %[[T:.*]] = tv.transpose %{{.*}} perm [1, 0, 2]
// CHECK: tv.reduce max %[[T]] dims [1]
// CHECK: tv.map %[[T]]
// CHECK: %[[U:.*]] = tv.transpose %{{.*}} perm [1, 0, 2]
// CHECK: tv.reduce max %[[U]] dims [2]
// CHECK: tv.reduce max %arg2 dims [0]
func.func @main(%x: !x, %y: !x, %z: !x) -> (!r, !t, !s, !r) {
  %t = tv.transpose %x perm [1, 0, 2] : (!x) -> !t
  %0 = tv.reduce max %t dims [1] : (!t) -> !r
  %1 = tv.map %t : (!t) -> !t (%e: f32) {
    %n = arith.negf %e : f32
    tv.yield %n : f32
  }
  %u = tv.transpose %y perm [1, 0, 2] : (!x) -> !t
  %2 = tv.reduce max %u dims [2] : (!t) -> !s
  %v = tv.transpose %z perm [1, 0, 2] : (!x) -> !t
  %3 = tv.reduce max %v dims [1] : (!t) -> !r
  return %0, %1, %2, %3 : !r, !t, !s, !r
}

// -----

// What changes nothing. A type of another order in memory is a change.
#m = #tv.mesh<tp = 2>
!x = tensor<4x6xf32, #tv.local<#tv.view<#m, [4, did(tp) * 6]>, of [4, 12]>>
!f = tensor<24xf32, #tv.local<#tv.view<#m, [flat(1) 4 * did(tp) * 6]>, of [48]>>
!a = tensor<4x6xf32, #tv.local<#tv.view<#m, [4, did(tp) * 6], alloc = (1, 0)>, of [4, 12]>>
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK-NEXT: %[[A:.*]] = tv.transpose %[[X]] perm [0, 1] : {{.*}} alloc = (1, 0)>
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]], %[[X]], %[[A]]
func.func @main(%x: !x) -> (!x, !x, !x, !x, !x, !a) {
  %0 = tv.transpose %x perm [0, 1] : (!x) -> !x
  %1 = tv.reshape %x : (!x) -> !x
  %2 = tv.slice %x offsets [0, 0] : (!x) -> !x
  %3 = tv.pad %x low [0, 0] high [0, 0] value 0.0 : f32 : (!x) -> !x
  %4 = tv.concat %x dim 0 : (!x) -> !x
  %5 = tv.transpose %x perm [0, 1] : (!x) -> !a
  return %0, %1, %2, %3, %4, %5 : !x, !x, !x, !x, !x, !a
}

// -----

// There and back; scalar regions stay as they are.
#m = #tv.mesh<tp = 2>
!x = tensor<4x6xf32, #tv.local<#tv.view<#m, [4, 6]>, of [4, 6]>>
!f = tensor<24xf32, #tv.local<#tv.view<#m, [24]>, of [24]>>
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[^:]*]]:
// CHECK-NEXT: %[[Y:.*]] = tv.map %[[X]]
// CHECK: arith.mulf
// CHECK: return %[[Y]]
func.func @main(%x: !x) -> !x {
  %0 = tv.reshape %x : (!x) -> !f
  %1 = tv.reshape %0 : (!f) -> !x
  %2 = tv.map %1 : (!x) -> !x (%e: f32) {
    %one = arith.constant 1.0 : f32
    %n = arith.mulf %e, %one : f32
    tv.yield %n : f32
  }
  return %2 : !x
}

//--- global.mlir
// GLOBAL-LABEL: func.func @global
// GLOBAL: tv.transpose
// GLOBAL: tv.transpose
// GLOBAL: tv.linear
// GLOBAL: tv.slice
func.func @global(%x: tensor<8x4xf32>, %w: tensor<3x8xf32>) -> tensor<4x3xf32> {
  %s = tv.transpose %x perm [0, 1] : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %t = tv.transpose %s perm [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %y = tv.linear %t, %w : (tensor<4x8xf32>, tensor<3x8xf32>) -> tensor<4x3xf32>
  %z = tv.slice %y offsets [0, 0] : (tensor<4x3xf32>) -> tensor<4x3xf32>
  return %z : tensor<4x3xf32>
}
