// What may follow a product, all of it together, is what ops of tv are one by one.
// DEFINE: %{run} = tessera-opt %s -o /dev/null --interpret=1 --interpret-entry
// RUN: %{run}=slope --interpret-against=@slope_by_ops | FileCheck %s
// RUN: %{run}=batch --interpret-against=@batch_by_ops | FileCheck %s
// RUN: %{run}=integers --interpret-against=@integers_by_ops | FileCheck %s

// CHECK: interpret: @{{.*}} equals @{{.*}} on 1 ranks
#m = #tv.mesh<tp = 1>
!a = tensor<4x6xf32, #tv.local<#tv.view<#m, [4, 6]>, of [4, 6]>>
!w = tensor<8x6xf32, #tv.local<#tv.view<#m, [8, 6]>, of [8, 6]>>
!b = tensor<8xf32, #tv.local<#tv.view<#m, [8]>, of [8]>>
!c = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8]>, of [4, 8]>>
func.func @slope(%a: !a, %w: !w, %bias: !b, %x: !c, %s: !c) -> (!c, !b) {
  %c, %sums = plan.contract %a [0, 1], %w [2, 1] bias %bias add %s to [0, 2] then gelu_tanh_grad(%x) sums result
    from "tv.linear" : (!a, !w, !b, !c, !c) -> (!c, !b)
  return %c, %sums : !c, !b
}
!ga = tensor<4x6xf32>
!gw = tensor<8x6xf32>
!gb = tensor<8xf32>
!gc = tensor<4x8xf32>
func.func @slope_by_ops(%a: !ga, %w: !gw, %bias: !gb, %x: !gc, %s: !gc) -> (!gc, !gb) {
  %0 = tv.linear %a, %w bias %bias : (!ga, !gw, !gb) -> !gc
  %1 = tv.add %0, %s : (!gc, !gc) -> !gc
  %2 = tv.gelu_grad tanh %1, %x : (!gc, !gc) -> !gc
  %3 = tv.reduce sum %2 dims [0] : (!gc) -> !gb
  return %2, %3 : !gc, !gb
}

!as = tensor<2x4x6xf32, #tv.local<#tv.view<#m, [2, 4, 6]>, of [2, 4, 6]>>
!ws = tensor<2x8x6xf32, #tv.local<#tv.view<#m, [2, 8, 6]>, of [2, 8, 6]>>
!cs = tensor<2x4x8xf32, #tv.local<#tv.view<#m, [2, 4, 8]>, of [2, 4, 8]>>
!r = tensor<4xf32, #tv.local<#tv.view<#m, [4]>, of [4]>>
func.func @batch(%a: !as, %w: !ws, %bias: !b) -> (!cs, !r) {
  %c, %sums = plan.contract %a [3, 0, 1], %w [3, 2, 1] bias %bias to [3, 0, 2] then gelu_tanh sums a
    from "tv.matmul" : (!as, !ws, !b) -> (!cs, !r)
  return %c, %sums : !cs, !r
}
!gas = tensor<2x4x6xf32>
!gws = tensor<2x8x6xf32>
!gcs = tensor<2x4x8xf32>
func.func @batch_by_ops(%a: !gas, %w: !gws, %bias: !gb) -> (!gcs, tensor<4xf32>) {
  %0 = tv.contract %a [3, 0, 1], %w [3, 2, 1] bias %bias to [3, 0, 2] : (!gas, !gws, !gb) -> !gcs
  %1 = tv.gelu tanh %0 : (!gcs) -> !gcs
  %2 = tv.reduce sum %a dims [0, 2] : (!gas) -> tensor<4xf32>
  return %1, %2 : !gcs, tensor<4xf32>
}

!ai = tensor<4x1xi32, #tv.local<#tv.view<#m, [4, 1]>, of [4, 1]>>
!wi = tensor<8x1xi32, #tv.local<#tv.view<#m, [8, 1]>, of [8, 1]>>
!bi = tensor<8xi32, #tv.local<#tv.view<#m, [8]>, of [8]>>
!ci = tensor<4x8xi32, #tv.local<#tv.view<#m, [4, 8]>, of [4, 8]>>
func.func @integers(%a: !ai, %w: !wi, %bias: !bi, %s: !ci) -> !ci {
  %c = plan.contract %a [0, 1], %w [2, 1] bias %bias add %s to [0, 2] from "tv.linear"
    : (!ai, !wi, !bi, !ci) -> !ci
  return %c : !ci
}
!gai = tensor<4x1xi32>
!gwi = tensor<8x1xi32>
!gbi = tensor<8xi32>
!gci = tensor<4x8xi32>
func.func @integers_by_ops(%a: !gai, %w: !gwi, %bias: !gbi, %s: !gci) -> !gci {
  %0 = tv.reshape %a : (!gai) -> tensor<4xi32>
  %1 = tv.reshape %w : (!gwi) -> !gbi
  %2 = tv.broadcast %0 dims [0] : (tensor<4xi32>) -> !gci
  %3 = tv.broadcast %1 dims [1] : (!gbi) -> !gci
  %4 = tv.broadcast %bias dims [1] : (!gbi) -> !gci
  %5 = tv.mul %2, %3 : (!gci, !gci) -> !gci
  %6 = tv.add %5, %4 : (!gci, !gci) -> !gci
  %7 = tv.add %6, %s : (!gci, !gci) -> !gci
  return %7 : !gci
}
