// RUN: tessera-compile %s --compile-from=local -o %t.tsr
// Constants that are no splat lie in the module; each device takes its part.
#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [did(tp) * 2, 3]>
#c = #tv.view<#m, [2 * did(tp), 3]>
!x = tensor<2x3xf32, #tv.local<#x, of [4, 3]>>
!c = tensor<2x3xbf16, #tv.local<#c, of [4, 3]>>
!i = tensor<2x3xi64, #tv.local<#x, of [4, 3]>>
!b = tensor<2x3xi1, #tv.local<#x, of [4, 3]>>
func.func @main(%x: !x {tv.name = "x"})
    -> (!x {tv.name = "sum"}, !c {tv.name = "small"}, !i {tv.name = "whole"},
        !b {tv.name = "bits"}) {
  %0 = tv.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [1.5, 2.5, 3.5]]> : tensor<4x3xf32> : () -> !x
  %1 = tv.add %x, %0 : (!x, !x) -> !x
  %2 = tv.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [1.5, 2.5, 3.5]]> : tensor<4x3xbf16> : () -> !c
  %3 = tv.add %2, %2 : (!c, !c) -> !c
  %4 = tv.constant dense<[[-1, 2, 3], [4, 5, 6], [7, 8, 9000000000], [0, 0, 1]]> : tensor<4x3xi64> : () -> !i
  %5 = tv.constant dense<[[true, false, true], [false, false, true], [true, true, true], [false, true, false]]> : tensor<4x3xi1> : () -> !b
  return %1, %3, %4, %5 : !x, !c, !i, !b
}
