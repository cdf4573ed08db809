// RUN: tessera-compile %s --compile-from=local -o %t.tsr
#m = #tv.mesh<tp = 2>
#a = #tv.view<#m, [_, 6, did(tp) * 4]>
#t = #tv.view<#m, [_, did(tp) * 4, 6]>
#f = #tv.view<#m, [_, did(tp) * 24]>
#s = #tv.view<#m, [_, 3, did(tp) * 4]>
#c = #tv.view<#m, [_, 9, did(tp) * 4]>
#w = #tv.view<#m, [8]>
#h = #tv.view<#m, [did(tp) * 4]>
!a = tensor<?x6x4xf32, #tv.local<#a, of [b, 6, 8]>>
!t = tensor<?x4x6xf32, #tv.local<#t, of [b, 8, 6]>>
!f = tensor<?x24xf32, #tv.local<#f, of [b, 48]>>
!s = tensor<?x3x4xf32, #tv.local<#s, of [b, 3, 8]>>
!c = tensor<?x9x4xf32, #tv.local<#c, of [b, 9, 8]>>
!w = tensor<8xf32, #tv.local<#w, of [8]>>
!h = tensor<4xf32, #tv.local<#h, of [8]>>
func.func @main(%x: !a {tv.name = "x", tv.dims = ["b"]}, %w: !w {tv.name = "w"})
    -> (!f {tv.name = "flat"}, !c {tv.name = "joined"}, !c {tv.name = "padded"},
        !s {tv.name = "sliced"}, !a {tv.name = "shard"}, !w {tv.name = "same"})
    attributes {tv.sizes = {b = 64}} {
  %0 = tv.transpose %x perm [0, 2, 1] : (!a) -> !t
  %1 = tv.gelu %0 : (!t) -> !t
  %2 = tv.reshape %1 : (!t) -> !f
  %3 = tv.slice %x offsets [0, 2, 0] : (!a) -> !s
  %4 = tv.concat %3, %x dim 1 : (!s, !a) -> !c
  %5 = tv.pad %x low [0, 1, 0] high [0, 2, 0] value 0.5 : f32 : (!a) -> !c
  %6 = comm.slice %w over #m [tp] id 0 : (!w) -> !h
  %7 = tv.broadcast %6 dims [2] like %x : (!h, !a) -> !a
  %8 = tv.add %x, %7 : (!a, !a) -> !a
  %9 = comm.all_gather %6 over #m [tp] id 1 : (!h) -> !w
  return %2, %4, %5, %3, %8, %9 : !f, !c, !c, !s, !a, !w
}
