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

// -----

// Each function calls the one below twice.

#m = #tv.mesh<tp = 2>
func.func private @f0(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tv.gelu tanh %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @f1(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f0(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f0(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f2(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f1(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f1(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f3(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f2(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f2(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f4(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f3(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f3(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f5(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f4(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f4(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f6(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f5(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f5(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f7(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f6(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f6(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f8(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f7(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f7(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f9(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f8(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f8(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f10(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f9(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f9(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f11(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f10(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f10(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f12(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f11(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f11(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f13(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f12(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f12(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f14(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f13(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f13(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f15(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f14(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f14(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f16(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f15(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f15(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f17(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f16(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f16(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f18(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f17(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f17(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f19(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f18(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f18(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func @doubles(%x: tensor<2xf32>, %t: tensor<4xf32, #tv.view<#m, [_]>>) -> tensor<2xf32> {
  // expected-error @+1 {{'f19' inlines here to 524288 ops, and 'doubles' becomes 524288; a program may have 262144}}
  %0 = call @f19(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// Copies of what each of them reads twice.

#m = #tv.mesh<tp = 2>
func.func @copies(%x: tensor<2xf32>, %t: tensor<4xf32, #tv.view<#m, [_]>>) -> tensor<2xf32> {
  %0 = tv.broadcast %x dims [0] like %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = tv.broadcast %0 dims [0] like %0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  // expected-error @+1 {{has 131072 uses, each with a copy of its own, and 'copies' becomes more than 262144 ops}}
  %2 = tv.broadcast %1 dims [0] like %1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %3 = tv.broadcast %2 dims [0] like %2 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %4 = tv.broadcast %3 dims [0] like %3 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %5 = tv.broadcast %4 dims [0] like %4 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %6 = tv.broadcast %5 dims [0] like %5 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %7 = tv.broadcast %6 dims [0] like %6 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %8 = tv.broadcast %7 dims [0] like %7 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %9 = tv.broadcast %8 dims [0] like %8 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %10 = tv.broadcast %9 dims [0] like %9 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %11 = tv.broadcast %10 dims [0] like %10 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %12 = tv.broadcast %11 dims [0] like %11 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %13 = tv.broadcast %12 dims [0] like %12 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %14 = tv.broadcast %13 dims [0] like %13 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %15 = tv.broadcast %14 dims [0] like %14 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %16 = tv.broadcast %15 dims [0] like %15 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %17 = tv.broadcast %16 dims [0] like %16 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %18 = tv.broadcast %17 dims [0] like %17 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %19 = tv.broadcast %18 dims [0] like %18 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %19 : tensor<2xf32>
}

// -----

#m = #tv.mesh<tp = 2>
// expected-error @+1 {{argument #1: a tensor may have 16 dimensions, not 17}}
func.func @rank_of_argument(%t: tensor<4xf32, #tv.view<#m, [_]>>, %x: tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>) {
  return
}

// -----

#m = #tv.mesh<tp = 2>
func.func @rank_of_result(%t: tensor<4xf32, #tv.view<#m, [_]>>, %x: tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>) {
  // expected-error @+1 {{result #0: a tensor may have 16 dimensions, not 17}}
  %0 = tv.reshape %x : (tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>) -> tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>
  return
}
