// RUN: tessera-opt --tv-inline-regions --split-input-file --verify-diagnostics %s | FileCheck %s

// Parts become tensors in their views, moves are reshards of one step, and other ops are
// marked. Of several tensors that move together each has a reshard.

#m = #tv.mesh<tp = 2>
#rows = #tv.view<#m, [did(tp) * _, _]>
!part = tensor<4x8xf32, #tv.local<#rows, of [8, 8]>>
!sum = tensor<8xf32, #tv.local<#tv.view<#m, [_], partial = [tp : sum]>, of [8]>>
!whole = tensor<8xf32, #tv.local<#tv.view<#m, [_]>, of [8]>>
// CHECK-LABEL: @sums
// CHECK: %[[OWN:.*]] = tv.constrain %{{.*}} : (tensor<8x8xf32>) -> tensor<8x8xf32, #[[ROWS:.*]]> to #[[ROWS]]
// CHECK: %[[E:.*]] = tv.exp %[[OWN]] {tv.local} : (tensor<8x8xf32, #[[ROWS]]>) -> tensor<8x8xf32, #[[ROWS]]>
// CHECK: %[[A:.*]] = tv.reduce sum %[[OWN]] dims [0] {tv.local}
// CHECK: %[[B:.*]] = tv.reduce sum %[[E]] dims [0] {tv.local}
// CHECK: %[[AW:.*]] = tv.reshard %[[A]] {tv.step = "all_reduce"}
// CHECK: %[[BW:.*]] = tv.reshard %[[B]] {tv.step = "all_reduce"}
// CHECK: %[[R0:.*]] = tv.constrain %[[OWN]] : (tensor<8x8xf32, #[[ROWS]]>) -> tensor<8x8xf32, #[[ROWS]]> to #[[ROWS]]
// CHECK: %[[R1:.*]] = tv.constrain %[[AW]] : ({{.*}}) -> tensor<8xf32> to
// CHECK: %[[R2:.*]] = tv.constrain %[[BW]]
// CHECK: return %[[R0]], %[[R1]], %[[R2]]
func.func @sums(%x: tensor<8x8xf32>) -> (tensor<8x8xf32, #rows>, tensor<8xf32>, tensor<8xf32>) {
  %own, %a, %b = tv.local_region %x
      : (tensor<8x8xf32>) -> (tensor<8x8xf32, #rows>, tensor<8xf32>, tensor<8xf32>) {
  ^bb0(%own: !part):
    %e = tv.exp %own : (!part) -> !part
    %0 = tv.reduce sum %own dims [0] : (!part) -> !sum
    %1 = tv.reduce sum %e dims [0] : (!part) -> !sum
    %2, %3 = comm.all_reduce %0, %1 over #m [tp] id 0 : (!sum, !sum) -> (!whole, !whole)
    tv.yield %own, %2, %3 : !part, !whole, !whole
  }
  return %own, %a, %b : tensor<8x8xf32, #rows>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Dynamic extents are those that the parts say.

#m = #tv.mesh<tp = 2>
#rows = #tv.view<#m, [did(tp) * _, _]>
!part = tensor<?x8xf32, #tv.local<#rows, of [b, 8]>>
// CHECK-LABEL: @dynamic
// CHECK: tv.exp {{.*}} : (tensor<?x8xf32, #[[ROWS:.*]]>) -> tensor<?x8xf32, #[[ROWS]]>
func.func @dynamic(%x: tensor<?x8xf32> {tv.dims = ["b"]}) -> tensor<?x8xf32>
    attributes {tv.sizes = {b = 64}} {
  %y = tv.local_region %x : (tensor<?x8xf32>) -> tensor<?x8xf32> {
  ^bb0(%own: !part):
    %e = tv.exp %own : (!part) -> !part
    tv.yield %e : !part
  }
  return %y : tensor<?x8xf32>
}

// -----

#m = #tv.mesh<tp = 2>
!part = tensor<?x8xf32, #tv.local<#tv.view<#m, [did(tp) * _, _]>, of [c, 8]>>
func.func @other_extent(%x: tensor<?x8xf32> {tv.dims = ["b"]}) -> tensor<?x8xf32>
    attributes {tv.sizes = {b = 64, c = 64}} {
  // expected-error@+1 {{argument #0 in the region is a part of a tensor whose dimension 0 has extent c; the operand's is b}}
  %y = tv.local_region %x : (tensor<?x8xf32>) -> tensor<?x8xf32> {
  ^bb0(%own: !part):
    tv.yield %own : !part
  }
  return %y : tensor<?x8xf32>
}

// -----

// Inside, too.

#m = #tv.mesh<tp = 2>
#rows = #tv.view<#m, [did(tp) * _, _]>
!part = tensor<?x8xf32, #tv.local<#rows, of [b, 8]>>
!other = tensor<?x8xf32, #tv.local<#rows, of [c, 8]>>
func.func @other_inside(%x: tensor<?x8xf32> {tv.dims = ["b"]}) -> tensor<?x8xf32>
    attributes {tv.sizes = {b = 64, c = 64}} {
  %y = tv.local_region %x : (tensor<?x8xf32>) -> tensor<?x8xf32> {
  ^bb0(%own: !part):
    // expected-error@+1 {{result #0's dimension 0 has extent c; it must be b}}
    %e = tv.exp %own : (!part) -> !other
    tv.yield %e : !other
  }
  return %y : tensor<?x8xf32>
}

// -----

// A function for any size, whose sizes a caller names.

#m = #tv.mesh<tp = 2>
!part = tensor<?x8xf32, #tv.local<#tv.view<#m, [did(tp) * _, _]>, of [b, 8]>>
// CHECK-LABEL: @any_size
// CHECK: tv.exp {{.*}} {tv.local}
func.func private @any_size(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = tv.local_region %x : (tensor<?x8xf32>) -> tensor<?x8xf32> {
  ^bb0(%own: !part):
    %e = tv.exp %own : (!part) -> !part
    tv.yield %e : !part
  }
  return %y : tensor<?x8xf32>
}
