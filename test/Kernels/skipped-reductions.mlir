// Where all that a loop reduces is the combiner's identity unless a condition holds, and that
// is the same in all of the loop, the loop is in a branch.
// RUN: split-file %s %t
// RUN: tessera-opt %t/rows.mlir --tessera="to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=ROWS
// RUN: tessera-opt %t/rows.mlir --tessera="to=kernels target=cpu" | FileCheck %s --check-prefix=ROWS
// RUN: tessera-opt %t/rows.mlir --tessera="mesh=x=1 to=kernels" --interpret=1 -o /dev/null
// RUN: tessera-opt %t/guarded.mlir --tessera="to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=GUARDED
// RUN: tessera-opt %t/guarded.mlir --tessera="mesh=x=1 to=scheduled target=cuda:sm_90a" --interpret=1 -o /dev/null
// RUN: tessera-opt %t/not.mlir --split-input-file --tessera="to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=NOT

// Sum and maximum of a row alike; what the condition is made of comes before the branch.
// ROWS: scf.parallel (%[[I:.*]]) = (%c0) to (%c300)
// ROWS: %[[LENGTH:.*]] = memref.load %{{.*}}[%[[I]]] : memref<300xi32,
// ROWS: %[[IS:.*]] = arith.cmpi sgt, %[[LENGTH]], %c0_i32
// ROWS: %[[BOTH:.*]]:2 = scf.if %[[IS]] -> (f32, f32) {
// ROWS-NEXT: %[[SUMS:.*]]:2 = scf.parallel
// ROWS-NOT: arith.select
// ROWS: scf.yield %[[SUMS]]#0, %[[SUMS]]#1 : f32, f32
// ROWS-NEXT: } else {
// ROWS-NEXT: scf.yield %{{.*}}, %{{.*}} : f32, f32

// A load that may be outside of its tensor is in a branch itself.
// GUARDED: scf.parallel (%[[I:.*]]) = (%c0) to (%c300)
// GUARDED: %[[FLAG:.*]] = scf.if
// GUARDED: %[[IS:.*]] = arith.cmpi ne, %[[FLAG]],
// GUARDED: scf.if %[[IS]] -> (f32) {
// GUARDED-NEXT: scf.parallel

// NOT-NOT: scf.if

//--- rows.mlir
#m = #tv.mesh<x = 1>
!x = tensor<300x700xf32, #tv.view<#m, [_, _]>>
!n = tensor<300xi32, #tv.view<#m, [_]>>
!y = tensor<300xf32>
func.func @main(%x: !x, %n: !n {tv.range = [-2, 3]}) -> (!y, !y) {
  %of = tv.broadcast %n dims [0] : (!n) -> tensor<300x700xi32>
  %a, %b = tv.map %x, %of : (!x, tensor<300x700xi32>) -> (tensor<300x700xf32>, tensor<300x700xf32>)
    (%v: f32, %l: i32) {
      %zero = arith.constant 0 : i32
      %is = arith.cmpi sgt, %l, %zero : i32
      %none = arith.constant 0.0 : f32
      %least = arith.constant 0xFF800000 : f32
      %w = arith.mulf %v, %v : f32
      %p = arith.select %is, %w, %none : f32
      %q = arith.select %is, %v, %least : f32
      tv.yield %p, %q : f32, f32
    }
  %s = tv.reduce sum %a dims [1] : (tensor<300x700xf32>) -> !y
  %t = tv.reduce max %b dims [1] : (tensor<300x700xf32>) -> !y
  return %s, %t : !y, !y
}

//--- guarded.mlir
#m = #tv.mesh<x = 1>
!x = tensor<300x700xf32, #tv.view<#m, [_, _]>>
!n = tensor<290xi32, #tv.view<#m, [_]>>
!y = tensor<300xf32>
func.func @main(%x: !x, %n: !n {tv.range = [0, 2]}) -> !y {
  %row = tv.iota 0 : () -> tensor<300x700xi32>
  %a = tv.map %x, %row : (!x, tensor<300x700xi32>) -> tensor<300x700xf32>
    (%v: f32, %i: i32) {
      %at = arith.index_cast %i : i32 to index
      %l = tv.load %n[%at] : !n -> i32
      %zero = arith.constant 0 : i32
      %is = arith.cmpi ne, %l, %zero : i32
      %none = arith.constant 0.0 : f32
      %p = arith.select %is, %v, %none : f32
      tv.yield %p : f32
    }
  %s = tv.reduce sum %a dims [1] : (tensor<300x700xf32>) -> !y
  return %s : !y
}

//--- not.mlir
// It varies along the row.
#m = #tv.mesh<x = 1>
!x = tensor<300x700xf32, #tv.view<#m, [_, _]>>
!n = tensor<700xi32, #tv.view<#m, [_]>>
!y = tensor<300xf32>
func.func @main(%x: !x, %n: !n) -> !y {
  %of = tv.broadcast %n dims [1] : (!n) -> tensor<300x700xi32>
  %a = tv.map %x, %of : (!x, tensor<300x700xi32>) -> tensor<300x700xf32>
    (%v: f32, %l: i32) {
      %zero = arith.constant 0 : i32
      %is = arith.cmpi sgt, %l, %zero : i32
      %none = arith.constant 0.0 : f32
      %p = arith.select %is, %v, %none : f32
      tv.yield %p : f32
    }
  %s = tv.reduce sum %a dims [1] : (tensor<300x700xf32>) -> !y
  return %s : !y
}

// -----

// The maximum's identity is another.
#m = #tv.mesh<x = 1>
!x = tensor<300x700xf32, #tv.view<#m, [_, _]>>
!n = tensor<300xi32, #tv.view<#m, [_]>>
!y = tensor<300xf32>
func.func @main(%x: !x, %n: !n) -> (!y, !y) {
  %of = tv.broadcast %n dims [0] : (!n) -> tensor<300x700xi32>
  %a, %b = tv.map %x, %of : (!x, tensor<300x700xi32>) -> (tensor<300x700xf32>, tensor<300x700xf32>)
    (%v: f32, %l: i32) {
      %zero = arith.constant 0 : i32
      %is = arith.cmpi sgt, %l, %zero : i32
      %none = arith.constant 0.0 : f32
      %p = arith.select %is, %v, %none : f32
      tv.yield %p, %p : f32, f32
    }
  %s = tv.reduce sum %a dims [1] : (tensor<300x700xf32>) -> !y
  %t = tv.reduce max %b dims [1] : (tensor<300x700xf32>) -> !y
  return %s, %t : !y, !y
}

// -----

// A row's second loop reads what the first one keeps.
#m = #tv.mesh<x = 1>
!x = tensor<300x700xf32, #tv.view<#m, [_, _]>>
!n = tensor<300xi32, #tv.view<#m, [_]>>
!y = tensor<300xf32>
func.func @main(%x: !x, %n: !n) -> !y {
  %max = tv.reduce max %x dims [1] : (!x) -> !y
  %of = tv.broadcast %n dims [0] : (!n) -> tensor<300x700xi32>
  %all = tv.broadcast %max dims [0] : (!y) -> tensor<300x700xf32>
  %a = tv.map %x, %all, %of : (!x, tensor<300x700xf32>, tensor<300x700xi32>) -> tensor<300x700xf32>
    (%v: f32, %w: f32, %l: i32) {
      %zero = arith.constant 0 : i32
      %is = arith.cmpi sgt, %l, %zero : i32
      %none = arith.constant 0.0 : f32
      %d = arith.subf %v, %w : f32
      %p = arith.select %is, %d, %none : f32
      tv.yield %p : f32
    }
  %s = tv.reduce sum %a dims [1] : (tensor<300x700xf32>) -> !y
  return %s : !y
}
