// Attentions that a GPU runs without scores in memory (on other targets they are
// like any others): heads of 64 to 256 elements, positions beyond one block. Here
// heads over tp, uneven on 4 devices.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels target=cuda:sm_90a attention=flash" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels target=cuda:sm_90a attention=flash" --interpret=4 | FileCheck %s %no_other_collective

// CHECK: plan.attention
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!qkv = tensor<1x140x6x192xbf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!part = tensor<1x140x6x64xbf16>
!head = tensor<1x6x140x64xbf16>
!lse = tensor<1x6x140xf32>
func.func @main(%qkv: !qkv) -> !part {
  %q0 = tv.slice %qkv offsets [0, 0, 0, 0] : (!qkv) -> !part
  %k0 = tv.slice %qkv offsets [0, 0, 0, 64] : (!qkv) -> !part
  %v0 = tv.slice %qkv offsets [0, 0, 0, 128] : (!qkv) -> !part
  %q = tv.transpose %q0 perm [0, 2, 1, 3] : (!part) -> !head
  %k = tv.transpose %k0 perm [0, 2, 1, 3] : (!part) -> !head
  %v = tv.transpose %v0 perm [0, 2, 1, 3] : (!part) -> !head
  %a, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!head, !head, !head) -> (!head, !lse)
  %t = tv.transpose %a perm [0, 2, 1, 3] : (!head) -> !part
  return %t : !part
}

// -----

// More keys than queries, two heads a group, a bias by head and query, keys of the
// query's document only. (What says lse stays f32 where all else has another type.)
// CHECK: plan.attention
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<2x4x70x128xf16, #tv.view<#m, [_, (did(tp) * _ | 2) * 2, _, _]>>
!k = tensor<2x2x150x128xf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<2x4x70x128xf16>
!lse = tensor<2x4x70xf32>
!bias_of_lse = tensor<4x70xf32, #tv.view<#m, [_, _]>>
!of_query = tensor<2x70xi32, #tv.view<#m, [_, _]>>
!of_key = tensor<2x150xi32, #tv.view<#m, [_, _]>>
func.func @main(%q: !q, %k: !k, %v: !k, %bias: !bias_of_lse,
                %of_query: !of_query, %of_key: !of_key) -> (!a, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.0883883) : (!q, !k, !k) -> (!a, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) { // as the lse
      %x = tv.load %bias[%h, %qi] : !bias_of_lse -> f32
      %two = arith.constant 2.0 : f32 // as the lse
      %z = arith.mulf %s, %two : f32 // as the lse
      %y = arith.addf %z, %x : f32 // as the lse
      tv.yield %y : f32 // as the lse
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %of_query[%b, %qi] : !of_query -> i32
      %j = tv.load %of_key[%b, %ki] : !of_key -> i32
      %same = arith.cmpi eq, %i, %j : i32
      tv.yield %same : i1
    }
  return %a, %lse : !a, !lse
}

// -----

// Heads of 256 elements, and of 192 with values of 128, in blocks of keys that are no
// power of two.
// CHECK: plan.attention
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x70x256xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!qk = tensor<1x2x90x192xf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!v = tensor<1x2x90x128xf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<1x2x70x256xbf16>
!av = tensor<1x2x90x128xf16>
func.func @main(%q: !q, %k: !q, %v: !q, %q1: !qk, %k1: !qk, %v1: !v) -> (!a, !av) {
  %a, %lse = tv.attention %q, %k, %v scale(0.0625) : (!q, !q, !q) -> (!a, tensor<1x2x70xf32>)
  %a1, %lse1 = tv.attention %q1, %k1, %v1 scale(0.07) causal : (!qk, !qk, !v) -> (!av, tensor<1x2x90xf32>)
  return %a, %a1 : !a, !av
}

// -----

// Keys in a window around the query, and before the end of the row, which is loaded: blocks
// of others are left out.
// CHECK: plan.attention
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<2x2x150x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<2x2x420x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<2x2x150x64xbf16>
func.func @main(%q: !q, %k: !k, %v: !k, %length: tensor<2xi32> {tv.range = [100, 300]}) -> !a {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) : (!q, !k, !k) -> (!a, tensor<2x2x150xf32>)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %n = tv.load %length[%b] : tensor<2xi32> -> i32
      %end = arith.index_cast %n : i32 to index
      %far = arith.constant 90 : index
      %back = arith.constant 70 : index
      %last = arith.addi %qi, %far : index
      %d = arith.subi %qi, %ki : index
      %in = arith.cmpi slt, %ki, %end : index
      %before = arith.cmpi sle, %ki, %last : index
      %behind = arith.cmpi slt, %d, %back : index
      %both = arith.andi %before, %behind : i1
      %y = arith.andi %both, %in : i1
      tv.yield %y : i1
    }
  return %a : !a
}
