// RUN: tessera-opt %s --split-input-file --tv-fetch-rows --mlir-print-local-scope | FileCheck %s
// Where nothing is chosen, what tv.step tells is fetched.
// RUN: tessera-opt %s --split-input-file --tv-fetch-rows=chooses=false --mlir-print-local-scope | FileCheck %s --check-prefix=TOLD

// Words over four devices, tokens too: each device gets the rows of its own tokens, and
// the ids stay where they are. A reduce-scatter moves four times as much.
// CHECK-LABEL: @words
// TOLD-LABEL: @words
// TOLD-NOT: comm.fetch
// TOLD: comm.reduce_scatter
// CHECK-SAME: %[[T:.*]]: tensor<8000x1024xf32, {{.*}}, %[[I:.*]]: tensor<1024xi32
// CHECK-NEXT: %[[R:.*]] = comm.fetch %[[T]] at %[[I]] over #tv.mesh<tp = 4> [tp] id 2 loser "reduce-scatter over [tp], 12582912 bytes, {{.*}}"
// CHECK-SAME: -> tensor<1024x1024xf32, #tv.local<#tv.view<#tv.mesh<tp = 4>, [did(tp) * 1024, 1024], alloc = (0, 1)>, of [4096, 1024]>>
// CHECK-NEXT: return %[[R]]
#m = #tv.mesh<tp = 4>
!t = tensor<8000x1024xf32, #tv.local<#tv.view<#m, [did(tp) * 8000, 1024], alloc = (0, 1)>, of [32000, 1024]>>
!i = tensor<1024xi32, #tv.local<#tv.view<#m, [did(tp) * 1024], alloc = (0)>, of [4096]>>
!all = tensor<4096xi32, #tv.local<#tv.view<#m, [4096], alloc = (0)>, of [4096]>>
!p = tensor<4096x1024xf32, #tv.local<#tv.view<#m, [4096, 1024], alloc = (0, 1), partial = [tp : sum]>, of [4096, 1024]>>
!y = tensor<1024x1024xf32, #tv.local<#tv.view<#m, [did(tp) * 1024, 1024], alloc = (0, 1)>, of [4096, 1024]>>
func.func @words(%t: !t, %i: !i) -> !y {
  %0 = comm.all_gather %i over #m [tp] id 0 : (!i) -> !all
  %1 = tv.gather %t, %0 dim 0 : (!t, !all) -> !p
  %2 = comm.reduce_scatter %1 over #m [tp] id 1 : (!p) -> !y
  return %2 : !y
}

// -----

// Few rows cost three latencies, a reduce-scatter one.
// CHECK-LABEL: @few
// CHECK: comm.all_gather
// CHECK: tv.gather
// CHECK: comm.reduce_scatter
#m = #tv.mesh<tp = 4>
!t = tensor<2x8xf32, #tv.local<#tv.view<#m, [did(tp) * 2, 8], alloc = (0, 1)>, of [8, 8]>>
!i = tensor<1xi32, #tv.local<#tv.view<#m, [did(tp) * 1], alloc = (0)>, of [4]>>
!all = tensor<4xi32, #tv.local<#tv.view<#m, [4], alloc = (0)>, of [4]>>
!p = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8], alloc = (0, 1), partial = [tp : sum]>, of [4, 8]>>
!y = tensor<1x8xf32, #tv.local<#tv.view<#m, [did(tp) * 1, 8], alloc = (0, 1)>, of [4, 8]>>
func.func @few(%t: !t, %i: !i) -> !y {
  %0 = comm.all_gather %i over #m [tp] id 0 : (!i) -> !all
  %1 = tv.gather %t, %0 dim 0 : (!t, !all) -> !p
  %2 = comm.reduce_scatter %1 over #m [tp] id 1 : (!p) -> !y
  return %2 : !y
}

// -----

// Where all devices have all ids, each fetches what it lacks: ids are cut nowhere. The
// number of ids is as large as it may be.
// CHECK-LABEL: @all_ids
// CHECK-SAME: %[[T:.*]]: tensor<{{.*}}, %[[I:.*]]: tensor<?xi32
// CHECK-NEXT: comm.fetch %[[T]] at %[[I]] over #tv.mesh<tp = 4> [tp] id 1 loser "all-reduce over [tp], 25165824 bytes, {{.*}}"
// CHECK-NEXT: return
#m = #tv.mesh<tp = 4>
!t = tensor<8000x1024xf32, #tv.local<#tv.view<#m, [did(tp) * 8000, 1024], alloc = (0, 1)>, of [32000, 1024]>>
!i = tensor<?xi32, #tv.local<#tv.view<#m, [_], alloc = (0)>, of [n]>>
!p = tensor<?x1024xf32, #tv.local<#tv.view<#m, [_, 1024], alloc = (0, 1), partial = [tp : sum]>, of [n, 1024]>>
!y = tensor<?x1024xf32, #tv.local<#tv.view<#m, [_, 1024], alloc = (0, 1)>, of [n, 1024]>>
func.func @all_ids(%t: !t, %i: !i) -> !y attributes {tv.sizes = {n = 4096}} {
  %1 = tv.gather %t, %i dim 0 : (!t, !i) -> !p
  %2 = comm.all_reduce %1 over #m [tp] id 0 : (!p) -> !y
  return %2 : !y
}

// -----

// Tokens and choices are gathered in one step; then the choices alone are. A buffer's row
// has the number of its token; what a token got are the rows of its own choices.
// CHECK-LABEL: @experts
// TOLD-LABEL: @experts
// TOLD: comm.fetch
// TOLD: comm.fetch
// CHECK-SAME: %[[X:.*]]: tensor<4x16xf32, {{.*}}, %[[E:.*]]: tensor<4x2xi32, {{.*}}, %[[W:.*]]: tensor<4x2xf32, {{.*}})
// CHECK: %[[ALL:.*]] = comm.all_gather %[[E]] over #tv.mesh<ep = 2> [ep] id 0
// CHECK: %[[N:.*]], %{{.*}}, %[[SLOTS:.*]] = tv.dispatch %{{.*}}, %[[ALL]] : {{.*}} -> (tensor<3x3x1xi32, {{.*}}
// CHECK: %[[AT:.*]] = tv.reshape {{.*}} -> tensor<3x3xi32, #tv.local<#tv.view<#tv.mesh<ep = 2>, [did(ep) * 3, 3], {{.*}}, of [6, 3]>>
// CHECK: %[[B:.*]] = comm.fetch %[[X]] at %[[AT]] over #tv.mesh<ep = 2> [ep]
// CHECK: %[[H:.*]] = tv.gelu %[[B]]
// CHECK: %[[OWN:.*]] = comm.slice %[[SLOTS]] over #tv.mesh<ep = 2> [ep]
// CHECK: %[[R:.*]] = comm.fetch %[[H]] at %[[E]], %[[OWN]] over #tv.mesh<ep = 2> [ep] {{.*}} -> tensor<4x2x16xf32,
// CHECK: tv.map %[[W]], %[[E]], %[[OWN]]
// CHECK: tv.reduce sum
// CHECK-NOT: comm
// CHECK: return
#m = #tv.mesh<ep = 2>
!x = tensor<4x16xf32, #tv.local<#tv.view<#m, [did(ep) * 4, 16], alloc = (0, 1)>, of [8, 16]>>
!x_all = tensor<8x16xf32, #tv.local<#tv.view<#m, [8, 16], alloc = (0, 1)>, of [8, 16]>>
!x_sum = tensor<8x16xf32, #tv.local<#tv.view<#m, [8, 16], alloc = (0, 1), partial = [ep : sum]>, of [8, 16]>>
!e = tensor<4x2xi32, #tv.local<#tv.view<#m, [did(ep) * 4, 2], alloc = (0, 1)>, of [8, 2]>>
!e_all = tensor<8x2xi32, #tv.local<#tv.view<#m, [8, 2], alloc = (0, 1)>, of [8, 2]>>
!w = tensor<4x2xf32, #tv.local<#tv.view<#m, [did(ep) * 4, 2], alloc = (0, 1)>, of [8, 2]>>
!w_all = tensor<8x2xf32, #tv.local<#tv.view<#m, [8, 2], alloc = (0, 1)>, of [8, 2]>>
!b = tensor<3x3x16xf32, #tv.local<#tv.view<#m, [did(ep) * 3, 3, 16], alloc = (0, 1, 2)>, of [6, 3, 16]>>
!n = tensor<3xi32, #tv.local<#tv.view<#m, [did(ep) * 3], alloc = (0)>, of [6]>>
func.func @experts(%x: !x, %e: !e, %w: !w) -> !x {
  %0:2 = comm.all_gather %x, %e over #m [ep] id 0 : (!x, !e) -> (!x_all, !e_all)
  %b, %n, %slots = tv.dispatch %0#0, %0#1 {tv.step = "fetch"} : (!x_all, !e_all) -> (!b, !n, !e_all)
  %h = tv.gelu %b : (!b) -> !b
  %1 = comm.all_gather %w over #m [ep] id 1 : (!w) -> !w_all
  %y = tv.combine %h, %0#1, %slots, %1 {tv.step = "fetch"} : (!b, !e_all, !e_all, !w_all) -> !x_sum
  %2 = comm.reduce_scatter %y over #m [ep] id 2 : (!x_sum) -> !x
  return %2 : !x
}

// -----

// Rows dealt out in turn, a table that others read too, and a sum that goes elsewhere
// stay as they are.
// CHECK-LABEL: @others
// CHECK-NOT: comm.fetch
#m = #tv.mesh<tp = 4>
!t = tensor<8000x1024xf32, #tv.local<#tv.view<#m, [8000 * did(tp), 1024], alloc = (0, 1)>, of [32000, 1024]>>
!s = tensor<8000x1024xf32, #tv.local<#tv.view<#m, [did(tp) * 8000, 1024], alloc = (0, 1)>, of [32000, 1024]>>
!t_all = tensor<32000x1024xf32, #tv.local<#tv.view<#m, [32000, 1024], alloc = (0, 1)>, of [32000, 1024]>>
!i = tensor<4096xi32, #tv.local<#tv.view<#m, [4096], alloc = (0)>, of [4096]>>
!p = tensor<4096x1024xf32, #tv.local<#tv.view<#m, [4096, 1024], alloc = (0, 1), partial = [tp : sum]>, of [4096, 1024]>>
!y = tensor<4096x1024xf32, #tv.local<#tv.view<#m, [4096, 1024], alloc = (0, 1)>, of [4096, 1024]>>
func.func @others(%t: !t, %s: !s, %i: !i) -> (!y, !y, !t_all, !p, !y) {
  %0 = tv.gather %t, %i dim 0 : (!t, !i) -> !p
  %1 = comm.all_reduce %0 over #m [tp] id 0 : (!p) -> !y
  %2 = comm.all_gather %s over #m [tp] id 1 : (!s) -> !t_all
  %3 = tv.gather %2, %i dim 0 : (!t_all, !i) -> !y
  %4 = tv.gather %s, %i dim 0 : (!s, !i) -> !p
  %5 = comm.all_reduce %4 over #m [tp] id 2 : (!p) -> !y
  return %1, %3, %2, %4, %5 : !y, !y, !t_all, !p, !y
}
