// RUN: tessera-opt --tv-bind --tv-propagate-shardings --split-input-file --verify-diagnostics --mlir-print-op-on-diagnostic=false %s

// expected-error @+1 {{no tensor of 'no_view' has a view, so there is no mesh to shard it over}}
func.func @no_view(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4xf32, #tv.view<#tv.mesh<tp = 2>, [did(tp) * _]>>) {
  return
}
// expected-error @+1 {{no tensor of 'called' has a view, so there is no mesh to shard it over; write one on an argument, as #tv.view<#tv.mesh<tp = 2>, [did(tp) * _, _]>, or make it private if only others call it}}
func.func @called(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// Two meshes, where no op has tensors on both.
#m = #tv.mesh<tp = 2>
#n = #tv.mesh<tp = 3>
// expected-error @+1 {{has a view on mesh #tv.mesh<tp = 3>, of 3 devices, but others are on #tv.mesh<tp = 2>, of 2; meshes of one program name the same devices}}
func.func @arguments(%x: tensor<12xf32, #tv.view<#m, [did(tp) * _]>>, %y: tensor<12xf32, #tv.view<#n, [did(tp) * _]>>) {
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 3>
#n = #tv.mesh<tp = 3, devices = [0, 2, 1]>
func.func @constraint(%x: tensor<12xf32, #tv.view<#m, [did(tp) * _]>>) -> tensor<12xf32> {
  %0 = tv.silu %x : (tensor<12xf32, #tv.view<#m, [did(tp) * _]>>) -> tensor<12xf32>
  // expected-error @+1 {{constraint: has a view on mesh #tv.mesh<tp = 3, devices = [0, 2, 1]>, of 3 devices, but others are on #tv.mesh<dp = 2, tp = 3>, of 6}}
  %1 = tv.constrain %0 : (tensor<12xf32>) -> tensor<12xf32> to #tv.view<#n, [did(tp) * _]>
  return %1 : tensor<12xf32>
}

// -----

// Tensors of extents that only look alike.
func.func @tied_extents(%a: tensor<?xf32, #tv.view<#tv.mesh<x = 2>, [did(x) * _]>> {tv.dims = ["b"]}, %b: tensor<?xf32> {tv.dims = ["s"]}) attributes {tv.sizes = {b = 4, s = 4}} {
  // expected-error @+1 {{'tv.same_view' op operand #1's dimension 0 has extent s; it must be b, as operand #0's dimension 0 has}}
  %0:2 = tv.same_view %a, %b : (tensor<?xf32, #tv.view<#tv.mesh<x = 2>, [did(x) * _]>>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  return
}
