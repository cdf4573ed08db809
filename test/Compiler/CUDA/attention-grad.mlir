// The gradient of attention: two functions of a kernel, as the plan says, one more where
// queries do not know which tile is the last to add to them, and where query heads share
// keys the last, which adds up what is made for each.
// RUN: tessera-compile %s --target=cuda:sm_90a --attention=flash --dump-dir=%t --dump-kernels=%t -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s < %t/kernels.cu
// RUN: FileCheck %s --check-prefixes=PLAN,CAUSAL < %t/plan.txt
// RUN: tessera-opt %s --tessera="to=scheduled target=cuda:sm_90a attention=flash" | FileCheck %s --check-prefix=SCHEDULE
// RUN: env TESSERA_TRAP_WAITS=1 tessera-opt %s --tessera="to=scheduled target=cuda:sm_90a attention=flash" | FileCheck %s --check-prefix=FINISHES
// RUN: sed 's/ causal$//' %s | tessera-opt --tessera="to=scheduled target=cuda:sm_90a attention=flash" | FileCheck %s --check-prefix=FINISHES
// RUN: FileCheck %s --check-prefix=PROGRAM < %t/attention_grad_0.cu
// RUN: sed 's/ causal$//' %s | tessera-compile --target=cuda:sm_90a --attention=flash --dump-dir=%t -o %t.tsr
// RUN: FileCheck %s --check-prefixes=PLAN,FULL < %t/plan.txt
// RUN: sed 's/x64xbf16/x128xf16/g' %s | tessera-compile --target=cuda:sm_90a --attention=flash -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty

// RUN: sed 's/tensor<2x2x150x64/tensor<2x4x150x64/' %s | tessera-compile --target=cuda:sm_90a --attention=flash --dump-dir=%t -o %t.tsr
// RUN: FileCheck %s --check-prefix=OWN < %t/plan.txt

// No spills, no serialised products.
// CLEAN-NOT: {{warning|error}}

// CHECK: #include "attention/attention_bwd.cuh"
// CHECK: Tensor<float, 4, 3> y3;
// CHECK: struct attention_grad_0_Mods : AttentionMods {
// CHECK: static constexpr float Scale = 0.125f;
// CHECK: static constexpr bool Causal = true;
// CHECK: using attention_grad_0_Config = BwdConfig<bf16, 64, attention_grad_0_Mods, /*Ordered=*/true, 128, 128, 2, 64>;
// CHECK: f.dlse = p.x6.data;
// CHECK: f.workspace = p.y3.data;
// CHECK: f.key_heads = int(p.x2.size[1]);
// CHECK: attention_grad_0_prepare(const __grid_constant__ attention_grad_0_Parameters p)
// CHECK: attention_grad_0_share(const __grid_constant__ attention_grad_0_Parameters p)
// CHECK: f.dk.from = p.y4.data;
// CHECK: f.dk.to = p.y1.data;
// CHECK: f.dv.from = p.y5.data;
// CHECK: attention_bwd_share<attention_grad_0_Config>(f, i);
// CHECK: __launch_bounds__(384, 1)
// CHECK-NEXT: attention_grad_0_main(const __grid_constant__ attention_grad_0_main_Boxed boxed)
// PROGRAM: attention_grad_0_main_Boxed boxed_attention_grad_0_main = {p, {makeMap<

// SCHEDULE: plan.attention_grad {{.*}} {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2)>}
// FINISHES: plan.attention_grad {{.*}} {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2) finish(true)>}
// PLAN: launch attention_grad_0
// PLAN-NEXT: as attention_grad_0_prepare of 256 threads over
// PLAN-NEXT: as attention_grad_0_main of 384 threads and {{[0-9]+}} bytes of shared memory, persistent, over {{.*}} by 128, early, operand 1 in boxes of 1x1x128x64, operand 2 in boxes of 1x1x128x64, operand 3 in boxes of 1x1x128x64, operand 0 in boxes of 1x1x128x64, operand 11 in boxes of 1x1x64x64, operand 12 in boxes of 1x1x64x64
// CAUSAL-NOT: attention_grad_0_finish
// FULL-NEXT: as attention_grad_0_finish of 256 threads over {{.*}} by 128, early
// PLAN-NEXT: as attention_grad_0_share of 256 threads over {{.*}} by 32, early
// OWN: as attention_grad_0_main of {{.*}} operand 8 in boxes of 1x1x64x64, operand 9 in boxes of 1x1x64x64
// OWN-NOT: as attention_grad_0_share
#m = #tv.mesh<tp = 2>
!q = tensor<2x4x70x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<2x2x150x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!l = tensor<2x4x70xf32, #tv.view<#m, [_, did(tp) * _, _]>>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k, %o: !q, %lse: !l, %dlse: !l)
    -> (!q, !k, !k) {
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse dlse %dlse scale(0.125) causal
      : (!q, !q, !k, !k, !q, !l, !l) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}
