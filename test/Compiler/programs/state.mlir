// RUN: tessera-compile %s --compile-from=local -o %t.tsr
// A state is read, then replaced.
#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [did(tp) * 2]>
!s = tensor<2xf32, #tv.local<#s, of [4]>>
func.func @main(%x: !s {tv.name = "x"},
                %s: !s {tv.name = "total", tv.role = "state"})
    -> (!s {tv.name = "total"}, !s {tv.name = "before"}) {
  %0 = tv.add %s, %x : (!s, !s) -> !s
  return %0, %s : !s, !s
}
