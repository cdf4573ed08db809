// As flash-queries.mlir and flash-turns.mlir, with what takes more than numbers of positions: block
// masks, packed sequences and pages.
// RUN: tessera-opt %s --split-input-file --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --split-input-file --tessera="to=kernels target=cuda:sm_90a attention=flash" --interpret=4 | FileCheck %s

// A forward leaves out the blocks of a block mask that its queries are whole blocks of; a
// gradient asks mask_mod, and leaves out what that bounds.
// CHECK: plan.attention {{.*}} blocks [128, 128]
// CHECK: plan.attention_grad
// CHECK-NOT: blocks
// CHECK: mask_mod
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 204800 bytes 0 copies
// RAN tp=3: all-reduce of 2 273152 bytes 0 copies
// RAN tp=4: all-reduce of 2 307200 bytes 0 copies
#m = #tv.mesh<tp = 4>
!q = tensor<1x4x540x64xbf16, #tv.view<#m, [_, _, _ * did(tp) * 128, _]>>
!k = tensor<1x2x400x64xbf16, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<1x4x540xf32>
!bm = tensor<1x1x5x4xi8>
func.func private @attend(%q: !q, %k: !k, %v: !k) -> !q {
  %bm = tv.block_mask of [540, 400] blocks [128, 128] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %width = arith.constant 170 : index
      %d = arith.subi %qi, %ki : index
      %near = arith.cmpi slt, %d, %width : index
      %c = arith.cmpi sle, %ki, %qi : index
      %m = arith.andi %near, %c : i1
      tv.yield %m : i1
    }
  %a, %lse = tv.attention %q, %k, %v scale(0.125) block_mask(%bm) blocks [128, 128]
      : (!q, !k, !k, !bm) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %width = arith.constant 170 : index
      %d = arith.subi %qi, %ki : index
      %near = arith.cmpi slt, %d, %width : index
      %c = arith.cmpi sle, %ki, %qi : index
      %m = arith.andi %near, %c : i1
      tv.yield %m : i1
    }
  return %a : !q
}
func.func @main(%q: !q, %k: !k, %v: !k, %dy: !q) -> (!q, !q, !k, !k) {
  %y, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v) of [0] with (%dy) to [0, 1, 2]
    : (!q, !k, !k, !q) -> (!q, !q, !k, !k)
  return %y, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// Of parts that are no whole blocks each pair is asked. (It may spill 124 bytes.)
// CHECK: plan.attention
// CHECK-NOT: blocks
// CHECK: mask_mod
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 153600 bytes 0 copies
// RAN tp=3: all-reduce of 2 204800 bytes 0 copies
// RAN tp=4: all-reduce of 2 230400 bytes 0 copies
#m = #tv.mesh<tp = 4>
!q = tensor<1x4x150x64xf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!k = tensor<1x4x150x64xf16, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<1x4x150xf32>
!bm = tensor<1x1x2x3xi8>
func.func private @attend(%q: !q, %k: !k, %v: !k, %bm: !bm) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) causal block_mask(%bm) blocks [128, 64]
      : (!q, !k, !k, !bm) -> (!q, !lse)
  return %a : !q
}
func.func @main(%q: !q, %k: !k, %v: !k, %bm: !bm {tv.range = [-1, 3]}, %dy: !q) -> (!q, !q, !k, !k) {
  %y, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v, %bm) of [0] with (%dy) to [0, 1, 2]
    : (!q, !k, !k, !bm, !q) -> (!q, !q, !k, !k)
  return %y, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// Packed sequences, and what of them is used.
// CHECK: plan.attention {{.*}} causal
// CHECK-NOT: tiles
// CHECK: plan.attention_grad {{.*}} causal
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 153600 bytes 0 copies
// RAN tp=3: all-reduce of 2 204800 bytes 0 copies
// RAN tp=4: all-reduce of 2 230400 bytes 0 copies
#m = #tv.mesh<tp = 4>
!q = tensor<1x4x300x64xbf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!k = tensor<1x2x300x64xbf16, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<1x4x300xf32>
!begins = tensor<1x5xi32>
!used = tensor<1x4xi32>
func.func private @attend(%q: !q, %k: !k, %v: !k, %begins: !begins, %used: !used) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) causal sequences(%begins) used(%used)
      : (!q, !k, !k, !begins, !used) -> (!q, !lse)
  return %a : !q
}
func.func @main(%q: !q, %k: !k, %v: !k, %begins: !begins {tv.range = [0, 300]},
                %used: !used {tv.range = [-1, 200]}, %dy: !q) -> (!q, !q, !k, !k) {
  %y, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v, %begins, %used) of [0] with (%dy) to [0, 1, 2]
    : (!q, !k, !k, !begins, !used, !q) -> (!q, !q, !k, !k)
  return %y, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// Pages, of a piece of a prompt.
// CHECK: plan.attention {{.*}} causal pages
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 4>
!q = tensor<2x4x140x64xbf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!pages = tensor<12x2x64x64xbf16, #tv.view<#m, [_, _, _, _]>>
!table = tensor<2x5xi32>
!lse = tensor<2x4x140xf32>
func.func @main(%q: !q, %k: !pages, %v: !pages, %table: !table {tv.range = [-1, 12]}) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) causal pages(%table)
      : (!q, !pages, !pages, !table) -> (!q, !lse)
  return %a : !q
}
