// Dropout of parts of the keys: eight weights are of one computation where a device's keys have
// numbers in eights, here in blocks of 16 in turn; not so in blocks of 150.
// RUN: tessera-compile %s --target=cuda:sm_90a --attention=flash --quiet --dump-dir=%t/turns -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s < %t/turns/kernels.cu
// RUN: sed 's/_ \* did(y) \* 16/did(y) * _/; s/x320x/x300x/' %s | tessera-compile --target=cuda:sm_90a --attention=flash --quiet --dump-dir=%t/blocks -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s --check-prefix=BLOCKS < %t/blocks/kernels.cu
// CLEAN-NOT: {{warning|error}}
// CHECK: static constexpr bool KeysInEights = true;
// CHECK: static constexpr bool HasDropout = true;
// CHECK: attention_bwd<attention_grad_
// BLOCKS: struct attention_grad_0_Mods
// BLOCKS-NOT: KeysInEights
#m = #tv.mesh<x = 2, y = 2>
!q = tensor<1x4x256x64xbf16, #tv.view<#m, [_, _, _ * did(x) * 16, _]>>
!k = tensor<1x4x320x64xbf16, #tv.view<#m, [_, _, _ * did(y) * 16, _]>>
!l = tensor<1x4x256xf32, #tv.view<#m, [_, _, _ * did(x) * 16]>>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k, %o: !q, %lse: !l) -> (!q, !k, !k) {
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) dropout(0.1) seed(1) stream(2)
      : (!q, !q, !k, !k, !q, !l) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}
