// The perceptron of mlp-grad.mlir with its gradients from tv.gradient: the same moves and
// the same kernels as where they are written by hand.
// RUN: tessera-opt %s --split-input-file --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --split-input-file --tessera=to=local --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %t --split-input-file --tessera=to=kernels --interpret=2 -o /dev/null
// RUN: sed s/f32/bf16/g %t | tessera-opt --split-input-file --tessera="to=kernels target=cuda:sm_90a" --interpret=2 --interpret-precision=program | FileCheck %s --check-prefix=CUDA

// CHECK: tv.gelu_grad tanh
// CHECK: :2 = comm.all_reduce
// CHECK: return
// CUDA-NOT: plan.{{launch|copy}}
// CUDA: plan.contract {{.*}} bias {{.*}} then gelu_tanh from
// CUDA: plan.contract {{.*}} bias {{.*}} from
// CUDA: plan.contract {{.*}} then gelu_tanh_grad({{.*}}) sums result from
// CUDA-NOT: plan.{{launch|copy}}
// CUDA: -----
// Tensor parallel, in a function with a call in it.
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 1536 bytes 0 copies
// RAN tp=3: all-reduce of 2 2048 bytes 0 copies
// RAN tp=4: all-reduce of 2 2304 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<12x16xf32, #tv.view<#m, [_, _]>>
!h = tensor<12x96xf32>
!w0 = tensor<96x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!b0 = tensor<96xf32, #tv.view<#m, [did(tp) * _]>>
!w1 = tensor<16x96xf32, #tv.view<#m, [_, did(tp) * _]>>
!b1 = tensor<16xf32, #tv.view<#m, [_]>>
!y = tensor<12x16xf32>
func.func private @hidden(%x: !x, %w0: !w0, %b0: !b0) -> !h {
  %u = tv.linear %x, %w0 bias %b0 : (!x, !w0, !b0) -> !h
  %h = tv.gelu tanh %u : (!h) -> !h
  return %h : !h
}
func.func private @mlp(%x: !x, %w0: !w0, %b0: !b0, %w1: !w1, %b1: !b1) -> !y {
  %h = call @hidden(%x, %w0, %b0) : (!x, !w0, !b0) -> !h
  %y = tv.linear %h, %w1 bias %b1 : (!h, !w1, !b1) -> !y
  return %y : !y
}
func.func @main(%x: !x, %w0: !w0 {tv.role = "weight"}, %b0: !b0, %w1: !w1 {tv.role = "weight"}, %b1: !b1, %dy: !x)
    -> (!y, !x, !w0, !b0, !w1, !b1) {
  %y, %dx, %dw0, %db0, %dw1, %db1 = tv.gradient @mlp(%x, %w0, %b0, %w1, %b1) of [0] with (%dy) to [0, 1, 2, 3, 4]
      : (!x, !w0, !b0, !w1, !b1, !x) -> (!y, !x, !w0, !b0, !w1, !b1)
  return %y, %dx, %dw0, %db0, %dw1, %db1 : !y, !x, !w0, !b0, !w1, !b1
}

// -----
// Sequence parallel, as in mlp-grad.mlir: what is gathered is written, and what is moved
// moves back.
// CHECK: :2 = comm.all_gather
// CHECK: tv.gelu_grad tanh
// CHECK: :2 = comm.reduce_scatter
// CUDA-NOT: plan.{{launch|copy}}
// CUDA: plan.contract {{.*}} bias {{.*}} then gelu_tanh from
// CUDA: plan.contract {{.*}} bias {{.*}} from
// CUDA: plan.contract {{.*}} then gelu_tanh_grad({{.*}}) sums result from
// CUDA-NOT: plan.{{launch|copy}}
// CUDA: -----
// RAN tp=1: nothing
// RAN tp=2: all-gather of 2 768 bytes 0 copies, reduce-scatter of 2 768 bytes 0 copies
// RAN tp=3: all-gather of 2 1024 bytes 0 copies, reduce-scatter of 2 1024 bytes 0 copies
// RAN tp=4: all-gather of 2 1152 bytes 0 copies, reduce-scatter of 2 1152 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<12x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!h = tensor<12x96xf32>
!w0 = tensor<16x96xf32, #tv.view<#m, [_, did(tp) * _]>>
!w0t = tensor<96x16xf32>
!b0 = tensor<96xf32, #tv.view<#m, [did(tp) * _]>>
!w1 = tensor<16x96xf32, #tv.view<#m, [_, did(tp) * _]>>
!b1 = tensor<16xf32, #tv.view<#m, [_]>>
#whole = #tv.view<#m, [_, _]>
!rows = tensor<12x16xf32>
func.func private @mlp(%x: !x, %w0: !w0, %b0: !b0, %w1: !w1, %b1: !b1) -> !x {
  %xs = tv.constrain %x : (!x) -> !rows to #whole
  %w0t = tv.transpose %w0 perm [1, 0] : (!w0) -> !w0t
  %u = tv.linear %xs, %w0t bias %b0 : (!rows, !w0t, !b0) -> !h
  %h = tv.gelu tanh %u : (!h) -> !h
  %y = tv.linear %h, %w1 bias %b1 : (!h, !w1, !b1) -> !x
  return %y : !x
}
func.func @main(%x: !x, %w0: !w0 {tv.role = "weight"}, %b0: !b0, %w1: !w1 {tv.role = "weight"}, %b1: !b1, %dy: !x)
    -> (!x, !x, !w0, !b0, !w1, !b1) {
  %dys = tv.constrain %dy : (!x) -> !rows to #whole
  %y, %dx, %dw0, %db0, %dw1, %db1 = tv.gradient @mlp(%x, %w0, %b0, %w1, %b1) of [0] with (%dys) to [0, 1, 2, 3, 4]
      : (!x, !w0, !b0, !w1, !b1, !rows) -> (!x, !x, !w0, !b0, !w1, !b1)
  return %y, %dx, %dw0, %db0, %dw1, %db1 : !x, !x, !w0, !b0, !w1, !b1
}

// -----

// A batch that is split, and the mean of squares for a loss: a device's sums are partial.
// CHECK: :5 = comm.all_reduce
// RAN dp=1: nothing
// RAN dp=2: all-reduce of 5 3236 bytes 0 copies
// RAN dp=3: all-reduce of 5 4320 bytes 0 copies
// RAN dp=4: all-reduce of 5 4860 bytes 0 copies
#m = #tv.mesh<dp = 2>
!x = tensor<?x16xf32, #tv.view<#m, [did(dp) * _, _]>>
!y = tensor<?x16xf32>
!h = tensor<?x24xf32>
!w0 = tensor<24x16xf32, #tv.view<#m, [_, _]>>
!b0 = tensor<24xf32, #tv.view<#m, [_]>>
!w1 = tensor<16x24xf32, #tv.view<#m, [_, _]>>
!b1 = tensor<16xf32, #tv.view<#m, [_]>>
!loss = tensor<f32, #tv.view<#m, []>>
func.func private @loss(%x: !x, %t: !x, %w0: !w0, %b0: !b0, %w1: !w1, %b1: !b1) -> !loss {
  %u = tv.linear %x, %w0 bias %b0 : (!x, !w0, !b0) -> !h
  %h = tv.gelu %u : (!h) -> !h
  %y = tv.linear %h, %w1 bias %b1 : (!h, !w1, !b1) -> !y
  %e = tv.sub %y, %t : (!y, !x) -> !y
  %s = tv.mul %e, %e : (!y, !y) -> !y
  %loss = tv.reduce sum %s dims [0, 1] : (!y) -> !loss
  return %loss : !loss
}
func.func @main(%x: !x {tv.dims = ["s"]}, %t: !x {tv.dims = ["s"]}, %w0: !w0 {tv.role = "weight"}, %b0: !b0 {tv.role = "weight"},
                %w1: !w1 {tv.role = "weight"}, %b1: !b1 {tv.role = "weight"})
    -> (!loss, !w0, !b0, !w1, !b1) attributes {tv.sizes = {s = 64}} {
  %loss, %dw0, %db0, %dw1, %db1 = tv.gradient @loss(%x, %t, %w0, %b0, %w1, %b1) of [0] to [2, 3, 4, 5]
      : (!x, !x, !w0, !b0, !w1, !b1) -> (!loss, !w0, !b0, !w1, !b1)
  return %loss, %dw0, %db0, %dw1, %db1 : !loss, !w0, !b0, !w1, !b1
}
