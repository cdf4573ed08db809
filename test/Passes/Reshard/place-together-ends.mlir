// What is returned in any view is weighed as it is made now, not as it might be.
// RUN: tessera-opt %s --split-input-file --tv-place-together | FileCheck %s

#m = #tv.mesh<x = 2>
!x = tensor<4096x4096xf32, #tv.view<#m, [4096, did(x) * 2048]>>
!w = tensor<4096x4096xf32, #tv.view<#m, [did(x) * 2048, 4096]>>
!p = tensor<4096x4096xf32, #tv.view<#m, [4096, 4096], partial = [x : sum]>>
!y = tensor<4096x4096xf32, #tv.view<#m, [4096, 4096]>>

// The sum is scattered, though no op is placed anew.
// CHECK-LABEL: @one_use
// CHECK: tv.matmul {{.*}} partial = [x : sum]>>
// CHECK-NEXT: tv.reshard {{.*}} -> tensor<4096x4096xf32, #tv.view<#mesh, [did(x) * 2048, 4096]>>
// CHECK-NEXT: return
func.func @one_use(%x: !x, %w: !w) -> !y {
  %0 = tv.matmul %x, %w : (!x, !w) -> !p
  %1 = tv.reshard %0 : (!p) -> !y
  return %1 : !y
}

// -----

#m = #tv.mesh<x = 2>
!x = tensor<4096x4096xf32, #tv.view<#m, [4096, did(x) * 2048]>>
!w = tensor<4096x4096xf32, #tv.view<#m, [did(x) * 2048, 4096]>>
!p = tensor<4096x4096xf32, #tv.view<#m, [4096, 4096], partial = [x : sum]>>
!y = tensor<4096x4096xf32, #tv.view<#m, [4096, 4096]>>
!c = tensor<4096xf32, #tv.view<#m, [4096]>>

// Also one that an op reads, too, which then computes a part.
// CHECK-LABEL: @two_uses
// CHECK: tv.matmul {{.*}} partial = [x : sum]>>
// CHECK-NEXT: %[[Y:.*]] = tv.reshard {{.*}} -> tensor<4096x4096xf32, #tv.view<#mesh, [did(x) * 2048, 4096]>>
// CHECK-NEXT: %[[C:.*]] = tv.reduce max %[[Y]]
// CHECK-NEXT: return %[[Y]], %[[C]]
func.func @two_uses(%x: !x, %w: !w) -> (!y, !c) {
  %0 = tv.matmul %x, %w : (!x, !w) -> !p
  %1 = tv.reshard %0 : (!p) -> !y
  %2 = tv.reduce max %1 dims [1] : (!y) -> !c
  return %1, %2 : !y, !c
}
