// A row-parallel linear with a bias: the partial sums are combined by one all-reduce,
// and the bias, which every device has whole, is added once. 7 columns are uneven.
// RUN: tessera-opt %s --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --tessera="mesh=tp=4 to=local" --interpret=4 | FileCheck %s %no_other_collective
// RUN: sed s/f32/bf16/g %s | tessera-opt --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program | FileCheck %s %no_other_collective

// CHECK: tv.linear
// CHECK: comm.all_reduce
// CHECK-NEXT: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 48 bytes 0 copies
// RAN tp=3: all-reduce 64 bytes 0 copies
// RAN tp=4: all-reduce 72 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<3x7xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x, %w: tensor<4x7xf32> {tv.role = "weight"}, %b: tensor<4xf32> {tv.role = "weight"}) -> tensor<3x4xf32> {
  %y = tv.linear %x, %w bias %b : (!x, tensor<4x7xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
