// Gradients go through a block mask in an order of that very mask.
// RUN: split-file %s %t
// RUN: tessera-opt %t/main.mlir | tessera-opt | FileCheck %s
// RUN: sed 's/@walks(%bm)/@walks(%other)/' %t/main.mlir > %t/other.mlir
// RUN: not tessera-opt %t/other.mlir 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/@walks(%bm)/@walks(%made)/' %t/main.mlir > %t/made.mlir
// RUN: not tessera-opt %t/made.mlir 2>&1 | FileCheck %s --check-prefix=MADE
// RUN: sed 's/@walks(%bm)/@walks(%made)/; s/%bm)/%again)/' %t/main.mlir | tessera-opt | FileCheck %s
// RUN: sed 's/ causal$//' %t/main.mlir > %t/causal.mlir
// RUN: not tessera-opt %t/causal.mlir 2>&1 | FileCheck %s --check-prefix=CAUSAL
// RUN: sed 's| causal blocks| blocks|' %t/main.mlir > %t/not-causal.mlir
// RUN: not tessera-opt %t/not-causal.mlir 2>&1 | FileCheck %s --check-prefix=NOT-CAUSAL
// RUN: sed 's/blocks \[128, 128\] causal/blocks [192, 256] causal/; s/x3x2xi8/x2x1xi8/g' %t/main.mlir > %t/blocks.mlir
// RUN: not tessera-opt %t/blocks.mlir 2>&1 | FileCheck %s --check-prefix=BLOCKS
// RUN: sed 's/of \[300, 200\]/of [260, 160]/' %t/main.mlir > %t/sizes.mlir
// RUN: not tessera-opt %t/sizes.mlir 2>&1 | FileCheck %s --check-prefix=SIZES
// RUN: sed 's/%walks, %bm)/%given, %bm)/' %t/main.mlir > %t/given.mlir
// RUN: not tessera-opt %t/given.mlir 2>&1 | FileCheck %s --check-prefix=GIVEN
// RUN: sed 's/%walks, %bm)/%copied, %bm)/' %t/main.mlir > %t/copied.mlir
// RUN: not tessera-opt %t/copied.mlir 2>&1 | FileCheck %s --check-prefix=COPIED

// CHECK: plan.launch @grad(
// OTHER: error: 'plan.launch' op reads walks of another block mask: of argument 5, where its own is argument 4
// OTHER: note: they are made here
// MADE: error: 'plan.launch' op reads walks of another block mask: of result 0 of 'plan.launch' @mask, where its own is argument 4
// CAUSAL: error: 'plan.launch' op reads walks of an attention that is not causal for one that is
// NOT-CAUSAL: error: 'plan.launch' op reads walks of a causal attention for one that is not
// BLOCKS: error: 'plan.launch' op reads walks of a mask in blocks of 192 and 256 for one in blocks of 128 and 128
// SIZES: error: 'plan.launch' op reads walks of 260 queries and 160 keys for 300 and 200
// GIVEN: error: 'plan.launch' op reads walks that no 'plan.block_walks' makes
// COPIED: error: 'plan.launch' op reads walks that no 'plan.block_walks' makes
// COPIED: note: they are result 0 of 'plan.launch' @copy

//--- main.mlir
!q = memref<1x4x300x64xbf16>
!k = memref<1x4x200x64xbf16>
!x = memref<1x4x300xf32>
!s = memref<1x4x428x71xf32>
!w = memref<1x4x2x28xi32>
!bm = memref<1x4x3x2xi8>
!tq = tensor<1x4x300x64xbf16>
!tk = tensor<1x4x200x64xbf16>
!tx = tensor<1x4x300xf32>
!ts = tensor<1x4x428x71xf32>
!tw = tensor<1x4x2x28xi32>
!tbm = tensor<1x4x3x2xi8>
func.func @mask(%x: !x, %to: !bm) attributes {plan.kernel} {
  return
}
func.func @copy(%from: !w, %to: !w) attributes {plan.kernel} {
  return
}
func.func @walks(%bm: !bm, %w: !w) attributes {plan.kernel} {
  plan.block_walks %bm to %w of [300, 200] blocks [128, 128] causal
    : !bm to !w
  return
}
func.func @grad(%q: !q, %k: !k, %l: !x, %w: !w, %bm: !bm, %dq: !q, %dk: !k, %dv: !k, %s: !s)
    attributes {plan.kernel} {
  plan.attention_grad %q, %q, %k, %k, %q, %l to %dq, %dk, %dv by %s scale(0.125) causal blocks [128, 128] walks %w
    : !q, !q, !k, !k, !q, !x, !q, !k, !k, !s, !w
    block_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c0 = arith.constant 0 : index
      %kind = memref.load %bm[%c0, %h, %qi, %ki] : !bm
      tv.yield %kind : i8
    }
    walk_mod (%b: index, %h: index, %qi: index, %ki: index) {
      tv.yield %h : index
    }
  return
}
func.func @main(%q: !tq, %k: !tk, %l: !tx, %given: !tw, %bm: !tbm, %other: !tbm) -> !tq {
  %made = plan.launch @mask(%l) scalars [] from "tv.map" : (!tx) -> !tbm
  %again = plan.launch @mask(%l) scalars [] from "tv.map" : (!tx) -> !tbm
  %walks = plan.launch @walks(%bm) scalars [] from "tv.attention_grad" : (!tbm) -> !tw
  %copied = plan.launch @copy(%walks) scalars [] from "tv.map" : (!tw) -> !tw
  %r:4 = plan.launch @grad(%q, %k, %l, %walks, %bm) scalars [] from "tv.attention_grad"
    : (!tq, !tk, !tx, !tw, !tbm) -> (!tq, !tk, !tk, !ts)
  return %r#0 : !tq
}
