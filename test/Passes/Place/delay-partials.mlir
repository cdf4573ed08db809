// Sums are combined later where that takes less time, in whatever order operands stand.
// RUN: tessera-opt %s --tv-decompose-reshardings | FileCheck %s

#m = #tv.mesh<x = 2, y = 3>
!a = tensor<6144x6144xf32, #tv.view<#m, [did(y) * 2048, 6144]>>
!t = tensor<6144x6144xf32, #tv.view<#m, [did(y) * did(x) * 1024, 6144]>>
!r = tensor<6144xf32, #tv.view<#m, [did(y) * did(x) * 1024]>>
!y = tensor<6144x6144xf32, #tv.view<#m, [did(x) * 3072, did(y) * 2048]>>

// What is added becomes partial, as the sums of the product, although it is split along y.
// CHECK-LABEL: @sum_first
// CHECK: %[[P:.*]] = tv.matmul {{.*}} [3 * did(x) * 1024, 6144], partial = [y : sum]>>
// CHECK-NEXT: %[[C:.*]] = tv.reshard %arg2 {{.*}} partial = [y : sum]>>
// CHECK-NEXT: tv.add %[[P]], %[[C]]
// CHECK-NEXT: %[[R:.*]] = tv.reduce sum {{.*}} partial = [y : sum]>>
// CHECK-NEXT: tv.reshard %[[R]]
func.func @sum_first(%a: !a, %b: !a, %c: !t) -> !y {
  %0 = tv.matmul %a, %b : (!a, !a) -> !t
  %1 = tv.add %0, %c : (!t, !t) -> !t
  %2 = tv.reduce sum %1 dims [1] : (!t) -> !r
  %3 = tv.broadcast %2 dims [0] : (!r) -> !y
  return %3 : !y
}

// CHECK-LABEL: @sum_second
// CHECK: %[[P:.*]] = tv.matmul {{.*}} [3 * did(x) * 1024, 6144], partial = [y : sum]>>
// CHECK-NEXT: %[[C:.*]] = tv.reshard %arg2 {{.*}} partial = [y : sum]>>
// CHECK-NEXT: tv.add %[[C]], %[[P]]
// CHECK-NEXT: %[[R:.*]] = tv.reduce sum {{.*}} partial = [y : sum]>>
// CHECK-NEXT: tv.reshard %[[R]]
func.func @sum_second(%a: !a, %b: !a, %c: !t) -> !y {
  %0 = tv.matmul %a, %b : (!a, !a) -> !t
  %1 = tv.add %c, %0 : (!t, !t) -> !t
  %2 = tv.reduce sum %1 dims [1] : (!t) -> !r
  %3 = tv.broadcast %2 dims [0] : (!r) -> !y
  return %3 : !y
}
