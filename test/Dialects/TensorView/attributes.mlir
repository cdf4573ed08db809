// Meshes, views and local parts, through text and bytecode.
// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: tessera-opt %s --emit-bytecode | tessera-opt | FileCheck %s

// CHECK-DAG: #[[M:.*]] = #tv.mesh<dp = 2, tp = 4>
#m = #tv.mesh<dp = 2, tp = 4>
// CHECK-DAG: #tv.mesh<dp = 2, tp = 4, devices = iota(tp, dp)>
#t = #tv.mesh<dp = 2, tp = 4, devices = iota(tp, dp)>
// CHECK-DAG: #tv.mesh<x = 4, devices = [0, 2, 1, 3]>
#p = #tv.mesh<x = 4, devices = [0, 2, 1, 3]>

// CHECK: func.func @views
// CHECK-SAME: #tv.view<#[[M]], [did(dp) * _, did(tp) * _]>
#a = #tv.view<#m, [did(dp) * _, did(tp) * _]>
// CHECK-SAME: #tv.view<#[[M]], [_ * did(tp) * 2, _]>
#b = #tv.view<#m, [_ * did(tp) * 2, _]>
// CHECK-SAME: #tv.view<#[[M]], [did(tp:(2)2) * _, did(tp:(1)2) * _]>
#c = #tv.view<#m, [did(tp:(2)2) * _, did(tp:(1)2) * _]>
// CHECK-SAME: #tv.view<#[[M]], [(did(tp) * _ | 8) * 2, _]>
#d = #tv.view<#m, [(did(tp) * _ | 8) * 2, _]>
// CHECK-SAME: #tv.view<#[[M]], [flat(2) did(tp) * _], alloc = (0)>
#e = #tv.view<#m, [flat(2) did(tp) * _], alloc = (0)>
// CHECK-SAME: #tv.view<#[[M]], [_, _], alloc = (1, 0), partial = [(dp, tp) : sum]>
#f = #tv.view<#m, [_, _], alloc = (1, 0), partial = [(dp, tp) : sum]>
// CHECK-SAME: #tv.view<#[[M]], [did(tp) * ?, _], priority = [0, 1]>
#g = #tv.view<#m, [did(tp) * ?, _], priority = [0, 1]>
#v = #tv.view<#p, [did(x) * 6, 64]>

func.func @views(%a: tensor<16x16xf32, #a>, %b: tensor<16x16xf32, #b>,
                 %c: tensor<16x16xf32, #c>, %d: tensor<16x16xf32, #d>,
                 %e: tensor<16x16xf32, #e>, %f: tensor<16x16xf32, #f>,
                 %g: tensor<16x16xf32, #g>,
                 %h: tensor<16xf32, #tv.view<#t, [did(tp) * _]>>) {
  return
}

// 22 rows over 4 devices: 6, 6, 6 and 4. `b` and `s` are dynamic sizes.
// CHECK: func.func @local(%{{.*}}: tensor<?x64xf32, #tv.local<#tv.view<#{{.*}}, [did(x) * 6, 64]>, of [22, 64]>>,
// CHECK-SAME: tensor<?x8xf32, #tv.local<#{{.*}}, of [2 * b * s + 1, 8]>>)
func.func @local(%x: tensor<?x64xf32, #tv.local<#v, of [22, 64]>>,
                 %y: tensor<?x8xf32, #tv.local<#tv.view<#p, [did(x) * _, 8]>, of [2 * b * s + 1, 8]>>) {
  return
}

// CHECK: func.func @sizes(%{{.*}}: tensor<?x?xf32> {tv.dims = ["b", "s"], tv.name = "x", tv.role = "weight"})
// CHECK-SAME: tv.sizes = {b = 64 : i64, s = [256, 8]}
func.func @sizes(%x: tensor<?x?xf32> {tv.dims = ["b", "s"], tv.name = "x", tv.role = "weight"})
    attributes {tv.sizes = {b = 64, s = [256, 8]}} {
  return
}
