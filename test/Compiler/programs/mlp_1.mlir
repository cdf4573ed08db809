// RUN: tessera-compile %s --compile-from=local -o %t.tsr
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [_, 8]>
#w0 = #tv.view<#m, [12, 8]>
#b0 = #tv.view<#m, [12]>
#h = #tv.view<#m, [_, 12]>
#w1 = #tv.view<#m, [8, 12]>
#p = #tv.view<#m, [_, 8]>
!x = tensor<?x8xf32, #tv.local<#x, of [b, 8]>>
!w0 = tensor<12x8xf32, #tv.local<#w0, of [12, 8]>>
!b0 = tensor<12xf32, #tv.local<#b0, of [12]>>
!h = tensor<?x12xf32, #tv.local<#h, of [b, 12]>>
!w1 = tensor<8x12xf32, #tv.local<#w1, of [8, 12]>>
!p = tensor<?x8xf32, #tv.local<#p, of [b, 8]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["b"]},
                %w0: !w0 {tv.name = "w0"}, %b0: !b0 {tv.name = "b0"},
                %w1: !w1 {tv.name = "w1"})
    -> (!x {tv.name = "y"}) attributes {tv.sizes = {b = 64}} {
  %0 = tv.linear %x, %w0 bias %b0 : (!x, !w0, !b0) -> !h
  %1 = tv.gelu tanh %0 : (!h) -> !h
  %2 = tv.linear %1, %w1 : (!h, !w1) -> !p
  return %2 : !p
}
