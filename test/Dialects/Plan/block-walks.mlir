// The order in which gradients go through a block mask, and what they know of it.
// RUN: split-file %s %t
// RUN: tessera-opt %t/walks.mlir | tessera-opt | FileCheck %s
// RUN: sed 's/x28xi32/x20xi32/' %t/walks.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=WORDS
// RUN: sed 's/of \[300, 200\]/of [300, 400]/' %t/walks.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=MASK
// RUN: sed 's/ blocks \[128, 256\] causal/ blocks [128, 64] causal/' %t/walks.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=BLOCKS
// RUN: sed 's/memref<1x4x3x1xi8>/memref<2x4x3x1xi8>/' %t/walks.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=HEADS
// RUN: sed 's/ walks %w/ /; s/!k, !s, !w/!k, !s/' %t/grad.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/x28xi32/x20xi32/' %t/grad.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=GRAD
// RUN: tessera-opt %t/grad.mlir | tessera-opt | FileCheck %s --check-prefix=READS
// RUN: not tessera-opt %t/long.mlir 2>&1 | FileCheck %s --check-prefix=LONG

// CHECK: plan.block_walks %{{.*}} to %{{.*}} of [300, 200] blocks [128, 256] causal : memref<1x4x3x1xi8> to memref<1x4x2x28xi32>
// READS: plan.attention_grad {{.*}} blocks [128, 128] walks %{{.*}} :
// READS: walk_mod (
// WORDS: error: 'plan.block_walks' op walks of 300 queries and 200 keys must be [B or 1, H or 1, 2, 28], of i32, not 'memref<1x4x2x20xi32>'
// MASK: error: 'plan.block_walks' op has a mask of 'memref<1x4x3x1xi8>' for 300 queries and 400 keys in blocks of 128 and 256
// BLOCKS: error: 'plan.block_walks' op has blocks of 64, no multiple of a tile's 128
// HEADS: error: 'plan.block_walks' op makes walks of 'memref<1x4x2x28xi32>' for a mask of 'memref<2x4x3x1xi8>'
// NONE: error: 'plan.attention_grad' op needs walks and a walk_mod for blocks, and for no other
// GRAD: error: 'plan.attention_grad' op walks of 300 queries and 200 keys must be [B or 1, H or 1, 2, 28], of i32, not 'memref<1x1x2x20xi32>'
// LONG: error: 'plan.block_walks' op has walks of 8388608 queries and 128 keys; they have at most 4194240

//--- walks.mlir
func.func @kernel(%bm: memref<1x4x3x1xi8>, %w: memref<1x4x2x28xi32>) {
  plan.block_walks %bm to %w of [300, 200] blocks [128, 256] causal
    : memref<1x4x3x1xi8> to memref<1x4x2x28xi32>
  return
}

//--- grad.mlir
!q = memref<1x2x300x64xbf16>
!k = memref<1x2x200x64xbf16>
!x = memref<1x2x300xf32>
!s = memref<1x2x428x71xf32>
!w = memref<1x1x2x28xi32>
!bm = memref<3x2xi8>
func.func @kernel(%q: !q, %k: !k, %l: !x, %s: !s, %w: !w, %bm: !bm) {
  plan.attention_grad %q, %q, %k, %k, %q, %l to %q, %k, %k by %s scale(0.125) blocks [128, 128] walks %w
    : !q, !q, !k, !k, !q, !x, !q, !k, !k, !s, !w
    block_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %kind = memref.load %bm[%b, %h] : !bm
      tv.yield %kind : i8
    }
    walk_mod (%b: index, %h: index, %qi: index, %ki: index) {
      tv.yield %b : index
    }
  return
}

//--- long.mlir
func.func @kernel(%bm: memref<1x1x65536x1xi8>, %w: memref<1x1x2x134152xi32>) {
  plan.block_walks %bm to %w of [8388608, 128] blocks [128, 128]
    : memref<1x1x65536x1xi8> to memref<1x1x2x134152xi32>
  return
}
