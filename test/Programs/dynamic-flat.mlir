// A flat(k) of a dynamic dimension is one local dimension at every extent, also where
// its digits would come apart: kernels are compiled for that.
// RUN: tessera-opt %s --split-input-file --tessera=to=kernels --interpret=2 --interpret-sizes=m=0,b=0 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera=to=kernels --interpret=2 --interpret-sizes=m=1,b=1 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera=to=kernels --interpret=2 --interpret-sizes=m=6,b=5 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera=to=local | FileCheck %s

// CHECK-LABEL: @main
// CHECK: tv.add {{.*}} [flat(2) did(x) * _, 3]
// CHECK: return
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!r = tensor<?x3xf32, #tv.view<#m, [did(x) * _, _]>>
func.func @main(%a: tensor<?x4x3xf32> {tv.dims = ["m"]}) -> !r
    attributes {tv.sizes = {m = 6 : i64, b = 5 : i64}} {
  %0 = tv.add %a, %a : (tensor<?x4x3xf32>, tensor<?x4x3xf32>) -> tensor<?x4x3xf32>
  %1 = tv.reshape %0 : (tensor<?x4x3xf32>) -> !r
  return %1 : !r
}

// -----

// CHECK-LABEL: @main
// CHECK: tv.add {{.*}} [flat(2) did(x) * _]
// CHECK: return
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!a = tensor<1x?xf32, #tv.view<#m, [flat(2) did(x) * _]>>
func.func @main(%a: !a {tv.dims = ["b"]}) -> tensor<1x?xf32>
    attributes {tv.sizes = {m = 6 : i64, b = 5 : i64}} {
  %0 = tv.add %a, %a : (!a, !a) -> tensor<1x?xf32>
  return %0 : tensor<1x?xf32>
}

// -----

// Rows in another order in memory than the flat dimension's.
// CHECK-LABEL: @main
// CHECK: comm.all_to_all
// CHECK: return
// RAN x=1: nothing
// RAN x=2: all-to-all 4 bytes 0 copies
// RAN x=3: all-to-all 0 bytes 0 copies
// RAN x=4: all-to-all 0 bytes 0 copies
#m = #tv.mesh<x = 2>
!a = tensor<3x?xf32>
!b = tensor<?x3xf32, #tv.view<#m, [flat(2) did(x) * _]>>
func.func @main(%a: !a {tv.dims = ["b"]}) -> !b
    attributes {tv.sizes = {m = 6 : i64, b = 5 : i64}} {
  %0 = tv.transpose %a perm [1, 0] : (!a) -> tensor<?x3xf32>
  %1 = tv.constrain %0 : (tensor<?x3xf32>) -> !b to #tv.view<#m, [flat(2) did(x) * _]>
  return %1 : !b
}
