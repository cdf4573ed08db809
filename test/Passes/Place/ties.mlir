// Of placements that take the same time an op has that of the axes that arguments name
// first, wherever its operands stand.
// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(tv-decompose-reshardings))' | FileCheck %s

#m = #tv.mesh<y = 2, x = 2>
!x = tensor<2048x2048xf32, #tv.view<#m, [did(x) * 512 * did(y), 2048]>>
!y = tensor<2048x2048xf32, #tv.view<#m, [did(y) * 512 * did(x), 2048]>>
!z = tensor<2048x2048xf32, #tv.view<#m, [2048, did(y) * 1024]>>
// CHECK-LABEL: @one
// CHECK: tv.add {{.*}} -> tensor<2048x2048xf32, #tv.view<#{{.*}}, [did(x) * 512 * did(y), 2048]>>
func.func @one(%x: !x, %y: !y) -> !z {
  %0 = tv.add %x, %y : (!x, !y) -> !z
  return %0 : !z
}
// CHECK-LABEL: @other
// CHECK: tv.add {{.*}} -> tensor<2048x2048xf32, #tv.view<#{{.*}}, [did(x) * 512 * did(y), 2048]>>
func.func @other(%x: !x, %y: !y) -> !z {
  %0 = tv.add %y, %x : (!y, !x) -> !z
  return %0 : !z
}
