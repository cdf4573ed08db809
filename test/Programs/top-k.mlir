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

// Sampling: the argmax of logits whose vocabulary is split, uneven: the maxima are combined,
// and then the least of the indices. Of equal logits the first one is taken.
// CHECK: tv.reduce max
// CHECK: comm.all_reduce
// CHECK: tv.reduce min
// CHECK: comm.all_reduce
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 12 bytes 0 copies, all-reduce 12 bytes 0 copies
// RAN tp=3: all-reduce 16 bytes 0 copies, all-reduce 16 bytes 0 copies
// RAN tp=4: all-reduce 20 bytes 0 copies, all-reduce 20 bytes 0 copies
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

// Along another dimension, with the results split where they are chosen.
// RAN tp=1: nothing
// RAN tp=2: all-reduce 20 bytes 0 copies, all-reduce 40 bytes 0 copies, all-reduce 20 bytes 0 copies, all-reduce 40 bytes 0 copies, all-reduce 20 bytes 0 copies, all-reduce 40 bytes 0 copies
// RAN tp=3: all-reduce 28 bytes 0 copies, all-reduce 56 bytes 0 copies, all-reduce 28 bytes 0 copies, all-reduce 56 bytes 0 copies, all-reduce 28 bytes 0 copies, all-reduce 56 bytes 0 copies
// RAN tp=4: all-reduce 36 bytes 0 copies, all-reduce 72 bytes 0 copies, all-reduce 36 bytes 0 copies, all-reduce 72 bytes 0 copies, all-reduce 36 bytes 0 copies, all-reduce 72 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<9x5xf32, #tv.view<#m, [did(tp) * _, _]>>
!y = tensor<3x5xf32, #tv.view<#m, [did(tp) * _, _]>>
!i = tensor<3x5xi64, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%x: !x) -> (!y, !i) {
  %best, %at = tv.top_k %x dim 0 : (!x) -> (!y, !i)
  return %best, %at : !y, !i
}
