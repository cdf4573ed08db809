// Pointwise ops on both sides of a reshape: one kernel, where that moves nothing.

// RUN: split-file %s %t
// DEFINE: %{kernels} = --tessera="from=local to=kernels"
// RUN: tessera-opt %t/both.mlir %{kernels} | FileCheck %s --check-prefix=BOTH
// RUN: tessera-opt %t/both.mlir %{kernels} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/both.mlir --tv-hoist-reshapes --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/dynamic.mlir %{kernels} | FileCheck %s --check-prefix=DYNAMIC
// RUN: tessera-opt %t/dynamic.mlir %{kernels} --interpret=2 --interpret-sizes=b=3 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/stays.mlir --tv-expand-composites --tv-hoist-reshapes | FileCheck %s --check-prefix=STAYS
// RUN: tessera-opt %t/chain.mlir --tv-hoist-reshapes | FileCheck %s --check-prefix=CHAIN
// RUN: tessera-opt %t/chain.mlir %{kernels} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/shapes.mlir %{kernels} | FileCheck %s --check-prefix=SHAPES
// RUN: tessera-opt %t/shapes.mlir %{kernels} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/apart.mlir --tv-hoist-reshapes | FileCheck %s --check-prefix=APART
// EQUAL: interpret: @main equals the source on

//--- both.mlir
// A bias, a splat and a residual of a product that is cut into heads; what a device has
// of them is cut alike.
#m = #tv.mesh<tp = 2>
!x = tensor<3x8xf32, #tv.local<#tv.view<#m, [3, 8]>, of [3, 8]>>
!w = tensor<6x8xf32, #tv.local<#tv.view<#m, [did(tp) * 6, 8]>, of [12, 8]>>
!b = tensor<6xf32, #tv.local<#tv.view<#m, [did(tp) * 6]>, of [12]>>
!p = tensor<3x6xf32, #tv.local<#tv.view<#m, [3, did(tp) * 6]>, of [3, 12]>>
!h = tensor<3x2x3xf32, #tv.local<#tv.view<#m, [3, did(tp) * 2, 3]>, of [3, 4, 3]>>
func.func @main(%x: !x, %w: !w, %b: !b, %r: !p) -> !h {
  %half = tv.constant dense<0.5> : tensor<f32> : () -> !p
  %0 = tv.linear %x, %w : (!x, !w) -> !p
  %1 = tv.broadcast %b dims [1] : (!b) -> !p
  %2 = tv.map %0, %1, %half : (!p, !p, !p) -> !p (%u: f32, %v: f32, %h: f32) {
    %s = arith.addf %u, %v : f32
    %t = arith.mulf %s, %h : f32
    tv.yield %t : f32
  }
  %3 = tv.map %2, %r : (!p, !p) -> !p (%u: f32, %v: f32) {
    %s = arith.addf %u, %v : f32
    tv.yield %s : f32
  }
  %4 = tv.reshape %3 : (!p) -> !h
  %5 = tv.map %4 : (!h) -> !h (%u: f32) {
    %s = math.exp %u : f32
    tv.yield %s : f32
  }
  return %5 : !h
}
// BOTH-COUNT-1: func.func @map_
// BOTH-NOT: func.func @map_
// BOTH: func.func @main
// BOTH: %[[P:.*]] = plan.contract
// BOTH-DAG: plan.alias reshape %[[P]]
// BOTH-DAG: plan.alias reshape %arg2
// BOTH-DAG: plan.alias reshape %arg3
// BOTH: %[[Y:.*]] = plan.launch @map_0(
// BOTH-NOT: plan.
// BOTH: return %[[Y]]

//--- dynamic.mlir
// Dimensions that are not known stay; those before and behind are cut.
#m = #tv.mesh<tp = 2>
!x = tensor<?x6xf32, #tv.local<#tv.view<#m, [did(tp) * _, 6]>, of [b, 6]>>
!y = tensor<?x2x3xf32, #tv.local<#tv.view<#m, [did(tp) * _, 2, 3]>, of [b, 2, 3]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["b"]}) -> (!y {tv.name = "y"})
    attributes {tv.sizes = {b = 8}} {
  %0 = tv.exp %x : (!x) -> !x
  %1 = tv.reshape %0 : (!x) -> !y
  %2 = tv.exp %1 : (!y) -> !y
  return %2 : !y
}
// DYNAMIC: func.func @main
// DYNAMIC-NEXT: %[[X:.*]] = plan.alias reshape %arg0
// DYNAMIC-NEXT: %[[Y:.*]] = plan.launch @map_0(%[[X]])
// DYNAMIC-NEXT: return %[[Y]]

//--- stays.mlir
// What is read in the old shape too; of a reduction's rows; a broadcast along a part of
// what is merged; index numbers; memory in another order; what no pointwise op reads.
#m = #tv.mesh<tp = 1>
!x = tensor<4x6xf32, #tv.local<#tv.view<#m, [4, 6]>, of [4, 6]>>
!t = tensor<4x6xf32, #tv.local<#tv.view<#m, [4, 6], alloc = (1, 0)>, of [4, 6]>>
!r = tensor<4xf32, #tv.local<#tv.view<#m, [4]>, of [4]>>
!y = tensor<24xf32, #tv.local<#tv.view<#m, [24]>, of [24]>>
func.func @main(%x: !x, %z: !t, %r: !r) -> (!x, !y, !y, !y, !y, !y, !y) {
  %0 = tv.exp %x : (!x) -> !x
  %1 = tv.reshape %0 : (!x) -> !y
  %2 = tv.exp %1 : (!y) -> !y
  %3 = tv.reduce sum %x dims [1] : (!x) -> !r
  %4 = tv.broadcast %3 dims [0] : (!r) -> !x
  %5 = tv.sub %x, %4 : (!x, !x) -> !x
  %6 = tv.reshape %5 : (!x) -> !y
  %7 = tv.exp %6 : (!y) -> !y
  %8 = tv.broadcast %r dims [0] : (!r) -> !x
  %9 = tv.add %x, %8 : (!x, !x) -> !x
  %10 = tv.reshape %9 : (!x) -> !y
  %11 = tv.exp %10 : (!y) -> !y
  %12 = tv.iota 1 : () -> !x
  %13 = tv.add %x, %12 : (!x, !x) -> !x
  %14 = tv.reshape %13 : (!x) -> !y
  %15 = tv.exp %14 : (!y) -> !y
  %16 = tv.exp %z : (!t) -> !x
  %17 = tv.reshape %16 : (!x) -> !y
  %18 = tv.exp %17 : (!y) -> !y
  %19 = tv.abs %x : (!x) -> !x
  %20 = tv.reshape %19 : (!x) -> !y
  return %0, %2, %7, %11, %15, %18, %20 : !x, !y, !y, !y, !y, !y, !y
}
// STAYS-NOT: tv.reshape %arg
// STAYS-COUNT-6: tv.reshape
// STAYS-NOT: tv.reshape

//--- chain.mlir
// One reshape after the other: all before them move to the last.
#m = #tv.mesh<tp = 2>
!x = tensor<4x6xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 6]>, of [8, 6]>>
!y = tensor<4x2x3xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 2, 3]>, of [8, 2, 3]>>
func.func @main(%x: !x) -> !x {
  %0 = tv.map %x : (!x) -> !x (%u: f32) {
    %s = math.exp %u : f32
    tv.yield %s : f32
  }
  %1 = tv.reshape %0 : (!x) -> !y
  %2 = tv.map %1 : (!y) -> !y (%u: f32) {
    %s = math.sin %u : f32
    tv.yield %s : f32
  }
  %3 = tv.reshape %2 : (!y) -> !x
  %4 = tv.map %3 : (!x) -> !x (%u: f32) {
    %s = math.cos %u : f32
    tv.yield %s : f32
  }
  return %4 : !x
}
// CHAIN: %[[A:.*]] = tv.reshape %arg0
// CHAIN-NEXT: %[[B:.*]] = tv.reshape %[[A]]
// CHAIN-NEXT: %[[C:.*]] = tv.map %[[B]]
// CHAIN: %[[D:.*]] = tv.map %[[C]]
// CHAIN: %[[E:.*]] = tv.map %[[D]]
// CHAIN: return %[[E]]

//--- shapes.mlir
// A value, made by a pointwise op, that is read in three shapes: one kernel.
#m = #tv.mesh<tp = 2>
!x = tensor<4x12xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 12]>, of [8, 12]>>
!y = tensor<4x2x6xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 2, 6]>, of [8, 2, 6]>>
!z = tensor<4x3x4xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 3, 4]>, of [8, 3, 4]>>
!b = tensor<12xf32, #tv.local<#tv.view<#m, [12]>, of [12]>>
func.func @main(%x: !x, %w: !x, %b: !b) -> (!x, !y, !z) {
  %n = tv.mul %x, %w : (!x, !x) -> !x
  %c = tv.broadcast %b dims [1] : (!b) -> !x
  %0 = tv.add %n, %c : (!x, !x) -> !x
  %1 = tv.reshape %n : (!x) -> !y
  %2 = tv.exp %1 : (!y) -> !y
  %3 = tv.reshape %n : (!x) -> !z
  %4 = tv.mul %3, %3 : (!z, !z) -> !z
  return %0, %2, %4 : !x, !y, !z
}
// SHAPES-COUNT-1: func.func @map_
// SHAPES-NOT: func.func @map_
// SHAPES: func.func @main
// SHAPES: %[[ALL:.*]]:3 = plan.launch @map_0(
// SHAPES-NOT: plan.launch

//--- apart.mlir
// What could join other loops of its shape stays: a sum reads it, another op reads it, it
// may follow a product; and a part of what is merged.
#m = #tv.mesh<tp = 1>
!x = tensor<4x6xf32, #tv.local<#tv.view<#m, [4, 6]>, of [4, 6]>>
!w = tensor<6x6xf32, #tv.local<#tv.view<#m, [6, 6]>, of [6, 6]>>
!r = tensor<4xf32, #tv.local<#tv.view<#m, [4]>, of [4]>>
!y = tensor<24xf32, #tv.local<#tv.view<#m, [24]>, of [24]>>
func.func @main(%x: !x, %w: !w, %r: !r) -> (!r, !x, !x, !x, !y) {
  %0 = tv.exp %x : (!x) -> !x
  %1 = tv.reduce sum %0 dims [1] : (!x) -> !r
  %2 = tv.abs %x : (!x) -> !x
  %3 = tv.neg %2 : (!x) -> !x
  %4 = tv.linear %x, %w : (!x, !w) -> !x
  %5 = tv.add %4, %x : (!x, !x) -> !x
  %6 = tv.broadcast %r dims [0] : (!r) -> !x
  %7 = tv.mul %x, %6 : (!x, !x) -> !x
  %8 = tv.reshape %x : (!x) -> !y
  %9 = tv.tanh %8 : (!y) -> !y
  return %1, %3, %5, %7, %9 : !r, !x, !x, !x, !y
}
// APART-COUNT-1: tv.reshape
// APART-NOT: tv.reshape
