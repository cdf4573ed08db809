// The second half of a block with its gradients by hand, sequence parallel, in
// [batch, sequence, embedding]: weight gradients see what the products see through a
// reshape and a transpose. Each activation is gathered once: x for the first product
// and its weight gradient, dy for the gradients of the hidden layer, the second weight
// and its bias.
// (Op by op, as what is larger is placed by default, too: of so few bytes, fewer steps
// that move as many or more take less time.)
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=local op-by-op" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local op-by-op" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=local op-by-op" --interpret=4 | FileCheck %s %no_other_collective
// RUN: sed s/f32/bf16/g %s | tessera-opt --split-input-file --tessera="mesh=tp=3 to=local op-by-op" --interpret=3 --interpret-precision=program | FileCheck %s %no_other_collective

// CHECK: comm.all_gather
// CHECK: tv.gelu tanh
// CHECK: comm.reduce_scatter
// CHECK: comm.all_gather
// CHECK: comm.all_reduce
// CHECK: tv.gelu_grad tanh
// CHECK: comm.reduce_scatter
// RAN tp=1: nothing
// RAN tp=2: all-gather 512 bytes 1 copies, reduce-scatter 512 bytes 0 copies, all-gather 512 bytes 1 copies, reduce-scatter 512 bytes 0 copies
// RAN tp=3: all-gather 768 bytes 1 copies, reduce-scatter 768 bytes 0 copies, all-gather 768 bytes 1 copies, reduce-scatter 768 bytes 0 copies
// RAN tp=4: all-gather 768 bytes 1 copies, reduce-scatter 768 bytes 0 copies, all-gather 768 bytes 1 copies, reduce-scatter 768 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<2x8x16xf32, #tv.view<#m, [_, did(tp) * _, _]>>
!y = tensor<2x8x16xf32>
!rows = tensor<16x16xf32>
!h = tensor<2x8x64xf32>
!hrows = tensor<16x64xf32>
!ht = tensor<64x16xf32>
!w0 = tensor<64x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!w0t = tensor<16x64xf32>
!b0 = tensor<64xf32, #tv.view<#m, [did(tp) * _]>>
!w1 = tensor<16x64xf32, #tv.view<#m, [_, did(tp) * _]>>
!w1t = tensor<64x16xf32>
!b1 = tensor<16xf32, #tv.view<#m, [_]>>
func.func @main(%x: !x, %w0: !w0 {tv.role = "weight"}, %b0: !b0 {tv.role = "weight"},
                %w1: !w1 {tv.role = "weight"}, %b1: !b1 {tv.role = "weight"}, %dy: !x)
    -> (!x, !x, !w0, !b0, !w1, !b1) {
  %u = tv.linear %x, %w0 bias %b0 : (!x, !w0, !b0) -> !h
  %h = tv.gelu tanh %u : (!h) -> !h
  %d = tv.linear %h, %w1 bias %b1 : (!h, !w1, !b1) -> !y
  %y = tv.add %d, %x : (!y, !x) -> !x

  %w1t = tv.transpose %w1 perm [1, 0] : (!w1) -> !w1t
  %dh = tv.linear %dy, %w1t : (!x, !w1t) -> !h
  %dyr = tv.reshape %dy : (!x) -> !rows
  %dyt = tv.transpose %dyr perm [1, 0] : (!rows) -> !rows
  %hr = tv.reshape %h : (!h) -> !hrows
  %ht = tv.transpose %hr perm [1, 0] : (!hrows) -> !ht
  %dw1 = tv.linear %dyt, %ht : (!rows, !ht) -> !w1
  %db1 = tv.reduce sum %dyr dims [0] : (!rows) -> !b1
  %du = tv.gelu_grad tanh %dh, %u : (!h, !h) -> !h
  %db0 = tv.reduce sum %du dims [0, 1] : (!h) -> !b0
  %dur = tv.reshape %du : (!h) -> !hrows
  %dut = tv.transpose %dur perm [1, 0] : (!hrows) -> !ht
  %xr = tv.reshape %x : (!x) -> !rows
  %xt = tv.transpose %xr perm [1, 0] : (!rows) -> !rows
  %dw0 = tv.linear %dut, %xt : (!ht, !rows) -> !w0
  %w0t = tv.transpose %w0 perm [1, 0] : (!w0) -> !w0t
  %dx0 = tv.linear %du, %w0t : (!h, !w0t) -> !y
  %dx = tv.add %dx0, %dy : (!y, !x) -> !x
  return %y, %dx, %dw0, %db0, %dw1, %db1 : !x, !x, !w0, !b0, !w1, !b1
}

// -----

// Products that sum over batch and sequence by themselves: nothing is reshaped.
// CHECK: comm.all_gather
// CHECK: comm.reduce_scatter
// CHECK: comm.all_gather
// CHECK: comm.reduce_scatter

// RAN tp=1: nothing
// RAN tp=2: all-gather of 4 5120 bytes 2 copies
// RAN tp=3: all-gather of 4 7168 bytes 2 copies
// RAN tp=4: all-gather of 4 7680 bytes 2 copies
#m = #tv.mesh<tp = 2>
!x = tensor<2x8x16xf32, #tv.view<#m, [_, did(tp) * _, _]>>
!y = tensor<2x8x16xf32>
!h = tensor<2x8x64xf32>
!w0 = tensor<64x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!w1 = tensor<16x64xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x, %w0: !w0 {tv.role = "weight"}, %w1: !w1 {tv.role = "weight"}, %dy: !x)
    -> (!x, !x, !w0, !w1) {
  %n = tv.gelu tanh %x : (!x) -> !y
  %u = tv.linear %n, %w0 : (!y, !w0) -> !h
  %h = tv.gelu tanh %u : (!h) -> !h
  %y = tv.linear %h, %w1 : (!h, !w1) -> !x

  %dh = tv.contract %dy [0, 1, 2], %w1 [2, 3] to [0, 1, 3] : (!x, !w1) -> !h
  %dw1 = tv.contract %dy [0, 1, 2], %h [0, 1, 3] to [2, 3] : (!x, !h) -> !w1
  %du = tv.gelu_grad tanh %dh, %u : (!h, !h) -> !h
  %dw0 = tv.contract %du [0, 1, 2], %n [0, 1, 3] to [2, 3] : (!h, !y) -> !w0
  %dn = tv.contract %du [0, 1, 2], %w0 [2, 3] to [0, 1, 3] : (!h, !w0) -> !y
  %dx = tv.gelu_grad tanh %dn, %x : (!y, !x) -> !x
  return %y, %dx, %dw0, %dw1 : !x, !x, !w0, !w1
}

// -----

// In [sequence, embedding] only transposes are between.
// CHECK: comm.all_gather
// CHECK: comm.reduce_scatter
// CHECK: comm.all_gather
// CHECK: comm.reduce_scatter
// RAN tp=1: nothing
// RAN tp=2: all-gather of 4 4864 bytes 1 copies
// RAN tp=3: all-gather of 4 6656 bytes 1 copies
// RAN tp=4: all-gather of 4 7296 bytes 1 copies
#m = #tv.mesh<tp = 2>
!x = tensor<12x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!xt = tensor<16x12xf32>
!y = tensor<12x16xf32>
!h = tensor<12x64xf32>
!ht = tensor<64x12xf32>
!w0 = tensor<64x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!w0t = tensor<16x64xf32>
!w1 = tensor<16x64xf32, #tv.view<#m, [_, did(tp) * _]>>
!w1t = tensor<64x16xf32>
func.func @main(%x: !x, %w0: !w0 {tv.role = "weight"}, %w1: !w1 {tv.role = "weight"}, %dy: !x)
    -> (!x, !x, !w0, !w1) {
  %u = tv.linear %x, %w0 : (!x, !w0) -> !h
  %h = tv.gelu tanh %u : (!h) -> !h
  %d = tv.linear %h, %w1 : (!h, !w1) -> !y
  %y = tv.add %d, %x : (!y, !x) -> !x

  %w1t = tv.transpose %w1 perm [1, 0] : (!w1) -> !w1t
  %dh = tv.linear %dy, %w1t : (!x, !w1t) -> !h
  %dyt = tv.transpose %dy perm [1, 0] : (!x) -> !xt
  %ht = tv.transpose %h perm [1, 0] : (!h) -> !ht
  %dw1 = tv.linear %dyt, %ht : (!xt, !ht) -> !w1
  %du = tv.gelu_grad tanh %dh, %u : (!h, !h) -> !h
  %dut = tv.transpose %du perm [1, 0] : (!h) -> !ht
  %xt = tv.transpose %x perm [1, 0] : (!x) -> !xt
  %dw0 = tv.linear %dut, %xt : (!ht, !xt) -> !w0
  %w0t = tv.transpose %w0 perm [1, 0] : (!w0) -> !w0t
  %dx0 = tv.linear %du, %w0t : (!h, !w0t) -> !y
  %dx = tv.add %dx0, %dy : (!y, !x) -> !x
  return %y, %dx, %dw0, %dw1 : !x, !x, !w0, !w1
}
