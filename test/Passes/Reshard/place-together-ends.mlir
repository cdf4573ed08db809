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

// -----

#m = #tv.mesh<x = 2, y = 3>
!x = tensor<?x6144xbf16, #tv.view<#m, [did(x) * _, 6144]>>
!w = tensor<6144x6144xbf16, #tv.view<#m, [6144, did(y) * 2048]>>
!p = tensor<?x6144xbf16, #tv.view<#m, [did(x) * _, did(y) * 2048]>>

// A dynamic size that is split is split further, too: each device keeps a part of what an
// all-gather would give it all of.
// CHECK-LABEL: @dynamic
// CHECK: %[[P:.*]] = tv.matmul
// CHECK-NEXT: %[[Y:.*]] = tv.reshard %[[P]] {{.*}} -> tensor<?x6144xbf16, #tv.view<#mesh, [did(x) * did(y) * _, 6144]>>
// CHECK-NEXT: return %[[Y]]
func.func @dynamic(%x: !x {tv.dims = ["b"]}, %w: !w) -> (!x {tv.user_view = #tv.view<#m, [?, _]>})
    attributes {tv.sizes = {b = 6144 : i64}} {
  %0 = tv.matmul %x, %w {tv.user_view = [#tv.view<#m, [?, _]>]} : (!x, !w) -> !p
  %1 = tv.reshard %0 : (!p) -> !x
  return %1 : !x
}

// -----

#m = #tv.mesh<x = 2, y = 2>
!a = tensor<24x48xf32, #tv.view<#m, [24, did(x) * 24]>>
!b = tensor<24x48xf32, #tv.view<#m, [24, did(y) * 24]>>
!c = tensor<24x48xf32, #tv.view<#m, [did(x) * 12, 48]>>
!d = tensor<24x36xf32, #tv.view<#m, [did(x) * 12, 36]>>
!y = tensor<24x36xf32, #tv.view<#m, [24, did(y) * 18]>>

// The view of a value between that is open somewhere does not part the ops around it.
// CHECK-LABEL: @between
// CHECK-COUNT-1: tv.reshard %arg
// CHECK: tv.mul {{.*}} partial = [y : sum]>>
// CHECK-NOT: tv.reshard %arg
func.func @between(%a: !a, %b: !b) -> (!y {tv.user_view = #tv.view<#m, [_, did(y) * _]>}) {
  %0 = tv.reshard %a : (!a) -> !c
  %1 = tv.reshard %b : (!b) -> !c
  %2 = tv.mul %0, %1 {tv.user_view = [#tv.view<#m, [did(x) * ?, _]>]} : (!c, !c) -> !c
  %3 = tv.slice %2 offsets [0, 12] : (!c) -> !d
  %4 = tv.reshard %3 : (!d) -> !y
  return %4 : !y
}
