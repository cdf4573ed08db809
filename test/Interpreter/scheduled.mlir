// The phase `scheduled`: what threads do beside what is computed, and the sums and
// maxima that it writes in another way.
// RUN: tessera-opt %s --tessera="to=scheduled target=cuda:sm_90a" --interpret=2 --interpret-sizes=n=6 | FileCheck %s

// CHECK: interpret: @main equals the source on 2 ranks
// CHECK: schedule.pairs maximum
// CHECK: schedule.one_hot
// CHECK: #schedule.loop<blocks
#m = #tv.mesh<tp = 2>
!x = tensor<?x2048xbf16, #tv.view<#m, [did(tp) * _, _]>>
!l = tensor<?xi32, #tv.view<#m, [did(tp) * _]>>
!y = tensor<?xbf16>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["n"]}, %l: !l {tv.name = "l", tv.dims = ["n"]})
    -> (!y {tv.name = "y"}) attributes {tv.sizes = {n = [64, 2]}} {
  %0 = tv.cross_entropy %x, %l : (!x, !l) -> !y
  return %0 : !y
}
