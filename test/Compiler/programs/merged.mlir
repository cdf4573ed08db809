// RUN: tessera-compile %s --compile-from=local -o %t.tsr
// RUN: tessera-opt %s --tessera='from=local to=kernels target=cuda:sm_90a' -o /dev/null
// Dimensions that are split as one.
#m = #tv.mesh<tp = 4>
#x = #tv.view<#m, [flat(2) did(tp) * 8]>
#r = #tv.view<#m, [10]>
#y = #tv.view<#m, [flat(2) did(tp) * 8, 4]>
#t = #tv.view<#m, [6, 4]>
!x = tensor<?xf32, #tv.local<#x, of [3, 10]>>
!i = tensor<?xi32, #tv.local<#x, of [3, 10]>>
!r = tensor<10xf32, #tv.local<#r, of [10]>>
!y = tensor<?x4xf32, #tv.local<#y, of [3, 10, 4]>>
!t = tensor<6x4xf32, #tv.local<#t, of [6, 4]>>
func.func @main(%x: !x {tv.name = "x"}, %r: !r {tv.name = "r"},
                %i: !i {tv.name = "i", tv.range = [-1, 8]}, %t: !t {tv.name = "t"})
    -> (!x {tv.name = "sum"}, !i {tv.name = "column"}, !y {tv.name = "rows"},
        !x {tv.name = "max"}) {
  %0 = tv.broadcast %r dims [1] : (!r) -> !x
  %1 = tv.add %x, %0 : (!x, !x) -> !x
  %2 = tv.iota 1 : () -> !i
  %3 = tv.gather %t, %i dim 0 : (!t, !i) -> !y
  %4 = tv.reduce max %3 dims [2] : (!y) -> !x
  return %1, %2, %3, %4 : !x, !i, !y, !x
}
