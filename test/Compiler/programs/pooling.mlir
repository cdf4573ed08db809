// RUN: tessera-compile %s --compile-from=local -o %t.tsr
// Mean over the tokens of a sentence that its mask keeps.
#m = #tv.mesh<dp = 2>
#x = #tv.view<#m, [did(dp) * _, _, 8]>
#k = #tv.view<#m, [did(dp) * _, _]>
#y = #tv.view<#m, [did(dp) * _, 8]>
#n = #tv.view<#m, [did(dp) * _]>
!x = tensor<?x?x8xf32, #tv.local<#x, of [b, s, 8]>>
!k = tensor<?x?xf32, #tv.local<#k, of [b, s]>>
!y = tensor<?x8xf32, #tv.local<#y, of [b, 8]>>
!n = tensor<?xf32, #tv.local<#n, of [b]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["b", "s"]},
                %mask: !k {tv.name = "mask", tv.dims = ["b", "s"]})
    -> (!y {tv.name = "y"}) attributes {tv.sizes = {b = 64, s = 32}} {
  %0 = tv.broadcast %mask dims [0, 1] like %x : (!k, !x) -> !x
  %1 = tv.mul %x, %0 : (!x, !x) -> !x
  %2 = tv.reduce sum %1 dims [1] : (!x) -> !y
  %3 = tv.reduce sum %mask dims [1] : (!k) -> !n
  %4 = tv.broadcast %3 dims [0] like %2 : (!n, !y) -> !y
  %5 = tv.map %2, %4 : (!y, !y) -> !y (%a: f32, %c: f32) {
    %e = arith.constant 1.0e+2 : f32
    %n = arith.addf %c, %e : f32
    %d = arith.divf %a, %n : f32
    tv.yield %d : f32
  }
  return %5 : !y
}
