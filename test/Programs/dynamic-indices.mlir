// Numbers that are never in memory, split in ways that no tensor in memory is split
// in: what a device has of a size known at run time is counted in the kernel.
// RUN: tessera-opt %s --tessera=to=kernels | FileCheck %s
// RUN: tessera-opt %s --tessera=to=kernels --interpret=6 --interpret-sizes=b=0 -o /dev/null
// RUN: tessera-opt %s --tessera=to=kernels --interpret=6 --interpret-sizes=b=1 -o /dev/null
// RUN: tessera-opt %s --tessera=to=kernels --interpret=6 --interpret-sizes=b=17 -o /dev/null
// RUN: tessera-opt %s --tessera=to=kernels --interpret=6 --interpret-sizes=b=24 -o /dev/null

// CHECK-LABEL: @main
// CHECK-COUNT-4: plan.launch @reduce
#m = #tv.mesh<x = 3, y = 2>
func.func @main(%a: tensor<?xi32, #tv.view<#m, [_]>> {tv.dims = ["b"], tv.name = "a"}) -> (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>)
    attributes {tv.sizes = {b = 24}} {
  %0 = tv.iota 0 like %a : (tensor<?xi32, #tv.view<#m, [_]>>) -> tensor<?xi32, #tv.view<#m, [did(x) * did(y) * _]>>
  %1 = tv.iota 0 like %a : (tensor<?xi32, #tv.view<#m, [_]>>) -> tensor<?xi32, #tv.view<#m, [_ * did(x) * 2]>>
  %2 = tv.iota 0 like %a : (tensor<?xi32, #tv.view<#m, [_]>>) -> tensor<?xi32, #tv.view<#m, [_ * (did(x) * _ * did(y) | 1:9)]>>
  %3 = tv.iota 0 like %a : (tensor<?xi32, #tv.view<#m, [_]>>) -> tensor<?xi32, #tv.view<#m, [did(y) * _ * did(x)]>>
  %s0 = tv.reduce sum %0 dims [0] : (tensor<?xi32, #tv.view<#m, [did(x) * did(y) * _]>>) -> tensor<i32>
  %s1 = tv.reduce sum %1 dims [0] : (tensor<?xi32, #tv.view<#m, [_ * did(x) * 2]>>) -> tensor<i32>
  %s2 = tv.reduce sum %2 dims [0] : (tensor<?xi32, #tv.view<#m, [_ * (did(x) * _ * did(y) | 1:9)]>>) -> tensor<i32>
  %s3 = tv.reduce sum %3 dims [0] : (tensor<?xi32, #tv.view<#m, [did(y) * _ * did(x)]>>) -> tensor<i32>
  return %s0, %s1, %s2, %s3 : tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>
}
