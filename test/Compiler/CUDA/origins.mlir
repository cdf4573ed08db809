// The comment in front of a kernel names what it computes, in order: the ops of the
// source, or what is left of them, with line and column. (From standard input, for the
// name of the file to be short.)

// RUN: tessera-compile --target=cuda:sm_90a --attention=math --dump-dir=%t --dump-kernels=%t/programs -o %t.tsr < %s
// RUN: FileCheck %s < %t/kernels.cu
// RUN: cd %t/programs
// RUN: cat map_0.cu reduce_1.cu map_4.cu map_6.cu | FileCheck %s

// CHECK: {{^}}// map_0: tv.map at -:[[# @LINE + 31]]:8, of tv.dropout [[# @LINE + 28]]:8, tv.add [[# @LINE + 29]]:8, tv.mul [[# @LINE + 30]]:8,
// CHECK-NEXT: {{^}}//     tv.layer_norm [[# @LINE + 30]]:8{{$}}
// CHECK: {{^}}// reduce_1: tv.reduce at -:[[# @LINE + 30]]:8{{$}}
// CHECK: {{^}}// map_4: tv.map at -:[[# @LINE + 30]]:8, of tv.softmax [[# @LINE + 30]]:8{{$}}
// CHECK: {{^}}// map_6: tv.map at -:[[# @LINE + 30]]:12, of tv.attention [[# @LINE + 30]]:12{{$}}

// A dump takes away what an earlier one of another program wrote, and no other file.
// RUN: rm -rf %t.again && cp -r %t/programs %t.again
// RUN: mv %t.again/map_4.cu %t.again/mine.cu
// RUN: tessera-compile %examples/mlp.mlir --target=cuda:sm_90a --dump-kernels=%t.again -o %t.tsr
// RUN: ls %t.again | FileCheck %s --check-prefix=AGAIN
// AGAIN-NOT: {{.}}
// AGAIN: map_0.cu
// AGAIN-NEXT: map_0.cubin
// AGAIN-NEXT: map_4.cubin
// AGAIN-NEXT: mine.cu
// AGAIN-NOT: {{.}}
#m = #tv.mesh<tp = 2>
!x = tensor<8x64xbf16, #tv.view<#m, [did(tp) * _, _]>>
!w = tensor<64xbf16, #tv.view<#m, [_]>>
!y = tensor<32x16xf32, #tv.view<#m, [_, _]>>
!s = tensor<32xf32, #tv.view<#m, [_]>>
!p = tensor<32x16xf32, #tv.view<#m, [_, did(tp) * _]>>
!q = tensor<1x2x4x8xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!l = tensor<1x2x4xf32>
module attributes {tv.machine = #tv.machine<latency = 1.0e-9, bandwidth = 1.0e7, copy = 2.0e12, loops = 3.0e14>} {
func.func @main(%x: !x, %r: !x, %g: !w, %b: !w, %y: !y, %p: !p, %q: !q)
    -> (!x, !s, !p, !q) {
  %d = tv.dropout %x rate(0.1) seed(7) stream(1) : (!x) -> !x
  %a = tv.add %d, %r : (!x, !x) -> !x
  %u = tv.mul %a, %a : (!x, !x) -> !x
  %n = tv.layer_norm %u, %g, %b epsilon(1.0e-5) : (!x, !w, !w) -> !x
  %s = tv.reduce max %y dims [1] : (!y) -> !s
  %t = tv.softmax %p dim 1 : (!p) -> !p
  %o, %l = tv.attention %q, %q, %q scale(1.0) : (!q, !q, !q) -> (!q, !l)
  return %n, %s, %t, %o : !x, !s, !p, !q
}
}
