// RUN: tessera-opt %s --split-input-file --tv-plan-reshards=explain \
// RUN:   --tv-verify-planned --verify-diagnostics | FileCheck %s

#m = #tv.mesh<tp = 2>
#p = #tv.view<#m, [8], partial = [tp : sum]>
#w = #tv.view<#m, [8]>
// CHECK-LABEL: @all_reduce
// CHECK: tv.reshard %arg0 plan <all_reduce over {{.*}} [tp], loser = "reduce-scatter over [tp], then all-gather over [tp], 32 bytes, 10.0 us">
func.func @all_reduce(%x: tensor<8xf32, #p>) -> tensor<8xf32, #w> {
  // expected-remark @+1 {{[8], partial = [tp : sum] to [8]: all-reduce over [tp], 32 bytes, 5.0 us; lower bound 32 bytes; instead of reduce-scatter over [tp], then all-gather over [tp], 32 bytes, 10.0 us}}
  %z = tv.reshard %x : (tensor<8xf32, #p>) -> tensor<8xf32, #w>
  return %z : tensor<8xf32, #w>
}

// -----

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [did(tp) * 4]>
#w = #tv.view<#m, [8]>
// CHECK-LABEL: @local_slice
// CHECK: tv.reshard %arg0 plan <slice over {{.*}} [tp]>
func.func @local_slice(%x: tensor<8xf32, #w>) -> tensor<8xf32, #s> {
  // expected-remark @+1 {{[8] to [did(tp) * 4]: local slice over [tp], 0 bytes, 0.0 us; lower bound 0 bytes}}
  %z = tv.reshard %x : (tensor<8xf32, #w>) -> tensor<8xf32, #s>
  return %z : tensor<8xf32, #s>
}

// -----

#m = #tv.mesh<x = 2, y = 2>
#s = #tv.view<#m, [did(x) * 4, 6], partial = [y : sum]>
#w = #tv.view<#m, [8, did(y) * 3]>
// A chain of steps: the sum is scattered before the gather.
// CHECK-LABEL: @reduce_scatter_then_gather
// CHECK: %[[A:.*]] = tv.reshard %arg0 plan <reduce_scatter over {{.*}} [y]
// CHECK: tv.reshard %[[A]] plan <all_gather over {{.*}} [x]
func.func @reduce_scatter_then_gather(%x: tensor<8x6xf32, #s>) -> tensor<8x6xf32, #w> {
  // expected-remark @+1 {{reduce-scatter over [y], then all-gather over [x]}}
  %z = tv.reshard %x : (tensor<8x6xf32, #s>) -> tensor<8x6xf32, #w>
  return %z : tensor<8x6xf32, #w>
}

// -----

#m = #tv.mesh<x = 2, y = 2>
#s = #tv.view<#m, [did(x) * _, 6], partial = [y : sum]>
#w = #tv.view<#m, [_, did(y) * 3]>
// Planned at the maximum; the view between the steps scales with the extent.
// CHECK-LABEL: @dynamic_extent
// CHECK: tv.reshard %arg0 plan <reduce_scatter over {{.*}} [y]
// CHECK: tv.reshard {{.*}} plan <all_gather over {{.*}} [x]
func.func @dynamic_extent(%x: tensor<?x6xf32, #s> {tv.dims = ["b"]}) -> tensor<?x6xf32, #w>
    attributes {tv.sizes = {b = 8}} {
  // expected-remark @+1 {{reduce-scatter over [y], then all-gather over [x]}}
  %z = tv.reshard %x : (tensor<?x6xf32, #s>) -> tensor<?x6xf32, #w>
  return %z : tensor<?x6xf32, #w>
}

// -----

// The user's step, where another would be chosen.

#m = #tv.mesh<tp = 2>
#half = #tv.view<#m, [did(tp) * 4]>
#whole = #tv.view<#m, [8]>
// CHECK-LABEL: @written_step
// CHECK: tv.reshard %arg0 plan <exchange over {{.*}} [tp]>
func.func @written_step(%x: tensor<8xf32, #half>) -> tensor<8xf32, #whole> {
  // expected-remark @+1 {{[did(tp) * 4] to [8]: exchange, 16 bytes, 5.0 us; lower bound 16 bytes}}
  %z = tv.reshard %x {tv.step = "exchange"} : (tensor<8xf32, #half>) -> tensor<8xf32, #whole>
  return %z : tensor<8xf32, #whole>
}
