// What the interpreter refuses or finds wrong, each at its place.
// RUN: split-file %s %t
// RUN: not tessera-opt %t/no-rule.mlir --interpret=1 -o /dev/null 2>&1 | FileCheck %s --check-prefix=NO-RULE
// RUN: not tessera-opt %t/no-scalar-rule.mlir --interpret=1 -o /dev/null 2>&1 | FileCheck %s --check-prefix=SCALAR
// RUN: not tessera-opt %t/held.mlir --interpret=2 -o /dev/null 2>&1 | FileCheck %s --check-prefix=HELD
// RUN: not tessera-opt %t/order.mlir --interpret=2 -o /dev/null 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: not tessera-opt %t/large.mlir --interpret=2 -o /dev/null 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not tessera-opt %t/partial.mlir --interpret=2 -o /dev/null 2>&1 | FileCheck %s --check-prefix=PARTIAL
// RUN: not tessera-opt %t/no-rule.mlir --interpret=1 --interpret-entry=other -o /dev/null 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not tessera-opt %t/sizes.mlir --interpret=1 --interpret-sizes=b=9 -o /dev/null 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not tessera-opt %t/sizes.mlir --interpret=1 --interpret-sizes=c=9 -o /dev/null 2>&1 | FileCheck %s --check-prefix=NO-SIZE
// RUN: not tessera-opt %t/sizes.mlir --interpret=1 --interpret-against=@other -o /dev/null 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not tessera-opt %t/sizes.mlir --interpret=1 --interpret-print=part -o /dev/null 2>&1 | FileCheck %s --check-prefix=PRINT
// RUN: not tessera-opt %t/sizes.mlir --interpret-print=shards -o /dev/null 2>&1 | FileCheck %s --check-prefix=ALONE

// ALONE: error: --interpret-print changes nothing without --interpret=N
// PRINT: error: --interpret-print must be 'whole' or 'shards'
// NO-RULE: error: the interpreter has no rule for 'arith.negf'
// ENTRY: error: has no function @other with a body to interpret
//--- no-rule.mlir
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = arith.negf %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// SCALAR: error: 'tv.map' op the interpreter has no rule for 'math.ctpop' in a scalar region
//--- no-scalar-rule.mlir
func.func @main(%x: tensor<4xf32>) -> tensor<4xi32> {
  %y = tv.map %x : (tensor<4xf32>) -> tensor<4xi32>
    (%a: f32) {
      %c = arith.fptosi %a : f32 to i32
      %b = math.ctpop %c : i32
      tv.yield %b : i32
    }
  return %y : tensor<4xi32>
}

// A slice of local parts that needs another device's.
// HELD: error: 'tv.slice' op does not run on each device by itself: on rank 0 needs element [2] of operand #0, which is not on this device
//--- held.mlir
#m = #tv.mesh<x = 2>
#a = #tv.local<#tv.view<#m, [did(x) * 2]>, of [4]>
#b = #tv.local<#tv.view<#m, [did(x) * 1]>, of [2]>
func.func @main(%x: tensor<2xf32, #a>) -> tensor<1xf32, #b> {
  %y = tv.slice %x offsets [2] : (tensor<2xf32, #a>) -> tensor<1xf32, #b>
  return %y : tensor<1xf32, #b>
}

// The same elements are there, in another order.
// ORDER: error: 'tv.reshape' op does not run on each device by itself: on rank 0 it would change the order of the elements that this device holds
//--- order.mlir
#m = #tv.mesh<x = 2>
#a = #tv.local<#tv.view<#m, [2, 2]>, of [2, 2]>
#b = #tv.local<#tv.view<#m, [did(x) * 2]>, of [4]>
func.func @main(%x: tensor<2x2xf32, #a>) -> tensor<2xf32, #b> {
  %y = tv.reshape %x : (tensor<2x2xf32, #a>) -> tensor<2xf32, #b>
  return %y : tensor<2xf32, #b>
}

// LARGE: large.mlir:2:8: error: with a value of type 'tensor<65536x65536xf32>' the interpreter keeps more than 2^28 elements on 2 ranks together; give it smaller tensors or fewer ranks
//--- large.mlir
func.func @main(%x: tensor<65536xf32>) -> tensor<65536x65536xf32> {
  %y = tv.broadcast %x dims [1] : (tensor<65536xf32>) -> tensor<65536x65536xf32>
  return %y : tensor<65536x65536xf32>
}

// Each rank adds up its own part, and the type claims that this is the sum.
// PARTIAL: error: 'tv.reduce' op does not run on each device by itself: its result is not partial along x as it must be
//--- partial.mlir
#m = #tv.mesh<x = 2>
#a = #tv.local<#tv.view<#m, [did(x) * 2]>, of [4]>
#one = #tv.local<#tv.view<#m, []>, of []>
func.func @main(%x: tensor<2xf32, #a>) -> tensor<f32, #one> {
  %y = tv.reduce sum %x dims [0] : (tensor<2xf32, #a>) -> tensor<f32, #one>
  return %y : tensor<f32, #one>
}

// SIZE: error: size b = 9 must be a multiple of 2 up to 8
// NO-SIZE: error: declares no size 'c'
// OTHER: error: result #0 differs at [0]: {{.*}} on 1 ranks, {{.*}} in @other
//--- sizes.mlir
func.func @main(%x: tensor<?xf32> {tv.dims = ["b"]}) -> tensor<?xf32>
    attributes {tv.sizes = {b = [8, 2]}} {
  return %x : tensor<?xf32>
}
func.func @other(%x: tensor<?xf32> {tv.dims = ["b"]}) -> tensor<?xf32>
    attributes {tv.sizes = {b = [8, 2]}} {
  %y = tv.add %x, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}
