// Tokens to experts and back: what is said to move is what moves, the rows that data name,
// also where ops are placed together. Weights of the choices, which all were to have for a
// sum, stay where they are.
// RUN: tessera-compile %s -o %t.tsr 2>&1 | FileCheck %s
// RUN: tessera-compile %s --op-by-op -o %t.tsr 2>&1 | FileCheck %s
// CHECK: moves-fetched.mlir:[[# @LINE + 16]]:16: fetch over [ep] of at most 8388608 bytes on a device
// CHECK-NEXT: moves-fetched.mlir:[[# @LINE + 15]]:16: all-gather over [ep] of 98304 bytes on a device
// CHECK-NEXT: moves-fetched.mlir:[[# @LINE + 16]]:8: fetch over [ep] of at most 8388608 bytes on a device
// CHECK-NOT: bytes on a device

// A fetch has the price of what it takes the place of.
// RUN: tessera-compile %s --remarks -o %t.tsr 2>&1 | FileCheck %s --check-prefix=WHY --implicit-check-not="all-gather over [ep], 49152"
// WHY: :16: [did(ep) * 4096, 512] to [16384, 512]: fetch over [ep], at most 8388608 bytes, 36.1 us; instead of all-gather over [ep], 12582912 bytes, 46.9 us{{$}}
// WHY: :8: [16384, 512], partial = [ep : sum] to [did(ep) * 4096, 512]: fetch over [ep], at most 8388608 bytes, 36.1 us; instead of reduce-scatter over [ep], 12582912 bytes, 46.9 us{{$}}
#m = #tv.mesh<ep = 4>
!x = tensor<16384x512xbf16, #tv.view<#m, [did(ep) * _, _]>>
!c = tensor<16384x2xi32, #tv.view<#m, [did(ep) * _, _]>>
!g = tensor<16384x2xbf16, #tv.view<#m, [did(ep) * _, _]>>
!w = tensor<32x512x512xbf16, #tv.view<#m, [did(ep) * _, _, _]>>
!b = tensor<32x1024x512xbf16>
func.func @main(%x: !x, %e: !c {tv.range = [0, 32]}, %g: !g, %w: !w {tv.role = "weight"}) -> !x {
  %b, %n, %s = tv.dispatch %x, %e : (!x, !c) -> (!b, tensor<32xi32>, tensor<16384x2xi32>)
  %h = tv.grouped_matmul %b, %w counts %n : (!b, !w, tensor<32xi32>) -> !b
  %y = tv.combine %h, %e, %s, %g : (!b, !c, tensor<16384x2xi32>, !g) -> !x
  return %y : !x
}
