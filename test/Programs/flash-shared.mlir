// Attention of few tiles: blocks share the keys of all (attention_fwd.cuh, Split), at any
// split of heads.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels target=cuda:sm_90a attention=flash" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=scheduled target=cuda:sm_90a attention=flash" | FileCheck %s --check-prefix=SHARED

// Queries and keys of two numbers, causal.
// CHECK: plan.attention {{.*}} causal
// SHARED: shared(true)
// RAN tp=1: nothing
// RAN tp=2: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x200x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<1x2x1100x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<1x2x200x64xbf16>
!lse = tensor<1x2x200xf32>
func.func @main(%q: !q, %k: !k, %v: !k) -> (!a, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !k, !k) -> (!a, !lse)
  return %a, %lse : !a, !lse
}

// -----

// A captured tensor and a mask that leaves rows without a key; wide heads, whose results
// leave in the queries' place. (It may spill 64 bytes.)
// CHECK: plan.attention
// SHARED: shared(true)
// RAN tp=1: nothing
// RAN tp=2: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x70x256xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<1x2x900x256xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!bias_of_lse = tensor<2x900xf32>
!a = tensor<1x2x70x256xbf16>
!lse = tensor<1x2x70xf32>
func.func @main(%q: !q, %k: !k, %v: !k, %bias: !bias_of_lse) -> (!a, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.0625) : (!q, !k, !k) -> (!a, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) { // as the lse
      %x = tv.load %bias[%h, %ki] : !bias_of_lse -> f32
      %y = arith.addf %s, %x : f32 // as the lse
      tv.yield %y : f32 // as the lse
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %ten = arith.constant 10 : index
      %r = arith.remsi %qi, %ten : index
      %seven = arith.constant 7 : index
      %is = arith.cmpi ne, %r, %seven : index
      tv.yield %is : i1
    }
  return %a, %lse : !a, !lse
}

// -----

// Packed sequences.
// CHECK: plan.attention {{.*}} causal tiles
// SHARED: shared(true)
// RAN tp=1: nothing
// RAN tp=2: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x1000x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!begins = tensor<1x5xi32>
!a = tensor<1x2x1000x64xbf16>
!lse = tensor<1x2x1000xf32>
func.func @main(%q: !q, %k: !q, %v: !q, %begins: !begins {tv.range = [0, 1000]}) -> (!a, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) causal sequences(%begins) : (!q, !q, !q, !begins) -> (!a, !lse)
  return %a, %lse : !a, !lse
}
