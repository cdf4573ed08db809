// RUN: tessera-compile %s --compile-from=local -o %t.tsr
// 6 query heads on 2 key heads, 2 on each of 3 devices: the second device has heads
// of both groups, and none has whole groups.
#m = #tv.mesh<tp = 3>
#q = #tv.view<#m, [_, did(tp) * 2, 3, 8]>
#k = #tv.view<#m, [_, 2, 5, 8]>
#l = #tv.view<#m, [_, did(tp) * 2, 3]>
!q = tensor<?x2x3x8xf32, #tv.local<#q, of [b, 6, 3, 8]>>
!k = tensor<?x2x5x8xf32, #tv.local<#k, of [b, 2, 5, 8]>>
!l = tensor<?x2x3xf32, #tv.local<#l, of [b, 6, 3]>>
func.func @main(%q: !q {tv.name = "q", tv.dims = ["b"]},
                %k: !k {tv.name = "k", tv.dims = ["b"]},
                %v: !k {tv.name = "v", tv.dims = ["b"]})
    -> (!q {tv.name = "o"}, !l {tv.name = "lse"})
    attributes {tv.sizes = {b = 64}} {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
