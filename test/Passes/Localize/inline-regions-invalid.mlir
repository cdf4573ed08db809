// RUN: tessera-opt %s --tv-inline-regions --verify-diagnostics

#m = #tv.mesh<tp = 2>
!t = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * _, _]>, of [8, 8]>>
!i = tensor<3xi32, #tv.local<#tv.view<#m, [_]>, of [3]>>
!y = tensor<3x8xf32, #tv.local<#tv.view<#m, [_, _]>, of [3, 8]>>
func.func @f(%t: tensor<8x8xf32>, %i: tensor<3xi32>) -> tensor<3x8xf32> {
  %y = tv.local_region %t, %i : (tensor<8x8xf32>, tensor<3xi32>) -> tensor<3x8xf32> {
  ^bb0(%own: !t, %at: !i):
    // expected-error @+1 {{is none that a local region may have; tv.gather with tv.step = "fetch", outside of it, is one}}
    %0 = comm.fetch %own at %at over #m [tp] id 0 : (!t, !i) -> !y
    tv.yield %0 : !y
  }
  return %y : tensor<3x8xf32>
}
