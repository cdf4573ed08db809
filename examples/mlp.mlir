// A two-layer perceptron over the devices of a tensor-parallel axis: one view.
#m = #tv.mesh<tp = 2>
!x = tensor<8x16xf32>
!h = tensor<8x64xf32>
!w0 = tensor<64x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!w1 = tensor<16x64xf32>
func.func @main(%x: !x {tv.name = "x"}, %w0: !w0 {tv.name = "w0"}, %w1: !w1 {tv.name = "w1"}) -> (!x {tv.name = "y"}) {
  %h = tv.linear %x, %w0 : (!x, !w0) -> !h
  %g = tv.gelu tanh %h : (!h) -> !h
  %y = tv.linear %g, %w1 : (!h, !w1) -> !x
  return %y : !x
}
