// A dimension whose extent is known at run time and that is split is gathered before
// it is padded or concatenated; together with what a slice and a pad across parts need,
// of which devices take their parts.
// RUN: tessera-opt %s --tessera=to=local | FileCheck %s
// RUN: tessera-opt %s --tessera=to=local --interpret=3 --interpret-sizes=b=11,s=9 -o /dev/null
// RUN: tessera-opt %s --tessera=to=local --interpret=3 --interpret-sizes=b=1,s=2 -o /dev/null
// RUN: tessera-opt %s --tessera=to=kernels --interpret=3 --interpret-sizes=b=7,s=4 -o /dev/null

// CHECK: %[[X:.*]]:2 = comm.all_gather %{{.*}}, %arg0
// CHECK: tv.concat
// CHECK: tv.pad {{.*}} low [1, 0]
// CHECK: comm.slice %[[X]]#0 {{.*}}[_, (did(tp) * 3 | 2:6)]
// CHECK: tv.pad {{.*}} low [0, 2]
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather of 2 88 bytes 1 copies
// RAN tp=3: all-gather of 2 144 bytes 1 copies
// RAN tp=4: all-gather of 2 132 bytes 0 copies
#m = #tv.mesh<tp = 3>
!x = tensor<?x4xf32, #tv.view<#m, [did(tp) * _, _]>>
!w = tensor<?x4xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x {tv.dims = ["b"], tv.name = "x"}, %w: !w {tv.dims = ["s"], tv.name = "w"}) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x3xf32>, tensor<?x9xf32>) attributes {tv.sizes = {b = 11, s = 9}} {
  %c = tv.concat %x, %x dim 0 : (!x, !x) -> tensor<?x4xf32>
  %p = tv.pad %x low [1, 0] high [2, 0] value 0.5 : f32 : (!x) -> tensor<?x4xf32>
  %s = tv.slice %w offsets [0, 1] : (!w) -> tensor<?x3xf32>
  %q = tv.pad %w low [0, 2] high [0, 3] value 0.5 : f32 : (!w) -> tensor<?x9xf32>
  return %c, %p, %s, %q : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x3xf32>, tensor<?x9xf32>
}
