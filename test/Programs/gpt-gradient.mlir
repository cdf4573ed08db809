// GPT-3-style blocks (examples/gpt), forward and backward in one program: views stand on
// inputs, weights and gradients alone. With a split batch: gpt-gradient-dp.mlir.
// RUN: tessera-opt %s --split-input-file --tv-inline --tv-differentiate -o %t
// (Op by op, as what is larger is placed by default, too: of so few bytes, fewer steps
// that move as many or more take less time.)
// RUN: tessera-opt %t --split-input-file --tessera="to=local op-by-op" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %t --split-input-file --tessera="mesh=tp=3 to=local op-by-op" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %t --split-input-file --tessera="mesh=tp=4 to=kernels" --interpret=4 -o /dev/null

// Tensor parallel: an all-reduce for each half, there and back.
// CHECK-COUNT-4: comm.all_reduce
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 1024 bytes 0 copies, all-reduce of 2 2048 bytes 0 copies, all-reduce 1024 bytes 0 copies
// RAN tp=3: all-reduce 1368 bytes 0 copies, all-reduce of 2 2736 bytes 0 copies, all-reduce 1368 bytes 0 copies
// RAN tp=4: all-reduce 1536 bytes 0 copies, all-reduce of 2 3072 bytes 0 copies, all-reduce 1536 bytes 0 copies
#m = #tv.mesh<tp = 2>
!in = tensor<2x8x16xf32, #tv.view<#m, [_, _, _]>>
!vec = tensor<16xf32, #tv.view<#m, [_]>>
!qkv_w = tensor<48x16xf32, #tv.view<#m, [(did(tp) * _ | 4) * 12, _]>>
!qkv_b = tensor<48xf32, #tv.view<#m, [(did(tp) * _ | 4) * 12]>>
!out_w = tensor<16x16xf32, #tv.view<#m, [_, (did(tp) * _ | 4) * 4]>>
!up_w = tensor<64x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!up_b = tensor<64xf32, #tv.view<#m, [did(tp) * _]>>
!down_w = tensor<16x64xf32, #tv.view<#m, [_, did(tp) * _]>>

!x = tensor<2x8x16xf32>
!qkv = tensor<2x8x4x12xf32>
!part = tensor<2x8x4x4xf32>
!head = tensor<2x4x8x4xf32>
!hidden = tensor<2x8x64xf32>

func.func private @block(%x: !in, %g1: !vec, %b1: !vec, %qkv_w: !qkv_w, %qkv_b: !qkv_b, %out_w: !out_w, %out_b: !vec, %g2: !vec, %b2: !vec, %up_w: !up_w, %up_b: !up_b, %down_w: !down_w, %down_b: !vec) -> !x {
  %n1 = tv.layer_norm %x, %g1, %b1 epsilon(1.0e-5) : (!in, !vec, !vec) -> !x
  %p = tv.linear %n1, %qkv_w bias %qkv_b : (!x, !qkv_w, !qkv_b) -> tensor<2x8x48xf32>
  %qkv = tv.reshape %p : (tensor<2x8x48xf32>) -> !qkv
  %q0 = tv.slice %qkv offsets [0, 0, 0, 0] : (!qkv) -> !part
  %k0 = tv.slice %qkv offsets [0, 0, 0, 4] : (!qkv) -> !part
  %v0 = tv.slice %qkv offsets [0, 0, 0, 8] : (!qkv) -> !part
  %q = tv.transpose %q0 perm [0, 2, 1, 3] : (!part) -> !head
  %k = tv.transpose %k0 perm [0, 2, 1, 3] : (!part) -> !head
  %v = tv.transpose %v0 perm [0, 2, 1, 3] : (!part) -> !head
  %a, %lse = tv.attention %q, %k, %v scale(0.5) causal : (!head, !head, !head) -> (!head, tensor<2x4x8xf32>)
  %t = tv.transpose %a perm [0, 2, 1, 3] : (!head) -> !part
  %r = tv.reshape %t : (!part) -> !x
  %o = tv.linear %r, %out_w bias %out_b : (!x, !out_w, !vec) -> !x
  %od = tv.dropout %o rate(0.1) seed(7) stream(1) : (!x) -> !x
  %s1 = tv.add %od, %x : (!x, !in) -> !x
  %n2 = tv.layer_norm %s1, %g2, %b2 epsilon(1.0e-5) : (!x, !vec, !vec) -> !x
  %u = tv.linear %n2, %up_w bias %up_b : (!x, !up_w, !up_b) -> !hidden
  %g = tv.gelu tanh %u : (!hidden) -> !hidden
  %d = tv.linear %g, %down_w bias %down_b : (!hidden, !down_w, !vec) -> !x
  %dd = tv.dropout %d rate(0.1) seed(7) stream(2) : (!x) -> !x
  %y = tv.add %dd, %s1 : (!x, !x) -> !x
  return %y : !x
}
func.func @main(%x: !in, %g1: !vec {tv.role = "weight"}, %b1: !vec {tv.role = "weight"}, %qkv_w: !qkv_w {tv.role = "weight"}, %qkv_b: !qkv_b {tv.role = "weight"}, %out_w: !out_w {tv.role = "weight"}, %out_b: !vec {tv.role = "weight"}, %g2: !vec {tv.role = "weight"}, %b2: !vec {tv.role = "weight"}, %up_w: !up_w {tv.role = "weight"}, %up_b: !up_b {tv.role = "weight"}, %down_w: !down_w {tv.role = "weight"}, %down_b: !vec {tv.role = "weight"}, %dy: !in)
    -> (!x, !in, !vec, !vec, !qkv_w, !qkv_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec) {
  %y, %dx, %dg1, %db1, %dqkv_w, %dqkv_b, %dout_w, %dout_b, %dg2, %db2, %dup_w, %dup_b, %ddown_w, %ddown_b
      = tv.gradient @block(%x, %g1, %b1, %qkv_w, %qkv_b, %out_w, %out_b, %g2, %b2, %up_w, %up_b, %down_w, %down_b) of [0] with (%dy)
          to [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
      : (!in, !vec, !vec, !qkv_w, !qkv_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !in) -> (!x, !in, !vec, !vec, !qkv_w, !qkv_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec)
  return %y, %dx, %dg1, %db1, %dqkv_w, %dqkv_b, %dout_w, %dout_b, %dg2, %db2, %dup_w, %dup_b, %ddown_w, %ddown_b : !x, !in, !vec, !vec, !qkv_w, !qkv_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec
}

// -----

// Sequence parallel: what is gathered there is reduced back, and gathered but once. Sums
// over rows of norms and of biases outside are in parts, and go together.
// CHECK: comm.all_gather
// CHECK: comm.reduce_scatter
// CHECK: comm.all_gather
// CHECK: comm.reduce_scatter
// CHECK: comm.all_gather
// CHECK: comm.reduce_scatter
// CHECK: comm.all_gather
// CHECK: comm.reduce_scatter
// CHECK: :6 = comm.all_reduce
// RAN tp=1: nothing
// RAN tp=2: all-gather 512 bytes 1 copies, all-reduce 1024 bytes 0 copies, reduce-scatter 512 bytes 0 copies, all-gather 512 bytes 1 copies, reduce-scatter 512 bytes 0 copies, all-gather 512 bytes 0 copies, reduce-scatter 512 bytes 0 copies, all-reduce of 5 320 bytes 0 copies
// RAN tp=3: all-gather 768 bytes 1 copies, all-reduce 1368 bytes 0 copies, reduce-scatter 768 bytes 0 copies, all-gather 768 bytes 1 copies, reduce-scatter 768 bytes 0 copies, all-gather 768 bytes 0 copies, reduce-scatter 768 bytes 0 copies, all-reduce of 5 440 bytes 0 copies
// RAN tp=4: all-gather 768 bytes 1 copies, all-reduce 1536 bytes 0 copies, reduce-scatter 768 bytes 0 copies, all-gather 768 bytes 1 copies, reduce-scatter 768 bytes 0 copies, all-gather 768 bytes 0 copies, reduce-scatter 768 bytes 0 copies, all-reduce of 5 480 bytes 0 copies
#m = #tv.mesh<tp = 2>
!in = tensor<2x8x16xf32, #tv.view<#m, [_, did(tp) * _, _]>>
!vec = tensor<16xf32, #tv.view<#m, [_]>>
!qkv_w = tensor<48x16xf32, #tv.view<#m, [(did(tp) * _ | 4) * 12, _]>>
!qkv_b = tensor<48xf32, #tv.view<#m, [(did(tp) * _ | 4) * 12]>>
!out_w = tensor<16x16xf32, #tv.view<#m, [_, (did(tp) * _ | 4) * 4]>>
!up_w = tensor<64x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!up_b = tensor<64xf32, #tv.view<#m, [did(tp) * _]>>
!down_w = tensor<16x64xf32, #tv.view<#m, [_, did(tp) * _]>>

!x = tensor<2x8x16xf32>
!qkv = tensor<2x8x4x12xf32>
!part = tensor<2x8x4x4xf32>
!head = tensor<2x4x8x4xf32>
!hidden = tensor<2x8x64xf32>

func.func private @block(%x: !in, %g1: !vec, %b1: !vec, %qkv_w: !qkv_w, %qkv_b: !qkv_b, %out_w: !out_w, %out_b: !vec, %g2: !vec, %b2: !vec, %up_w: !up_w, %up_b: !up_b, %down_w: !down_w, %down_b: !vec) -> !x {
  %n1 = tv.layer_norm %x, %g1, %b1 epsilon(1.0e-5) : (!in, !vec, !vec) -> !x
  %p = tv.linear %n1, %qkv_w bias %qkv_b : (!x, !qkv_w, !qkv_b) -> tensor<2x8x48xf32>
  %qkv = tv.reshape %p : (tensor<2x8x48xf32>) -> !qkv
  %q0 = tv.slice %qkv offsets [0, 0, 0, 0] : (!qkv) -> !part
  %k0 = tv.slice %qkv offsets [0, 0, 0, 4] : (!qkv) -> !part
  %v0 = tv.slice %qkv offsets [0, 0, 0, 8] : (!qkv) -> !part
  %q = tv.transpose %q0 perm [0, 2, 1, 3] : (!part) -> !head
  %k = tv.transpose %k0 perm [0, 2, 1, 3] : (!part) -> !head
  %v = tv.transpose %v0 perm [0, 2, 1, 3] : (!part) -> !head
  %a, %lse = tv.attention %q, %k, %v scale(0.5) causal : (!head, !head, !head) -> (!head, tensor<2x4x8xf32>)
  %t = tv.transpose %a perm [0, 2, 1, 3] : (!head) -> !part
  %r = tv.reshape %t : (!part) -> !x
  %o = tv.linear %r, %out_w bias %out_b : (!x, !out_w, !vec) -> !x
  %od = tv.dropout %o rate(0.1) seed(7) stream(1) : (!x) -> !x
  %s1 = tv.add %od, %x : (!x, !in) -> !x
  %n2 = tv.layer_norm %s1, %g2, %b2 epsilon(1.0e-5) : (!x, !vec, !vec) -> !x
  %u = tv.linear %n2, %up_w bias %up_b : (!x, !up_w, !up_b) -> !hidden
  %g = tv.gelu tanh %u : (!hidden) -> !hidden
  %d = tv.linear %g, %down_w bias %down_b : (!hidden, !down_w, !vec) -> !x
  %dd = tv.dropout %d rate(0.1) seed(7) stream(2) : (!x) -> !x
  %y = tv.add %dd, %s1 : (!x, !x) -> !x
  return %y : !x
}
func.func @main(%x: !in, %g1: !vec {tv.role = "weight"}, %b1: !vec {tv.role = "weight"}, %qkv_w: !qkv_w {tv.role = "weight"}, %qkv_b: !qkv_b {tv.role = "weight"}, %out_w: !out_w {tv.role = "weight"}, %out_b: !vec {tv.role = "weight"}, %g2: !vec {tv.role = "weight"}, %b2: !vec {tv.role = "weight"}, %up_w: !up_w {tv.role = "weight"}, %up_b: !up_b {tv.role = "weight"}, %down_w: !down_w {tv.role = "weight"}, %down_b: !vec {tv.role = "weight"}, %dy: !in) -> (!x, !in, !vec, !vec, !qkv_w, !qkv_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec) {
  %y, %dx, %dg1, %db1, %dqkv_w, %dqkv_b, %dout_w, %dout_b, %dg2, %db2, %dup_w, %dup_b, %ddown_w, %ddown_b
      = tv.gradient @block(%x, %g1, %b1, %qkv_w, %qkv_b, %out_w, %out_b, %g2, %b2, %up_w, %up_b, %down_w, %down_b) of [0] with (%dy)
          to [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
      : (!in, !vec, !vec, !qkv_w, !qkv_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !in) -> (!x, !in, !vec, !vec, !qkv_w, !qkv_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec)
  return %y, %dx, %dg1, %db1, %dqkv_w, %dqkv_b, %dout_w, %dout_b, %dg2, %db2, %dup_w, %dup_b, %ddown_w, %ddown_b : !x, !in, !vec, !vec, !qkv_w, !qkv_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec
}
