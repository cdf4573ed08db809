// What the matrix library of the target cuda does after a product.
// RUN: tessera-opt %s --split-input-file --tessera="from=local target=cuda:sm_90a" | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="from=local" | FileCheck %s --check-prefix=CPU
// RUN: tessera-opt %s --split-input-file --tessera="from=local target=cuda:sm_90a" --interpret=2 -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAME
// CPU-NOT: plan.contract {{.*}} {{bias|then}}
// CPU-NOT: plan.target
// SAME-COUNT-4: interpret: @main equals the source on 2 ranks

// The bias and the gelu; the sums too where another step needs them.
// CHECK: module attributes {plan.target = "cuda:sm_90a"}
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
// CHECK-NEXT: %[[E:.*]] = plan.launch @map_0(%[[A]])
// CHECK-NEXT: %[[G:.*]] = plan.launch @map_1(%[[A]])
// CHECK-NEXT: return %[[H]], %[[E]], %[[G]]
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
// CHECK: %[[Q:.*]] = plan.contract %[[Y]] [0, 1], %[[V]] [2, 1] to [0, 2] from
// CHECK: plan.launch @{{.*}}(%[[Q]], %[[S]])
// CHECK: comm.all_reduce
// CHECK: plan.launch
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
