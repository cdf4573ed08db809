// Gradients beside a block mask: layers share the order in which they go through it, which
// is made once, for heads that have the same keys together, beside the attention.
// RUN: tessera-opt %s --tv-inline --tv-differentiate -o %t.mlir
// RUN: tessera-compile %t.mlir --target=cuda:sm_90a --attention=flash --dump-dir=%t -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s < %t/kernels.cu
// RUN: FileCheck %s < %t/plan.txt --check-prefix=STEPS
// RUN: tessera-opt %t.mlir --tessera="to=kernels target=cuda:sm_90a attention=flash" | FileCheck %s --check-prefix=PLAN

// No spills, no serialised products.
// CLEAN-NOT: {{warning|error}}

// PLAN: plan.block_walks {{.*}} of [300, 300] blocks [128, 256] causal : memref<1x4x3x2xi8{{.*}} to memref<1x4x2x42xi32
// PLAN: func.func @main
// PLAN: %[[W:.*]] = plan.launch @block_walks_{{[0-9]+}}(%arg3) scalars [] aside from
// PLAN-NOT: @block_walks
// PLAN: plan.launch @attention_{{[0-9]+}}(
// PLAN-NOT: @block_walks
// PLAN: plan.launch @attention_grad_{{[0-9]+}}({{.*}}%[[W]]
// PLAN-NOT: @block_walks
// PLAN: plan.launch @attention_grad_{{[0-9]+}}({{.*}}%[[W]]

// STEPS: launch block_walks_{{[0-9]+}} %3, %[[#]] until step 3 //
// STEPS: launch attention_{{[0-9]+}}
// STEPS: launch attention_{{[0-9]+}}
// STEPS: launch attention_grad_{{[0-9]+}}

// CHECK: using block_walks_{{[0-9]+}}_Walked = WalkedMask<128, 256, true>;
// CHECK: {{.*}}, 300, 300};
// CHECK: make_walks(mask, i);
// CHECK: struct attention_grad_{{[0-9]+}}_Mods : AttentionMods {
// CHECK: static __device__ const int *walks(const Args &args, const IndexPair &at, bool last) {
// CHECK-NEXT: .data + (mask_head(args, at) * 2 + last) * 42;
// CHECK: mask_head(const Args &args, const At &at) {
#m = #tv.mesh<tp = 2>
!q = tensor<2x4x300x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<2x2x300x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<2x4x300xf32>
!bm = tensor<1x4x3x2xi8>
func.func private @layers(%q: !q, %k: !k, %v: !k, %bm: !bm) -> !q {
  %a, %al = tv.attention %q, %k, %v scale(0.125) causal block_mask(%bm) blocks [128, 256]
      : (!q, !k, !k, !bm) -> (!q, !lse)
  %b, %bl = tv.attention %a, %k, %v scale(0.125) causal block_mask(%bm) blocks [128, 256]
      : (!q, !k, !k, !bm) -> (!q, !lse)
  return %b : !q
}
func.func @main(%q: !q, %k: !k, %v: !k, %bm: !bm, %dy: !q) -> (!q, !q) {
  %y, %dq = tv.gradient @layers(%q, %k, %v, %bm) of [0] with (%dy) to [0]
    : (!q, !k, !k, !bm, !q) -> (!q, !q)
  return %y, %dq : !q, !q
}
