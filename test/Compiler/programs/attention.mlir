// RUN: tessera-compile %s --compile-from=local -o %t.tsr
// Grouped queries, causal, a bias by head and an additive mask by key; the heads
// are split.
#m = #tv.mesh<tp = 2>
#q = #tv.view<#m, [_, did(tp) * 2, _, 8]>
#k = #tv.view<#m, [_, did(tp), _, 8]>
#l = #tv.view<#m, [_, did(tp) * 2, _]>
#bias = #tv.view<#m, [4]>
#mask = #tv.view<#m, [_, _]>
!q = tensor<?x2x?x8xf32, #tv.local<#q, of [b, 4, s, 8]>>
!k = tensor<?x1x?x8xf32, #tv.local<#k, of [b, 2, s, 8]>>
!l = tensor<?x2x?xf32, #tv.local<#l, of [b, 4, s]>>
!bias = tensor<4xf32, #tv.local<#bias, of [4]>>
!mask = tensor<?x?xf32, #tv.local<#mask, of [b, s]>>
func.func @main(%q: !q {tv.name = "q", tv.dims = ["b", "s"]},
                %k: !k {tv.name = "k", tv.dims = ["b", "s"]},
                %v: !k {tv.name = "v", tv.dims = ["b", "s"]},
                %bias: !bias {tv.name = "bias"},
                %mask: !mask {tv.name = "mask", tv.dims = ["b", "s"]})
    -> (!q {tv.name = "o"}, !l {tv.name = "lse"})
    attributes {tv.sizes = {b = 64, s = 32}} {
  %o, %lse = tv.attention %q, %k, %v scale(0.35) causal
      : (!q, !k, !k) -> (!q, !l)
    score_mod (%x: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = tv.load %bias[%h] : !bias -> f32
      %y = arith.addf %x, %c : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      // Keeps about three keys of four; the first query may have none.
      %c = tv.load %mask[%b, %ki] : !mask -> f32
      %t = arith.constant -5.0e-1 : f32
      %r = arith.cmpf ogt, %c, %t : f32
      tv.yield %r : i1
    }
  return %o, %lse : !q, !l
}
