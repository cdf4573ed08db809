// RUN: tessera-opt --split-input-file --verify-diagnostics %s

#m = #tv.mesh<tp = 2>
func.func @no_part(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{argument #0 in the region has type 'tensor<8xf32>'; it must be one device's part, a tensor with #tv.local}}
  %y = tv.local_region %x : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%own: tensor<8xf32>):
    tv.yield %own : tensor<8xf32>
  }
  return %y : tensor<8xf32>
}

// -----

#m = #tv.mesh<tp = 2>
!part = tensor<8xf32, #tv.local<#tv.view<#m, [did(tp) * _]>, of [16]>>
func.func @part_of_another(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{argument #0 in the region is a part of another tensor}}
  %y = tv.local_region %x : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%own: !part):
    tv.yield %own : !part
  }
  return %y : tensor<8xf32>
}

// -----

#m = #tv.mesh<tp = 2>
!part = tensor<4xf32, #tv.local<#tv.view<#m, [did(tp) * _]>, of [8]>>
func.func @too_few(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{has 1 operands, and its region 2 arguments}}
  %y = tv.local_region %x : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%own: !part, %other: !part):
    tv.yield %own : !part
  }
  return %y : tensor<8xf32>
}

// -----

#m = #tv.mesh<tp = 2>
!part = tensor<4xf32, #tv.local<#tv.view<#m, [did(tp) * _]>, of [8]>>
func.func @yields_less(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{region must end in 'tv.yield' of 1 tensors, one a result}}
  %y = tv.local_region %x : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%own: !part):
    tv.yield
  }
  return %y : tensor<8xf32>
}

// -----

#m = #tv.mesh<tp = 2>
#whole = #tv.view<#m, [_]>
!part = tensor<4xf32, #tv.local<#tv.view<#m, [did(tp) * _]>, of [8]>>
func.func @lies_otherwise(%x: tensor<8xf32>) -> tensor<8xf32, #whole> {
  // expected-error@+1 {{result #0 lies as #tv.view<#tv.mesh<tp = 2>, [_]>, but the region yields it as #tv.view<#tv.mesh<tp = 2>, [did(tp) * _]>}}
  %y = tv.local_region %x : (tensor<8xf32>) -> tensor<8xf32, #whole> {
  ^bb0(%own: !part):
    tv.yield %own : !part
  }
  return %y : tensor<8xf32, #whole>
}

// -----

#m = #tv.mesh<tp = 2>
#n = #tv.mesh<x = 2>
!part = tensor<4xf32, #tv.local<#tv.view<#m, [did(tp) * _]>, of [8]>>
!other = tensor<4xf32, #tv.local<#tv.view<#n, [did(x) * _]>, of [8]>>
func.func @two_meshes(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // expected-error@+1 {{argument #1 in the region lies on mesh #tv.mesh<x = 2>, others on #tv.mesh<tp = 2>}}
  %y:2 = tv.local_region %x, %x
      : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  ^bb0(%own: !part, %other: !other):
    tv.yield %own, %other : !part, !other
  }
  return %y#0, %y#1 : tensor<8xf32>, tensor<8xf32>
}

// -----

#m = #tv.mesh<tp = 2>
#rows = #tv.view<#m, [did(tp) * _]>
!part = tensor<4xf32, #tv.local<#rows, of [8]>>
func.func @guides(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = tv.local_region %x : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%own: !part):
    %a = tv.iota 0 : () -> tensor<8xf32>
    // expected-error@+1 {{'tv.barrier' in a 'tv.local_region', which holds ops of tv that compute, and moves of comm}}
    %b = tv.barrier none %a : (tensor<8xf32>) -> tensor<8xf32>
    tv.yield %own : !part
  }
  return %y : tensor<8xf32>
}

// -----

#m = #tv.mesh<tp = 2>
!part = tensor<4xf32, #tv.local<#tv.view<#m, [did(tp) * _]>, of [8]>>
func.func @whole_inside(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{result #0 of 'tv.iota' in the region has type 'tensor<8xf32>'; it must be one device's part}}
  %y = tv.local_region %x : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%own: !part):
    %a = tv.iota 0 : () -> tensor<8xf32>
    tv.yield %own : !part
  }
  return %y : tensor<8xf32>
}

// -----

#m = #tv.mesh<tp = 2>
!part = tensor<4xf32, #tv.local<#tv.view<#m, [did(tp) * _]>, of [8]>>
func.func @from_outside(%x: tensor<8xf32>, %z: !part) -> tensor<8xf32> {
  %y = tv.local_region %x : (tensor<8xf32>) -> tensor<8xf32> {
  // expected-note@-1 {{required by region isolation constraints}}
  ^bb0(%own: !part):
    // expected-error@+1 {{using value defined outside the region}}
    %a = tv.add %own, %z : (!part, !part) -> !part
    tv.yield %a : !part
  }
  return %y : tensor<8xf32>
}

// -----

#m = #tv.mesh<tp = 2>
!part = tensor<4xf32, #tv.local<#tv.view<#m, [did(tp) * _]>, of [8]>>
func.func @part_outside(%x: !part) -> tensor<8xf32> {
  // expected-error@+1 {{is of global tensors, not of 'tensor<4xf32, #tv.local}}
  %y = tv.local_region %x : (!part) -> tensor<8xf32> {
  ^bb0(%own: !part):
    tv.yield %own : !part
  }
  return %y : tensor<8xf32>
}
