// As flash-queries.mlir, where other devices share the keys: of gradients a device has a block of
// each, and a query's last key may be before its first one or behind its last one. (It may spill 24
// bytes.)
// RUN: tessera-opt %s --split-input-file --tessera="to=kernels target=cuda:sm_90a attention=flash" --interpret=4 | FileCheck %s
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

// -----

// A gradient by distance: a device has sums of the distances of its own queries and keys, which
// are as many as any other's.
// CHECK: plan.attention_grad {{.*}} ["distance"] {{.*}} causal
// RAN here: all-reduce 33792 bytes 0 copies, all-reduce 7104 bytes 0 copies, all-reduce of 2 40960 bytes 0 copies
#m = #tv.mesh<x = 2, y = 2>
!q = tensor<1x4x132x64xbf16, #tv.view<#m, [_, _, did(x) * _, _]>>
!k = tensor<1x2x160x64xbf16, #tv.view<#m, [_, _, did(y) * _, _]>>
!lse = tensor<1x4x132xf32, #tv.view<#m, [_, _, did(x) * _]>>
!rel_of_lse = tensor<4x292xf32>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k, %o: !q, %lse: !lse, %rel: !rel_of_lse)
    -> (!q, !k, !k, !rel_of_lse) {
  %dq, %dk, %dv, %drel = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.0625) causal
      captured %rel
      : (!q, !q, !k, !k, !q, !lse, !rel_of_lse) -> (!q, !k, !k, !rel_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %keys = arith.constant 160 : index
      %d = arith.subi %qi, %ki : index
      %at = arith.addi %d, %keys : index
      %x = tv.load %rel[%h, %at] : !rel_of_lse -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
  return %dq, %dk, %dv, %drel : !q, !k, !k, !rel_of_lse
}

// -----

// The same of a forward, where devices share the queries alone, and of a bucket of distances.
// CHECK: plan.attention_grad {{.*}} ["distance"] {{.*}} causal
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 3 307248 bytes 0 copies
// RAN tp=3: all-reduce of 3 409664 bytes 0 copies
// RAN tp=4: all-reduce of 3 460872 bytes 0 copies
#m = #tv.mesh<tp = 4>
!q = tensor<2x4x132x64xbf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!k = tensor<2x4x150x64xbf16, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<2x4x132xf32>
!rel_of_lse = tensor<12xf32>
func.func @main(%q: !q, %k: !k, %v: !k, %rel: !rel_of_lse, %do: !q)
    -> (!q, !q, !k, !k, !rel_of_lse) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !k, !k) -> (!q, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %keys = arith.constant 150 : index
      %size = arith.constant 30 : index
      %d = arith.subi %qi, %ki : index
      %far = arith.addi %d, %keys : index
      %at = arith.divui %far, %size : index
      %x = tv.load %rel[%at] : !rel_of_lse -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
  %dq, %dk, %dv, %drel = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
      captured %rel
      : (!q, !q, !k, !k, !q, !lse, !rel_of_lse) -> (!q, !k, !k, !rel_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %keys = arith.constant 150 : index
      %size = arith.constant 30 : index
      %d = arith.subi %qi, %ki : index
      %far = arith.addi %d, %keys : index
      %at = arith.divui %far, %size : index
      %x = tv.load %rel[%at] : !rel_of_lse -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
  return %o, %dq, %dk, %dv, %drel : !q, !q, !k, !k, !rel_of_lse
}
