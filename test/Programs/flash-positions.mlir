// As flash-queries.mlir, where other devices share the keys: of gradients a device has a block of
// each, and a query's last key may be before its first one or behind its last one. (It may spill 24
// bytes.)
// RUN: tessera-opt %s --tessera="to=kernels target=cuda:sm_90a attention=flash" --interpret=4 | FileCheck %s
// CHECK: plan.attention_grad {{.*}} causal {{.*}}memref<1x4x65x64xbf16, {{.*}}memref<1x2x75x64xbf16
// CHECK: causal_mod
// RAN here: all-reduce 33280 bytes 0 copies, all-reduce of 2 38400 bytes 0 copies, all-reduce of 2 4464 bytes 0 copies
#m = #tv.mesh<x = 2, y = 2>
!q = tensor<1x4x130x64xbf16, #tv.view<#m, [_, _, did(x) * _, _]>>
!k = tensor<1x2x150x64xbf16, #tv.view<#m, [_, _, did(y) * _, _]>>
!lse = tensor<1x4x130xf32, #tv.view<#m, [_, _, did(x) * _]>>
!keys_of_lse = tensor<4x150xf32>
!rows_of_lse = tensor<130xf32>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k, %o: !q, %lse: !lse, %keys: !keys_of_lse,
                %rows: !rows_of_lse)
    -> (!q, !k, !k, !keys_of_lse, !rows_of_lse) {
  %dq, %dk, %dv, %dkeys, %drows = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.0625) causal
      captured %keys, %rows
      : (!q, !q, !k, !k, !q, !lse, !keys_of_lse, !rows_of_lse)
      -> (!q, !k, !k, !keys_of_lse, !rows_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %keys[%h, %ki] : !keys_of_lse -> f32
      %d = tv.load %rows[%qi] : !rows_of_lse -> f32
      %e = arith.mulf %d, %s : f32
      %y = arith.addf %e, %x : f32
      tv.yield %y : f32
    }
  return %dq, %dk, %dv, %dkeys, %drows : !q, !k, !k, !keys_of_lse, !rows_of_lse
}
