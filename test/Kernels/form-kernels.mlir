// RUN: tessera-opt %s -tv-expand-composites -cse -tv-form-kernels -split-input-file | FileCheck %s

// The bias and what follows it run in one kernel after the product.
#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [_, 8]>
#w = #tv.view<#m, [did(tp) * 8, 8]>
#v = #tv.view<#m, [did(tp) * 8]>
#h = #tv.view<#m, [_, did(tp) * 8]>
!x = tensor<?x8xf32, #tv.local<#x, of [b, 8]>>
!w = tensor<8x8xf32, #tv.local<#w, of [16, 8]>>
!b = tensor<8xf32, #tv.local<#v, of [16]>>
!h = tensor<?x8xf32, #tv.local<#h, of [b, 16]>>
// CHECK: func.func @[[KERNEL:map_[0-9]+]](
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: arith.addf
// CHECK: math.tanh
// CHECK: memref.store
// CHECK: func.func @main
func.func @main(%x: !x, %w: !w, %b: !b) -> !h {
  // CHECK: %[[P:.*]] = plan.contract %{{.*}} [0, 1], %{{.*}} [2, 1] to [0, 2] from "tv.linear"
  // CHECK-NEXT: plan.launch @[[KERNEL]](%[[P]], %{{.*}}) scalars [] from "tv.map"
  // CHECK-NEXT: return
  %0 = tv.linear %x, %w bias %b : (!x, !w, !b) -> !h
  %1 = tv.gelu tanh %0 : (!h) -> !h
  return %1 : !h
}

// -----

// A row's reductions and what uses them run in one loop over rows.
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [_, 8]>
!x = tensor<?x8xf32, #tv.local<#x, of [b, 8]>>
// CHECK: func.func @map_0(
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args
// CHECK: arith.maximumf
// CHECK: scf.for {{.*}} iter_args
// CHECK: math.exp
// CHECK: scf.for
// CHECK: memref.store
// CHECK: func.func @main
func.func @main(%x: !x) -> !x {
  // CHECK: plan.launch
  // CHECK-NEXT: return
  %0 = tv.softmax %x dim 1 : (!x) -> !x
  return %0 : !x
}

// -----

// A value that is needed by two steps exists once; index numbers never do.
#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [did(tp) * 4]>
#w = #tv.view<#m, [8]>
!s = tensor<4xi32, #tv.local<#s, of [8]>>
!w = tensor<8xi32, #tv.local<#w, of [8]>>
// The index is global: it comes from the device's coordinate.
// CHECK: func.func @map_0(%{{.*}}: memref<4xi32, {{.*}}: i64)
// CHECK: arith.index_cast %{{.*}} : i64 to index
// CHECK: func.func @main
func.func @main(%x: !s) -> (!s, !w) {
  // CHECK: plan.launch @map_0(%{{.*}}) scalars [#plan.coord<"tp">]
  // CHECK: comm.all_gather
  // CHECK-NOT: plan.copy
  %i = tv.iota 0 : () -> !s
  %y = tv.add %x, %i : (!s, !s) -> !s
  %z = comm.all_gather %y over #m [tp] id 0 : (!s) -> !w
  return %y, %z : !s, !w
}

// -----

// Windows, and the copy where strides do not allow one.
#m = #tv.mesh<tp = 2>
#a = #tv.view<#m, [4, 6]>
#t = #tv.view<#m, [6, 4]>
#f = #tv.view<#m, [24]>
#p = #tv.view<#m, [did(tp) * 2, 6]>
!a = tensor<4x6xf32, #tv.local<#a, of [4, 6]>>
!t = tensor<6x4xf32, #tv.local<#t, of [6, 4]>>
!f = tensor<24xf32, #tv.local<#f, of [24]>>
!p = tensor<2x6xf32, #tv.local<#p, of [4, 6]>>
func.func @main(%x: !a) -> (!f, !f, !p) {
  // CHECK: %[[F:.*]] = plan.alias reshape
  // CHECK-NEXT: %[[T:.*]] = plan.alias transpose %{{.*}} at [1, 0]
  // CHECK-NEXT: %[[C:.*]] = plan.copy %[[T]] from "tv.reshape"
  // CHECK-NEXT: plan.alias reshape %[[C]]
  // CHECK-NEXT: plan.alias shard
  %0 = tv.reshape %x : (!a) -> !f
  %1 = tv.transpose %x perm [1, 0] : (!a) -> !t
  %2 = tv.reshape %1 : (!t) -> !f
  %3 = comm.slice %x over #m [tp] id 0 : (!a) -> !p
  return %0, %2, %3 : !f, !f, !p
}
