// Block masks in kernels of attention and its gradient: blocks that the tiles divide are
// left out, of smaller ones where two are; the others are asked pair by pair.
// RUN: tessera-opt %s --split-input-file --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --split-input-file --tessera="mesh=tp=2 to=kernels target=cuda:sm_90a attention=flash" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %t --split-input-file --tessera="mesh=tp=4 to=kernels target=cuda:sm_90a attention=flash" --interpret=4 | FileCheck %s %no_other_collective

// A window; what its mask is built from, the attention and its gradient.
// CHECK: plan.attention_grad {{.*}} blocks [128, 256]
// CHECK: block_mod (
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x140x64xbf16, #tv.view<#m, [_, (did(tp) * _ | 2) * 2, _, _]>>
!k = tensor<1x2x300x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<1x4x140xf32>
!bm = tensor<1x1x2x2xi8>
func.func private @attend(%q: !q, %k: !k, %v: !k) -> !q {
  %bm = tv.block_mask of [140, 300] blocks [128, 256] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %width = arith.constant 120 : index
      %d = arith.subi %qi, %ki : index
      %c = arith.cmpi ult, %d, %width : index
      tv.yield %c : i1
    }
  %a, %lse = tv.attention %q, %k, %v scale(0.125) block_mask(%bm) blocks [128, 256]
      : (!q, !k, !k, !bm) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %width = arith.constant 120 : index
      %d = arith.subi %qi, %ki : index
      %c = arith.cmpi ult, %d, %width : index
      tv.yield %c : i1
    }
  return %a : !q
}
func.func @main(%q: !q, %k: !k, %v: !k, %dy: !q) -> (!q, !q, !k, !k) {
  %y, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v) of [0] with (%dy) to [0, 1, 2]
    : (!q, !k, !k, !q) -> (!q, !q, !k, !k)
  return %y, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// Kinds that are data, by head, of which 3 and -1 count as 1; heads of 256 elements take 64 keys at a time.
// CHECK: plan.attention {{.*}} causal blocks [128, 128]
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x150x256xf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<1x4x150xf32>
!bm = tensor<1x4x2x2xi8>
func.func @main(%q: !q, %k: !q, %v: !q, %bm: !bm {tv.range = [-1, 3]}) -> (!q, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.0625) causal block_mask(%bm) blocks [128, 128]
      : (!q, !q, !q, !bm) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %two = arith.constant 2 : index
      %sum = arith.addi %qi, %ki : index
      %odd = arith.remui %sum, %two : index
      %zero = arith.constant 0 : index
      %c = arith.cmpi eq, %odd, %zero : index
      tv.yield %c : i1
    }
  return %a, %lse : !q, !lse
}

// -----

// Blocks of 64 are asked; of four that are alike, the last ones of fewer, a kind is made.
// CHECK-COUNT-4: memref.load {{.*}}: memref<1x4x3x3xi8
// CHECK: plan.attention {{.*}} scale(1.250000e-01) blocks [128, 128] : memref
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x150x64xf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<1x4x150xf32>
!bm = tensor<1x4x3x3xi8>
func.func @main(%q: !q, %k: !q, %v: !q, %bm: !bm {tv.range = [-1, 3]}) -> (!q, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) block_mask(%bm) blocks [64, 64]
      : (!q, !q, !q, !bm) -> (!q, !lse)
  return %a, %lse : !q, !lse
}

// -----

// A captured tensor with a gradient. (It may spill 148 bytes.)
// CHECK: plan.attention {{.*}} causal blocks [128, 128]
// CHECK: plan.attention_grad {{.*}} causal blocks [128, 128] walks
// CHECK: score_grad
// CHECK: comm.all_reduce
// RAN tp=1: nothing
// RAN tp=2: all-reduce 2240 bytes 0 copies
// RAN tp=3: all-reduce 3008 bytes 0 copies
// RAN tp=4: all-reduce 3392 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x140x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<1x4x140xf32>
!bias_of_lse = tensor<4x140xf32, #tv.view<#m, [_, _]>>
!ids = tensor<140xi32, #tv.view<#m, [_]>>
!bm = tensor<1x1x2x2xi8>
func.func private @attend(%q: !q, %k: !q, %v: !q, %bias: !bias_of_lse, %ids: !ids) -> !q {
  %bm = tv.block_mask of [140, 140] blocks [128, 128] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %ids[%qi] : !ids -> i32
      %j = tv.load %ids[%ki] : !ids -> i32
      %same = arith.cmpi eq, %i, %j : i32
      tv.yield %same : i1
    }
  %a, %lse = tv.attention %q, %k, %v scale(0.125) causal block_mask(%bm) blocks [128, 128]
      : (!q, !q, !q, !bm) -> (!q, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %bias[%h, %ki] : !bias_of_lse -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %ids[%qi] : !ids -> i32
      %j = tv.load %ids[%ki] : !ids -> i32
      %same = arith.cmpi eq, %i, %j : i32
      tv.yield %same : i1
    }
  return %a : !q
}
func.func @main(%q: !q, %k: !q, %v: !q, %bias: !bias_of_lse, %ids: !ids {tv.range = [0, 1]}, %dy: !q) -> (!q, !q, !q, !q, !bias_of_lse) {
  %y, %dq, %dk, %dv, %db = tv.gradient @attend(%q, %k, %v, %bias, %ids) of [0] with (%dy) to [0, 1, 2, 3]
    : (!q, !q, !q, !bias_of_lse, !ids, !q) -> (!q, !q, !q, !q, !bias_of_lse)
  return %y, %dq, %dk, %dv, %db : !q, !q, !q, !q, !bias_of_lse
}

// -----

// Blocks of 64 queries and 192 keys: two of each make one. (The forward may spill 140 bytes.)
// CHECK: plan.attention {{.*}} causal blocks [128, 384] : memref
// CHECK: plan.attention_grad {{.*}} causal blocks [128, 384] walks
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<2x4x70x64xf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<2x4x70xf32>
!ids = tensor<2x70xi32, #tv.view<#m, [_, _]>>
!bm = tensor<2x1x2x1xi8>
func.func private @attend(%q: !q, %k: !q, %v: !q, %ids: !ids) -> !q {
  %bm = tv.block_mask of [70, 70] blocks [64, 192] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %ids[%b, %qi] : !ids -> i32
      %j = tv.load %ids[%b, %ki] : !ids -> i32
      %same = arith.cmpi eq, %i, %j : i32
      tv.yield %same : i1
    }
  %a, %lse = tv.attention %q, %k, %v scale(0.125) causal block_mask(%bm) blocks [64, 192]
      : (!q, !q, !q, !bm) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %ids[%b, %qi] : !ids -> i32
      %j = tv.load %ids[%b, %ki] : !ids -> i32
      %same = arith.cmpi eq, %i, %j : i32
      tv.yield %same : i1
    }
  return %a : !q
}
func.func @main(%q: !q, %k: !q, %v: !q, %ids: !ids {tv.range = [0, 1]}, %dy: !q) -> (!q, !q, !q, !q) {
  %y, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v, %ids) of [0] with (%dy) to [0, 1, 2]
    : (!q, !q, !q, !ids, !q) -> (!q, !q, !q, !q)
  return %y, %dq, %dk, %dv : !q, !q, !q, !q
}

// -----

// The same of a sum that is stored for each pair, also of those that are left out.
// (It may spill 60 bytes.)
// CHECK: plan.attention_grad {{.*}} blocks [128, 128] walks
// CHECK: score_grad
// CHECK: comm.all_reduce

// RAN tp=1: nothing
// RAN tp=2: all-reduce 22400 bytes 0 copies
// RAN tp=3: all-reduce 29888 bytes 0 copies
// RAN tp=4: all-reduce 33664 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x40x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<1x4x140x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<1x4x40xf32>
!bias_of_lse = tensor<40x140xf32, #tv.view<#m, [_, _]>>
!bm = tensor<1x1x1x2xi8>
func.func private @attend(%q: !q, %k: !k, %v: !k, %bias: !bias_of_lse, %bm: !bm) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) block_mask(%bm) blocks [128, 128]
      : (!q, !k, !k, !bm) -> (!q, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %bias[%qi, %ki] : !bias_of_lse -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
  return %a : !q
}
func.func @main(%q: !q, %k: !k, %v: !k, %bias: !bias_of_lse, %bm: !bm {tv.range = [0, 2]}, %dy: !q) -> (!q, !q, !bias_of_lse) {
  %y, %dq, %dbias = tv.gradient @attend(%q, %k, %v, %bias, %bm) of [0] with (%dy) to [0, 3]
    : (!q, !k, !k, !bias_of_lse, !bm, !q) -> (!q, !q, !bias_of_lse)
  return %y, %dq, %dbias : !q, !q, !bias_of_lse
}

// -----

// Gradients of wide heads, whose tiles clusters have. (It may spill 96 bytes.)
// CHECK: plan.attention_grad {{.*}} causal blocks [128, 128] walks
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x40x192xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<1x4x140x192xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!v = tensor<1x4x140x128xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!y = tensor<1x4x40x128xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<1x4x40xf32>
!bm = tensor<1x4x1x2xi8>
func.func private @attend(%q: !q, %k: !k, %v: !v, %bm: !bm) -> !y {
  %a, %lse = tv.attention %q, %k, %v scale(0.0721) causal block_mask(%bm) blocks [128, 128]
      : (!q, !k, !v, !bm) -> (!y, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %two = arith.constant 2 : index
      %sum = arith.addi %qi, %ki : index
      %odd = arith.remui %sum, %two : index
      %zero = arith.constant 0 : index
      %c = arith.cmpi eq, %odd, %zero : index
      tv.yield %c : i1
    }
  return %a : !y
}
func.func @main(%q: !q, %k: !k, %v: !v, %bm: !bm {tv.range = [0, 2]}, %dy: !y) -> (!y, !q, !k, !v) {
  %y, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v, %bm) of [0] with (%dy) to [0, 1, 2]
    : (!q, !k, !v, !bm, !y) -> (!y, !q, !k, !v)
  return %y, %dq, %dk, %dv : !y, !q, !k, !v
}
