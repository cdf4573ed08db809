// A block mask in the text of attention: the size of its blocks, and what it says of one.
// The mask does not bound the keys: blocks that are whole do not ask it.
// RUN: tessera-compile %s --target=cuda:sm_90a --attention=flash --dump-dir=%t -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s < %t/kernels.cu

// No spills, no serialised products.
// CLEAN-NOT: {{warning|error}}

// CHECK: struct attention_0_Mods : AttentionMods {
// CHECK: static constexpr int BlockQueries = 128, BlockKeys = 256;
// CHECK: static __device__ bool mask(const Args &args, const At &at) {
// CHECK-NOT: KeyRange
// CHECK: static __device__ int8 kind(const Args &args, const At &at) {
// CHECK: divui(at.query, int64(128))
// CHECK: divui(at.key, int64(256))
// CHECK-NOT: KeyRange
// CHECK: using attention_0_Config = FwdConfig<bf16, 128, attention_0_Mods, 128, 128, 128, 2>;
#m = #tv.mesh<tp = 2>
!q = tensor<2x4x300x128xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<2x4x300xf32>
!bm = tensor<1x4x3x2xi8>
func.func @main(%q: !q, %k: !q, %v: !q, %bm: !bm) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) block_mask(%bm) blocks [128, 256]
      : (!q, !q, !q, !bm) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi sle, %ki, %qi : index
      tv.yield %c : i1
    }
  return %a : !q
}
