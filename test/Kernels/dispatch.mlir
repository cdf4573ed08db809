// An expert counts its choices in order; rows are then copied all at once.
// RUN: tessera-opt %s --tv-group-ops --tv-emit-kernels --split-input-file --canonicalize | FileCheck %s

#m = #tv.mesh<ep = 2>
!x = tensor<8x4xf32, #tv.local<#tv.view<#m, [8, 4]>, of [8, 4]>>
!e = tensor<8x2xi32, #tv.local<#tv.view<#m, [8, 2]>, of [8, 2]>>
!r = tensor<3x5x4xf32, #tv.local<#tv.view<#m, [did(ep) * 3, 5, 4]>, of [6, 5, 4]>>
!n = tensor<3xi32, #tv.local<#tv.view<#m, [did(ep) * 3]>, of [6]>>
// CHECK: func.func @dispatch_0(
// CHECK: scf.parallel (%{{.*}}, %{{.*}}, %{{.*}}) =
// CHECK: memref.store %cst
// CHECK: scf.parallel (%{{.*}}, %{{.*}}) =
// CHECK: memref.store %c-1_i32
// CHECK: scf.parallel (%[[EXPERT:.*]]) = (%c0) to (%c6)
// CHECK-NOT: scf.parallel
// CHECK: %[[COUNT:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %c0)
// CHECK-NEXT: scf.for {{.*}} iter_args
// CHECK: arith.cmpi eq, %{{.*}}, %[[EXPERT]]
// CHECK: scf.if
// CHECK: scf.if
// CHECK: %[[C:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK-NEXT: memref.store %[[C]]
// CHECK: scf.parallel (%{{.*}}, %{{.*}}, %{{.*}}) = (%c0, %c0, %c0) to (%c8, %c2, %c4)
// CHECK-NOT: memref.alloc
// CHECK: func.func @main
func.func @main(%x: !x, %e: !e) -> (!r, !n, !e) {
  %0, %1, %2 = tv.dispatch %x, %e : (!x, !e) -> (!r, !n, !e)
  return %0, %1, %2 : !r, !n, !e
}

// -----

// On many multiprocessors in parts, each of which counts what is before it by a warp.
#m = #tv.mesh<ep = 2>
!x = tensor<4096x4xf32, #tv.local<#tv.view<#m, [4096, 4]>, of [4096, 4]>>
!e = tensor<4096x2xi32, #tv.local<#tv.view<#m, [4096, 2]>, of [4096, 2]>>
!r = tensor<8x9x4xf32, #tv.local<#tv.view<#m, [did(ep) * 8, 9, 4]>, of [16, 9, 4]>>
!n = tensor<8xi32, #tv.local<#tv.view<#m, [did(ep) * 8]>, of [16]>>
// CHECK: func.func @dispatch_0(
// CHECK: scf.parallel (%[[PART:.*]], %[[EXPERT:.*]]) = (%c0, %c0) to (%c132, %c16)
// CHECK: %[[BEFORE:.*]] = scf.parallel (%{{.*}}) = (%c0) to (%c32)
// CHECK: scf.for
// CHECK: arith.cmpi eq, %{{.*}}, %[[EXPERT]]
// CHECK: scf.reduce(
// CHECK: %[[GIVEN:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[BEFORE]])
// CHECK-NEXT: scf.for
// CHECK: arith.cmpi eq, %[[PART]], %c131
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func @main(%x: !x, %e: !e) -> (!r, !n, !e) {
    %0, %1, %2 = tv.dispatch %x, %e : (!x, !e) -> (!r, !n, !e)
    return %0, %1, %2 : !r, !n, !e
  }
}
