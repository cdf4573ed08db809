// Kernels read 8-bit floats, of both kinds, also the table of a score_mod. (They may spill.)
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels" --interpret=2 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels target=cuda:sm_90a" --interpret=2 -o /dev/null
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x40x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<1x4x40xf32>
!bias = tensor<4x40xf8E4M3FN>
!far = tensor<32xf8E5M2>
func.func @main(%do: !q, %q: !q, %k: !q, %v: !q, %bias: !bias, %far: !far) -> (!q, !q, !q, !q) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !q, !q) -> (!q, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x8 = tv.load %bias[%h, %ki] : !bias -> f8E4M3FN
      %x = arith.extf %x8 : f8E4M3FN to f32
      %d = arith.subi %qi, %ki : index
      %most = arith.constant 31 : index
      %at = arith.minsi %d, %most : index
      %r8 = tv.load %far[%at] : !far -> f8E5M2
      %r = arith.extf %r8 : f8E5M2 to f32
      %y = arith.addf %s, %x : f32
      %z = arith.addf %y, %r : f32
      tv.yield %z : f32
    }
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
      : (!q, !q, !q, !q, !q, !lse) -> (!q, !q, !q)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x8 = tv.load %bias[%h, %ki] : !bias -> f8E4M3FN
      %x = arith.extf %x8 : f8E4M3FN to f32
      %d = arith.subi %qi, %ki : index
      %most = arith.constant 31 : index
      %at = arith.minsi %d, %most : index
      %r8 = tv.load %far[%at] : !far -> f8E5M2
      %r = arith.extf %r8 : f8E5M2 to f32
      %y = arith.addf %s, %x : f32
      %z = arith.addf %y, %r : f32
      tv.yield %z : f32
    }
  return %o, %dq, %dk, %dv : !q, !q, !q, !q
}

// -----

// In a chain of maps; what is sent lies as it is.
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<6x24xf8E4M3FN, #tv.view<#m, [did(tp) * _, _]>>
!w = tensor<24xf8E5M2>
!y = tensor<6x24xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%x: !x, %w: !w) -> (!y, tensor<6xf32, #tv.view<#m, [did(tp) * _]>>) {
  %a = tv.cast %x : (!x) -> !y
  %b = tv.cast %w : (!w) -> tensor<24xf32>
  %c = tv.broadcast %b dims [1] : (tensor<24xf32>) -> !y
  %y = tv.mul %a, %c : (!y, !y) -> !y
  %s = tv.reduce max %y dims [1] : (!y) -> tensor<6xf32, #tv.view<#m, [did(tp) * _]>>
  return %y, %s : !y, tensor<6xf32, #tv.view<#m, [did(tp) * _]>>
}
