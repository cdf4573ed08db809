// Keys and values in pages, as of a decoder's cache: `flash` reads them where they lie, a
// kernel for few queries (attention_few.cuh) or that for many; `math` gathers them.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels target=cuda:sm_90a attention=flash" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels target=cuda:sm_90a attention=flash" --interpret=4 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=kernels" --interpret=3 -o /dev/null

// One query of each of four heads a key head, pages of 64. Of each sequence the keys up to
// its length, which may be none; entries of the table may be no page, or another's.
// CHECK: plan.attention {{.*}} pages
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<5x16x1x64xbf16, #tv.view<#m, [_, (did(tp) * _ | 4) * 4, _, _]>>
!pages = tensor<40x4x64x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!table = tensor<5x9xi32>
!a = tensor<5x16x1x64xbf16>
!lse = tensor<5x16x1xf32>
func.func @main(%q: !q, %k: !pages, %v: !pages, %table: !table {tv.range = [-1, 41]}, %length: tensor<5xi32> {tv.range = [0, 576]}) -> (!a, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) pages(%table) : (!q, !pages, !pages, !table) -> (!a, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %n = tv.load %length[%b] : tensor<5xi32> -> i32
      %end = arith.index_cast %n : i32 to index
      %in = arith.cmpi slt, %ki, %end : index
      tv.yield %in : i1
    }
  return %a, %lse : !a, !lse
}

// -----

// Batches over the devices, and with them the table; the pages are whole. Some queries at
// the end of the keys, causal; keys and values, [P, R, G, 2 D], are of one tensor.
// CHECK: plan.attention {{.*}} causal pages
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<5x4x3x128xf16, #tv.view<#m, [did(tp) * _, _, _, _]>>
!kv = tensor<30x24x2x256xf16, #tv.view<#m, [_, _, _, _]>>
!part = tensor<30x24x2x128xf16>
!head = tensor<30x2x24x128xf16>
!table = tensor<5x7xi32, #tv.view<#m, [did(tp) * _, _]>>
!a = tensor<5x4x3x128xf16>
!lse = tensor<5x4x3xf32>
func.func @main(%q: !q, %kv: !kv, %table: !table {tv.range = [0, 30]}) -> (!a, !lse) {
  %k0 = tv.slice %kv offsets [0, 0, 0, 0] : (!kv) -> !part
  %v0 = tv.slice %kv offsets [0, 0, 0, 128] : (!kv) -> !part
  %k = tv.transpose %k0 perm [0, 2, 1, 3] : (!part) -> !head
  %v = tv.transpose %v0 perm [0, 2, 1, 3] : (!part) -> !head
  %a, %lse = tv.attention %q, %k, %v scale(0.0883883) causal pages(%table) : (!q, !head, !head, !table) -> (!a, !lse)
  return %a, %lse : !a, !lse
}

// -----

// A row is set in the pages, which are states, before they are read; pages of three rows,
// heads of 192 elements with values of 128, and a score_mod.
// CHECK: plan.attention {{.*}} pages
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<3x4x1x192xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!new = tensor<3x4x192xbf16, #tv.view<#m, [_, did(tp) * _, _]>>
!kpages = tensor<20x3x4x192xbf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!krows = tensor<60x4x192xbf16>
!khead = tensor<20x4x3x192xbf16>
!vhead = tensor<20x4x3x128xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!table = tensor<3x6xi32>
!at = tensor<3xi32>
!a = tensor<3x4x1x128xbf16>
!bias_of_lse = tensor<4x18xf32>
func.func @main(%q: !q, %new: !new, %at: !at {tv.range = [-1, 60]}, %k: !kpages {tv.name = "keys", tv.role = "state"}, %v: !vhead, %table: !table {tv.range = [-1, 20]}, %bias: !bias_of_lse)
    -> (!a, !kpages {tv.name = "keys"}) {
  %rows = tv.reshape %k : (!kpages) -> !krows
  %set = tv.scatter set %rows, %at, %new dim 0 : (!krows, !at, !new) -> !krows
  %next = tv.reshape %set : (!krows) -> !kpages
  %heads = tv.transpose %next perm [0, 2, 1, 3] : (!kpages) -> !khead
  %a, %lse = tv.attention %q, %heads, %v scale(0.07) pages(%table) : (!q, !khead, !vhead, !table) -> (!a, tensor<3x4x1xf32>)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) { // as the lse
      %x = tv.load %bias[%h, %ki] : !bias_of_lse -> f32
      %y = arith.addf %s, %x : f32 // as the lse
      tv.yield %y : f32 // as the lse
    }
  return %a, %next : !a, !kpages
}

// -----

// Pieces of prompts: the last queries of each sequence, in tiles of one head, of which
// blocks share the keys; a sequence may be shorter than its queries are many.
// CHECK: plan.attention {{.*}} pages
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<2x4x150x64xbf16, #tv.view<#m, [_, (did(tp) * _ | 2) * 2, _, _]>>
!pages = tensor<30x2x16x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!table = tensor<2x40xi32>
!a = tensor<2x4x150x64xbf16>
!lse = tensor<2x4x150xf32>
func.func @main(%q: !q, %k: !pages, %v: !pages, %table: !table {tv.range = [-1, 31]}, %length: tensor<2xi32> {tv.range = [0, 640]}) -> (!a, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) pages(%table) : (!q, !pages, !pages, !table) -> (!a, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %n = tv.load %length[%b] : tensor<2xi32> -> i32
      %end = arith.index_cast %n : i32 to index
      %queries = arith.constant 150 : index
      %d = arith.subi %ki, %qi : index
      %rest = arith.subi %end, %queries : index
      %in = arith.cmpi sle, %d, %rest : index
      tv.yield %in : i1
    }
  return %a, %lse : !a, !lse
}

// -----

// A few queries of many heads a key head: several tiles, each with all heads.
// CHECK: plan.attention {{.*}} causal pages
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<3x32x13x64xf16, #tv.view<#m, [_, (did(tp) * _ | 4) * 8, _, _]>>
!pages = tensor<20x4x24x64xf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!table = tensor<3x7xi32>
!a = tensor<3x32x13x64xf16>
!lse = tensor<3x32x13xf32>
func.func @main(%q: !q, %k: !pages, %v: !pages, %table: !table {tv.range = [0, 20]}) -> (!a, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) causal pages(%table) : (!q, !pages, !pages, !table) -> (!a, !lse)
  return %a, %lse : !a, !lse
}

// -----

// Many pieces of prompts, whole tiles of one head; devices have other numbers of heads.
// CHECK: plan.attention {{.*}} pages
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<24x6x70x64xbf16, #tv.view<#m, [_, (did(tp) * _ | 3) * 2, _, _]>>
!pages = tensor<40x3x128x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!table = tensor<24x1xi32>
!a = tensor<24x6x70x64xbf16>
!lse = tensor<24x6x70xf32>
func.func @main(%q: !q, %k: !pages, %v: !pages, %table: !table {tv.range = [-1, 41]}, %length: tensor<24xi32> {tv.range = [0, 128]}) -> (!a, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) pages(%table) : (!q, !pages, !pages, !table) -> (!a, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %n = tv.load %length[%b] : tensor<24xi32> -> i32
      %end = arith.index_cast %n : i32 to index
      %in = arith.cmpi slt, %ki, %end : index
      tv.yield %in : i1
    }
  return %a, %lse : !a, !lse
}
