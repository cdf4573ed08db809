// RUN: tessera-opt %s --tv-decompose-composites=all -split-input-file -verify-diagnostics

#m = #tv.mesh<x = 2>
#v = #tv.view<#m, [4, did(x) * 4]>
func.func @softmax_of_a_part(%x: tensor<4x4xf32, #tv.local<#v, of [4, 8]>>) {
  // expected-error@+1 {{cannot be decomposed on local types when dimension 1 is split; decompose it before}}
  %r = tv.softmax %x dim 1 : (tensor<4x4xf32, #tv.local<#v, of [4, 8]>>) -> tensor<4x4xf32, #tv.local<#v, of [4, 8]>>
  return
}

// -----

#m = #tv.mesh<x = 2>
#v = #tv.view<#m, [4, did(x) * 4]>
func.func @rope_of_a_part(%x: tensor<4x4xf32, #tv.local<#v, of [4, 8]>>) {
  // expected-error@+1 {{cannot be decomposed on local types when its last dimension is split}}
  %r = tv.rope %x base(10000.0) : (tensor<4x4xf32, #tv.local<#v, of [4, 8]>>) -> tensor<4x4xf32, #tv.local<#v, of [4, 8]>>
  return
}
