// Mixture of 6 experts with a capacity of 3 rows, two choices for each of 7 tokens,
// experts over an axis (uneven on 4: 2, 2, 2, 0). Each device fills the buffers of its
// own experts from the tokens, which all devices have, and runs them; what they add to
// each token is partial, and one all-reduce combines it. Choices beyond the capacity
// drop; with ids below 2 the experts 2 to 5 have no token.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=ep=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=ep=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=ep=4 to=local" --interpret=4 | FileCheck %s %no_other_collective
// RUN: sed 's/\[0, 6\]/[0, 2]/' %s | tessera-opt --split-input-file --tessera="mesh=ep=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: sed s/f32/bf16/g %s | tessera-opt --split-input-file --tessera="mesh=ep=3 to=local" --interpret=3 --interpret-precision=program | FileCheck %s %no_other_collective

// CHECK: tv.dispatch
// CHECK: tv.grouped_matmul
// CHECK: tv.grouped_matmul
// CHECK: tv.combine
// CHECK: comm.all_reduce
// CHECK-NEXT: return
// RAN ep=1: nothing
// RAN ep=2: all-reduce 112 bytes 0 copies
// RAN ep=3: all-reduce 152 bytes 0 copies
// RAN ep=4: all-reduce 168 bytes 0 copies
#m = #tv.mesh<ep = 2>
!up = tensor<6x8x4xf32, #tv.view<#m, [did(ep) * _, _, _]>>
func.func @main(%x: tensor<7x4xf32>, %experts: tensor<7x2xi32> {tv.range = [0, 6]}, %weights: tensor<7x2xf32>,
                %up: !up {tv.role = "weight"}, %down: tensor<6x4x8xf32> {tv.role = "weight"}) -> tensor<7x4xf32> {
  %b, %counts, %slots = tv.dispatch %x, %experts
    : (tensor<7x4xf32>, tensor<7x2xi32>) -> (tensor<6x3x4xf32>, tensor<6xi32>, tensor<7x2xi32>)
  %h = tv.grouped_matmul %b, %up counts %counts : (tensor<6x3x4xf32>, !up, tensor<6xi32>) -> tensor<6x3x8xf32>
  %g = tv.gelu %h : (tensor<6x3x8xf32>) -> tensor<6x3x8xf32>
  %o = tv.grouped_matmul %g, %down counts %counts : (tensor<6x3x8xf32>, tensor<6x4x8xf32>, tensor<6xi32>) -> tensor<6x3x4xf32>
  %y = tv.combine %o, %experts, %slots, %weights : (tensor<6x3x4xf32>, tensor<7x2xi32>, tensor<7x2xi32>, tensor<7x2xf32>) -> tensor<7x4xf32>
  return %y : tensor<7x4xf32>
}

// -----

// Tokens over the same axis: they are gathered with their choices. What the experts make
// is gathered too: that is one latency, and a gather of the weights and a reduce-scatter
// of the sums are two.
// CHECK: :2 = comm.all_gather %arg{{[01]}}, %arg{{[01]}}
// CHECK: tv.dispatch
// CHECK: tv.grouped_matmul
// CHECK-NEXT: comm.all_gather
// CHECK: tv.combine
// CHECK-NEXT: return
// RAN ep=1: nothing
// RAN ep=2: all-gather of 2 288 bytes 0 copies, all-gather 576 bytes 0 copies
// RAN ep=3: all-gather of 2 432 bytes 0 copies, all-gather 768 bytes 0 copies
// RAN ep=4: all-gather of 2 432 bytes 0 copies, all-gather 1152 bytes 0 copies
#m = #tv.mesh<ep = 2>
!x = tensor<7x16xf32, #tv.view<#m, [did(ep) * _, _]>>
!choice = tensor<7x2xi32, #tv.view<#m, [did(ep) * _, _]>>
!weight = tensor<7x2xf32, #tv.view<#m, [did(ep) * _, _]>>
!up = tensor<6x16x16xf32, #tv.view<#m, [did(ep) * _, _, _]>>
func.func @main(%x: !x, %experts: !choice {tv.range = [0, 6]}, %weights: !weight, %up: !up {tv.role = "weight"}) -> !x {
  %b, %counts, %slots = tv.dispatch %x, %experts
    : (!x, !choice) -> (tensor<6x3x16xf32>, tensor<6xi32>, tensor<7x2xi32>)
  %h = tv.grouped_matmul %b, %up counts %counts : (tensor<6x3x16xf32>, !up, tensor<6xi32>) -> tensor<6x3x16xf32>
  %y = tv.combine %h, %experts, %slots, %weights : (tensor<6x3x16xf32>, !choice, tensor<7x2xi32>, !weight) -> !x
  return %y : !x
}

// -----

// The choices of a token over the axis (5: uneven): dispatch needs them all, but each
// device combines its own, and what a token gets is partial.
// CHECK: comm.all_gather
// CHECK: tv.dispatch
// CHECK: tv.combine
// CHECK: comm.all_reduce
// CHECK-NEXT: return
// RAN ep=1: nothing
// RAN ep=2: all-gather 84 bytes 1 copies, all-reduce 56 bytes 0 copies
// RAN ep=3: all-gather 112 bytes 1 copies, all-reduce 76 bytes 0 copies
// RAN ep=4: all-gather 168 bytes 1 copies, all-reduce 88 bytes 0 copies
#m = #tv.mesh<ep = 2>
!choice = tensor<7x5xi32, #tv.view<#m, [_, did(ep) * _]>>
!weight = tensor<7x5xf32, #tv.view<#m, [_, did(ep) * _]>>
func.func @main(%x: tensor<7x2xf32>, %experts: !choice {tv.range = [0, 6]}, %weights: !weight) -> tensor<7x2xf32> {
  %b, %counts, %slots = tv.dispatch %x, %experts
    : (tensor<7x2xf32>, !choice) -> (tensor<6x3x2xf32>, tensor<6xi32>, tensor<7x5xi32>)
  %y = tv.combine %b, %experts, %slots, %weights : (tensor<6x3x2xf32>, !choice, tensor<7x5xi32>, !weight) -> tensor<7x2xf32>
  return %y : tensor<7x2xf32>
}
