// RUN: tessera-compile %s --compile-from=local -o %t.tsr
// The last of four devices has no rows.
#m = #tv.mesh<tp = 4>
#x = #tv.view<#m, [did(tp) * 2, 3]>
#p = #tv.view<#m, [3], partial = [tp : max]>
#y = #tv.view<#m, [3]>
!x = tensor<?x3xf32, #tv.local<#x, of [5, 3]>>
!p = tensor<3xf32, #tv.local<#p, of [3]>>
!y = tensor<3xf32, #tv.local<#y, of [3]>>
func.func @main(%x: !x {tv.name = "x"}) -> (!x {tv.name = "e"}, !y {tv.name = "y"}) {
  %0 = tv.softmax %x dim 1 : (!x) -> !x
  %1 = tv.reduce max %x dims [0] : (!x) -> !p
  %2 = comm.all_reduce %1 over #m [tp] id 0 : (!p) -> !y
  return %0, %2 : !x, !y
}
