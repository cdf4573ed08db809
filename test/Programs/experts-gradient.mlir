// The mixture of experts of experts.mlir with a loss, and the gradients of the tokens, the
// choices' weights and the experts: what the forward moves is mirrored.
// RUN: tessera-opt %s --split-input-file --tv-inline --tv-differentiate -o %t
// (Op by op, as what is larger is placed by default, too: of so few bytes, fewer steps
// that move as many or more take less time.)
// RUN: tessera-opt %t --split-input-file --tessera="mesh=ep=2 to=local op-by-op" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %t --split-input-file --tessera="mesh=ep=3 to=local" --interpret=3 -o /dev/null
// RUN: tessera-opt %t --split-input-file --tessera="mesh=ep=4 to=kernels" --interpret=4 -o /dev/null

// Each device adds its own experts' part to a token, and to the token's gradient: an
// all-reduce there and one back. Of a choice's weight the gradient is one number, made
// where its expert is.
// CHECK: comm.all_reduce
// CHECK: comm.all_gather {{.*}}of [18]
// CHECK: comm.all_reduce
// CHECK: return
// RAN ep=1: nothing
// RAN ep=2: all-reduce 112 bytes 0 copies, all-gather 36 bytes 0 copies, all-reduce 112 bytes 0 copies
// RAN ep=3: all-reduce 152 bytes 0 copies, all-gather 48 bytes 0 copies, all-reduce 152 bytes 0 copies
// RAN ep=4: all-reduce 168 bytes 0 copies, all-gather 72 bytes 0 copies, all-reduce 168 bytes 0 copies
#m = #tv.mesh<ep = 2>
!x = tensor<7x4xf32, #tv.view<#m, [_, _]>>
!choice = tensor<7x2xi32, #tv.view<#m, [_, _]>>
!weight = tensor<7x2xf32, #tv.view<#m, [_, _]>>
!up = tensor<6x8x4xf32, #tv.view<#m, [did(ep) * _, _, _]>>
!down = tensor<6x4x8xf32, #tv.view<#m, [did(ep) * _, _, _]>>
!b = tensor<6x3x4xf32>
!h = tensor<6x3x8xf32>
!y = tensor<7x4xf32>
!loss = tensor<f32, #tv.view<#m, []>>
func.func private @loss(%x: !x, %experts: !choice, %weights: !weight, %up: !up, %down: !down) -> !loss {
  %b, %counts, %slots = tv.dispatch %x, %experts : (!x, !choice) -> (!b, tensor<6xi32>, tensor<7x2xi32>)
  %h = tv.grouped_matmul %b, %up counts %counts : (!b, !up, tensor<6xi32>) -> !h
  %g = tv.gelu %h : (!h) -> !h
  %o = tv.grouped_matmul %g, %down counts %counts : (!h, !down, tensor<6xi32>) -> !b
  %y = tv.combine %o, %experts, %slots, %weights : (!b, !choice, tensor<7x2xi32>, !weight) -> !y
  %s = tv.mul %y, %y : (!y, !y) -> !y
  %loss = tv.reduce sum %s dims [0, 1] : (!y) -> !loss
  return %loss : !loss
}
func.func @main(%x: !x, %experts: !choice {tv.range = [0, 6]}, %weights: !weight,
                %up: !up {tv.role = "weight"}, %down: !down {tv.role = "weight"}) -> (!loss, !x, !weight, !up, !down) {
  %loss, %dx, %dw, %du, %dd = tv.gradient @loss(%x, %experts, %weights, %up, %down) of [0] to [0, 2, 3, 4]
      : (!x, !choice, !weight, !up, !down) -> (!loss, !x, !weight, !up, !down)
  return %loss, %dx, %dw, %du, %dd : !loss, !x, !weight, !up, !down
}

// -----

// Tokens over the same axis: what is gathered there is reduced back to where it lies.
// CHECK: :2 = comm.all_gather
// CHECK: tv.dispatch
// CHECK: comm.all_gather
// CHECK: comm.all_reduce
// CHECK: :2 = comm.reduce_scatter
// CHECK: comm.all_gather
// CHECK: comm.all_gather
// CHECK: return
// RAN ep=1: nothing
// RAN ep=2: all-gather of 2 288 bytes 0 copies, all-gather 576 bytes 0 copies, all-reduce of 3 2308 bytes 0 copies, all-gather 576 bytes 0 copies
// RAN ep=3: all-gather of 2 432 bytes 0 copies, all-gather 768 bytes 0 copies, all-reduce of 3 3080 bytes 0 copies, all-gather 768 bytes 0 copies
// RAN ep=4: all-gather of 2 432 bytes 0 copies, all-gather 1152 bytes 0 copies, all-reduce of 3 3468 bytes 0 copies, all-gather 1152 bytes 0 copies
#m = #tv.mesh<ep = 2>
!x = tensor<7x16xf32, #tv.view<#m, [did(ep) * _, _]>>
!choice = tensor<7x2xi32, #tv.view<#m, [did(ep) * _, _]>>
!weight = tensor<7x2xf32, #tv.view<#m, [did(ep) * _, _]>>
!up = tensor<6x16x16xf32, #tv.view<#m, [did(ep) * _, _, _]>>
!b = tensor<6x3x16xf32>
!y = tensor<7x16xf32>
!loss = tensor<f32, #tv.view<#m, []>>
func.func private @loss(%x: !x, %experts: !choice, %weights: !weight, %up: !up) -> !loss {
  %b, %counts, %slots = tv.dispatch %x, %experts : (!x, !choice) -> (!b, tensor<6xi32>, tensor<7x2xi32>)
  %h = tv.grouped_matmul %b, %up counts %counts : (!b, !up, tensor<6xi32>) -> !b
  %y = tv.combine %h, %experts, %slots, %weights : (!b, !choice, tensor<7x2xi32>, !weight) -> !y
  %s = tv.mul %y, %y : (!y, !y) -> !y
  %loss = tv.reduce sum %s dims [0, 1] : (!y) -> !loss
  return %loss : !loss
}
func.func @main(%x: !x, %experts: !choice {tv.range = [0, 6]}, %weights: !weight,
                %up: !up {tv.role = "weight"}) -> (!loss, !x, !weight, !up) {
  %loss, %dx, %dw, %du = tv.gradient @loss(%x, %experts, %weights, %up) of [0] to [0, 2, 3]
      : (!x, !choice, !weight, !up) -> (!loss, !x, !weight, !up)
  return %loss, %dx, %dw, %du : !loss, !x, !weight, !up
}
