// Dropout in the text of attention and its gradient: the launch has the stream, so
// that layers share kernels, and memory the step.
// RUN: tessera-compile %s --target=cuda:sm_90a --attention=flash --dump-dir=%t -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s < %t/kernels.cu
// RUN: FileCheck %s --check-prefix=PLAN < %t/plan.txt
// RUN: sed 's/x128/x127/g' %s > %t/anywhere.mlir
// RUN: tessera-compile %t/anywhere.mlir --target=cuda:sm_90a --attention=flash --dump-dir=%t/anywhere -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s --check-prefix=ANYWHERE < %t/anywhere/kernels.cu

// No spills, no serialised products.
// CLEAN-NOT: {{warning|error}}

// Where keys are no multiple of eight, their numbers begin anywhere.
// ANYWHERE-NOT: KeysInEights

// CHECK: struct attention_0_Mods : AttentionMods {
// CHECK: static constexpr uint32 DropBelow = 6554;
// CHECK: static constexpr float KeptScale = 1.1
// CHECK: static constexpr bool KeysInEights = true;
// CHECK: static __device__ WeightStream stream(const Args &args) {
// CHECK-NEXT: return {uint64(1LL), uint64(args.p->n0) + (uint64(args.p->x1.data[0]) << 32)};
// CHECK: static constexpr bool HasDropout = true;
// CHECK: number(const Args &args, const At &at)
// CHECK: attention_fwd<attention_0_Config>
// CHECK-NOT: attention_fwd<
// CHECK: static constexpr bool KeysInEights = true;
// CHECK: static constexpr bool HasDropout = true;
// CHECK: attention_bwd<attention_grad_
// CHECK-NOT: attention_bwd<

// PLAN-COUNT-2: launch attention_0
#m = #tv.mesh<tp = 1>
!x = tensor<2x4x128x64xbf16, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<2x4x128xf32>
!step = tensor<i64>
func.func private @layers(%x: !x, %step: !step) -> !x {
  %a, %l = tv.attention %x, %x, %x scale(0.125) causal dropout(0.1) seed(1) stream(2) step %step : (!x, !x, !x, !step) -> (!x, !lse)
  %b, %m = tv.attention %a, %a, %a scale(0.125) causal dropout(0.1) seed(1) stream(3) step %step : (!x, !x, !x, !step) -> (!x, !lse)
  return %b : !x
}
func.func @main(%x: !x, %step: !step, %dy: !x) -> (!x, !x) {
  %y, %dx = tv.gradient @layers(%x, %step) of [0] with (%dy) to [0] : (!x, !step, !x) -> (!x, !x)
  return %y, %dx : !x, !x
}
