// What the matrix library of the target cuda does after a product.
// RUN: tessera-opt %s --split-input-file --tessera="from=local target=cuda:sm_90a" | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="from=local" | FileCheck %s --check-prefix=CPU
// RUN: tessera-opt %s --split-input-file --tessera="from=local target=cuda:sm_90a" --interpret=2 -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAME
// CPU-NOT: plan.contract {{.*}} {{bias|then|sums}}
// CPU-NOT: plan.target
// SAME-COUNT-9: interpret: @main equals the source on 2 ranks

// The bias and the gelu; the sums too where another step needs them.
// CHECK: module attributes {plan.target = #plan.target<"cuda:sm_90a">}
// CHECK: func.func @main(%[[X:.*]]: tensor<{{.*}}, %[[W:.*]]: tensor<{{.*}}, %[[B:.*]]: tensor
// CHECK-NEXT: %[[G:.*]] = plan.contract %[[X]] [0, 1], %[[W]] [2, 1] bias %[[B]] to [0, 2] then gelu_tanh from "tv.linear"
// CHECK-NEXT: %[[H:.*]], %[[A:.*]] = plan.contract %[[X]] [0, 1], %[[W]] [2, 1] to [0, 2] then gelu_tanh from "tv.linear"
// CHECK-NEXT: plan.launch @map_0(%[[A]])
// CHECK-NEXT: return %[[G]], %[[H]]
#m = #tv.mesh<tp = 2>
!x = tensor<?x8xbf16, #tv.local<#tv.view<#m, [_, 8]>, of [b, 8]>>
!w = tensor<8x8xbf16, #tv.local<#tv.view<#m, [did(tp) * 8, 8]>, of [16, 8]>>
!b = tensor<8xbf16, #tv.local<#tv.view<#m, [did(tp) * 8]>, of [16]>>
!h = tensor<?x8xbf16, #tv.local<#tv.view<#m, [_, did(tp) * 8]>, of [b, 16]>>
func.func @main(%x: !x, %w: !w, %b: !b) -> (!h, !h, !h) attributes {tv.sizes = {b = 4}} {
  %0 = tv.linear %x, %w bias %b : (!x, !w, !b) -> !h
  %1 = tv.gelu tanh %0 : (!h) -> !h
  %2 = tv.linear %x, %w : (!x, !w) -> !h
  %3 = tv.gelu tanh %2 : (!h) -> !h
  %4 = tv.gelu %2 : (!h) -> !h
  return %1, %3, %4 : !h, !h, !h
}

// -----

// The sums of one gelu, and not of two; the exact one has a kernel.
// CHECK: %[[H:.*]], %[[A:.*]] = plan.contract {{.*}} then gelu_tanh
// CHECK-NEXT: %[[G:.*]]:2 = plan.launch @map_0(%[[A]])
// CHECK-NEXT: return %[[H]], %[[G]]#0, %[[G]]#1
#m = #tv.mesh<tp = 2>
!x = tensor<3x8xf16, #tv.local<#tv.view<#m, [3, 8]>, of [3, 8]>>
!w = tensor<8x8xf16, #tv.local<#tv.view<#m, [did(tp) * 8, 8]>, of [16, 8]>>
!h = tensor<3x8xf16, #tv.local<#tv.view<#m, [3, did(tp) * 8]>, of [3, 16]>>
func.func @main(%x: !x, %w: !w) -> (!h, !h, !h) {
  %0 = tv.linear %x, %w : (!x, !w) -> !h
  %1 = tv.gelu tanh %0 : (!h) -> !h
  %2 = tv.gelu %0 : (!h) -> !h
  %3 = tv.gelu tanh %0 : (!h) -> !h
  return %1, %2, %3 : !h, !h, !h
}

// -----

// A bias of f32, whose gelu has a kernel.
// CHECK: %[[A:.*]] = plan.contract {{.*}} bias %{{.*}} to [0, 2] from
// CHECK-NEXT: plan.launch @{{.*}}(%[[A]])
#m = #tv.mesh<tp = 2>
!x = tensor<3x8xf32, #tv.local<#tv.view<#m, [3, 8]>, of [3, 8]>>
!w = tensor<8x8xf32, #tv.local<#tv.view<#m, [did(tp) * 8, 8]>, of [16, 8]>>
!b = tensor<8xf32, #tv.local<#tv.view<#m, [did(tp) * 8]>, of [16]>>
!h = tensor<3x8xf32, #tv.local<#tv.view<#m, [3, did(tp) * 8]>, of [3, 16]>>
func.func @main(%x: !x, %w: !w, %b: !b) -> !h {
  %0 = tv.linear %x, %w bias %b : (!x, !w, !b) -> !h
  %1 = tv.gelu tanh %0 : (!h) -> !h
  return %1 : !h
}

// -----

// A partial product adds the bias that one device has. Where a device may have no
// terms to sum, the bias has a kernel.
// CHECK: func.func @main(%[[X:.*]]: tensor<{{.*}}, %[[W:.*]]: tensor<{{.*}}, %[[Y:.*]]: tensor<{{.*}}, %[[V:.*]]: tensor<{{.*}}, %[[B:.*]]: tensor
// CHECK: %[[S:.*]] = comm.slice %[[B]]
// CHECK: %[[P:.*]] = plan.contract %[[X]] [0, 1], %[[W]] [2, 1] bias %[[S]] to [0, 2] from
// CHECK: %[[R:.*]] = comm.all_reduce %[[P]]
// CHECK: %[[Q:.*]] = plan.contract %[[Y]] [0, 1], %[[V]] [2, 1] to [0, 2] from
// CHECK: plan.launch @{{.*}}(%[[Q]], %[[S]], %[[R]])
// CHECK: comm.all_reduce
#m = #tv.mesh<tp = 2>
!x = tensor<3x4xbf16, #tv.local<#tv.view<#m, [3, did(tp) * 4]>, of [3, 8]>>
!w = tensor<5x4xbf16, #tv.local<#tv.view<#m, [5, did(tp) * 4]>, of [5, 8]>>
!y = tensor<3x?xbf16, #tv.local<#tv.view<#m, [3, did(tp) * 4]>, of [3, 7]>>
!v = tensor<5x?xbf16, #tv.local<#tv.view<#m, [5, did(tp) * 4]>, of [5, 7]>>
!b = tensor<5xbf16, #tv.local<#tv.view<#m, [5]>, of [5]>>
!s = tensor<5xbf16, #tv.local<#tv.view<#m, [5], partial = [tp : sum]>, of [5]>>
!p = tensor<3x5xbf16, #tv.local<#tv.view<#m, [3, 5], partial = [tp : sum]>, of [3, 5]>>
!h = tensor<3x5xbf16, #tv.local<#tv.view<#m, [3, 5]>, of [3, 5]>>
func.func @main(%x: !x, %w: !w, %y: !y, %v: !v, %b: !b) -> (!h, !h) {
  %0 = comm.slice %b over #m [tp] id 0 : (!b) -> !s
  %1 = tv.linear %x, %w bias %0 : (!x, !w, !s) -> !p
  %2 = comm.all_reduce %1 over #m [tp] id 1 : (!p) -> !h
  %3 = tv.linear %y, %v bias %0 : (!y, !v, !s) -> !p
  %4 = comm.all_reduce %3 over #m [tp] id 2 : (!p) -> !h
  %5 = tv.gelu tanh %2 : (!h) -> !h
  return %4, %5 : !h, !h
}

// -----

// Gradients of a perceptron: the slope of the gelu, and the sums of columns of what a
// product writes or reads anyway. The product of the last ones comes before who reads
// the sums.
// CHECK: func.func @main(%[[DY:.*]]: tensor<6x16xbf16{{.*}}, %[[W:.*]]: tensor<8x16xbf16{{.*}}, %[[U:.*]]: tensor<6x8xbf16{{.*}}, %[[X:.*]]: tensor<6x24xbf16
// CHECK: %[[DU:.*]], %[[DB0:.*]] = plan.contract %[[DY]] [0, 1], %[[W]] [2, 1] to [0, 2] then gelu_tanh_grad(%[[U]]) sums result from "tv.linear"
// CHECK: plan.contract %[[DU]] [0, 1], %[[X]] [0, 2] to [1, 2] from "tv.linear"
// CHECK: %[[DW1:.*]], %[[DB1:.*]] = plan.contract %[[DY]] [0, 1], %[[X]] [0, 2] to [1, 2] sums a from "tv.linear"
// CHECK: %[[TWICE:.*]] = plan.launch @{{.*}}(%[[DB1]])
// CHECK: return %[[DU]], %[[DB0]], %{{.*}}, %[[DW1]], %[[TWICE]]
#m = #tv.mesh<tp = 2>
!y = tensor<6x16xbf16, #tv.local<#tv.view<#m, [6, 16]>, of [6, 16]>>
!yt = tensor<16x6xbf16, #tv.local<#tv.view<#m, [16, 6]>, of [16, 6]>>
!x = tensor<6x24xbf16, #tv.local<#tv.view<#m, [6, 24]>, of [6, 24]>>
!xt = tensor<24x6xbf16, #tv.local<#tv.view<#m, [24, 6]>, of [24, 6]>>
!w = tensor<8x16xbf16, #tv.local<#tv.view<#m, [did(tp) * 8, 16]>, of [16, 16]>>
!u = tensor<6x8xbf16, #tv.local<#tv.view<#m, [6, did(tp) * 8]>, of [6, 16]>>
!ut = tensor<8x6xbf16, #tv.local<#tv.view<#m, [did(tp) * 8, 6]>, of [16, 6]>>
!b0 = tensor<8xbf16, #tv.local<#tv.view<#m, [did(tp) * 8]>, of [16]>>
!w0 = tensor<8x24xbf16, #tv.local<#tv.view<#m, [did(tp) * 8, 24]>, of [16, 24]>>
!b1 = tensor<16xbf16, #tv.local<#tv.view<#m, [16]>, of [16]>>
!w1 = tensor<16x24xbf16, #tv.local<#tv.view<#m, [16, 24]>, of [16, 24]>>
func.func @main(%dy: !y, %w: !w, %u: !u, %x: !x) -> (!u, !b0, !w0, !w1, !b1) {
  %0 = tv.linear %dy, %w : (!y, !w) -> !u
  %du = tv.gelu_grad tanh %0, %u : (!u, !u) -> !u
  %db0 = tv.reduce sum %du dims [0] : (!u) -> !b0
  %dut = tv.transpose %du perm [1, 0] : (!u) -> !ut
  %xt = tv.transpose %x perm [1, 0] : (!x) -> !xt
  %dw0 = tv.linear %dut, %xt : (!ut, !xt) -> !w0
  %db1 = tv.reduce sum %dy dims [0] : (!y) -> !b1
  %1 = tv.add %db1, %db1 : (!b1, !b1) -> !b1
  %dyt = tv.transpose %dy perm [1, 0] : (!y) -> !yt
  %dw1 = tv.linear %dyt, %xt : (!yt, !xt) -> !w1
  return %du, %db0, %dw0, %dw1, %1 : !u, !b0, !w0, !w1, !b1
}

// -----

// Of matmuls, the second matrix; rows that are split give partial sums, as they do
// without a product. What went into the gelu comes behind the product in the program.
// CHECK: func.func @main(%[[DY:.*]]: tensor<?x16xf16{{.*}}, %[[W:.*]]: tensor<16x8xf16{{.*}}, %[[U:.*]]: tensor<?x8xf16{{.*}}, %[[X:.*]]: tensor<?x24xf16
// CHECK: %[[V:.*]] = plan.launch @{{.*}}(%[[U]])
// CHECK: plan.contract %[[DY]] [0, 1], %[[W]] [1, 2] to [0, 2] then gelu_tanh_grad(%[[V]]) sums result from "tv.matmul"
// CHECK: %{{.*}}, %[[S:.*]] = plan.contract %[[X]] [0, 1], %[[DY]] [0, 2] to [1, 2] sums b from "tv.matmul"
// CHECK: comm.all_reduce %[[S]]
#m = #tv.mesh<dp = 2>
!y = tensor<?x16xf16, #tv.local<#tv.view<#m, [did(dp) * 3, 16]>, of [5, 16]>>
!u = tensor<?x8xf16, #tv.local<#tv.view<#m, [did(dp) * 3, 8]>, of [5, 8]>>
!x = tensor<?x24xf16, #tv.local<#tv.view<#m, [did(dp) * 3, 24]>, of [5, 24]>>
!xt = tensor<24x?xf16, #tv.local<#tv.view<#m, [24, did(dp) * 3]>, of [24, 5]>>
!w = tensor<16x8xf16, #tv.local<#tv.view<#m, [16, 8]>, of [16, 8]>>
!b0 = tensor<8xf16, #tv.local<#tv.view<#m, [8], partial = [dp : sum]>, of [8]>>
!b1 = tensor<16xf16, #tv.local<#tv.view<#m, [16], partial = [dp : sum]>, of [16]>>
!b = tensor<16xf16, #tv.local<#tv.view<#m, [16]>, of [16]>>
!w1 = tensor<24x16xf16, #tv.local<#tv.view<#m, [24, 16], partial = [dp : sum]>, of [24, 16]>>
func.func @main(%dy: !y, %w: !w, %u: !u, %x: !x) -> (!u, !b0, !w1, !b) {
  %0 = tv.matmul %dy, %w : (!y, !w) -> !u
  %v = tv.silu %u : (!u) -> !u
  %du = tv.gelu_grad tanh %0, %v : (!u, !u) -> !u
  %db0 = tv.reduce sum %du dims [0] : (!u) -> !b0
  %xt = tv.transpose %x perm [1, 0] : (!x) -> !xt
  %dw1 = tv.matmul %xt, %dy : (!xt, !y) -> !w1
  %1 = tv.reduce sum %dy dims [0] : (!y) -> !b1
  %db1 = comm.all_reduce %1 over #m [dp] id 0 : (!b1) -> !b
  return %du, %db0, %dw1, %db1 : !u, !b0, !w1, !b
}

// -----

// What a library does not do has a kernel: the slope of the exact gelu; one behind a
// bias; where another op needs the sums of the product; of the gelu of other rows.
// CHECK: func.func @main
// CHECK-NOT: gelu_tanh_grad
// CHECK-NOT: sums
// CHECK: return
#m = #tv.mesh<tp = 2>
!y = tensor<8x16xbf16, #tv.local<#tv.view<#m, [8, 16]>, of [8, 16]>>
!w = tensor<8x16xbf16, #tv.local<#tv.view<#m, [8, 16]>, of [8, 16]>>
!u = tensor<8x8xbf16, #tv.local<#tv.view<#m, [8, 8]>, of [8, 8]>>
!v = tensor<8x8xbf16, #tv.local<#tv.view<#m, [8, 8], alloc = (1, 0)>, of [8, 8]>>
!b = tensor<8xbf16, #tv.local<#tv.view<#m, [8]>, of [8]>>
func.func @main(%dy: !y, %w0: !w, %w1: !w, %w2: !w, %w3: !w, %u: !u, %v: !v, %bias: !b)
    -> (!u, !u, !u, !u, !u, !b) {
  %0 = tv.linear %dy, %w0 : (!y, !w) -> !u
  %1 = tv.gelu_grad %0, %u : (!u, !u) -> !u
  %2 = tv.linear %dy, %w1 bias %bias : (!y, !w, !b) -> !u
  %3 = tv.gelu_grad tanh %2, %u : (!u, !u) -> !u
  %4 = tv.linear %dy, %w2 : (!y, !w) -> !u
  %5 = tv.gelu_grad tanh %4, %u : (!u, !u) -> !u
  %6 = tv.linear %dy, %w3 : (!y, !w) -> !u
  %7 = tv.gelu_grad tanh %6, %v : (!u, !v) -> !u
  // These sums are of what no product writes.
  %8 = tv.reduce sum %1 dims [0] : (!u) -> !b
  return %1, %3, %4, %5, %7, %8 : !u, !u, !u, !u, !u, !b
}

// -----

// Nor are rows of 6 elements what a library reads, nor f32, nor sums of rows, nor
// those that a product waits for.
// CHECK: func.func @main
// CHECK-NOT: gelu_tanh_grad
// CHECK-NOT: sums
// CHECK: return
#m = #tv.mesh<tp = 2>
!y = tensor<8x16xbf16, #tv.local<#tv.view<#m, [8, 16]>, of [8, 16]>>
!w = tensor<6x16xbf16, #tv.local<#tv.view<#m, [6, 16]>, of [6, 16]>>
!u = tensor<8x6xbf16, #tv.local<#tv.view<#m, [8, 6]>, of [8, 6]>>
!g = tensor<8x8xf32, #tv.local<#tv.view<#m, [8, 8]>, of [8, 8]>>
!gy = tensor<16xbf16, #tv.local<#tv.view<#m, [16]>, of [16]>>
!gb = tensor<8xf32, #tv.local<#tv.view<#m, [8]>, of [8]>>
!yt = tensor<16x8xbf16, #tv.local<#tv.view<#m, [16, 8]>, of [16, 8]>>
!s = tensor<16x16xbf16, #tv.local<#tv.view<#m, [16, 16]>, of [16, 16]>>
!b = tensor<8xbf16, #tv.local<#tv.view<#m, [8]>, of [8]>>
func.func @main(%dy: !y, %w: !w, %u: !u, %g: !g) -> (!u, !g, !gb, !s, !b) {
  %0 = tv.linear %dy, %w : (!y, !w) -> !u
  %1 = tv.gelu_grad tanh %0, %u : (!u, !u) -> !u
  %2 = tv.linear %g, %g : (!g, !g) -> !g
  %3 = tv.gelu_grad tanh %2, %g : (!g, !g) -> !g
  %4 = tv.reduce sum %3 dims [0] : (!g) -> !gb
  %5 = tv.reduce sum %dy dims [0] : (!y) -> !gy
  %6 = tv.broadcast %5 dims [1] : (!gy) -> !y
  %7 = tv.transpose %dy perm [1, 0] : (!y) -> !yt
  %8 = tv.matmul %7, %6 : (!yt, !y) -> !s
  %9 = tv.reduce sum %dy dims [1] : (!y) -> !b
  return %1, %3, %4, %8, %9 : !u, !g, !gb, !s, !b
}

// -----

// Two slopes of what becomes one product: it has no epilogue, they have a kernel.
// CHECK: func.func @main(%[[DY:.*]]: tensor<6x16xbf16{{.*}}, %[[W:.*]]: tensor<8x16xbf16{{.*}}, %[[U:.*]]: tensor<6x8xbf16{{.*}}, %[[V:.*]]: tensor
// CHECK-NEXT: %[[P:.*]] = plan.contract %[[DY]] [0, 1], %[[W]] [2, 1] to [0, 2] from "tv.linear"
// CHECK-NEXT: plan.launch @map_0(%[[P]], %[[U]], %[[V]])
#m = #tv.mesh<tp = 2>
!y = tensor<6x16xbf16, #tv.local<#tv.view<#m, [6, 16]>, of [6, 16]>>
!w = tensor<8x16xbf16, #tv.local<#tv.view<#m, [did(tp) * 8, 16]>, of [16, 16]>>
!u = tensor<6x8xbf16, #tv.local<#tv.view<#m, [6, did(tp) * 8]>, of [6, 16]>>
func.func @main(%dy: !y, %w: !w, %u: !u, %v: !u) -> (!u, !u) {
  %0 = tv.linear %dy, %w : (!y, !w) -> !u
  %1 = tv.linear %dy, %w : (!y, !w) -> !u
  %2 = tv.gelu_grad tanh %0, %u : (!u, !u) -> !u
  %3 = tv.gelu_grad tanh %1, %v : (!u, !u) -> !u
  return %2, %3 : !u, !u
}

// -----

// Of many elements the library sums too slowly: a kernel does.
// CHECK: func.func @main(%[[DY:.*]]: tensor<2048x8xbf16{{.*}}, %[[W:.*]]: tensor<512x8xbf16{{.*}}, %[[U:.*]]: tensor<2048x512xbf16
// CHECK: %[[DU:.*]] = plan.contract %[[DY]] [0, 1], %[[W]] [2, 1] to [0, 2] then gelu_tanh_grad(%[[U]]) from "tv.linear"
// CHECK: %[[PARTS:.*]] = plan.alias reshape %[[DU]]
// CHECK: plan.launch @{{.*}}(%[[PARTS]])
#m = #tv.mesh<tp = 2>
!y = tensor<2048x8xbf16, #tv.local<#tv.view<#m, [2048, 8]>, of [2048, 8]>>
!w = tensor<512x8xbf16, #tv.local<#tv.view<#m, [512, 8]>, of [512, 8]>>
!u = tensor<2048x512xbf16, #tv.local<#tv.view<#m, [2048, 512]>, of [2048, 512]>>
!b = tensor<512xbf16, #tv.local<#tv.view<#m, [512]>, of [512]>>
func.func @main(%dy: !y, %w: !w, %u: !u) -> (!u, !b) {
  %0 = tv.linear %dy, %w : (!y, !w) -> !u
  %du = tv.gelu_grad tanh %0, %u : (!u, !u) -> !u
  %db = tv.reduce sum %du dims [0] : (!u) -> !b
  return %du, %db : !u, !b
}
