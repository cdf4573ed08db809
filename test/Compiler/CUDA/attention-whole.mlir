// Where lengths are known to be multiples of a kernel's tiles, functors are asked of no
// position but those that are there: what they load for a query and a key lies constants
// apart, and spills nothing.
// RUN: tessera-compile %s --target=cuda:sm_90a --attention=flash --dump-dir=%t -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s --check-prefixes=CHECK,WHOLE < %t/kernels.cu
// RUN: sed 's/512/500/g; s/1152/1140/g' %s | tessera-compile --target=cuda:sm_90a --attention=flash --dump-dir=%t -o %t.tsr
// RUN: FileCheck %s --check-prefixes=CHECK,KEYS < %t/kernels.cu
// RUN: sed 's/640/600/g; s/1152/1112/g' %s | tessera-compile --target=cuda:sm_90a --attention=flash --dump-dir=%t -o %t.tsr
// RUN: FileCheck %s --check-prefixes=CHECK,QUERIES < %t/kernels.cu

// CLEAN-NOT: {{warning|error}}
// CHECK: struct attention_0_Mods : AttentionMods {
// CHECK: static constexpr float Scale
// KEYS-NOT: WholeQueries
// WHOLE-NEXT: static constexpr bool WholeQueries = true;
// WHOLE-NEXT: static constexpr bool WholeKeys = true;
// KEYS: static constexpr bool WholeKeys = true;
// QUERIES: static constexpr bool WholeQueries = true;
// QUERIES-NOT: WholeKeys
// CHECK: static constexpr bool HasScore = true;
#m = #tv.mesh<tp = 2>
!q = tensor<2x4x512x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<2x4x640x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!l = tensor<2x4x512xf32>
!bias = tensor<4x1152xf32>
func.func @main(%q: !q, %k: !k, %v: !k, %bias: !bias) -> !q {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) : (!q, !k, !k) -> (!q, !l)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %keys = arith.constant 640 : index
      %far = arith.subi %qi, %ki : index
      %at = arith.addi %far, %keys : index
      %x = tv.load %bias[%h, %at] : !bias -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
  return %o : !q
}
