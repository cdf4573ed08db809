// Results of f64 are as far from the reference as rounding to f64 makes them, which the
// reference does as well; what is wrong is still found.
// RUN: split-file %s %t
// RUN: tessera-opt %t/gelu.mlir --tessera=to=kernels --interpret=2 -o /dev/null | FileCheck %s
// RUN: sed 's/64x1/64x3/; s/gelu tanh/gelu/' %t/gelu.mlir | tessera-opt --tessera=to=kernels --interpret=2 -o /dev/null | FileCheck %s
// RUN: not tessera-opt %t/wrong.mlir --interpret=1 --interpret-against=@right -o /dev/null 2>&1 | FileCheck %s --check-prefix=WRONG
// CHECK: equals the source on 2 ranks
// WRONG: error: result #0 differs at [

//--- gelu.mlir
#m = #tv.mesh<x = 2>
!a = tensor<64x1xf64, #tv.view<#m, [did(x) * _, _]>>
func.func @main(%a: !a) -> !a {
  %r = tv.gelu tanh %a : (!a) -> !a
  return %r : !a
}

//--- wrong.mlir
func.func @main(%a: tensor<8x1xf64>) -> tensor<8x1xf64> {
  %g = tv.gelu tanh %a : (tensor<8x1xf64>) -> tensor<8x1xf64>
  %r = tv.map %g : (tensor<8x1xf64>) -> tensor<8x1xf64>
    (%x: f64) {
      %c = arith.constant 1.0000000000001 : f64
      %y = arith.mulf %x, %c : f64
      tv.yield %y : f64
    }
  return %r : tensor<8x1xf64>
}
func.func @right(%a: tensor<8x1xf64>) -> tensor<8x1xf64> {
  %r = tv.gelu tanh %a : (tensor<8x1xf64>) -> tensor<8x1xf64>
  return %r : tensor<8x1xf64>
}
