// RUN: tessera-opt --tv-bind --tv-propagate-shardings --split-input-file --verify-diagnostics --mlir-print-op-on-diagnostic=false %s

// expected-error @+1 {{no tensor of 'no_view' has a view, so there is no mesh to shard it over}}
func.func @no_view(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// Two meshes, where no op has tensors on both.
#m = #tv.mesh<tp = 2>
#n = #tv.mesh<tp = 3>
// expected-error @+1 {{has a view on mesh #tv.mesh<tp = 3>, but others are on #tv.mesh<tp = 2>; a program runs on one mesh}}
func.func @arguments(%x: tensor<12xf32, #tv.view<#m, [did(tp) * _]>>, %y: tensor<12xf32, #tv.view<#n, [did(tp) * _]>>) {
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>
#n = #tv.mesh<tp = 2, dp = 2>
func.func @constraint(%x: tensor<12xf32, #tv.view<#m, [did(tp) * _]>>) -> tensor<12xf32> {
  %0 = tv.silu %x : (tensor<12xf32, #tv.view<#m, [did(tp) * _]>>) -> tensor<12xf32>
  // expected-error @+1 {{has a view on mesh #tv.mesh<tp = 2, dp = 2>, but others are on #tv.mesh<dp = 2, tp = 2>}}
  %1 = tv.constrain %0 : (tensor<12xf32>) -> tensor<12xf32> to #tv.view<#n, [did(tp) * _]>
  return %1 : tensor<12xf32>
}
