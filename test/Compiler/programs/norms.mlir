// RUN: tessera-compile %s --compile-from=local -o %t.tsr
#m = #tv.mesh<dp = 2>
#x = #tv.view<#m, [did(dp) * _, 5, 8]>
#w = #tv.view<#m, [8]>
!x = tensor<?x5x8xf32, #tv.local<#x, of [b, 5, 8]>>
!w = tensor<8xf32, #tv.local<#w, of [8]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["b"]}, %w: !w {tv.name = "w"},
                %c: !w {tv.name = "c"})
    -> (!x {tv.name = "ln"}, !x {tv.name = "rms"}, !x {tv.name = "soft"},
        !x {tv.name = "silu"}, !x {tv.name = "middle"})
    attributes {tv.sizes = {b = 64}} {
  %0 = tv.layer_norm %x, %w, %c epsilon(1.0e-5) : (!x, !w, !w) -> !x
  %1 = tv.rms_norm %x, %w epsilon(1.0e-5) : (!x, !w) -> !x
  %2 = tv.softmax %x dim 2 : (!x) -> !x
  %3 = tv.silu %x : (!x) -> !x
  %4 = tv.softmax %x dim 1 : (!x) -> !x
  return %0, %1, %2, %3, %4 : !x, !x, !x, !x, !x
}
