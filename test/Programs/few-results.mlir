// Reductions of many elements to few, which GPUs do in two steps.
// RUN: tessera-opt %s --tessera="mesh=x=2 to=local" | FileCheck %s %no_other_collective
// CHECK-COUNT-3: tv.reduce
// CHECK: comm.all_reduce
// CHECK: return
// RAN x=1: nothing
// RAN x=2: all-reduce 32 bytes 0 copies
#m = #tv.mesh<x = 2>
!a = tensor<2x512x2056xbf16, #tv.view<#m, [did(x) * _, _, _]>>
!b = tensor<2x131200x8xbf16, #tv.view<#m, [_, did(x) * _, _]>>
!y = tensor<2x8xbf16>
!s = tensor<2xbf16, #tv.view<#m, [did(x) * _]>>
func.func @main(%a: !a, %b: !b) -> (!s, !s, !y) {
  %0 = tv.mul %a, %a : (!a, !a) -> !a
  %1 = tv.reduce sum %0 dims [1, 2] : (!a) -> !s
  %2 = tv.reduce min %a dims [1, 2] : (!a) -> !s
  %3 = tv.reduce sum %b dims [1] : (!b) -> !y
  return %1, %2, %3 : !s, !s, !y
}
