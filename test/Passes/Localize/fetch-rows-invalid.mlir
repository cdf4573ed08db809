// RUN: tessera-opt %s --split-input-file --tv-fetch-rows --verify-diagnostics

#m = #tv.mesh<tp = 2>
!t = tensor<4x8xf32, #tv.local<#tv.view<#m, [4 * did(tp), 8], alloc = (0, 1)>, of [8, 8]>>
!i = tensor<4xi32, #tv.local<#tv.view<#m, [4], alloc = (0)>, of [4]>>
!p = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8], alloc = (0, 1), partial = [tp : sum]>, of [4, 8]>>
!y = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8], alloc = (0, 1)>, of [4, 8]>>
func.func @in_turn(%t: !t, %i: !i) -> !y {
  // expected-error @+1 {{is to fetch rows (tv.step), but no collective alone brings it rows that lie in blocks over devices}}
  %0 = tv.gather %t, %i dim 0 {tv.step = "fetch"} : (!t, !i) -> !p
  %1 = comm.all_reduce %0 over #m [tp] id 0 : (!p) -> !y
  return %1 : !y
}

// -----

func.func @another_step(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'tv.step' is of a tv.reshard, and names the kind of a step, such as "all_gather"; or "fetch", of an op that reads rows by indices}}
  %y = tv.gelu %x {tv.step = "fetch"} : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
