// A perceptron with its gradients, written by hand, as in examples/mlp_grad.mlir. With
// bf16 on cuda, a library does nearly all of it together with the products: the gelu and
// its slope, and the gradients of the biases as sums of columns.
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera=to=kernels --interpret=2 -o /dev/null
// RUN: sed s/f32/bf16/g %s | tessera-opt --split-input-file --tessera="to=kernels target=cuda:sm_90a" --interpret=2 --interpret-precision=program | FileCheck %s --check-prefix=CUDA

// Of one row the second device has none.
// RUN: sed -e '1,/^\/\/ -----/d' -e s/f32/bf16/g %s | tessera-opt --tessera="to=kernels target=cuda:sm_90a" --interpret=2 --interpret-sizes=s=1 -o /dev/null

// CHECK: comm.all_gather
// CHECK: comm.all_gather
// CHECK: tv.gelu_grad tanh
// CHECK: :2 = comm.reduce_scatter
// CUDA-NOT: plan.launch
// CUDA: plan.contract {{.*}} bias {{.*}} then gelu_tanh from
// CUDA: plan.contract {{.*}} bias {{.*}} from
// CUDA: plan.contract {{.*}} then gelu_tanh_grad({{.*}}) sums result from
// CUDA: plan.contract {{.*}} to [1, 2] from
// CUDA: plan.contract {{.*}} to [0, 2] from
// CUDA: plan.contract {{.*}} to [1, 2] sums a from
// CUDA-NOT: plan.launch
// CUDA: -----
// Rows are split outside, the hidden layer inside: sequence parallel. What follows the
// second layer is gathered once, and its sums are whole.
// RAN tp=1: nothing
// RAN tp=2: all-gather 384 bytes 0 copies, all-gather 384 bytes 0 copies, reduce-scatter of 2 768 bytes 0 copies
// RAN tp=3: all-gather 512 bytes 0 copies, all-gather 512 bytes 0 copies, reduce-scatter of 2 1024 bytes 0 copies
// RAN tp=4: all-gather 576 bytes 0 copies, all-gather 576 bytes 0 copies, reduce-scatter of 2 1152 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<12x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!xt = tensor<16x12xf32>
!h = tensor<12x96xf32>
!ht = tensor<96x12xf32>
!w0 = tensor<16x96xf32, #tv.view<#m, [_, did(tp) * _]>>
!w0t = tensor<96x16xf32>
!b0 = tensor<96xf32, #tv.view<#m, [did(tp) * _]>>
!w1 = tensor<16x96xf32, #tv.view<#m, [_, did(tp) * _]>>
!w1t = tensor<96x16xf32>
!b1 = tensor<16xf32, #tv.view<#m, [_]>>
#whole = #tv.view<#m, [_, _]>
!rows = tensor<12x16xf32>
func.func @main(%x: !x, %w0: !w0 {tv.role = "weight"}, %b0: !b0, %w1: !w1 {tv.role = "weight"}, %b1: !b1, %dy: !x)
    -> (!x, !x, !w0, !b0, !w1, !b1) {
  %xs = tv.constrain %x : (!x) -> !rows to #whole
  %w0t = tv.transpose %w0 perm [1, 0] : (!w0) -> !w0t
  %u = tv.linear %xs, %w0t bias %b0 : (!rows, !w0t, !b0) -> !h
  %h = tv.gelu tanh %u : (!h) -> !h
  %y = tv.linear %h, %w1 bias %b1 : (!h, !w1, !b1) -> !x

  %dys = tv.constrain %dy : (!x) -> !rows to #whole
  %w1t = tv.transpose %w1 perm [1, 0] : (!w1) -> !w1t
  %dh = tv.linear %dys, %w1t : (!rows, !w1t) -> !h
  %du = tv.gelu_grad tanh %dh, %u : (!h, !h) -> !h
  %db0 = tv.reduce sum %du dims [0] : (!h) -> !b0
  %dut = tv.transpose %du perm [1, 0] : (!h) -> !ht
  %xt = tv.transpose %xs perm [1, 0] : (!rows) -> !xt
  %dw0 = tv.linear %xt, %dut : (!xt, !ht) -> !w0
  %dx = tv.linear %du, %w0 : (!h, !w0) -> !x
  %db1 = tv.reduce sum %dys dims [0] : (!rows) -> !b1
  %dyt = tv.transpose %dys perm [1, 0] : (!rows) -> !xt
  %ht = tv.transpose %h perm [1, 0] : (!h) -> !ht
  %dw1 = tv.linear %dyt, %ht : (!xt, !ht) -> !w1
  return %y, %dx, %dw0, %db0, %dw1, %db1 : !x, !x, !w0, !b0, !w1, !b1
}

// -----

// A batch that is split: a device's sums are partial. Weights are those of matmuls, one
// of them beside the hidden layer.
// CHECK: :5 = comm.all_reduce
// CUDA: plan.contract {{.*}} then gelu_tanh_grad({{.*}}) from
// CUDA: plan.contract {{.*}} sums b from
// CUDA: :5 = comm.all_reduce
// RAN dp=1: nothing
// RAN dp=2: all-reduce of 5 4256 bytes 0 copies
// RAN dp=3: all-reduce of 5 5680 bytes 0 copies
// RAN dp=4: all-reduce of 5 6384 bytes 0 copies
#m = #tv.mesh<dp = 2>
!x = tensor<?x16xf32, #tv.view<#m, [did(dp) * _, _]>>
!xt = tensor<16x?xf32>
!h = tensor<?x24xf32>
!w0 = tensor<16x24xf32, #tv.view<#m, [_, _]>>
!w0t = tensor<24x16xf32>
!b0 = tensor<24xf32, #tv.view<#m, [_]>>
!w1 = tensor<24x16xf32>
!w1t = tensor<16x24xf32, #tv.view<#m, [_, _]>>
!w2 = tensor<16x16xf32, #tv.view<#m, [_, _]>>
!b1 = tensor<16xf32, #tv.view<#m, [_]>>
func.func @main(%x: !x {tv.dims = ["s"]}, %w0: !w0 {tv.role = "weight"}, %w1t: !w1t {tv.role = "weight"},
                %w2: !w2 {tv.role = "weight"}, %dy: !x {tv.dims = ["s"]})
    -> (!x, !x, !w0, !b0, !w1t, !w2, !b1) attributes {tv.sizes = {s = 64}} {
  %u = tv.matmul %x, %w0 : (!x, !w0) -> !h
  %h = tv.gelu tanh %u : (!h) -> !h
  %w1 = tv.transpose %w1t perm [1, 0] : (!w1t) -> !w1
  %0 = tv.matmul %h, %w1 : (!h, !w1) -> !x
  %1 = tv.matmul %x, %w2 : (!x, !w2) -> !x
  %y = tv.add %0, %1 : (!x, !x) -> !x

  %dh = tv.matmul %dy, %w1t : (!x, !w1t) -> !h
  %du = tv.gelu_grad tanh %dh, %u : (!h, !h) -> !h
  %db0 = tv.reduce sum %du dims [0] : (!h) -> !b0
  %xt = tv.transpose %x perm [1, 0] : (!x) -> !xt
  %dw0 = tv.matmul %xt, %du : (!xt, !h) -> !w0
  %w0t = tv.transpose %w0 perm [1, 0] : (!w0) -> !w0t
  %2 = tv.matmul %du, %w0t : (!h, !w0t) -> !x
  %w2t = tv.transpose %w2 perm [1, 0] : (!w2) -> !w2
  %3 = tv.matmul %dy, %w2t : (!x, !w2) -> !x
  %dx = tv.add %2, %3 : (!x, !x) -> !x
  %db1 = tv.reduce sum %dy dims [0] : (!x) -> !b1
  %dw2 = tv.matmul %xt, %dy : (!xt, !x) -> !w2
  %dyt = tv.transpose %dy perm [1, 0] : (!x) -> !xt
  %dw1t = tv.matmul %dyt, %h : (!xt, !h) -> !w1t
  return %y, %dx, %dw0, %db0, %dw1t, %dw2, %db1 : !x, !x, !w0, !b0, !w1t, !w2, !b1
}
