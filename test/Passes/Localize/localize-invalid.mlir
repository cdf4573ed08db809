// RUN: tessera-opt %s --split-input-file --verify-diagnostics --tv-localize --tv-verify-localized

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [did(tp) * 4]>
#w = #tv.view<#m, [8]>
func.func @no_plan(%x: tensor<8xf32, #s>) -> tensor<8xf32, #w> {
  // expected-error @+1 {{tv-localize runs after tv-plan-reshards: 'tv.reshard' has no plan}}
  %z = tv.reshard %x : (tensor<8xf32, #s>) -> tensor<8xf32, #w>
  return %z : tensor<8xf32, #w>
}

// -----

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [did(tp) * 4]>
func.func @no_view(%x: tensor<8xf32, #s>) -> tensor<8xf32> {
  // expected-error @+1 {{tv-localize runs after tv-plan-reshards: a value of type 'tensor<8xf32>' has no view}}
  %z = tv.gelu %x : (tensor<8xf32, #s>) -> tensor<8xf32>
  return %z : tensor<8xf32>
}

// -----

// expected-error @+1 {{has no body; a program is compiled as a whole}}
func.func private @external(tensor<8xf32>)
