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

// -----

// Views that reach less than a dimension may have: of arguments, of what ops give, of a
// constraint, and of results; also where the extent is a sum of sizes.
#m = #tv.mesh<x = 2>
#v = #tv.view<#m, [did(x) * 3, _]>
// expected-error @+1 {{argument 'a' lies as [did(x) * 3, 6], which does not fit at the largest sizes, b = 8: dimension 0: did(x) * 3 reaches 6 values, fewer than the extent 8}}
func.func @reaches_less(%a: tensor<?x6xf32, #v> {tv.name = "a", tv.dims = ["b"]}) attributes {tv.sizes = {b = 8, s = 4}} {
  return
}

// -----

#m = #tv.mesh<x = 2>
#v = #tv.view<#m, [did(x) * 5]>
func.func @of_sum(%a: tensor<?xf32, #tv.view<#m, [did(x) * _]>> {tv.dims = ["b"]}, %c: tensor<?xf32> {tv.dims = ["s"]}) attributes {tv.sizes = {b = 8, s = 4}} {
  // expected-error @+1 {{result #0 lies as [did(x) * 5], which does not fit at the largest sizes, b = 8, s = 4: dimension 0: did(x) * 5 reaches 10 values, fewer than the extent 12}}
  %0 = tv.concat %a, %c dim 0 : (tensor<?xf32, #tv.view<#m, [did(x) * _]>>, tensor<?xf32>) -> tensor<?xf32, #v>
  return
}

// -----

#m = #tv.mesh<x = 2>
#v = #tv.view<#m, [(did(x) * _ | 4)]>
func.func @constraint_reaches_less(%a: tensor<?xf32> {tv.dims = ["b"]}) -> tensor<?xf32> attributes {tv.sizes = {b = 8}} {
  // expected-error @+1 {{result #0 lies as [did(x) * 2], which does not fit at the largest sizes, b = 8}}
  %0 = tv.constrain %a : (tensor<?xf32>) -> tensor<?xf32> to #v
  return %0 : tensor<?xf32>
}
