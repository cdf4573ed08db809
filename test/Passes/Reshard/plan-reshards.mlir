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

// -----

#m = #tv.mesh<x = 2, y = 2>
!rows = tensor<8x6xf32, #tv.view<#m, [did(x) * 4, 6]>>
!others = tensor<8x6xf32, #tv.view<#m, [did(y) * 4, 6], partial = [x : sum]>>
!columns = tensor<8x6xf32, #tv.view<#m, [8, did(y) * 3], partial = [x : max]>>
// Along x devices have everything together: each keeps what it has of what it needs.
// CHECK-LABEL: @parts_become_addends
// CHECK: tv.reshard %arg0 plan <slice over {{.*}} [x], loser = "exchange, then whole to partial over [x], 96 bytes, 5.0 us">
// CHECK: tv.reshard %arg0 plan <slice over {{.*}} [x]
func.func @parts_become_addends(%x: !rows) -> (!others, !columns) {
  // expected-remark @+1 {{: split to partial over [x], 0 bytes, 0.0 us; lower bound 0 bytes; instead of exchange, then whole to partial over [x], 96 bytes, 5.0 us}}
  %y = tv.reshard %x : (!rows) -> !others
  // expected-remark @+1 {{: split to partial over [x], 0 bytes, 0.0 us; lower bound 0 bytes}}
  %z = tv.reshard %x : (!rows) -> !columns
  return %y, %z : !others, !columns
}

// -----

#m = #tv.mesh<x = 2, y = 2>
!rows = tensor<8x6xf32, #tv.view<#m, [did(x) * 4, 6]>>
!sum = tensor<8x6xf32, #tv.view<#m, [8, 6], partial = [y : sum]>>
// Along y they lack half of it, which they share.
// CHECK-LABEL: @half_is_not_there
// CHECK: tv.reshard %arg0 plan <exchange over {{.*}} [x, y]
// CHECK-NOT: tv.reshard
func.func @half_is_not_there(%x: !rows) -> !sum {
  // expected-remark @+1 {{: exchange to partial over [y], 48 bytes, 5.0 us; lower bound 48 bytes; instead of all-gather over [x], then whole to partial over [y], 96 bytes, 5.0 us}}
  %y = tv.reshard %x : (!rows) -> !sum
  return %y : !sum
}

// -----

// Parts of an axis that do not fit: who has what, not which axes, says what is there. Of
// devices 0, 2 and 4 two have the first half, one the other.
#m = #tv.mesh<x = 6>
!halves = tensor<12x6xf32, #tv.view<#m, [did(x:(1)2) * 6, 6]>>
!thirds = tensor<12x6xf32, #tv.view<#m, [did(x:(1)3) * 4, 6]>>
!sum = tensor<12x6xf32, #tv.view<#m, [12, 6], partial = [x:(1)3 : sum]>>
!pair = tensor<12x6xf32, #tv.view<#m, [12, 6], partial = [x:(1)2 : sum]>>
// CHECK-LABEL: @parts_that_do_not_fit
// CHECK: tv.reshard %arg0 plan <slice over {{.*}} [x:(1)3]
// CHECK: tv.reshard %arg1 plan <exchange over {{.*}} [x]
func.func @parts_that_do_not_fit(%x: !halves, %y: !thirds) -> (!sum, !pair) {
  // expected-remark @+1 {{: split to partial over [x:(1)3], 0 bytes, 0.0 us; lower bound 0 bytes}}
  %s = tv.reshard %x : (!halves) -> !sum
  // expected-remark @+1 {{: exchange to partial over [x:(1)2], 48 bytes, 5.0 us; lower bound 48 bytes}}
  %p = tv.reshard %y : (!thirds) -> !pair
  return %s, %p : !sum, !pair
}

// -----

// Two rows are at neither of two devices: both might take one, but who has them sends both.
#m = #tv.mesh<x = 2, y = 3>
!rows = tensor<8x12xf32, #tv.view<#m, [did(x) * did(y) * 2, 12]>>
!sum = tensor<8x12xf32, #tv.view<#m, [did(y) * 3, 12], partial = [x : sum]>>
// CHECK-LABEL: @a_row_each
func.func @a_row_each(%x: !rows) -> !sum {
  // expected-remark @+1 {{to partial over [x], 96 bytes, 5.0 us; lower bound 96 bytes}}
  %y = tv.reshard %x : (!rows) -> !sum
  return %y : !sum
}

// -----

#m = #tv.mesh<x = 2, y = 2>
!rows = tensor<?x6xf32, #tv.view<#m, [did(x) * _, 6]>>
!others = tensor<?x6xf32, #tv.view<#m, [did(y) * _, 6], partial = [x : sum]>>
// Whatever the extent is.
// CHECK-LABEL: @parts_of_any_extent
// CHECK: tv.reshard %arg0 plan <slice over {{.*}} [x]
func.func @parts_of_any_extent(%x: !rows {tv.dims = ["b"]}) -> !others attributes {tv.sizes = {b = 9}} {
  // expected-remark @+1 {{split to partial over [x], 0 bytes}}
  %y = tv.reshard %x : (!rows) -> !others
  return %y : !others
}
