// Pointwise ops before and after a reshape that moves nothing on any device: one kernel.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels" --interpret=2 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=kernels target=cuda:sm_90a" --interpret=3 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels" --interpret=4 -o /dev/null

// Heads, with a bias and a scale.
// CHECK-COUNT-1: func.func @map
// CHECK-NOT: func.func @map
// CHECK: func.func @main
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<5x24xf32, #tv.view<#m, [_, did(tp) * _]>>
!b = tensor<24xf32, #tv.view<#m, [did(tp) * _]>>
!g = tensor<5x24xf32>
!h = tensor<5x12x2xf32>
func.func @main(%x: !x, %b: !b) -> !h {
  %0 = tv.broadcast %b dims [1] : (!b) -> !g
  %1 = tv.add %x, %0 : (!x, !g) -> !g
  %2 = tv.reshape %1 : (!g) -> !h
  %3 = tv.tanh %2 : (!h) -> !h
  return %3 : !h
}
