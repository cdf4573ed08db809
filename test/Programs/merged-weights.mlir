// Weights that are merged: what is computed of them on the way to the copy is computed
// by it.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels" --interpret=2 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=kernels" --interpret=3 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels target=cuda:sm_90a" --interpret=4 | FileCheck %s

// wq | wk | wv, scaled, as one product: one kernel, and no copy.
// CHECK-COUNT-1: func.func @concat
// CHECK-NOT: func.func @{{map|concat}}
// CHECK: func.func @main
// CHECK-COUNT-1: plan.launch @concat
// CHECK-NOT: plan.{{launch|copy}}
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<12x6xf32, #tv.view<#m, [_, did(tp) * _]>>
!k = tensor<4x6xf32, #tv.view<#m, [_, did(tp) * _]>>
!qs = tensor<12x6xf32>
!ks = tensor<4x6xf32>
!w = tensor<20x6xf32>
func.func @main(%q: !q, %k: !k, %v: !k) -> !w {
  %0 = tv.tanh %q : (!q) -> !qs
  %1 = tv.exp %k : (!k) -> !ks
  %2 = tv.mul %1, %k : (!ks, !k) -> !ks
  %w = tv.concat %0, %2, %v dim 0 : (!qs, !ks, !k) -> !w
  return %w : !w
}
