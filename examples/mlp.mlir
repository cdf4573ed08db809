// A two-layer perceptron over the devices of a tensor-parallel axis: one view.
#m = #tv.mesh<tp = 2>
func.func @main(%x: tensor<2x8x16xf32> {tv.name = "x"},
                %w0: tensor<64x16xf32, #tv.view<#m, [did(tp) * _, _]>> {tv.name = "w0", tv.role = "weight"},
                %w1: tensor<16x64xf32> {tv.name = "w1", tv.role = "weight"})
    -> (tensor<2x8x16xf32> {tv.name = "y"}) {
  %h = tv.linear %x, %w0 : (tensor<2x8x16xf32>, tensor<64x16xf32, #tv.view<#m, [did(tp) * _, _]>>) -> tensor<2x8x64xf32>
  %g = tv.gelu tanh %h : (tensor<2x8x64xf32>) -> tensor<2x8x64xf32>
  %y = tv.linear %g, %w1 : (tensor<2x8x64xf32>, tensor<16x64xf32>) -> tensor<2x8x16xf32>
  return %y : tensor<2x8x16xf32>
}
