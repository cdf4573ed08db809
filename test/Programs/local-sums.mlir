// A local region yields a sum that devices have in parts, and a maximum: who uses it
// combines it, and what the program returns is whole where its type says nothing of parts.
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=4 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera=to=kernels --interpret=4 -o /dev/null

// CHECK-COUNT-2: = comm.all_reduce
// CHECK-NOT: = comm.
// RAN tp=1: nothing
// RAN tp=2: all-reduce 24 bytes 0 copies, all-reduce of 2 48 bytes 0 copies
// RAN tp=3: all-reduce 32 bytes 0 copies, all-reduce of 2 64 bytes 0 copies
// RAN tp=4: all-reduce 40 bytes 0 copies, all-reduce of 2 80 bytes 0 copies
#m = #tv.mesh<tp = 4>
#rows = #tv.view<#m, [did(tp) * _, _]>
#sum = #tv.view<#m, [_], partial = [tp : sum]>
#max = #tv.view<#m, [_], partial = [tp : max]>
!part = tensor<2x6xf32, #tv.local<#rows, of [8, 6]>>
!part_of_sum = tensor<6xf32, #tv.local<#sum, of [6]>>
!part_of_max = tensor<6xf32, #tv.local<#max, of [6]>>
func.func @main(%x: tensor<8x6xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %sum, %max = tv.local_region %x : (tensor<8x6xf32>) -> (tensor<6xf32>, tensor<6xf32, #max>) {
  ^bb0(%own: !part):
    %0 = tv.reduce sum %own dims [0] : (!part) -> !part_of_sum
    %1 = tv.reduce max %own dims [0] : (!part) -> !part_of_max
    tv.yield %0, %1 : !part_of_sum, !part_of_max
  }
  %y = tv.exp %max : (tensor<6xf32, #max>) -> tensor<6xf32>
  %twice = tv.add %sum, %sum : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %parts = tv.constrain %twice : (tensor<6xf32>) -> tensor<6xf32> to #sum
  return %sum, %y, %parts : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}

// -----

// So is what lies on others' devices.
// CHECK: = comm.all_reduce
// CHECK: = comm.permute
// RAN here: all-reduce 16 bytes 0 copies, permute 16 bytes 0 copies
#m = #tv.mesh<x = 2, y = 2>
#n = #tv.mesh<x = 2, y = 2, devices = [3, 2, 1, 0]>
!x = tensor<8x8xf32, #tv.view<#m, [did(x) * _, did(y) * _]>>
func.func @main(%x: !x) -> tensor<8xf32> {
  %0 = tv.reduce sum %x dims [0] : (!x) -> tensor<8xf32>
  %1 = tv.constrain %0 : (tensor<8xf32>) -> tensor<8xf32> to #tv.view<#n, [did(y) * _], partial = [x : sum]>
  return %1 : tensor<8xf32>
}
