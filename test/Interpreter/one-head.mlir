// One key head on one of four devices: the heads of a group are split, and the loop over
// key heads has one value.
// RUN: tessera-opt %s --tessera=to=local --interpret=4 -o /dev/null | FileCheck %s

// CHECK: interpret: @main equals the source on 4 ranks
#m = #tv.mesh<tp = 4>
!q = tensor<3x3x2x4xf64>
!k = tensor<3x1x4x4xf64>
!kt = tensor<3x1x4x4xf64, #tv.view<#m, [_, did(tp) * _, _, _]>>
!l = tensor<3x3x2xf64>
func.func @main(%q: !q, %k: !kt, %v: !k, %d: !q, %e: !l) -> (!q, !q, !k, !k) {
  %o, %l = tv.attention %q, %k, %v scale(0.5) : (!q, !kt, !k) -> (!q, !l)
  %a, %b, %c = tv.attention_grad %o, %q, %k, %v, %d, %l dlse %e scale(0.5)
     : (!q, !q, !kt, !k, !q, !l, !l) -> (!q, !k, !k)
  return %o, %a, %b, %c : !q, !q, !k, !k
}
