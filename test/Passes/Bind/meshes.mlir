// RUN: tessera-opt --tv-bind %s | FileCheck %s
// RUN: not tessera-opt --tv-bind=mesh=a_b=6 %s 2>&1 | FileCheck %s --check-prefix=JOINED

// An axis that is made of others has no size to set.
// JOINED: error: --mesh a_b=6: no view of the program has this axis; they have {{.*}}. tv-bind makes it of the axes a=2,b={{[34]}}: write these, with their sizes

// Axes of other meshes are digits of the first one's ranks: of the same order, whole or
// parts; of another order. What the user wrote is in them, too.

// CHECK: #mesh = #tv.mesh<x = 8>
// CHECK-LABEL: @meshes
// CHECK-SAME: %{{.*}}: tensor<16x16xf32, #tv.view<#mesh, [did(x) * 2, 16]>>
// CHECK-SAME: %{{.*}}: tensor<16x16xf32, #tv.view<#mesh, [did(x:(1)2) * 8, did(x:(2)4) * 4]>> {tv.user_view = #tv.view<#mesh, [did(x:(1)2) * _, did(x:(2)4) * _]>}
// CHECK-SAME: %{{.*}}: tensor<16x16xf32, #tv.view<#mesh, [did(x:(4)2) * 8, did(x:(1)4) * 4]>>
// CHECK-SAME: %{{.*}}: tensor<16x16xf32, #tv.view<#mesh, [did(x:(4)2) * did(x:(1)4) * 2, 16]>>
// CHECK: tv.reshard %{{.*}} : (tensor<16x16xf32, #tv.view<#mesh, [did(x) * 2, 16]>>) -> tensor<16x16xf32, #tv.view<#mesh, [16, 16], partial = [x : sum]>>
#x = #tv.mesh<x = 8>
#ab = #tv.mesh<a = 2, b = 4>
#ba = #tv.mesh<a = 2, b = 4, devices = iota(b, a)>
!x = tensor<16x16xf32, #tv.view<#x, [did(x) * _, _]>>
func.func @meshes(%x: !x, %ab: tensor<16x16xf32, #tv.view<#ab, [did(a) * _, did(b) * _]>>,
                  %ba: tensor<16x16xf32, #tv.view<#ba, [did(a) * _, did(b) * _]>>,
                  %c: tensor<16x16xf32, #tv.view<#ba, [did(a) * did(b) * _, _]>>) {
  %r = tv.reshard %x : (!x) -> tensor<16x16xf32, #tv.view<#ab, [_, _], partial = [(a, b) : sum]>>
  return
}

// What is spelled otherwise may be one view.

// CHECK-LABEL: @alike
// CHECK: tv.same_view {{.*}} -> (tensor<16x16xf32, #tv.view<#mesh, [did(x) * 2, 16]>>, tensor<16x16xf32, #tv.view<#mesh, [did(x) * 2, 16]>>)
func.func @alike(%x: !x) {
  %0:2 = tv.same_view %x, %x : (!x, !x) -> (!x, tensor<16x16xf32, #tv.view<#ab, [did(a) * did(b) * 2, _]>>)
  return
}

// Cut at 2 and at 3 of 6: the axes lie between the places at which both are cut; dp has
// the name that it has in both.

// CHECK-LABEL: @across
// CHECK-SAME: tensor<12x6xf32, #tv.view<#mesh1, [did(a_b:(1)2) * 6, did(a_b:(2)3) * 2]>>
// CHECK-SAME: tensor<12x6xf32, #tv.view<#mesh1, [did(a_b:(1)3) * 4, did(dp) * did(a_b:(3)2) * 2]
#m = #tv.mesh<dp = 2, a = 2, b = 3>
#n = #tv.mesh<dp = 2, c = 3, d = 2>
func.func @across(%x: tensor<12x6xf32, #tv.view<#m, [did(a) * _, did(b) * _]>>,
                  %y: tensor<12x6xf32, #tv.view<#n, [did(c) * _, did(dp) * did(d) * _]>>) {
  return
}

// A part of an axis that is cut where another mesh is not.

// CHECK-LABEL: @part_across
// CHECK-SAME: tensor<12xf32, #tv.view<#mesh2, [did(r:(1)2) * 6]>>
// CHECK-SAME: tensor<12xf32, #tv.view<#mesh2, [did(r:(1)3) * 4]>>
func.func @part_across(%x: tensor<12xf32, #tv.view<#tv.mesh<a = 2, b = 3>, [did(a) * _]>>,
                       %y: tensor<12xf32, #tv.view<#tv.mesh<r = 6>, [did(r:(1)3) * _]>>,
                       %one: tensor<12xf32, #tv.view<#tv.mesh<r = 6>, [did(r:(1)1) * _]>>) {
  return
}
