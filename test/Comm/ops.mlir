// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: tessera-opt %s --emit-bytecode | tessera-opt | FileCheck %s

#m = #tv.mesh<dp = 2, tp = 2>
#whole = #tv.view<#m, [8]>
#split = #tv.view<#m, [did(tp) * 4]>
#partial = #tv.view<#m, [8], partial = [tp : sum]>

// CHECK-LABEL: @all_reduce
func.func @all_reduce(%x: tensor<8xf32, #tv.local<#partial, of [8]>>)
    -> tensor<8xf32, #tv.local<#whole, of [8]>> {
  // CHECK: comm.all_reduce %{{.*}} over #mesh [tp] id 3 loser "slower"
  %r = comm.all_reduce %x over #m [tp] id 3 loser "slower"
     : (tensor<8xf32, #tv.local<#partial, of [8]>>) -> tensor<8xf32, #tv.local<#whole, of [8]>>
  return %r : tensor<8xf32, #tv.local<#whole, of [8]>>
}

// CHECK-LABEL: @gather_two
func.func @gather_two(%x: tensor<4xf32, #tv.local<#split, of [8]>>, %y: tensor<4xi32, #tv.local<#split, of [8]>>) {
  // CHECK: comm.all_gather %{{.*}}, %{{.*}} over #mesh [tp] id 0 :
  %r:2 = comm.all_gather %x, %y over #m [tp] id 0
     : (tensor<4xf32, #tv.local<#split, of [8]>>, tensor<4xi32, #tv.local<#split, of [8]>>)
    -> (tensor<8xf32, #tv.local<#whole, of [8]>>, tensor<8xi32, #tv.local<#whole, of [8]>>)
  return
}

// A whole value becomes partial without a byte moved.
// CHECK-LABEL: @to_partial
func.func @to_partial(%x: tensor<8xf32, #tv.local<#whole, of [8]>>) {
  // CHECK: comm.slice
  %r = comm.slice %x over #m [tp] id 0
     : (tensor<8xf32, #tv.local<#whole, of [8]>>) -> tensor<8xf32, #tv.local<#partial, of [8]>>
  return
}

// CHECK-LABEL: @fetch
func.func @fetch(%rows: tensor<4x3x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 3, 8]>, of [8, 3, 8]>>,
                 %i: tensor<5xi32, #tv.local<#tv.view<#m, [5]>, of [5]>>) {
  // CHECK: comm.fetch %{{.*}} at %{{.*}}, %{{.*}} over #mesh [tp] id 4 loser "all of it" :
  %r = comm.fetch %rows at %i, %i over #m [tp] id 4 loser "all of it"
     : (tensor<4x3x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 3, 8]>, of [8, 3, 8]>>,
        tensor<5xi32, #tv.local<#tv.view<#m, [5]>, of [5]>>, tensor<5xi32, #tv.local<#tv.view<#m, [5]>, of [5]>>)
    -> tensor<5x8xf32, #tv.local<#tv.view<#m, [5, 8]>, of [5, 8]>>
  return
}
