// Attentions of few queries, as in a decoder's step: on GPUs a tile has all queries of all
// heads that read one key head, and blocks share the keys of all tiles (attention_few.cuh).
// On other targets they are like any others.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=scheduled target=cuda:sm_90a attention=flash" -o - | FileCheck %s --check-prefix=SCHEDULE
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels target=cuda:sm_90a attention=flash" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels target=cuda:sm_90a attention=flash" --interpret=4 | FileCheck %s %no_other_collective

// One query of each of four heads a key head; of each sequence the keys up to its length,
// which may be none. With three devices their numbers of heads differ, and blocks take
// tiles of 128 queries.
// CHECK: plan.attention
// SCHEDULE: #schedule.attention<rows(4) keys(128) stages(2)>
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<5x16x1x64xbf16, #tv.view<#m, [_, (did(tp) * _ | 4) * 4, _, _]>>
!k = tensor<5x4x900x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<5x16x1x64xbf16>
!lse = tensor<5x16x1xf32>
func.func @main(%q: !q, %k: !k, %v: !k, %length: tensor<5xi32> {tv.range = [0, 900]}) -> (!a, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) : (!q, !k, !k) -> (!a, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %n = tv.load %length[%b] : tensor<5xi32> -> i32
      %end = arith.index_cast %n : i32 to index
      %in = arith.cmpi slt, %ki, %end : index
      tv.yield %in : i1
    }
  return %a, %lse : !a, !lse
}

// -----

// Some queries at the end of the keys, causal, a bias by head, keys and values of one tensor;
// heads of 192 elements with values of 128.
// CHECK: plan.attention
// SCHEDULE: #schedule.attention<rows(10) keys(64) stages(2)>
// SCHEDULE: #schedule.attention<rows(3) keys(32) stages(3)>
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<2x8x5x128xf16, #tv.view<#m, [_, (did(tp) * _ | 4) * 2, _, _]>>
!kv = tensor<2x600x4x256xf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!part = tensor<2x600x4x128xf16>
!head = tensor<2x4x600x128xf16>
!a = tensor<2x8x5x128xf16>
!lse = tensor<2x8x5xf32>
!bias_of_lse = tensor<8xf32, #tv.view<#m, [_]>>
!q1 = tensor<1x4x3x192xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k1 = tensor<1x4x333x192xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!v1 = tensor<1x4x333x128xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a1 = tensor<1x4x3x128xbf16>
func.func @main(%q: !q, %kv: !kv, %bias: !bias_of_lse, %q1: !q1, %k1: !k1, %v1: !v1) -> (!a, !a1) {
  %k0 = tv.slice %kv offsets [0, 0, 0, 0] : (!kv) -> !part
  %v0 = tv.slice %kv offsets [0, 0, 0, 128] : (!kv) -> !part
  %k = tv.transpose %k0 perm [0, 2, 1, 3] : (!part) -> !head
  %v = tv.transpose %v0 perm [0, 2, 1, 3] : (!part) -> !head
  %a, %lse = tv.attention %q, %k, %v scale(0.0883883) causal : (!q, !head, !head) -> (!a, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) { // as the lse
      %x = tv.load %bias[%h] : !bias_of_lse -> f32
      %y = arith.addf %s, %x : f32 // as the lse
      tv.yield %y : f32 // as the lse
    }
  %a1, %lse1 = tv.attention %q1, %k1, %v1 scale(0.07) : (!q1, !k1, !v1) -> (!a1, tensor<1x4x3xf32>)
  return %a, %a1 : !a, !a1
}

// -----

// A run without keys: zeros, and log-sum-exps of minus infinity.
// CHECK: plan.attention
// SCHEDULE: #schedule.attention<rows(4) keys(128) stages(2)>
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<5x16x1x64xbf16, #tv.view<#m, [_, (did(tp) * _ | 4) * 4, _, _]>>
!k = tensor<5x4x?x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<5x16x1x64xbf16>
!lse = tensor<5x16x1xf32>
func.func @main(%q: !q, %k: !k {tv.dims = ["z"]}, %v: !k {tv.dims = ["z"]}) -> (!a, !lse) attributes {tv.sizes = {z = 900}} {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) : (!q, !k, !k) -> (!a, !lse)
  return %a, %lse : !a, !lse
}
