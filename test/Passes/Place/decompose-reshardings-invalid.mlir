// RUN: tessera-opt --tv-decompose-reshardings --verify-diagnostics %s

// Without tv-bind, views are not in canonical form.

#m = #tv.mesh<x = 2>
#a = #tv.view<#m, [(did(x) * _ | 3) * 1, _]>
#b = #tv.view<#m, [3 * did(x) * 5]>
// expected-error @+1 {{has another view than its canonical one, [did(x) * 2, 10]}}
func.func @not_bound(%a: tensor<3x10xf32, #a>) -> tensor<30xf32, #b> {
  %0 = tv.reshape %a : (tensor<3x10xf32, #a>) -> tensor<30xf32, #b>
  return %0 : tensor<30xf32, #b>
}
