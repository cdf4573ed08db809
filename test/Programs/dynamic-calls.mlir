// Functions for any size, whose reshapes have several extents that are open; of a call
// they are known, or not.
// RUN: tessera-opt %s --tessera="mesh=tp=2 to=local" --interpret=2 --interpret-sizes=s=5 -o /dev/null
// RUN: tessera-opt %s --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-sizes=s=1 -o /dev/null
// RUN: tessera-opt %s --tessera="mesh=tp=4 to=kernels" --interpret=4 --interpret-sizes=s=7 -o /dev/null
// RUN: tessera-opt %s --tessera="mesh=tp=2 to=local" | FileCheck %s %no_other_collective

// CHECK-LABEL: @main
// CHECK-NOT: tv.call
// CHECK: tv.gelu %{{.*}} -> tensor<4x8xf32
// CHECK: tv.gelu %{{.*}} -> tensor<?x8xf32
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!a = tensor<4x2x8xf32, #tv.view<#m, [did(tp) * _, _, _]>>
!b = tensor<4x?x8xf32, #tv.view<#m, [did(tp) * _, _, _]>>
!rows = tensor<?x8xf32>
func.func private @flat(%x: tensor<?x?x8xf32>) -> !rows {
  %pairs = tv.reshape %x : (tensor<?x?x8xf32>) -> tensor<?x?x4x2xf32>
  %rows = tv.reshape %pairs : (tensor<?x?x4x2xf32>) -> !rows
  %g = tv.gelu %rows : (!rows) -> !rows
  return %g : !rows
}
func.func @main(%a: !a, %b: !b {tv.dims = ["s"]}) -> (tensor<8x8xf32>, !rows)
    attributes {tv.sizes = {s = 16 : i64}} {
  %ra = tv.call @flat(%a) : (!a) -> tensor<8x8xf32>
  %rb = tv.call @flat(%b) : (!b) -> !rows
  return %ra, %rb : tensor<8x8xf32>, !rows
}
