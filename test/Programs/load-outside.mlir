// An index that is data may lie outside of a captured tensor: the value is 0 there, in
// maps, in what follows them in one kernel, and in functions of a score.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=2 to=local" --interpret=2 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=3 to=kernels" --interpret=3 -o /dev/null

// One dimension, in each element type, and two.
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!i = tensor<4x10xi32, #tv.view<#m, [_, did(x) * _]>>
func.func @main(%i: !i {tv.range = [-7, 12]}, %a: tensor<5xf32>, %b: tensor<5xi32>,
    %c: tensor<4x3xf32>) -> (tensor<4x10xf32>, tensor<4x10xi32>, tensor<4x10xf32>) {
  %f, %n, %t = tv.map %i : (!i) -> (tensor<4x10xf32>, tensor<4x10xi32>, tensor<4x10xf32>)
    (%x: i32) {
      %three = arith.constant 3 : i32
      %at = arith.index_cast %x : i32 to index
      %y = arith.subi %three, %x : i32
      %other = arith.index_cast %y : i32 to index
      %p = tv.load %a[%at] : tensor<5xf32> -> f32
      %q = tv.load %b[%at] : tensor<5xi32> -> i32
      %r = tv.load %c[%at, %other] : tensor<4x3xf32> -> f32
      tv.yield %p, %q, %r : f32, i32, f32
    }
  return %f, %n, %t : tensor<4x10xf32>, tensor<4x10xi32>, tensor<4x10xf32>
}

// -----

// Far outside, and beyond what 32 bits hold; summed in the same kernel.
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!i = tensor<6x10xi32, #tv.view<#m, [did(x) * _, _]>>
func.func @main(%i: !i {tv.range = [-3, 8]}, %a: tensor<5x2xf32>) -> tensor<6xf32> {
  %t = tv.map %i : (!i) -> tensor<6x10xf32>
    (%x: i32) {
      %far = arith.constant 1000000007 : index
      %one = arith.constant 1 : index
      %at = arith.index_cast %x : i32 to index
      %scaled = arith.muli %at, %far : index
      %p = tv.load %a[%scaled, %one] : tensor<5x2xf32> -> f32
      %q = tv.load %a[%at, %at] : tensor<5x2xf32> -> f32
      %r = arith.addf %p, %q : f32
      tv.yield %r : f32
    }
  %s = tv.reduce sum %t dims [1] : (tensor<6x10xf32>) -> tensor<6xf32>
  return %s : tensor<6xf32>
}

// -----

// A tensor of dynamic size, which may be empty, and one that is no memory. The kernel
// may spill.
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!i = tensor<?x4xi32, #tv.view<#m, [did(x) * _, _]>>
func.func @main(%i: !i {tv.dims = ["s"], tv.range = [-2, 9]}, %a: tensor<?xf32> {tv.dims = ["s"]},
    %e: tensor<?x3xf32> {tv.dims = ["z"]}) -> tensor<?x4xf32>
    attributes {tv.sizes = {s = 16 : i64, z = 4 : i64}} {
  %n = tv.iota 0 : () -> tensor<6xi32>
  %t = tv.map %i : (!i) -> tensor<?x4xf32>
    (%x: i32) {
      %at = arith.index_cast %x : i32 to index
      %p = tv.load %a[%at] : tensor<?xf32> -> f32
      %q = tv.load %e[%at, %at] : tensor<?x3xf32> -> f32
      %k = tv.load %n[%at] : tensor<6xi32> -> i32
      %kf = arith.sitofp %k : i32 to f32
      %r = arith.addf %p, %q : f32
      %y = arith.addf %r, %kf : f32
      tv.yield %y : f32
    }
  return %t : tensor<?x4xf32>
}

// -----

// A bias of relative positions that has fewer entries than there are distances. (What
// says lse stays f32 where all else has another type. The kernel may spill.)
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!q = tensor<2x4x6x64xf32, #tv.view<#m, [_, did(x) * _, _, _]>>
!o = tensor<2x4x6x64xf32>
!lse = tensor<2x4x6xf32>
!bias_of_lse = tensor<4x5xf32>
func.func @main(%q: !q, %k: !q, %v: !q, %bias: !bias_of_lse, %len: tensor<3xi32> {tv.range = [1, 6]}) -> !o {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) : (!q, !q, !q) -> (!o, !lse)
    score_mod (%s: f32, %b: index, %h: index, %i: index, %j: index) { // as the lse
      %far = arith.subi %j, %i : index
      %x = tv.load %bias[%h, %far] : !bias_of_lse -> f32
      %y = arith.addf %s, %x : f32 // as the lse
      tv.yield %y : f32 // as the lse
    } mask_mod (%b: index, %h: index, %i: index, %j: index) {
      %n = tv.load %len[%b] : tensor<3xi32> -> i32
      %last = arith.index_cast %n : i32 to index
      %keep = arith.cmpi slt, %j, %last : index
      tv.yield %keep : i1
    }
  return %o : !o
}

// -----

// Of a value that is an operand, too: its elements are not those of the loop.
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!i = tensor<6xi32, #tv.view<#m, [_]>>
func.func @main(%a: tensor<6x10xf32>, %i: !i {tv.range = [-2, 7]}) -> tensor<6xf32> {
  %s = tv.reduce max %a dims [1] : (tensor<6x10xf32>) -> tensor<6xf32>
  %t = tv.map %i, %s : (!i, tensor<6xf32>) -> tensor<6xf32>
    (%x: i32, %own: f32) {
      %at = arith.index_cast %x : i32 to index
      %p = tv.load %s[%at] : tensor<6xf32> -> f32
      %r = arith.addf %p, %own : f32
      tv.yield %r : f32
    }
  return %t : tensor<6xf32>
}
