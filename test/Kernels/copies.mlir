// What only copies read is computed by them.

// RUN: split-file %s %t
// DEFINE: %{kernels} = --tessera="from=local to=kernels"
// RUN: tessera-opt %t/concat.mlir %{kernels} | FileCheck %s --check-prefix=CONCAT
// RUN: tessera-opt %t/concat.mlir %{kernels} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/slices.mlir %{kernels} | FileCheck %s --check-prefix=SLICES
// RUN: tessera-opt %t/slices.mlir %{kernels} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/slices.mlir --tv-expand-composites --tv-group-ops --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/windows.mlir %{kernels} | FileCheck %s --check-prefix=WINDOWS
// RUN: tessera-opt %t/windows.mlir %{kernels} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/windows.mlir --tv-expand-composites --tv-hoist-reshapes --tv-group-ops --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/not.mlir %{kernels} | FileCheck %s --check-prefix=NOT
// RUN: tessera-opt %t/not.mlir %{kernels} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/dynamic.mlir %{kernels} | FileCheck %s --check-prefix=DYNAMIC
// RUN: tessera-opt %t/dynamic.mlir %{kernels} --interpret=2 --interpret-sizes=b=3 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/own.mlir --tessera="from=local to=kernels target=cuda:sm_90a matmul=own" | FileCheck %s --check-prefix=OWN
// EQUAL: interpret: @main equals the source on

//--- concat.mlir
// Weights that are scaled and laid side by side, as wq | wk | wv: one kernel.
#m = #tv.mesh<tp = 2>
!qw = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8]>, of [4, 8]>>
!kw = tensor<2x8xf32, #tv.local<#tv.view<#m, [2, 8]>, of [2, 8]>>
!w = tensor<8x8xf32, #tv.local<#tv.view<#m, [8, 8]>, of [8, 8]>>
func.func @main(%q: !qw, %k: !kw, %v: !kw) -> !w {
  %half = tv.constant dense<0.5> : tensor<f32> : () -> !qw
  %0 = tv.mul %q, %half : (!qw, !qw) -> !qw
  %1 = tv.exp %0 : (!qw) -> !qw
  %2 = tv.exp %k : (!kw) -> !kw
  %w = tv.concat %1, %2, %v dim 0 : (!qw, !kw, !kw) -> !w
  return %w : !w
}
// CONCAT: func.func @concat_0(
// CONCAT: arith.mulf
// CONCAT: math.exp
// CONCAT: math.exp
// CONCAT: func.func @main
// CONCAT-NEXT: %[[W:.*]] = plan.launch @concat_0(%arg0, %arg1, %arg2)
// CONCAT-NEXT: return %[[W]]

//--- slices.mlir
// Slices that are no windows, of all that they read, compute it: nothing twice.
#m = #tv.mesh<tp = 2>
!m = tensor<2x12xf32, #tv.local<#tv.view<#m, [2, flat(2) 12]>, of [2, 3, 4]>>
!h = tensor<2x6xf32, #tv.local<#tv.view<#m, [2, flat(2) 6]>, of [2, 3, 2]>>
func.func @main(%x: !m, %y: !m) -> (!h, !h) {
  %0 = tv.sub %x, %y : (!m, !m) -> !m
  %1 = tv.exp %0 : (!m) -> !m
  %a = tv.slice %1 offsets [0, 0, 0] : (!m) -> !h
  %b = tv.slice %1 offsets [0, 0, 2] : (!m) -> !h
  return %a, %b : !h, !h
}
// SLICES: func.func @slice_0(
// SLICES: arith.subf
// SLICES-NEXT: math.exp
// SLICES: func.func @slice_1(
// SLICES: arith.subf
// SLICES-NEXT: math.exp
// SLICES: func.func @main
// SLICES-NEXT: %[[A:.*]] = plan.launch @slice_0(%arg0, %arg1)
// SLICES-NEXT: %[[B:.*]] = plan.launch @slice_1(%arg0, %arg1)
// SLICES-NEXT: return %[[A]], %[[B]]

//--- windows.mlir
// As do windows that all who read them copy: for a reshape without strides, here of q, k
// and v of a merged weight, and as results. What others read is a window on memory.
#m = #tv.mesh<tp = 2>
!f = tensor<12x8xf32, #tv.local<#tv.view<#m, [did(tp) * 12, 8], alloc = (0, 1)>, of [24, 8]>>
!b = tensor<12x8xbf16, #tv.local<#tv.view<#m, [did(tp) * 12, 8], alloc = (0, 1)>, of [24, 8]>>
!w = tensor<2x6x8xbf16, #tv.local<#tv.view<#m, [did(tp) * 2, 6, 8], alloc = (0, 1, 2)>, of [4, 6, 8]>>
!q = tensor<2x4x8xbf16, #tv.local<#tv.view<#m, [did(tp) * 2, 4, 8], alloc = (0, 1, 2)>, of [4, 4, 8]>>
!k = tensor<2x1x8xbf16, #tv.local<#tv.view<#m, [did(tp) * 2, 1, 8], alloc = (0, 1, 2)>, of [4, 1, 8]>>
!u = tensor<2x4x4xbf16, #tv.local<#tv.view<#m, [did(tp) * 2, 4, 4], alloc = (0, 1, 2)>, of [4, 4, 4]>>
!q2 = tensor<8x8xbf16, #tv.local<#tv.view<#m, [did(tp) * 8, 8], alloc = (0, 1)>, of [16, 8]>>
!k2 = tensor<2x8xbf16, #tv.local<#tv.view<#m, [did(tp) * 2, 8], alloc = (0, 1)>, of [4, 8]>>
func.func @main(%w: !f, %y: !q) -> (!q2, !k, !k2, !u, !u) {
  %0 = tv.cast %w : (!f) -> !b
  %1 = tv.reshape %0 : (!b) -> !w
  %q = tv.slice %1 offsets [0, 0, 0] : (!w) -> !q
  %q2 = tv.reshape %q : (!q) -> !q2
  %k = tv.slice %1 offsets [0, 4, 0] : (!w) -> !k
  %v = tv.slice %1 offsets [0, 5, 0] : (!w) -> !k
  %k2 = tv.reshape %v : (!k) -> !k2
  %2 = tv.exp %y : (!q) -> !q
  %a = tv.slice %2 offsets [0, 0, 4] : (!q) -> !u
  %b = tv.slice %2 offsets [0, 0, 0] : (!q) -> !u
  %c = tv.cumsum %b dim 1 : (!u) -> !u
  return %q2, %k, %k2, %a, %c : !q2, !k, !k2, !u, !u
}
// WINDOWS: func.func @main
// WINDOWS-NEXT: %[[W:.*]] = plan.alias reshape %arg0
// WINDOWS-NEXT: %[[Q:.*]] = plan.launch @slice_0(%[[W]])
// WINDOWS-NEXT: %[[Q2:.*]] = plan.alias reshape %[[Q]]
// WINDOWS-NEXT: %[[K:.*]] = plan.launch @slice_1(%[[W]])
// WINDOWS-NEXT: %[[V:.*]] = plan.launch @slice_2(%[[W]])
// WINDOWS-NEXT: %[[V2:.*]] = plan.alias reshape %[[V]]
// WINDOWS-NEXT: %[[Y:.*]] = plan.launch @map_3(%arg1)
// WINDOWS-NEXT: %[[A:.*]] = plan.alias slice %[[Y]] at [0, 0, 4]
// WINDOWS-NEXT: %[[B:.*]] = plan.alias slice %[[Y]] at [0, 0, 0]
// WINDOWS-NEXT: plan.launch @cumsum_4(%[[B]])
// WINDOWS: plan.copy %[[A]] from "func.return"
// WINDOWS-NOT: plan.copy
// WINDOWS: return

//--- not.mlir
// What others read too, what slices read in part twice, what a kernel has at hand and
// random numbers, of which one comes with four: those are in memory.
#m = #tv.mesh<tp = 2>
!m = tensor<2x12xf32, #tv.local<#tv.view<#m, [2, flat(2) 12]>, of [2, 3, 4]>>
!l = tensor<2x9xf32, #tv.local<#tv.view<#m, [2, flat(2) 9]>, of [2, 3, 3]>>
!r = tensor<2xf32, #tv.local<#tv.view<#m, [2]>, of [2]>>
func.func @main(%x: !m) -> (!m, !l, !l, !l, !l, !l) {
  %0 = tv.exp %x : (!m) -> !m
  %a = tv.slice %0 offsets [0, 0, 0] : (!m) -> !l
  %1 = tv.abs %x : (!m) -> !m
  %b = tv.slice %1 offsets [0, 0, 0] : (!m) -> !l
  %c = tv.slice %1 offsets [0, 0, 1] : (!m) -> !l
  %s = tv.reduce max %x dims [1, 2] : (!m) -> !r
  %t = tv.broadcast %s dims [0] : (!r) -> !m
  %2 = tv.tanh %x : (!m) -> !m
  %n = tv.reduce max %2 dims [1, 2] : (!m) -> !r
  %o = tv.broadcast %n dims [0] : (!r) -> !m
  %3 = tv.sub %2, %o : (!m, !m) -> !m
  %d = tv.slice %3 offsets [0, 0, 0] : (!m) -> !l
  %4 = tv.random seed(7) stream(1) : () -> !m
  %5 = tv.add %x, %4 : (!m, !m) -> !m
  %e = tv.slice %5 offsets [0, 0, 0] : (!m) -> !l
  return %0, %a, %b, %c, %d, %e : !m, !l, !l, !l, !l, !l
}
// NOT: func.func @main
// NOT: %[[M:.*]]:3 = plan.launch @map_{{[0-9]+}}(%arg0)
// NOT-NEXT: plan.launch @slice_{{[0-9]+}}(%[[M]]#0)
// NOT-NEXT: plan.launch @slice_{{[0-9]+}}(%[[M]]#1)
// NOT-NEXT: plan.launch @slice_{{[0-9]+}}(%[[M]]#1)
// NOT-NEXT: %[[D:.*]] = plan.launch @map_{{[0-9]+}}(%arg0)
// NOT-NEXT: plan.launch @slice_{{[0-9]+}}(%[[D]])
// NOT-NEXT: plan.launch @slice_{{[0-9]+}}(%[[M]]#2)

//--- dynamic.mlir
// Of dynamic extents too, where there is one copy.
#m = #tv.mesh<tp = 2>
!x = tensor<?x4xf32, #tv.local<#tv.view<#m, [did(tp) * _, 4]>, of [b, 4]>>
!y = tensor<?x7xf32, #tv.local<#tv.view<#m, [did(tp) * _, 7]>, of [b, 7]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["b"]}) -> (!y {tv.name = "y"})
    attributes {tv.sizes = {b = 8}} {
  %0 = tv.exp %x : (!x) -> !x
  %1 = tv.pad %0 low [0, 1] high [0, 2] value 3.0 : f32 : (!x) -> !y
  return %1 : !y
}
// DYNAMIC: func.func @pad_0(
// DYNAMIC: math.exp
// DYNAMIC: func.func @main
// DYNAMIC-NEXT: plan.launch @pad_0(%arg0)
// DYNAMIC-NEXT: return

//--- own.mlir
// What is the epilogue of a product is that.
#m = #tv.mesh<tp = 2>
!x = tensor<16x16xbf16, #tv.local<#tv.view<#m, [16, 16]>, of [16, 16]>>
!y = tensor<18x16xbf16, #tv.local<#tv.view<#m, [18, 16]>, of [18, 16]>>
func.func @main(%x: !x, %w: !x) -> !y {
  %0 = tv.linear %x, %w : (!x, !x) -> !x
  %1 = tv.exp %0 : (!x) -> !x
  %2 = tv.pad %1 low [1, 0] high [1, 0] value 0.0 : bf16 : (!x) -> !y
  return %2 : !y
}
// OWN: plan.product
// OWN: math.exp
// OWN: plan.launch @pad
