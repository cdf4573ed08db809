// Moves that go in one step are one line, with the bytes of the device that moves most in
// it; what goes alone has its own.
// RUN: tessera-compile %s --op-by-op -o %t.tsr 2>&1 | FileCheck %s --implicit-check-not=bytes

// CHECK: moves-together.mlir:[[# @LINE + 11]]:8: all-to-all over [tp] of 120 bytes on a device, 2 tensors in one step{{$}}
// CHECK: moves-together.mlir:[[# @LINE + 11]]:8, {{.*}}moves-together.mlir:[[# @LINE + 13]]:8: all-to-all over [tp] of 96 bytes on a device, 2 tensors in one step{{$}}
// CHECK: moves-together.mlir:[[# @LINE + 13]]:8: all-gather over [tp] of 360 bytes on a device{{$}}
#m = #tv.mesh<tp = 4>
!a = tensor<8x6xf32, #tv.view<#m, [did(tp) * _, _]>>
!b = tensor<12x6xf32, #tv.view<#m, [did(tp) * _, _]>>
!h = tensor<12x6xbf16, #tv.view<#m, [did(tp) * _, _]>>
!f = tensor<12x6xf32>
!c = tensor<20x6xf32, #tv.view<#m, [did(tp) * _, _]>>
!w = tensor<20x6xf32, #tv.view<#m, [_, _]>>
func.func @main(%a: !a, %b: !b, %g: !a, %h: !h) -> (!c, !c, !w) {
  %c = tv.concat %a, %b dim 0 : (!a, !b) -> !c
  %f = tv.cast %h : (!h) -> !f
  %n = tv.neg %g : (!a) -> !a
  %d = tv.concat %n, %f dim 0 : (!a, !f) -> !c
  %w = tv.constrain %d : (!c) -> !w to #tv.view<#m, [_, _]>
  return %c, %d, %w : !c, !c, !w
}
