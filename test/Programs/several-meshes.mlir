// One program, its devices named by two meshes: data parallel over all of them, then a
// layer of tensor parallel parts. The rows that a device has of the first are among those
// of its group in the second: one all-gather in each group, and a reduce-scatter back.
// RUN: tessera-opt %s --tessera=to=local --interpret=4 | FileCheck %s
// RUN: tessera-opt %s --tessera="mesh=x=6,tp=3 to=kernels" --interpret=6 -o /dev/null

// CHECK: comm.all_gather {{.*}}[x:(2)2]
// CHECK: comm.reduce_scatter {{.*}}[x:(2)2]
// CHECK-NOT: comm.
// RAN here: all-gather 768 bytes 0 copies, reduce-scatter 768 bytes 0 copies
#m = #tv.mesh<dp = 2, tp = 2>
#x = #tv.mesh<x = 4>
!x = tensor<48x16xf32, #tv.view<#x, [did(x) * _, _]>>
!up = tensor<32x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!down = tensor<16x32xf32>
!t = tensor<48x16xf32>
!h = tensor<48x32xf32>
func.func @main(%x: !x, %up: !up, %down: !down) -> !x {
  %n = tv.silu %x : (!x) -> !t
  %r = tv.reshard %n : (!t) -> tensor<48x16xf32, #tv.view<#m, [did(dp) * _, _]>>
  %u = tv.linear %r, %up : (tensor<48x16xf32, #tv.view<#m, [did(dp) * _, _]>>, !up) -> !h
  %a = tv.gelu tanh %u : (!h) -> !h
  %d = tv.linear %a, %down : (!h, !down) -> !t
  %y = tv.add %x, %d : (!x, !t) -> !x
  return %y : !x
}
