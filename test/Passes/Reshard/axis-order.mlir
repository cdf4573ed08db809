// Neither the names of axes nor the order in which the mesh lists them decide anything.
// DEFINE: %{place} = --pass-pipeline="builtin.module(tv-bind,func.func(tv-propagate-shardings,tv-decompose-reshardings,tv-elide-reshards,tv-place-together))"
// RUN: tessera-opt %s --split-input-file %{place} | FileCheck %s -DX=x -DY=y
// RUN: sed 's/<x = \(.\), y = \(.\)>/<y = \2, x = \1>/' %s | tessera-opt --split-input-file %{place} | FileCheck %s -DX=x -DY=y
// RUN: sed 's/\bx\( =\|)\)/q\1/g; s/\by\( =\|)\)/b\1/g' %s | tessera-opt --split-input-file %{place} | FileCheck %s -DX=q -DY=b

// Of two splits that are as good that of the axis which appears first.

// CHECK-LABEL: @split
// CHECK: tv.add {{.*}} -> tensor<24x24xf32, #tv.view<#mesh, [24, did([[Y]]) * 12]>>
#m = #tv.mesh<x = 2, y = 2>
!a = tensor<24x24xf32, #tv.view<#m, [_, did(y) * _]>>
!c = tensor<24x24xf32, #tv.view<#m, [_, did(x) * _]>>
func.func @split(%a: !a, %c: !c) -> tensor<24x24xf32> {
  %r = tv.add %a, %c : (!a, !c) -> tensor<24x24xf32>
  return %r : tensor<24x24xf32>
}

// -----

// A sum over both that is returned is split over both.

// CHECK-LABEL: @scattered
// CHECK: return {{.*}} : tensor<4194304xf32, #tv.view<#mesh, [did([[X]]) * did([[Y]]) * 1048576]>>
#m = #tv.mesh<x = 2, y = 2>
!a = tensor<4194304x4xf32, #tv.view<#m, [_, did(x) * did(y) * _]>>
func.func @scattered(%a: !a) -> tensor<4194304xf32> {
  %r = tv.reduce sum %a dims [1] : (!a) -> tensor<4194304xf32>
  return %r : tensor<4194304xf32>
}

// -----

// Of placements that take as long.

// CHECK-LABEL: @placed
// CHECK: tv.add {{.*}} -> tensor<3072x6144xf32, #tv.view<#mesh, [did([[X]]) * did([[Y]]) * 512, 6144]>>
#m = #tv.mesh<x = 2, y = 3>
!a = tensor<3072x6144xf32, #tv.view<#m, [_, _]>>
!c = tensor<6144x6144xf32, #tv.view<#m, [_, did(x) * _]>>
!d = tensor<3072x6144xf32, #tv.view<#m, [did(x) * _, did(y) * _]>>
!r = tensor<3072x3072xf32, #tv.view<#m, [_, _]>>
!h = tensor<3072x6144xf32>
!w = tensor<6144x3072xf32>
func.func @placed(%a: !a, %c: !c, %d: !d, %e: !a) -> !r {
  %0 = tv.matmul %a, %c : (!a, !c) -> !h
  %1 = tv.exp %d : (!d) -> !h
  %2 = tv.add %0, %1 : (!h, !h) -> !h
  %3 = tv.reshape %e : (!a) -> !w
  %4 = tv.matmul %2, %3 : (!h, !w) -> !r
  return %4 : !r
}
