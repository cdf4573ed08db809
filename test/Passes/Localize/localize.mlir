// RUN: tessera-opt %s --tv-localize --tv-verify-localized --mlir-print-local-scope | FileCheck %s

#m = #tv.mesh<tp = 3>
#s = #tv.view<#m, [did(tp) * 6, 4]>
#d = #tv.view<#m, [_, did(tp) * 2]>
#w = #tv.view<#m, [16, 4]>

// 16 rows over 3 devices: 6, 6 and 4.
// CHECK-LABEL: @uneven
// CHECK-SAME: %arg0: tensor<?x4xf32, #tv.local<#tv.view<#tv.mesh<tp = 3>, [did(tp) * 6, 4]>, of [16, 4]>> {tv.name = "x"}
// CHECK-SAME: -> (tensor<16x4xf32, #tv.local<{{.*}}, of [16, 4]>> {tv.name = "y"})
// CHECK: comm.all_gather {{.*}} [tp] id 0 loser "slower"
func.func @uneven(%x: tensor<16x4xf32, #s> {tv.name = "x"}) -> (tensor<16x4xf32, #w> {tv.name = "y"}) {
  %0 = tv.gelu %x : (tensor<16x4xf32, #s>) -> tensor<16x4xf32, #s>
  %1 = tv.reshard %0 plan <all_gather over #m [tp], loser = "slower"> : (tensor<16x4xf32, #s>) -> tensor<16x4xf32, #w>
  return %1 : tensor<16x4xf32, #w>
}

// A dynamic extent keeps its name; numbers go on through the program.
// CHECK-LABEL: @dynamic
// CHECK-SAME: %arg0: tensor<?x2xf32, #tv.local<{{.*}}, of [b, 6]>>)
// CHECK-NOT: tv.dims
// CHECK: comm.all_to_all {{.*}} [tp] id 1 :
func.func @dynamic(%x: tensor<?x6xf32, #d> {tv.dims = ["b"]}) -> tensor<?x6xf32, #tv.view<#m, [did(tp) * _, 6]>>
    attributes {tv.sizes = {b = 64}} {
  %0 = tv.reshard %x plan <all_to_all over #m [tp]> : (tensor<?x6xf32, #d>) -> tensor<?x6xf32, #tv.view<#m, [did(tp) * _, 6]>>
  return %0 : tensor<?x6xf32, #tv.view<#m, [did(tp) * _, 6]>>
}
