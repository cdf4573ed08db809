// RUN: tessera-compile %s --compile-from=local -o %t.tsr
// The vocabulary is split: what a device does not hold is 0, the sum is whole.
#m = #tv.mesh<tp = 3>
#t = #tv.view<#m, [did(tp) * 4, 6]>
#i = #tv.view<#m, [_, 3]>
#p = #tv.view<#m, [_, 3, 6], partial = [tp : sum]>
#y = #tv.view<#m, [_, 3, 6]>
!t = tensor<?x6xf32, #tv.local<#t, of [10, 6]>>
!i = tensor<?x3xi32, #tv.local<#i, of [b, 3]>>
!p = tensor<?x3x6xf32, #tv.local<#p, of [b, 3, 6]>>
!y = tensor<?x3x6xf32, #tv.local<#y, of [b, 3, 6]>>
func.func @main(%t: !t {tv.name = "t"},
                %i: !i {tv.name = "i", tv.dims = ["b"], tv.range = [-1, 12]})
    -> (!y {tv.name = "y"}) attributes {tv.sizes = {b = 64}} {
  %0 = tv.gather %t, %i dim 0 : (!t, !i) -> !p
  %1 = comm.all_reduce %0 over #m [tp] id 0 : (!p) -> !y
  return %1 : !y
}
