// Rows that many threads share, reductions down columns, and transposed operands:
// what kernels for GPUs have forms of their own for.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=2 to=local" | FileCheck %s %no_other_collective

// Rows of a block, in registers, with vectors of 4 and of 2; the last is too long.
// CHECK: tv.softmax
// CHECK: tv.softmax
// CHECK: tv.layer_norm
// CHECK: return
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!a = tensor<6x2056xf32, #tv.view<#m, [did(x) * _, _]>>
!b = tensor<5x1030xf32, #tv.view<#m, [did(x) * _, _]>>
!c = tensor<3x33000xf32, #tv.view<#m, [did(x) * _, _]>>
!w = tensor<33000xf32>
func.func @main(%a: !a, %b: !b, %c: !c, %w: !w) -> (!a, !b, !c) {
  %0 = tv.softmax %a dim 1 : (!a) -> !a
  %1 = tv.softmax %b dim 1 : (!b) -> !b
  %2 = tv.layer_norm %c, %w, %w epsilon(1.0e-5) : (!c, !w, !w) -> !c
  return %0, %1, %2 : !a, !b, !c
}

// -----

// Columns: a sum, and a softmax along the outer dimension.
// CHECK: tv.reduce
// CHECK: tv.softmax
// CHECK: return
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!a = tensor<40x70xf32, #tv.view<#m, [_, did(x) * _]>>
func.func @main(%a: !a) -> (tensor<70xf32>, !a) {
  %0 = tv.reduce sum %a dims [0] : (!a) -> tensor<70xf32>
  %1 = tv.softmax %a dim 0 : (!a) -> !a
  return %0, %1 : tensor<70xf32>, !a
}

// -----

// Squares of a transposed operand, with edges.
// CHECK: tv.transpose
// CHECK: return
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!t = tensor<3x70x37xf32, #tv.view<#m, [_, did(x) * _, _]>>
!y = tensor<3x37x70xf32, #tv.view<#m, [_, _, did(x) * _]>>
!u = tensor<96x160xf32, #tv.view<#m, [_, did(x) * _]>>
!v = tensor<160x96xf32, #tv.view<#m, [did(x) * _, _]>>
func.func @main(%t: !t, %y: !y, %u: !u) -> (!y, !v) {
  %0 = tv.transpose %t perm [0, 2, 1] : (!t) -> !y
  %1 = tv.silu %0 : (!y) -> !y
  %2 = tv.add %1, %y : (!y, !y) -> !y
  %3 = tv.transpose %u perm [1, 0] : (!u) -> !v
  %4 = tv.silu %3 : (!v) -> !v
  return %2, %4 : !y, !v
}

// -----

// Rows whose length is given at run time, which a norm divides by.
// CHECK: tv.softmax
// CHECK: tv.layer_norm
// CHECK: tv.rms_norm
// CHECK: return
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!a = tensor<?x?xf32, #tv.view<#m, [did(x) * _, _]>>
!w = tensor<?xf32>
func.func @main(%a: !a {tv.dims = ["b", "s"]}, %w: !w {tv.dims = ["s"]}) -> (!a, !a, !a)
    attributes {tv.sizes = {b = 64 : i64, s = 64 : i64}} {
  %0 = tv.softmax %a dim 1 : (!a) -> !a
  %1 = tv.layer_norm %a, %w, %w epsilon(1.0e-5) : (!a, !w, !w) -> !a
  %2 = tv.rms_norm %a, %w epsilon(1.0e-5) : (!a, !w) -> !a
  return %0, %1, %2 : !a, !a, !a
}

// -----

// Squares of several operands share a block's memory.
// CHECK: tv.transpose
// CHECK: return
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!u = tensor<96x160xf32, #tv.view<#m, [_, did(x) * _]>>
!v = tensor<160x96xf32, #tv.view<#m, [did(x) * _, _]>>
func.func @main(%a: !u, %b: !u, %c: !u) -> !v {
  %0 = tv.transpose %a perm [1, 0] : (!u) -> !v
  %1 = tv.transpose %b perm [1, 0] : (!u) -> !v
  %2 = tv.transpose %c perm [1, 0] : (!u) -> !v
  %3 = tv.mul %0, %1 : (!v, !v) -> !v
  %4 = tv.add %3, %2 : (!v, !v) -> !v
  return %4 : !v
}

// -----

// Maxima and minima of small floats, two at a time, in rows of a warp and of a
// block with an odd number of warps; in columns one by one.
// CHECK-COUNT-4: tv.reduce
// CHECK: tv.softmax
// CHECK: return
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!a = tensor<6x72xbf16, #tv.view<#m, [did(x) * _, _]>>
!b = tensor<6x4104xf16, #tv.view<#m, [did(x) * _, _]>>
!c = tensor<4x37632xbf16, #tv.view<#m, [did(x) * _, _]>>
!d = tensor<40x70xbf16, #tv.view<#m, [_, did(x) * _]>>
func.func @main(%a: !a, %b: !b, %c: !c, %d: !d)
    -> (tensor<6xbf16>, tensor<6xf16>, tensor<4xbf16>, tensor<70xbf16>, !c) {
  %0 = tv.reduce max %a dims [1] : (!a) -> tensor<6xbf16>
  %1 = tv.reduce min %b dims [1] : (!b) -> tensor<6xf16>
  %2 = tv.reduce min %c dims [1] : (!c) -> tensor<4xbf16>
  %3 = tv.reduce max %d dims [0] : (!d) -> tensor<70xbf16>
  %4 = tv.softmax %c dim 1 : (!c) -> !c
  return %0, %1, %2, %3, %4 : tensor<6xbf16>, tensor<6xf16>, tensor<4xbf16>, tensor<70xbf16>, !c
}
