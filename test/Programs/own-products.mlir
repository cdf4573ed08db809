// Matrix products that a GPU runs as kernels of the compiler, with what follows them
// (on other targets they are like any others).
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels target=cuda:sm_90a matmul=own" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=kernels target=cuda:sm_90a matmul=own" --interpret=3 | FileCheck %s %no_other_collective

// A gate: the second product reads the first one's result. The last is partial.
// CHECK: plan.product
// CHECK: math.exp
// CHECK: plan.product
// CHECK: plan.product
// CHECK: comm.all_reduce
// RAN tp=1: nothing
// RAN tp=2: all-reduce 480 bytes 0 copies
// RAN tp=3: all-reduce 640 bytes 0 copies
// RAN tp=4: all-reduce 720 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<2x5x24xbf16, #tv.view<#m, [_, _, _]>>
!w = tensor<48x24xbf16, #tv.view<#m, [did(tp) * _, _]>>
!b = tensor<48xbf16, #tv.view<#m, [did(tp) * _]>>
!h = tensor<2x5x48xbf16>
!d = tensor<24x48xbf16, #tv.view<#m, [_, did(tp) * _]>>
!c = tensor<24xbf16, #tv.view<#m, [_]>>
!y = tensor<2x5x24xbf16>
func.func @main(%x: !x, %gate: !w {tv.name = "gate.weight"}, %bias: !b,
                %up: !w {tv.name = "up.weight"}, %down: !d {tv.name = "down.weight"},
                %last: !c) -> !y {
  %g = tv.linear %x, %gate bias %bias : (!x, !w, !b) -> !h
  %s = tv.silu %g : (!h) -> !h
  %u = tv.linear %x, %up : (!x, !w) -> !h
  %p = tv.mul %s, %u : (!h, !h) -> !h
  %d = tv.linear %p, %down bias %last : (!h, !d, !c) -> !y
  %y = tv.add %d, %x : (!y, !x) -> !y
  return %y : !y
}

// -----

// A batch of products, whose operands are windows: half of the columns, and rows in
// place of columns. Their epilogue has elements of another tensor, and numbers them.
// CHECK: plan.product
// CHECK-SAME: memref<{{[0-9?]+}}x7x16xf16
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<3x7x32xf16, #tv.view<#m, [did(tp) * _, _, _]>>
!half = tensor<3x7x16xf16>
!k = tensor<3x40x16xf16, #tv.view<#m, [did(tp) * _, _, _]>>
!t = tensor<3x16x40xf16>
!mask = tensor<3x7x40xf16, #tv.view<#m, [did(tp) * _, _, _]>>
!s = tensor<3x7x40xf16>
func.func @main(%q: !q, %k: !k, %mask: !mask) -> !s {
  %half = tv.slice %q offsets [0, 0, 16] : (!q) -> !half
  %t = tv.transpose %k perm [0, 2, 1] : (!k) -> !t
  %s = tv.matmul %half, %t : (!half, !t) -> !s
  %n = tv.iota 2 : () -> tensor<3x7x40xi64>
  %r = tv.map %s, %mask, %n : (!s, !mask, tensor<3x7x40xi64>) -> !s
      (%sum: f16, %more: f16, %column: i64) {
    %0 = arith.sitofp %column : i64 to f16
    %1 = arith.mulf %more, %0 : f16
    %2 = arith.addf %sum, %1 : f16
    tv.yield %2 : f16
  }
  return %r : !s
}

// -----

// Two results: what goes into the gelu is one, too.
// CHECK: plan.product {{.*}} to %{{.*}}, %{{.*}} :

// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<?x?x16xbf16, #tv.view<#m, [_, _, _]>>
!w = tensor<48x16xbf16, #tv.view<#m, [did(tp) * _, _]>>
!b = tensor<48xbf16, #tv.view<#m, [did(tp) * _]>>
!h = tensor<?x?x48xbf16, #tv.view<#m, [_, _, did(tp) * _]>>
func.func @main(%x: !x {tv.dims = ["b", "s"]}, %w: !w {tv.name = "weight"}, %b: !b)
    -> (!h, !h) attributes {tv.sizes = {b = 64, s = 32}} {
  %0 = tv.linear %x, %w bias %b : (!x, !w, !b) -> !h
  %1 = tv.gelu tanh %0 : (!h) -> !h
  return %0, %1 : !h, !h
}

// -----

// What is added to the sums is read where they are stored, and the gelu comes after.
// CHECK: plan.product
// CHECK: arith.addf
// CHECK: math.exp
// CHECK: comm.all_gather
#m = #tv.mesh<tp = 2>
!x = tensor<5x24xbf16, #tv.view<#m, [_, _]>>
!w = tensor<48x24xbf16, #tv.view<#m, [did(tp) * _, _]>>
!s = tensor<5x48xbf16>
!y = tensor<5x48xbf16, #tv.view<#m, [_, _]>>
func.func @main(%x: !x, %w: !w {tv.role = "weight"}, %s: !s) -> !y {
  %0 = tv.contract %x [0, 1], %w [2, 1] add %s to [0, 2] : (!x, !w, !s) -> !s
  %1 = tv.gelu tanh %0 : (!s) -> !y
  return %1 : !y
}
