// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_90a -o %t 2>&1 | FileCheck %s
// CHECK: fetch-target-invalid.mlir:[[@LINE+6]]:8: error: 'comm.fetch' op is for other targets than cuda:sm_90a
#m = #tv.mesh<tp = 2>
!t = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 8], alloc = (0, 1)>, of [8, 8]>>
!i = tensor<3xi32, #tv.local<#tv.view<#m, [3], alloc = (0)>, of [3]>>
!y = tensor<3x8xf32, #tv.local<#tv.view<#m, [3, 8], alloc = (0, 1)>, of [3, 8]>>
func.func @main(%t: !t, %i: !i) -> !y {
  %0 = comm.fetch %t at %i over #m [tp] id 0 : (!t, !i) -> !y
  return %0 : !y
}
