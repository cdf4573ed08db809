// Weights that are stacked: a layer of them is where it is.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels" --interpret=2 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=kernels" --interpret=3 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels target=cuda:sm_90a" --interpret=4 | FileCheck %s

// The second layer of a stack of three, multiplied where it lies.
// CHECK: func.func @main
// CHECK-NOT: plan.{{launch|copy}}
// CHECK: plan.alias slice
// CHECK-NEXT: plan.alias reshape
// CHECK-NEXT: plan.contract
// CHECK-NOT: plan.{{launch|copy}}
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<5x6xf32, #tv.view<#m, [_, _]>>
!s = tensor<3x10x6xf32, #tv.view<#m, [_, did(tp) * _, _]>>
!l = tensor<1x10x6xf32>
!w = tensor<10x6xf32>
!y = tensor<5x10xf32>
func.func @main(%x: !x, %s: !s) -> !y {
  %0 = tv.slice %s offsets [1, 0, 0] : (!s) -> !l
  %w = tv.reshape %0 : (!l) -> !w
  %y = tv.linear %x, %w : (!x, !w) -> !y
  return %y : !y
}
