// RUN: tessera-compile %s --compile-from=local -o %t.tsr
// Two devices with two experts each; every device sees all tokens.
#m = #tv.mesh<ep = 2>
#x = #tv.view<#m, [_, 4]>
#e = #tv.view<#m, [_, 2]>
#r = #tv.view<#m, [4, 3, 4]>
#n = #tv.view<#m, [4]>
#w = #tv.view<#m, [4, 5, 4]>
#y = #tv.view<#m, [4, 3, 5]>
#o = #tv.view<#m, [_, 5]>
#g = #tv.view<#m, [6, 4]>
#i = #tv.view<#m, [_]>
!x = tensor<?x4xf32, #tv.local<#x, of [b, 4]>>
!e = tensor<?x2xi32, #tv.local<#e, of [b, 2]>>
!k = tensor<?x2xf32, #tv.local<#e, of [b, 2]>>
!r = tensor<4x3x4xf32, #tv.local<#r, of [4, 3, 4]>>
!n = tensor<4xi32, #tv.local<#n, of [4]>>
!w = tensor<4x5x4xf32, #tv.local<#w, of [4, 5, 4]>>
!y = tensor<4x3x5xf32, #tv.local<#y, of [4, 3, 5]>>
!o = tensor<?x5xf32, #tv.local<#o, of [b, 5]>>
!g = tensor<6x4xf32, #tv.local<#g, of [6, 4]>>
!i = tensor<?xi32, #tv.local<#i, of [b]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["b"]},
                %e: !e {tv.name = "e", tv.dims = ["b"], tv.range = [0, 3]},
                %k: !k {tv.name = "k", tv.dims = ["b"]},
                %w: !w {tv.name = "w"}, %g: !g {tv.name = "g"},
                %i: !i {tv.name = "i", tv.dims = ["b"], tv.range = [-1, 7]})
    -> (!o {tv.name = "o"}, !n {tv.name = "counts"}, !e {tv.name = "slots"},
        !g {tv.name = "added"}) attributes {tv.sizes = {b = 64}} {
  %0, %1, %2 = tv.dispatch %x, %e : (!x, !e) -> (!r, !n, !e)
  %3 = tv.grouped_matmul %0, %w counts %1 : (!r, !w, !n) -> !y
  %4 = tv.combine %3, %e, %2, %k : (!y, !e, !e, !k) -> !o
  %5 = tv.scatter sum %g, %i, %x dim 0 : (!g, !i, !x) -> !g
  return %4, %1, %2, %5 : !o, !n, !e, !g
}
