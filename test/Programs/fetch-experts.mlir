// Mixtures of experts whose tokens go to them by counts: each device fetches the tokens
// of its experts' rows, and the rows of its tokens' choices. Uneven tokens (7) and
// experts (6 over 4: 2, 2, 2, 0), choices beyond the capacity, and experts that there
// are none of.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=ep=2 to=kernels" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=ep=3 to=kernels" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=ep=4 to=kernels" --interpret=4 | FileCheck %s %no_other_collective
// RUN: sed 's/\[-1, 7\]/[0, 2]/' %s | tessera-opt --split-input-file --tessera="mesh=ep=3 to=kernels" --interpret=3 -o /dev/null
// RUN: sed s/f32/bf16/g %s | tessera-opt --split-input-file --tessera="mesh=ep=3 to=kernels" --interpret=3 --interpret-precision=program -o /dev/null

// The choices alone go to all.
// CHECK: comm.all_gather {{.*}}xi32
// CHECK: comm.fetch
// CHECK: comm.fetch
// CHECK: return
// RAN ep=1: nothing
// RAN ep=2: all-gather 32 bytes 0 copies, fetch 144 bytes 0 copies, fetch 144 bytes 0 copies
// RAN ep=3: all-gather 48 bytes 0 copies, fetch 160 bytes 0 copies, fetch 160 bytes 0 copies
// RAN ep=4: all-gather 48 bytes 0 copies, fetch 160 bytes 0 copies, fetch 224 bytes 0 copies
#m = #tv.mesh<ep = 2>
!x = tensor<7x16xf32, #tv.view<#m, [did(ep) * _, _]>>
!choice = tensor<7x2xi32, #tv.view<#m, [did(ep) * _, _]>>
!weight = tensor<7x2xf32, #tv.view<#m, [did(ep) * _, _]>>
!up = tensor<6x16x16xf32, #tv.view<#m, [did(ep) * _, _, _]>>
func.func @main(%x: !x, %experts: !choice {tv.range = [-1, 7]}, %weights: !weight, %up: !up {tv.role = "weight"}) -> !x {
  %b, %counts, %slots = tv.dispatch %x, %experts {tv.step = "fetch"}
    : (!x, !choice) -> (tensor<6x3x16xf32>, tensor<6xi32>, tensor<7x2xi32>)
  %h = tv.grouped_matmul %b, %up counts %counts : (tensor<6x3x16xf32>, !up, tensor<6xi32>) -> tensor<6x3x16xf32>
  %y = tv.combine %h, %experts, %slots, %weights {tv.step = "fetch"} : (tensor<6x3x16xf32>, !choice, tensor<7x2xi32>, !weight) -> !x
  return %y : !x
}

// -----

// Tokens on all devices: none has to go, and what comes back is partial no more.
// CHECK: comm.fetch
// CHECK: return
// RAN ep=1: nothing
// RAN ep=2: fetch 128 bytes 0 copies
// RAN ep=3: fetch 208 bytes 0 copies
// RAN ep=4: fetch 296 bytes 0 copies
#m = #tv.mesh<ep = 2>
!up = tensor<6x8x4xf32, #tv.view<#m, [did(ep) * _, _, _]>>
func.func @main(%x: tensor<7x4xf32>, %experts: tensor<7x2xi32> {tv.range = [-1, 7]}, %weights: tensor<7x2xf32>,
                %up: !up {tv.role = "weight"}, %down: tensor<6x4x8xf32> {tv.role = "weight"}) -> tensor<7x4xf32> {
  %b, %counts, %slots = tv.dispatch %x, %experts
    : (tensor<7x4xf32>, tensor<7x2xi32>) -> (tensor<6x3x4xf32>, tensor<6xi32>, tensor<7x2xi32>)
  %h = tv.grouped_matmul %b, %up counts %counts : (tensor<6x3x4xf32>, !up, tensor<6xi32>) -> tensor<6x3x8xf32>
  %o = tv.grouped_matmul %h, %down counts %counts : (tensor<6x3x8xf32>, tensor<6x4x8xf32>, tensor<6xi32>) -> tensor<6x3x4xf32>
  %y = tv.combine %o, %experts, %slots, %weights {tv.step = "fetch"} : (tensor<6x3x4xf32>, tensor<7x2xi32>, tensor<7x2xi32>, tensor<7x2xf32>) -> tensor<7x4xf32>
  return %y : tensor<7x4xf32>
}
