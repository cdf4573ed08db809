// An index of a captured tensor is looked at where it may lie outside, and only there.
// RUN: tessera-opt %s --split-input-file --tessera=to=kernels | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="to=kernels target=cuda:sm_90a" | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera=to=kernels --interpret=2 -o /dev/null

// Positions along the tensor's dimensions, also split and dynamic ones, and what is
// computed from them within constant bounds.
// CHECK-LABEL: func.func @map_0
// CHECK-NOT: scf.if
// CHECK-COUNT-4: memref.load
// CHECK: memref.store
// CHECK-LABEL: func.func @main
#m = #tv.mesh<x = 2>
!a = tensor<?x12xf32, #tv.view<#m, [did(x) * _, _]>>
func.func @main(%a: !a {tv.dims = ["s"]}, %p: tensor<?xf32> {tv.dims = ["s"]},
    %c: tensor<12xf32>, %e: tensor<3x4xf32>) -> !a attributes {tv.sizes = {s = 16 : i64}} {
  %i = tv.iota 0 like %a : (!a) -> tensor<?x12xi32>
  %j = tv.iota 1 like %a : (!a) -> tensor<?x12xi64>
  %r = tv.map %a, %i, %j : (!a, tensor<?x12xi32>, tensor<?x12xi64>) -> !a
    (%x: f32, %row: i32, %col: i64) {
      %four = arith.constant 4 : index
      %at = arith.index_cast %row : i32 to index
      %to = arith.index_cast %col : i64 to index
      %g = arith.divui %to, %four : index
      %h = arith.remui %to, %four : index
      %0 = tv.load %p[%at] : tensor<?xf32> -> f32
      %1 = tv.load %c[%to] : tensor<12xf32> -> f32
      %2 = tv.load %e[%g, %h] : tensor<3x4xf32> -> f32
      %3 = arith.addf %x, %0 : f32
      %4 = arith.mulf %3, %1 : f32
      %5 = arith.addf %4, %2 : f32
      tv.yield %5 : f32
    }
  return %r : !a
}

// -----

// One beyond; and a position of a tensor that is longer. One look for both.
// CHECK-LABEL: func.func @map_0
// CHECK: %[[IN:.*]] = arith.cmpi ult, %{{.*}}, %{{.*}} : index
// CHECK-NEXT: constant
// CHECK-NEXT: scf.if %[[IN]] -> (f32)
// CHECK-NEXT: memref.load
// CHECK: %[[ROW:.*]] = arith.cmpi ult
// CHECK: %[[COLUMN:.*]] = arith.cmpi ult
// CHECK: %[[BOTH:.*]] = arith.andi %[[ROW]], %[[COLUMN]]
// CHECK: scf.if %[[BOTH]] -> (f32)
// CHECK-NEXT: memref.load
// CHECK-NOT: scf.if
// CHECK-LABEL: func.func @main
#m = #tv.mesh<x = 2>
!a = tensor<?x12xf32, #tv.view<#m, [did(x) * _, _]>>
func.func @main(%a: !a {tv.dims = ["s"]}, %c: tensor<12xf32>, %e: tensor<3x4xf32>) -> !a
    attributes {tv.sizes = {s = 16 : i64}} {
  %i = tv.iota 0 like %a : (!a) -> tensor<?x12xi32>
  %j = tv.iota 1 like %a : (!a) -> tensor<?x12xi64>
  %r = tv.map %a, %i, %j : (!a, tensor<?x12xi32>, tensor<?x12xi64>) -> !a
    (%x: f32, %row: i32, %col: i64) {
      %one = arith.constant 1 : index
      %at = arith.index_cast %row : i32 to index
      %to = arith.index_cast %col : i64 to index
      %next = arith.addi %to, %one : index
      %0 = tv.load %c[%next] : tensor<12xf32> -> f32
      %1 = tv.load %e[%at, %to] : tensor<3x4xf32> -> f32
      %2 = arith.addf %0, %1 : f32
      %3 = arith.mulf %x, %2 : f32
      tv.yield %3 : f32
    }
  return %r : !a
}

// -----

// What is a position under a condition is none outside of it: the table that is read
// first is no memory, and its rows are looked at.
// CHECK-LABEL: func.func @map_0
// CHECK: scf.if %{{.*}} -> (i32)
// CHECK: scf.if %{{.*}} -> (f32)
// CHECK-LABEL: func.func @main
#m = #tv.mesh<x = 2>
!i = tensor<10xi32, #tv.view<#m, [did(x) * _]>>
func.func @main(%i: !i {tv.range = [-3, 9]}, %c: tensor<6xf32>) -> tensor<10xf32> {
  %n = tv.iota 0 : () -> tensor<6xi32>
  %r = tv.map %i : (!i) -> tensor<10xf32>
    (%x: i32) {
      %at = arith.index_cast %x : i32 to index
      %k = tv.load %n[%at] : tensor<6xi32> -> i32
      %0 = tv.load %c[%at] : tensor<6xf32> -> f32
      %kf = arith.sitofp %k : i32 to f32
      %1 = arith.addf %0, %kf : f32
      tv.yield %1 : f32
    }
  return %r : tensor<10xf32>
}
