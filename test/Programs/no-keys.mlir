// Attention to no keys at all, and its gradient: results are 0, lse is -inf, and what
// score_mod reads gets nothing.
// RUN: tessera-opt %s --tessera="mesh=tp=2 to=local" --interpret=2 --interpret-sizes=z=0 -o /dev/null
// RUN: tessera-opt %s --tessera="mesh=tp=2 to=kernels" --interpret=2 --interpret-sizes=z=0 -o /dev/null
// RUN: tessera-opt %s --tessera="mesh=tp=2 to=kernels" --interpret=2 --interpret-sizes=z=3 -o /dev/null
// RUN: tessera-opt %s --tessera="mesh=tp=2 to=scheduled target=cuda:sm_90a" --interpret=2 --interpret-sizes=z=0 -o /dev/null
// RAN tp=1: nothing
// RAN tp=2: all-reduce 48 bytes 0 copies
// RAN tp=3: all-reduce 64 bytes 0 copies
// RAN tp=4: all-to-all 96 bytes 1 copies, all-to-all 192 bytes 1 copies, all-reduce 72 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<2x4x3x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<2x2x?x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!v = tensor<2x2x?x5xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!o = tensor<2x4x3x5xf32>
!lse = tensor<2x4x3xf32>
!bias_of_lse = tensor<4x3xf32>
func.func @main(%do: !o, %q: !q, %k: !k {tv.dims = ["z"]}, %v: !v {tv.dims = ["z"]},
    %b: !bias_of_lse)
    -> (!o, !lse, !q, !k, !v, !bias_of_lse) attributes {tv.sizes = {z = 8 : i64}} {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) : (!q, !k, !v) -> (!o, !lse)
    score_mod (%s: f32, %n: index, %h: index, %qi: index, %ki: index) {
      %c = tv.load %b[%h, %qi] : !bias_of_lse -> f32
      %r = arith.addf %s, %c : f32
      tv.yield %r : f32
    }
  %dq, %dk, %dv, %db = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.5) captured %b
      : (!o, !q, !k, !v, !o, !lse, !bias_of_lse) -> (!q, !k, !v, !bias_of_lse)
    score_mod (%s: f32, %n: index, %h: index, %qi: index, %ki: index) {
      %c = tv.load %b[%h, %qi] : !bias_of_lse -> f32
      %r = arith.addf %s, %c : f32
      tv.yield %r : f32
    }
  return %o, %lse, %dq, %dk, %dv, %db : !o, !lse, !q, !k, !v, !bias_of_lse
}
