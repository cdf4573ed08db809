// Moves that a gradient mirrors, each in the smallest program that has it.
// RUN: tessera-opt %s --split-input-file --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --split-input-file --tessera=to=local --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %t --split-input-file --tessera=to=kernels --interpret=2 -o /dev/null

// A weight split over the batch's axis, and whole where the text says so: it is gathered,
// and its gradient reduced back into the weight's own view. Of moves that take a latency
// only there would be one, of the batch and the weight.
// CHECK: comm.all_gather
// CHECK: comm.all_reduce
// CHECK: comm.reduce_scatter
// CHECK: return
// RAN dp=1: nothing
// RAN dp=2: all-gather 48 bytes 0 copies, all-reduce 4 bytes 0 copies, reduce-scatter 48 bytes 0 copies
// RAN dp=3: all-gather 64 bytes 0 copies, all-reduce 8 bytes 0 copies, reduce-scatter 64 bytes 0 copies
// RAN dp=4: all-gather 96 bytes 0 copies, all-reduce 12 bytes 0 copies, reduce-scatter 96 bytes 0 copies
#m = #tv.mesh<dp = 2>
!x = tensor<48x4xf32, #tv.view<#m, [did(dp) * _, _]>>
!w = tensor<6x4xf32, #tv.view<#m, [did(dp) * _, _]>>
!whole = tensor<6x4xf32>
!y = tensor<48x6xf32>
!loss = tensor<f32, #tv.view<#m, []>>
module attributes {tv.machine = #tv.machine<latency = 1.0e-7, bandwidth = 1.0e7, copy = 2.0e12, loops = 3.0e14>} {
func.func private @loss(%x: !x, %w: !w) -> !loss {
  %0 = tv.constrain %w : (!w) -> !whole to #tv.view<#m, [_, _]>
  %1 = tv.linear %x, %0 : (!x, !whole) -> !y
  %2 = tv.tanh %1 : (!y) -> !y
  %3 = tv.reduce sum %2 dims [0, 1] : (!y) -> !loss
  return %3 : !loss
}
func.func @main(%x: !x, %w: !w {tv.role = "weight"}) -> (!loss, !w) {
  %loss, %dw = tv.gradient @loss(%x, %w) of [0] to [1] : (!x, !w) -> (!loss, !w)
  return %loss, %dw : !loss, !w
}
}

// -----

// A slice, a concat and a pad across the shards' edges: of these few bytes each device
// gets all at once, for both ways.
// CHECK: :2 = comm.all_gather
// CHECK: tv.concat
// CHECK: return
// RAN x=1: nothing
// RAN x=2: all-gather of 2 192 bytes 0 copies
// RAN x=3: all-gather of 2 256 bytes 0 copies
// RAN x=4: all-gather of 2 288 bytes 0 copies
#m = #tv.mesh<x = 2>
!t = tensor<12x4xf32, #tv.view<#m, [did(x) * _, _]>>
!a = tensor<5x4xf32>
!c = tensor<8x4xf32>
!p = tensor<12x4xf32>
func.func private @f(%t: !t) -> !p {
  %0 = tv.slice %t offsets [3, 0] : (!t) -> !a
  %1 = tv.slice %t offsets [9, 0] : (!t) -> tensor<3x4xf32>
  %2 = tv.concat %0, %1 dim 0 : (!a, tensor<3x4xf32>) -> !c
  %3 = tv.exp %2 : (!c) -> !c
  %4 = tv.pad %3 low [2, 0] high [2, 0] value 0.0 : f32 : (!c) -> !p
  return %4 : !p
}
func.func @main(%t: !t, %dy: !t) -> (!t, !t) {
  %d = tv.mul %dy, %dy : (!t, !t) -> !p
  %y, %dt = tv.gradient @f(%t) of [0] with (%d) to [0] : (!t, !p) -> (!p, !t)
  %u = tv.neg %y : (!p) -> !t
  return %u, %dt : !t, !t
}

// -----

// Groups of heads, and captured tensors: a bias of heads and queries, one of distances
// which two loads read, and a scalar. Over heads their gradients are in parts.
// CHECK: tv.attention_grad
// CHECK: :3 = comm.all_reduce
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 3 120 bytes 0 copies
// RAN tp=3: all-reduce of 3 164 bytes 0 copies
// RAN tp=4: all-to-all 120 bytes 1 copies, all-to-all 120 bytes 1 copies, all-to-all 240 bytes 1 copies, all-reduce of 3 192 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<2x4x5x3xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<2x2x5x3xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!o = tensor<2x4x5x3xf32>
!bias_of_lse = tensor<4x5xf32>
!rel_of_lse = tensor<9xf32, #tv.view<#m, [_]>>
!scalar_of_lse = tensor<f32, #tv.view<#m, []>>
!lse = tensor<2x4x5xf32>
func.func private @f(%q: !q, %k: !k, %v: !k, %bias: !bias_of_lse, %rel: !rel_of_lse, %gain: !scalar_of_lse) -> (!o, !lse) {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) causal : (!q, !k, !k) -> (!o, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = tv.load %bias[%h, %qi] : !bias_of_lse -> f32
      %four = arith.constant 4 : index
      %d = arith.subi %ki, %qi : index
      %at = arith.addi %d, %four : index
      %r = tv.load %rel[%at] : !rel_of_lse -> f32
      %r2 = tv.load %rel[%ki] : !rel_of_lse -> f32
      %g = tv.load %gain[] : !scalar_of_lse -> f32
      %t = arith.mulf %s, %g : f32
      %t2 = arith.mulf %t, %r2 : f32
      %u = arith.addf %t2, %c : f32
      %y = arith.addf %u, %r : f32
      tv.yield %y : f32
    }
  return %o, %lse : !o, !lse
}
func.func @main(%q: !q, %k: !k, %v: !k, %bias: !bias_of_lse, %rel: !rel_of_lse, %gain: !scalar_of_lse, %do: !q, %dlse: !lse)
    -> (!o, !q, !k, !k, !bias_of_lse, !rel_of_lse, !scalar_of_lse) {
  %o, %lse, %dq, %dk, %dv, %dbias, %drel, %dgain
      = tv.gradient @f(%q, %k, %v, %bias, %rel, %gain) of [0, 1] with (%do, %dlse) to [0, 1, 2, 3, 4, 5]
      : (!q, !k, !k, !bias_of_lse, !rel_of_lse, !scalar_of_lse, !q, !lse)
     -> (!o, !lse, !q, !k, !k, !bias_of_lse, !rel_of_lse, !scalar_of_lse)
  return %o, %dq, %dk, %dv, %dbias, %drel, %dgain : !o, !q, !k, !k, !bias_of_lse, !rel_of_lse, !scalar_of_lse
}

// -----

// A norm of rows that are split: their two statistics are made and moved but once. The
// backward has two sums of its own.
// CHECK-COUNT-4: comm.all_reduce
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 24 bytes 0 copies, all-reduce 24 bytes 0 copies, all-reduce 24 bytes 0 copies, all-reduce 24 bytes 0 copies
// RAN tp=3: all-reduce 32 bytes 0 copies, all-reduce 32 bytes 0 copies, all-reduce 32 bytes 0 copies, all-reduce 32 bytes 0 copies
// RAN tp=4: all-reduce 40 bytes 0 copies, all-reduce 40 bytes 0 copies, all-reduce 40 bytes 0 copies, all-reduce 40 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<6x12xf32, #tv.view<#m, [_, did(tp) * _]>>
!vec = tensor<12xf32, #tv.view<#m, [did(tp) * _]>>
func.func private @norm(%x: !x, %g: !vec, %b: !vec) -> !x {
  %0 = tv.layer_norm %x, %g, %b epsilon(1.0e-5) : (!x, !vec, !vec) -> !x
  return %0 : !x
}
func.func @main(%x: !x, %g: !vec {tv.role = "weight"}, %b: !vec {tv.role = "weight"}, %dy: !x) -> (!x, !x, !vec, !vec) {
  %y, %dx, %dg, %db = tv.gradient @norm(%x, %g, %b) of [0] with (%dy) to [0, 1, 2]
      : (!x, !vec, !vec, !x) -> (!x, !x, !vec, !vec)
  return %y, %dx, %dg, %db : !x, !x, !vec, !vec
}

// -----

// Sums that would be combined into parts, and the gradient's parts gathered: all that is
// read is gathered at once.
// CHECK: :3 = comm.all_gather
// CHECK-NOT: comm.reduce_scatter
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather of 3 432 bytes 2 copies
// RAN tp=3: all-gather of 3 624 bytes 2 copies
// RAN tp=4: all-gather of 3 648 bytes 2 copies
#m = #tv.mesh<tp = 2>
!x = tensor<12x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<6x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<12x6xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func private @f(%x: !x, %w: !w) -> !y {
  %0 = tv.linear %x, %w : (!x, !w) -> !y
  return %0 : !y
}
func.func @main(%x: !x, %w: !w {tv.role = "weight"}, %dy: !y) -> (!y, !x, !w) {
  %y, %dx, %dw = tv.gradient @f(%x, %w) of [0] with (%dy) to [0, 1] : (!x, !w, !y) -> (!y, !x, !w)
  return %y, %dx, %dw : !y, !x, !w
}

// -----

// Combined into the whole: the gradient is whole, and nothing moves. The bias joins the
// sum on one device, which moves nothing there and back.
// CHECK: comm.all_reduce
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 288 bytes 0 copies
// RAN tp=3: all-reduce 384 bytes 0 copies
// RAN tp=4: all-reduce 432 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<12x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<6x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!b = tensor<6xf32, #tv.view<#m, [_]>>
!y = tensor<12x6xf32, #tv.view<#m, [_, _]>>
func.func private @f(%x: !x, %w: !w, %b: !b) -> !y {
  %0 = tv.linear %x, %w bias %b : (!x, !w, !b) -> !y
  return %0 : !y
}
func.func @main(%x: !x, %w: !w {tv.role = "weight"}, %b: !b {tv.role = "weight"}, %dy: !y) -> (!y, !x, !w, !b) {
  %y, %dx, %dw, %db = tv.gradient @f(%x, %w, %b) of [0] with (%dy) to [0, 1, 2] : (!x, !w, !b, !y) -> (!y, !x, !w, !b)
  return %y, %dx, %dw, %db : !y, !x, !w, !b
}

// -----

// A whole value that split ops use, which moves nothing: its gradient is in parts.
// CHECK: tv.linear
// CHECK: comm.all_reduce
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 128 bytes 0 copies
// RAN tp=3: all-reduce 172 bytes 0 copies
// RAN tp=4: all-reduce 192 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [_, _]>>
!w = tensor<12x8xf32, #tv.view<#m, [did(tp) * _, _]>>
!y = tensor<4x12xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func private @f(%x: !x, %w: !w) -> !y {
  %0 = tv.linear %x, %w : (!x, !w) -> !y
  return %0 : !y
}
func.func @main(%x: !x, %w: !w {tv.role = "weight"}, %dy: !y) -> (!y, !x, !w) {
  %y, %dx, %dw = tv.gradient @f(%x, %w) of [0] with (%dy) to [0, 1] : (!x, !w, !y) -> (!y, !x, !w)
  return %y, %dx, %dw : !y, !x, !w
}

// -----

// A table whose words are split: each device gives the rows that it has, and keeps of the
// gradient what is its own.
// CHECK: tv.gather
// CHECK: comm.all_reduce
// CHECK: tv.scatter
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 160 bytes 0 copies
// RAN tp=3: all-reduce 216 bytes 0 copies
// RAN tp=4: all-reduce 240 bytes 0 copies
#m = #tv.mesh<tp = 2>
!ids = tensor<2x5xi32, #tv.view<#m, [_, _]>>
!table = tensor<64x4xf32, #tv.view<#m, [did(tp) * _, _]>>
!x = tensor<2x5x4xf32, #tv.view<#m, [_, _, _]>>
func.func private @f(%table: !table, %ids: !ids) -> !x {
  %0 = tv.gather %table, %ids dim 0 : (!table, !ids) -> !x
  return %0 : !x
}
func.func @main(%table: !table {tv.role = "weight"}, %ids: !ids {tv.range = [0, 63]}, %dy: !x) -> (!x, !table) {
  %y, %dt = tv.gradient @f(%table, %ids) of [0] with (%dy) to [0] : (!table, !ids, !x) -> (!x, !table)
  return %y, %dt : !x, !table
}

// -----

// A cross entropy of words that are split: the maximum, then its sum and the label's
// logit together. The gradient has the log-sum-exp: nothing moves.
// CHECK: comm.all_reduce
// CHECK: :2 = comm.all_reduce
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 40 bytes 0 copies, all-reduce of 2 80 bytes 0 copies
// RAN tp=3: all-reduce 56 bytes 0 copies, all-reduce of 2 112 bytes 0 copies
// RAN tp=4: all-reduce 64 bytes 0 copies, all-reduce of 2 128 bytes 0 copies
#m = #tv.mesh<tp = 2>
!labels = tensor<2x5xi32, #tv.view<#m, [_, _]>>
!logits = tensor<2x5x16xf32, #tv.view<#m, [_, _, did(tp) * _]>>
!rows = tensor<2x5xf32>
!loss = tensor<f32, #tv.view<#m, []>>
func.func private @loss(%x: !logits, %labels: !labels) -> !loss {
  %0 = tv.cross_entropy %x, %labels : (!logits, !labels) -> !rows
  %1 = tv.reduce sum %0 dims [0, 1] : (!rows) -> !loss
  return %1 : !loss
}
func.func @main(%x: !logits, %labels: !labels {tv.range = [-1, 16]}) -> (!loss, !logits) {
  %loss, %dx = tv.gradient @loss(%x, %labels) of [0] to [0] : (!logits, !labels) -> (!loss, !logits)
  return %loss, %dx : !loss, !logits
}
