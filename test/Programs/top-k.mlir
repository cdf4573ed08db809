// A router: the two best of 6 experts, their shares, and what they make of the tokens.
// Tokens over an axis move for the experts alone.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels" --interpret=4 -o /dev/null

// CHECK: tv.top_k
// CHECK: tv.softmax
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<7x4xf32, #tv.view<#m, [did(tp) * _, _]>>
!scores = tensor<7x6xf32>
!choice = tensor<7x2xi32>
!share = tensor<7x2xf32>
func.func @main(%x: !x, %w: tensor<6x4xf32>) -> (!share, !choice) {
  %scores = tv.linear %x, %w : (!x, tensor<6x4xf32>) -> !scores
  %best, %experts = tv.top_k %scores dim 1 : (!scores) -> (!share, !choice)
  %share = tv.softmax %best dim 1 : (!share) -> !share
  return %share, %experts : !share, !choice
}

// -----

// Sampling: the argmax of logits whose vocabulary is split, uneven: each device's best one
// and its index go to all. Of equal logits the first one is taken.
// CHECK: tv.top_k
// CHECK: comm.all_gather {{.*}}xf32{{.*}}xi32
// CHECK-NOT: comm
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather of 2 24 bytes 0 copies
// RAN tp=3: all-gather of 2 48 bytes 0 copies
// RAN tp=4: all-gather of 2 72 bytes 0 copies
#m = #tv.mesh<tp = 2>
!logits = tensor<3x11xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%logits: !logits) -> (tensor<3x1xf32>, tensor<3xi32>) {
  %steps = tv.map %logits : (!logits) -> tensor<3x11xf32> (%e: f32) {
    %i = arith.fptosi %e : f32 to i32
    %r = arith.sitofp %i : i32 to f32
    tv.yield %r : f32
  }
  %best, %at = tv.top_k %steps dim 1 : (tensor<3x11xf32>) -> (tensor<3x1xf32>, tensor<3x1xi32>)
  %token = tv.reshape %at : (tensor<3x1xi32>) -> tensor<3xi32>
  return %best, %token : tensor<3x1xf32>, tensor<3xi32>
}

// -----

// Most logits are -infinity: what fills up the last device's is not taken for one of them.
// Any number of rows, which another axis would split.

// RAN tp=1: nothing
// RAN tp=2: all-gather of 2 180 bytes 2 copies
// RAN tp=3: all-gather of 2 360 bytes 2 copies
// RAN tp=4: all-gather of 2 540 bytes 2 copies
#m = #tv.mesh<tp = 2>
!logits = tensor<?x83xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%logits: !logits {tv.dims = ["b"]}) -> (tensor<?x5xf32>, tensor<?x5xi64>) attributes {tv.sizes = {b = 6}} {
  %kept = tv.map %logits : (!logits) -> tensor<?x83xf32> (%e: f32) {
    %limit = arith.constant 1.8 : f32
    %minus = arith.constant -1.0 : f32
    %zero = arith.constant 0.0 : f32
    %none = arith.divf %minus, %zero : f32
    %c = arith.cmpf ogt, %e, %limit : f32
    %r = arith.select %c, %e, %none : f32
    tv.yield %r : f32
  }
  %best, %at = tv.top_k %kept dim 1 : (tensor<?x83xf32>) -> (tensor<?x5xf32>, tensor<?x5xi64>)
  return %best, %at : tensor<?x5xf32>, tensor<?x5xi64>
}

// -----

// Few elements along another dimension go to all; the results are split where they are chosen.
// CHECK: comm.all_gather
// CHECK: tv.top_k
// CHECK-NOT: comm
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather 100 bytes 0 copies
// RAN tp=3: all-gather 120 bytes 0 copies
// RAN tp=4: all-gather 180 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<9x5xf32, #tv.view<#m, [did(tp) * _, _]>>
!y = tensor<3x5xf32, #tv.view<#m, [did(tp) * _, _]>>
!i = tensor<3x5xi64, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%x: !x) -> (!y, !i) {
  %best, %at = tv.top_k %x dim 0 : (!x) -> (!y, !i)
  return %best, %at : !y, !i
}
