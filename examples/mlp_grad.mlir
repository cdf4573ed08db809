// The two-layer perceptron of mlp.mlir, with biases, and its gradients from that of its
// result, written by hand; over the devices of a tensor-parallel axis. The hidden layer
// is the columns of both weights.
#m = #tv.mesh<tp = 2>
!x = tensor<12x16xf32>
!xt = tensor<16x12xf32>
!h = tensor<12x96xf32>
!ht = tensor<96x12xf32>
!w0 = tensor<16x96xf32, #tv.view<#m, [_, did(tp) * _]>>
!w0t = tensor<96x16xf32>
!b0 = tensor<96xf32, #tv.view<#m, [did(tp) * _]>>
!w1 = tensor<16x96xf32, #tv.view<#m, [_, did(tp) * _]>>
!w1t = tensor<96x16xf32>
!b1 = tensor<16xf32>
func.func @main(%x: !x {tv.name = "x"}, %w0: !w0 {tv.name = "w0", tv.role = "weight"}, %b0: !b0 {tv.name = "b0"},
                %w1: !w1 {tv.name = "w1", tv.role = "weight"}, %b1: !b1 {tv.name = "b1"}, %dy: !x {tv.name = "dy"})
    -> (!x {tv.name = "y"}, !x {tv.name = "dx"}, !w0 {tv.name = "dw0"}, !b0 {tv.name = "db0"},
        !w1 {tv.name = "dw1"}, !b1 {tv.name = "db1"}) {
  %w0t = tv.transpose %w0 perm [1, 0] : (!w0) -> !w0t
  %u = tv.linear %x, %w0t bias %b0 : (!x, !w0t, !b0) -> !h
  %h = tv.gelu tanh %u : (!h) -> !h
  %y = tv.linear %h, %w1 bias %b1 : (!h, !w1, !b1) -> !x

  %w1t = tv.transpose %w1 perm [1, 0] : (!w1) -> !w1t
  %dh = tv.linear %dy, %w1t : (!x, !w1t) -> !h
  %du = tv.gelu_grad tanh %dh, %u : (!h, !h) -> !h
  %db0 = tv.reduce sum %du dims [0] : (!h) -> !b0
  %dut = tv.transpose %du perm [1, 0] : (!h) -> !ht
  %xt = tv.transpose %x perm [1, 0] : (!x) -> !xt
  %dw0 = tv.linear %xt, %dut : (!xt, !ht) -> !w0
  %dx = tv.linear %du, %w0 : (!h, !w0) -> !x
  %db1 = tv.reduce sum %dy dims [0] : (!x) -> !b1
  %dyt = tv.transpose %dy perm [1, 0] : (!x) -> !xt
  %ht = tv.transpose %h perm [1, 0] : (!h) -> !ht
  %dw1 = tv.linear %dyt, %ht : (!xt, !ht) -> !w1
  return %y, %dx, %dw0, %db0, %dw1, %db1 : !x, !x, !w0, !b0, !w1, !b1
}
