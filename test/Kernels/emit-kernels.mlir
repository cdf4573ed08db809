// RUN: tessera-opt %s -tv-expand-composites -cse -tv-group-ops -tv-emit-kernels -split-input-file | FileCheck %s
// RUN: tessera-opt %s -tv-expand-composites -cse -tv-group-ops -tv-emit-kernels -split-input-file -mlir-print-debuginfo | FileCheck %s --check-prefix=DEBUG

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
// CHECK: scf.parallel (%{{.*}}, %{{.*}}) =
// CHECK-NOT: scf.{{for|parallel}}
// CHECK: arith.addf
// CHECK: math.exp
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

// A row's reductions and what uses them run in one loop over rows, what stores and
// reduces in one loop of a row.
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [_, 8]>
!x = tensor<?x8xf32, #tv.local<#x, of [b, 8]>>
// CHECK: func.func @map_0(
// CHECK: %[[NONE:.*]] = arith.constant 0xFF800000 : f32
// CHECK: scf.parallel (%[[ROW:.*]]) = {{.*}} {
// CHECK-NEXT: %[[MAX:.*]] = scf.parallel (%[[AT:.*]]) = {{.*}} init (%[[NONE]]) -> f32 {
// CHECK-NEXT: %[[X:.*]] = memref.load %arg0[%[[ROW]], %[[AT]]]
// CHECK-NEXT: scf.reduce(%[[X]] : f32) {
// CHECK-NEXT: ^bb0(%[[L:.*]]: f32, %[[R:.*]]: f32):
// CHECK-NEXT: %[[M:.*]] = arith.maximumf %[[L]], %[[R]]
// CHECK-NEXT: scf.reduce.return %[[M]]
// CHECK: %[[SUM:.*]] = scf.parallel {{.*}} init {{.*}} -> f32 {
// CHECK: %[[E:.*]] = math.exp
// CHECK: scf.reduce(%[[E]] : f32)
// CHECK: arith.addf {{.*}} fastmath<reassoc>
// CHECK: scf.parallel (%{{.*}}) =
// CHECK-NOT: init
// CHECK: arith.divf %{{.*}}, %[[SUM]]
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

// -----

// A stage that both stores and reduces is one loop; the reduction of all elements has
// one row.
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [4, 8]>
#s = #tv.view<#m, []>
!x = tensor<4x8xf32, #tv.local<#x, of [4, 8]>>
!s = tensor<f32, #tv.local<#s, of []>>
// CHECK: func.func @{{.*}}(%arg0: {{.*}}, %arg1: {{.*}}, %arg2
// CHECK: scf.parallel (%{{.*}}) = (%c0) to (%c1) step (%c1) {
// CHECK-NEXT: %[[SUM:.*]] = scf.parallel (%{{.*}}, %{{.*}}) = (%c0, %c0) to (%c4, %c8) {{.*}} init
// CHECK: memref.store %[[Y:.*]], %arg1
// CHECK-NEXT: scf.reduce(%[[Y]] : f32)
// CHECK: memref.store %[[SUM]], %arg2[]
// CHECK: func.func @main
func.func @main(%x: !x) -> (!x, !s) {
  %y = tv.mul %x, %x : (!x, !x) -> !x
  %s = tv.reduce sum %y dims [0, 1] : (!x) -> !s
  return %y, %s : !x, !s
}

// -----

// What only sums of columns read is computed in their loops, and what follows a sum
// behind them; what is stored, too, keeps its own order.
#m = #tv.mesh<tp = 1>
!x = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8]>, of [4, 8]>>
!y = tensor<8xf32, #tv.local<#tv.view<#m, [8]>, of [8]>>
// CHECK: func.func @[[MAP:.*]](
// CHECK: scf.parallel (%{{.*}}, %{{.*}}) = (%c0, %c0) to (%c4, %c8)
// CHECK: arith.addf
// CHECK: func.func @[[SUMS:.*]](
// CHECK: scf.parallel (%[[COLUMN:.*]]) = (%c0) to (%c8)
// CHECK-NEXT: scf.parallel (%[[ROW:.*]]) = (%c0) to (%c4) {{.*}} init
// CHECK-NEXT: memref.load %arg0[%[[ROW]], %[[COLUMN]]]
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: memref.load %arg1[%[[ROW]], %[[COLUMN]]]
// CHECK-NEXT: scf.reduce
// CHECK: math.sqrt
// CHECK-NEXT: memref.store %{{.*}}, %arg2[%[[COLUMN]]]
// CHECK-NEXT: memref.store %{{.*}}, %arg3[%[[COLUMN]]]
// CHECK: func.func @main
// CHECK: %[[A:.*]] = plan.launch @[[MAP]](%arg0)
// CHECK-NEXT: plan.launch @[[SUMS]](%arg0, %[[A]])
func.func @main(%x: !x) -> (!y, !x, !y) {
  %0 = tv.mul %x, %x : (!x, !x) -> !x
  %1 = tv.reduce sum %0 dims [0] : (!x) -> !y
  %2 = tv.map %1 : (!y) -> !y (%u: f32) {
    %s = math.sqrt %u : f32
    tv.yield %s : f32
  }
  %3 = tv.add %x, %x : (!x, !x) -> !x
  %4 = tv.reduce max %3 dims [0] : (!x) -> !y
  return %2, %3, %4 : !y, !x, !y
}

// -----

// Updates of one element are added in the order of their ids.
#m = #tv.mesh<tp = 1>
!t = tensor<6x4xf32, #tv.local<#tv.view<#m, [6, 4]>, of [6, 4]>>
!u = tensor<?x4xf32, #tv.local<#tv.view<#m, [_, 4]>, of [b, 4]>>
!i = tensor<?xi32, #tv.local<#tv.view<#m, [_]>, of [b]>>
// CHECK: func.func @scatter_0(
// CHECK: scf.parallel (%{{.*}}, %{{.*}}) =
// CHECK: memref.store
// CHECK: scf.parallel (%[[AT:.*]]) = (%c0) to (%c4)
// CHECK-NEXT: scf.for %[[N:.*]] = %c0 to
// CHECK: memref.load %{{.*}}[%[[N]]]
// CHECK: scf.if
// CHECK: memref.load %{{.*}}[%{{.*}}, %[[AT]]]
// CHECK: memref.load %{{.*}}[%[[N]], %[[AT]]]
// CHECK: arith.addf
// CHECK-NOT: reassoc
// CHECK: func.func @main
func.func @main(%t: !t, %i: !i, %u: !u) -> !t {
  %0 = tv.scatter sum %t, %i, %u dim 0 : (!t, !i, !u) -> !t
  return %0 : !t
}

// -----

// Collectives run in the order of the program, so the sum of `%h` comes after the
// gather of `%a`: it is not computed in one kernel with `%a`.
#m = #tv.mesh<tp = 2>
!s = tensor<4xf32, #tv.local<#tv.view<#m, [did(tp) * 4]>, of [8]>>
!w = tensor<8xf32, #tv.local<#tv.view<#m, [8]>, of [8]>>
func.func @main(%x: !s, %y: !s) -> (!w, !s) {
  // CHECK: %[[A:.*]] = plan.launch @map_0(%{{.*}})
  // CHECK-NEXT: comm.all_gather %[[A]]
  // CHECK-NEXT: %[[H:.*]] = comm.all_gather
  // CHECK-NEXT: %[[P:.*]] = plan.alias shard %[[H]]
  // CHECK-NEXT: plan.launch @map_1(%[[A]], %[[P]])
  %a = tv.add %x, %x : (!s, !s) -> !s
  %g = comm.all_gather %a over #m [tp] id 0 : (!s) -> !w
  %h = comm.all_gather %y over #m [tp] id 1 : (!s) -> !w
  %p = comm.slice %h over #m [tp] id 2 : (!w) -> !s
  %b = tv.add %a, %p : (!s, !s) -> !s
  return %g, %b : !w, !s
}

// -----

// A slice of a split dimension is a window on what each device holds of it.
#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [did(tp) * 4, 6]>
#b = #tv.view<#m, [(did(tp) * 3 | 2:6), 2]>
!s = tensor<4x6xf32, #tv.local<#s, of [8, 6]>>
!b = tensor<?x2xf32, #tv.local<#b, of [4, 2]>>
!w = tensor<4x2xf32, #tv.local<#tv.view<#m, [4, 2]>, of [4, 2]>>
func.func @main(%x: !s) -> !w {
  // CHECK: %[[B:.*]] = plan.alias slice %{{.*}} at [3, 1]
  // CHECK-NEXT: comm.all_gather %[[B]]
  %b = tv.slice %x offsets [3, 1] : (!s) -> !b
  %w = comm.all_gather %b over #m [tp] id 0 : (!b) -> !w
  return %w : !w
}

// -----

// 6 query heads on 2 key heads, 2 on each of 3 devices, so the second has heads of
// both groups: which key a head reads follows from its global number.
#m = #tv.mesh<tp = 3>
!q = tensor<1x2x3x4xf32, #tv.local<#tv.view<#m, [1, did(tp) * 2, 3, 4]>, of [1, 6, 3, 4]>>
!k = tensor<1x2x5x4xf32, #tv.local<#tv.view<#m, [1, 2, 5, 4]>, of [1, 2, 5, 4]>>
!l = tensor<1x2x3xf32, #tv.local<#tv.view<#m, [1, did(tp) * 2, 3]>, of [1, 6, 3]>>
// CHECK: func.func @broadcast_0(%[[KEY:[^:]*]]: memref<1x2x5x4x
// CHECK: %[[C3:.*]] = arith.constant 3 : index
// CHECK: %[[GROUP:.*]] = arith.divui %{{.*}}, %[[C3]] : index
// CHECK: memref.load %[[KEY]][%{{.*}}, %[[GROUP]], %{{.*}}, %{{.*}}]
// CHECK: func.func @main(
func.func @main(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  // CHECK-NEXT: %[[KEYS:.*]] = plan.launch @broadcast_0(%arg1) scalars [#plan.coord<"tp">]
  // CHECK-SAME: [1, flat(2) did(tp) * 2, 5, 4]
  // CHECK-NEXT: plan.alias reshape %[[KEYS]]
  %o, %lse = tv.attention %q, %k, %v scale(0.5) : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// -----

// 5 choices over 2 devices: one loop over those that a device has.
#m = #tv.mesh<ep = 2>
!b = tensor<6x3x2xf32, #tv.local<#tv.view<#m, [6, 3, 2]>, of [6, 3, 2]>>
!i = tensor<7x?xi32, #tv.local<#tv.view<#m, [7, did(ep) * 3]>, of [7, 5]>>
!w = tensor<7x?xf32, #tv.local<#tv.view<#m, [7, did(ep) * 3]>, of [7, 5]>>
!y = tensor<7x2xf32, #tv.local<#tv.view<#m, [7, 2], partial = [ep : sum]>, of [7, 2]>>
// CHECK: func.func @combine_0(
// CHECK: %[[COUNT:.*]] = memref.dim
// CHECK: scf.parallel
// CHECK: scf.for %{{.*}} to %[[COUNT]] {{.*}} iter_args
// CHECK: func.func @main(
func.func @main(%b: !b, %e: !i, %s: !i, %w: !w) -> !y {
  // CHECK-NEXT: plan.launch @combine_0
  // CHECK-NEXT: return
  %y = tv.combine %b, %e, %s, %w : (!b, !i, !i, !w) -> !y
  return %y : !y
}

// -----

// Kernels that are alike are one, wherever they are from (DEBUG prints that as well).
#m = #tv.mesh<tp = 1>
!x = tensor<40000xf32, #tv.local<#tv.view<#m, [40000]>, of [40000]>>
!y = tensor<80000xf32, #tv.local<#tv.view<#m, [80000]>, of [80000]>>
// CHECK: func.func @map_0(
// CHECK: func.func @map_1(
// CHECK-NOT: func.func @map
// DEBUG: func.func @map_0(%arg0: memref<40000xf32
// DEBUG: func.func @map_1(%arg0: memref<80000xf32
// DEBUG-NOT: func.func @map
func.func @main(%x: !x, %y: !x, %z: !y) -> (!x, !x, !y) {
  // CHECK: plan.launch @map_0(%arg0)
  // CHECK: plan.launch @map_0(%arg1)
  // CHECK: plan.launch @map_1(%arg2)
  // DEBUG: plan.launch @map_0(%arg0)
  // DEBUG: plan.launch @map_0(%arg1)
  // DEBUG: plan.launch @map_1(%arg2)
  %0 = tv.map %x : (!x) -> !x (%u: f32) {
    %s = math.exp %u : f32
    tv.yield %s : f32
  }
  %1 = tv.map %y : (!x) -> !x (%u: f32) {
    %s = math.exp %u : f32
    tv.yield %s : f32
  }
  %2 = tv.map %z : (!y) -> !y (%u: f32) {
    %s = math.exp %u : f32
    tv.yield %s : f32
  }
  return %0, %1, %2 : !x, !x, !y
}

// -----

// Streams and steps are given to kernels: dropouts that differ in them share one. Its text
// has the seed, and that a stream is below 2^32 if it is.
#m = #tv.mesh<tp = 1>
!x = tensor<8192x8xf32, #tv.local<#tv.view<#m, [8192, 8]>, of [8192, 8]>>
!t = tensor<i64, #tv.local<#tv.view<#m, []>, of []>>
// CHECK: func.func @map_0({{.*}}, %arg3: i64)
// CHECK: %[[LOW:.*]] = arith.andi %arg3, %c4294967295_i64
// CHECK: %[[STEP:.*]] = memref.load %arg1[]
// CHECK: %[[HIGH:.*]] = arith.shli %[[STEP]], %c32_i64
// CHECK: %[[STREAM:.*]] = arith.addi %[[LOW]], %[[HIGH]]
// CHECK: plan.random %{{.*}} seed %c1_i64 stream %[[STREAM]]
// CHECK: func.func @map_1({{.*}}, %arg3: i64)
// CHECK-NOT: arith.andi
// CHECK: %[[STREAM:.*]] = arith.addi %arg3,
// CHECK: plan.random %{{.*}} seed %c1_i64 stream %[[STREAM]]
// CHECK-NOT: func.func @map_
// CHECK: func.func @main
func.func @main(%x: !x, %y: !x, %z: !x, %t: !t) -> (!x, !x, !x) {
  // CHECK-NEXT: plan.launch @map_0(%arg0, %arg3) scalars [#plan.extent<2>]
  // CHECK-NEXT: plan.launch @map_0(%arg1, %arg3) scalars [#plan.extent<4294967295>]
  // CHECK-NEXT: plan.launch @map_1(%arg2, %arg3) scalars [#plan.extent<-3>]
  %0 = tv.dropout %x rate(0.3) seed(1) stream(2) step %t : (!x, !t) -> !x
  %1 = tv.dropout %y rate(0.3) seed(1) stream(4294967295) step %t : (!x, !t) -> !x
  %2 = tv.dropout %z rate(0.3) seed(1) stream(-3) step %t : (!x, !t) -> !x
  return %0, %1, %2 : !x, !x, !x
}

// -----

// What is stored in a small float is that to the kernel, too: whoever else loads it has the
// same number.
#m = #tv.mesh<tp = 1>
!x = tensor<4x8xf16, #tv.local<#tv.view<#m, [4, 8], alloc = (0, 1)>, of [4, 8]>>
!y = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8], alloc = (0, 1)>, of [4, 8]>>
!s = tensor<f32, #tv.local<#tv.view<#m, [], alloc = ()>, of []>>
// CHECK: func.func @reduce_0
// CHECK: %[[SUM:.*]] = arith.addf
// CHECK-NEXT: %[[SMALL:.*]] = arith.truncf %[[SUM]] : f32 to f16
// CHECK-NEXT: %[[SAME:.*]] = arith.extf %[[SMALL]] : f16 to f32
// CHECK-NEXT: memref.store %[[SMALL]]
// CHECK-NEXT: arith.mulf %[[SAME]], %[[SAME]]
func.func @main(%a: !x, %b: !x) -> (!x, !s) {
  %0 = tv.add %a, %b : (!x, !x) -> !x
  %1 = tv.cast %0 : (!x) -> !y
  %2 = tv.mul %1, %1 : (!y, !y) -> !y
  %3 = tv.reduce sum %2 dims [0, 1] : (!y) -> !s
  return %0, %3 : !x, !s
}
