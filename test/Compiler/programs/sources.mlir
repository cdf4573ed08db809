// RUN: tessera-compile %s --compile-from=local -o %t.tsr
// Numbers that depend on the global index, under views of all kinds.
#m = #tv.mesh<a = 2, c = 3>
#x = #tv.view<#m, [did(a) * 3, 2 * did(c) * 2]>
#y = #tv.view<#m, [2 * did(a) * 2, _]>
#g = #tv.view<#m, [4 * (did(c) * 2 | 5)]>
!x = tensor<3x4xf32, #tv.local<#x, of [6, 12]>>
!y = tensor<4x?xi32, #tv.local<#y, of [8, b]>>
!g = tensor<?xi32, #tv.local<#g, of [20]>>
!d = tensor<4x?xf32, #tv.local<#y, of [8, b]>>
func.func @main(%x: !x {tv.name = "x"}, %d: !d {tv.name = "d", tv.dims = ["b"]})
    -> (!x {tv.name = "drop"}, !x {tv.name = "random"}, !y {tv.name = "rows"},
        !g {tv.name = "group"}, !d {tv.name = "scaled"})
    attributes {tv.sizes = {b = 64}} {
  %0 = tv.dropout %x rate(0.25) seed(7) stream(3) : (!x) -> !x
  %1 = tv.random seed(123456789012345) stream(9) : () -> !x
  %2 = tv.iota 0 like %d : (!d) -> !y
  %3 = tv.iota 0 : () -> !g
  %4 = tv.random seed(5) stream(1) like %d : (!d) -> !d
  %5 = tv.mul %4, %d : (!d, !d) -> !d
  return %0, %1, %2, %3, %5 : !x, !x, !y, !g, !d
}
