// Kernels of a debug build print which wait for a turn has no end, and trap
// (attention_trap.cuh); those of others have nothing of it, under other keys of the cache.
// RUN: rm -rf %t && mkdir %t
// RUN: tessera-opt %s --tv-inline --tv-differentiate -o %t/grad.mlir
// RUN: env TESSERA_CACHE=%t/cache TESSERA_TRAP_WAITS=1 tessera-compile %t/grad.mlir --target=cuda:sm_90a --attention=flash -o %t/traps.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: grep -aq "a wait for a turn to add gradients has no end: batch %d, head %d, block of queries %d" %t/traps.tsr
// RUN: env TESSERA_CACHE=%t/cache tessera-compile %t/grad.mlir --target=cuda:sm_90a --attention=flash -o %t/plain.tsr
// RUN: not grep -aq "a wait for a turn" %t/plain.tsr
// RUN: env TESSERA_CACHE=%t/cache TESSERA_TRAP_WAITS=0 tessera-compile %t/grad.mlir --target=cuda:sm_90a --attention=flash -o %t/zero.tsr
// RUN: cmp %t/plain.tsr %t/zero.tsr
// RUN: env TESSERA_TRAP_WAITS=soon not tessera-compile %t/grad.mlir --target=cuda:sm_90a --attention=flash -o %t/none.tsr 2>&1 | FileCheck %s --check-prefix=VALUE

// The main kernel prints nothing: its products would be serialised.
// CLEAN-NOT: C75
// VALUE: error: TESSERA_TRAP_WAITS is 'soon', and must be a number of looks below 2^31, 1 for the usual one, or 0
!q = tensor<1x2x256x64xbf16>
!s = tensor<1x2x256x64xbf16, #tv.view<#tv.mesh<tp = 1>, [_, did(tp) * _, _, _]>>
!lse = tensor<1x2x256xf32>
!bm = tensor<1x1x2x2xi8>
func.func private @layer(%q: !s, %k: !q, %v: !q, %bm: !bm) -> !q {
  %a, %al = tv.attention %q, %k, %v scale(0.125) block_mask(%bm) blocks [128, 128]
      : (!s, !q, !q, !bm) -> (!q, !lse)
  return %a : !q
}
func.func @main(%q: !s, %k: !q, %v: !q, %bm: !bm, %dy: !q) -> (!q, !q) {
  %y, %dq = tv.gradient @layer(%q, %k, %v, %bm) of [0] with (%dy) to [0]
    : (!s, !q, !q, !bm, !q) -> (!q, !q)
  return %y, %dq : !q, !q
}
