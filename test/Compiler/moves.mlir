// After compilation a line says what moves: the place, the plan, the bytes, and how often
// where a function is inlined several times. What moves no byte is not there.
// RUN: tessera-compile %s --op-by-op -o %t.tsr 2>&1 | FileCheck %s --implicit-check-not=bytes
// RUN: tessera-compile %s --op-by-op --compile-to=local -o /dev/null 2>&1 | FileCheck %s --implicit-check-not=bytes
// RUN: tessera-compile --quiet %s -o %t.tsr 2>&1 | count 0
// RUN: tessera-compile --compile-to=bind %s -o /dev/null 2>&1 | count 0

// Reasons have all that, and more.
// RUN: tessera-compile --op-by-op --remarks %s -o %t.tsr 2>&1 | FileCheck %s --check-prefix=REMARKS
// REMARKS-NOT: bytes on a device
// REMARKS: moves.mlir:[[# @LINE + 13]]:{{[0-9]+}}: {{.*}}: all-reduce over [tp]
// REMARKS-NOT: bytes on a device

// CHECK: moves.mlir:[[# @LINE + 10]]:8: all-reduce over [tp] of 512 bytes on a device, 2 times
// CHECK: moves.mlir:[[# @LINE + 16]]:8: all-gather over [tp] of 1024 bytes on a device{{$}}
#m = #tv.mesh<tp = 2>
!x = tensor<8x16xf32>
!h = tensor<8x64xf32>
!w0 = tensor<64x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!w1 = tensor<16x64xf32>
func.func private @layer(%x: !x, %w0: !w0, %w1: !w1) -> !x {
  %h = tv.linear %x, %w0 : (!x, !w0) -> !h
  %g = tv.gelu tanh %h : (!h) -> !h
  %y = tv.linear %g, %w1 : (!h, !w1) -> !x
  return %y : !x
}
func.func @main(%x: !x, %w0: !w0, %w1: !w1) -> (!x, !h, !w0) {
  %0 = call @layer(%x, %w0, %w1) : (!x, !w0, !w1) -> !x
  %1 = call @layer(%0, %w0, %w1) : (!x, !w0, !w1) -> !x
  %h = tv.linear %x, %w0 : (!x, !w0) -> !h
  %r = tv.constrain %h : (!h) -> !h to #tv.view<#m, [_, _]>
  %g = tv.neg %w0 : (!w0) -> !w0
  return %1, %r, %g : !x, !h, !w0
}
