// RUN: tessera-opt --tv-bind="mesh=tp=3" --split-input-file --verify-diagnostics %s

// Sub-axes keep their sizes, so they may not fit another mesh.

#m = #tv.mesh<tp = 4>
// expected-error @+1 {{argument #0}}
func.func @sub_axis_does_not_fit(%x: tensor<8xf32, #tv.view<#m, [did(tp:(1)2) * _]>>) {
  return
}

// -----

#m = #tv.mesh<tp = 2, devices = [1, 0]>
// expected-error @+1 {{the mesh lists its devices, so its axes cannot get other sizes}}
func.func @listed_devices(%x: tensor<8xf32, #tv.view<#m, [did(tp) * _]>>) {
  return
}

// -----

// expected-error @+1 {{mesh option names axis 'tp', which no view of the program has}}
module {
  func.func @unknown_axis(%x: tensor<8xf32, #tv.view<#tv.mesh<dp = 2>, [did(dp) * _]>>) {
    return
  }
}

// -----

#m = #tv.mesh<tp = 2>
func.func private @again(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'again' calls itself; recursion does not inline}}
  %0 = call @again(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @recursion(%x: tensor<4xf32>, %t: tensor<4xf32, #tv.view<#m, [_]>>) -> tensor<4xf32> {
  %0 = call @again(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#m = #tv.mesh<tp = 2>
func.func private @elsewhere(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @opaque_call(%x: tensor<4xf32>, %t: tensor<4xf32, #tv.view<#m, [_]>>) -> tensor<4xf32> {
  // expected-error @+1 {{calls 'elsewhere', which has no body here}}
  %0 = call @elsewhere(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

#m = #tv.mesh<tp = 2>
func.func @arith_on_sharded(%x: tensor<4xf32, #tv.view<#m, [_]>>) {
  // expected-error @+1 {{'arith.addf' on the tensors of a sharded program; only tv and func ops}}
  %0 = arith.addf %x, %x : tensor<4xf32, #tv.view<#m, [_]>>
  return
}

// -----

#m = #tv.mesh<tp = 2>
func.func @control_flow(%x: tensor<4xf32, #tv.view<#m, [_]>>, %c: i1) -> tensor<4xf32> {
  // expected-error @+1 {{'scf.if' on the tensors of a sharded program}}
  %0 = scf.if %c -> (tensor<4xf32>) {
    %1 = tv.add %x, %x : (tensor<4xf32, #tv.view<#m, [_]>>, tensor<4xf32, #tv.view<#m, [_]>>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    %1 = tv.mul %x, %x : (tensor<4xf32, #tv.view<#m, [_]>>, tensor<4xf32, #tv.view<#m, [_]>>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
