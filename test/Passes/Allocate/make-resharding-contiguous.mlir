// RUN: tessera-opt %s --split-input-file --tv-plan-reshards \
// RUN:   --tv-reorder-sharded-axis --tv-make-resharding-contiguous \
// RUN:   --tv-verify-allocated --mlir-print-local-scope | FileCheck %s

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [4, did(tp) * 3]>
#w = #tv.view<#m, [4, 6]>
// The producer writes the order in which the gather leaves chunks: no copy.
// CHECK-LABEL: @gather_in_place
// CHECK: tv.gelu {{.*}} -> tensor<4x6xf32, {{.*}}[4, did(tp) * 3], alloc = (1, 0)>>
// CHECK-NEXT: tv.reshard {{.*}} plan <all_gather {{.*}} -> tensor<4x6xf32, {{.*}}[4, 6], alloc = (1, 0)>>
// CHECK-NEXT: tv.gelu {{.*}} -> tensor<4x6xf32, {{.*}}[4, 6], alloc = (0, 1)>>
// CHECK-NEXT: return
func.func @gather_in_place(%x: tensor<4x6xf32, #s>) -> tensor<4x6xf32, #w> {
  %0 = tv.gelu %x : (tensor<4x6xf32, #s>) -> tensor<4x6xf32, #s>
  %1 = tv.reshard %0 : (tensor<4x6xf32, #s>) -> tensor<4x6xf32, #w>
  %2 = tv.gelu %1 : (tensor<4x6xf32, #w>) -> tensor<4x6xf32, #w>
  return %2 : tensor<4x6xf32, #w>
}

// -----

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [4, did(tp) * 3]>
#w = #tv.view<#m, [4, 6]>
// An argument is row-major: its shard is copied once.
// CHECK-LABEL: @gather_of_argument
// CHECK: tv.reshard %arg0 plan <slice over {{.*}} []> {{.*}} -> tensor<4x6xf32, {{.*}}[4, did(tp) * 3], alloc = (1, 0)>>
// CHECK-NEXT: tv.reshard {{.*}} plan <all_gather {{.*}} -> tensor<4x6xf32, {{.*}}[4, 6], alloc = (1, 0)>>
// CHECK-NEXT: tv.gelu
func.func @gather_of_argument(%x: tensor<4x6xf32, #s>) -> tensor<4x6xf32, #w> {
  %1 = tv.reshard %x : (tensor<4x6xf32, #s>) -> tensor<4x6xf32, #w>
  %2 = tv.gelu %1 : (tensor<4x6xf32, #w>) -> tensor<4x6xf32, #w>
  return %2 : tensor<4x6xf32, #w>
}

// -----

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [4, did(tp) * 3], alloc = (1, 0)>
#w = #tv.view<#m, [4, 6]>
// Unless the user's view says otherwise.
// CHECK-LABEL: @gather_of_ordered_argument
// CHECK-NEXT: tv.reshard %arg0 plan <all_gather
// CHECK-NEXT: tv.gelu
func.func @gather_of_ordered_argument(%x: tensor<4x6xf32, #s>) -> tensor<4x6xf32, #w> {
  %1 = tv.reshard %x : (tensor<4x6xf32, #s>) -> tensor<4x6xf32, #w>
  %2 = tv.gelu %1 : (tensor<4x6xf32, #w>) -> tensor<4x6xf32, #w>
  return %2 : tensor<4x6xf32, #w>
}

// -----

#m = #tv.mesh<tp = 2>
#a = #tv.view<#m, [4, did(tp) * 3]>
#b = #tv.view<#m, [6, did(tp) * 3]>
#p = #tv.view<#m, [4, 6], partial = [tp : sum]>
#s = #tv.view<#m, [4, did(tp) * 3]>
// CHECK-LABEL: @scatter_in_place
// CHECK: tv.linear {{.*}} -> tensor<4x6xf32, {{.*}}[4, 6], alloc = (1, 0), partial = [tp : sum]>>
// CHECK-NEXT: tv.reshard {{.*}} plan <reduce_scatter {{.*}} -> tensor<4x6xf32, {{.*}}[4, did(tp) * 3], alloc = (1, 0)>>
// CHECK-NEXT: tv.gelu
func.func @scatter_in_place(%x: tensor<4x6xf32, #a>, %w: tensor<6x6xf32, #b>) -> tensor<4x6xf32, #s> {
  %0 = tv.linear %x, %w : (tensor<4x6xf32, #a>, tensor<6x6xf32, #b>) -> tensor<4x6xf32, #p>
  %1 = tv.reshard %0 : (tensor<4x6xf32, #p>) -> tensor<4x6xf32, #s>
  %2 = tv.gelu %1 : (tensor<4x6xf32, #s>) -> tensor<4x6xf32, #s>
  return %2 : tensor<4x6xf32, #s>
}

// -----

#m = #tv.mesh<tp = 2>
#a = #tv.view<#m, [4, did(tp) * 3]>
#b = #tv.view<#m, [6, did(tp) * 3]>
#p = #tv.view<#m, [4, 6], partial = [tp : sum]>
#s = #tv.view<#m, [4, did(tp) * 3]>
// A result is row-major: the scattered part is copied once.
// CHECK-LABEL: @scatter_to_result
// CHECK: tv.reshard {{.*}} plan <reduce_scatter {{.*}} -> tensor<4x6xf32, {{.*}}[4, did(tp) * 3], alloc = (1, 0)>>
// CHECK-NEXT: tv.reshard {{.*}} plan <slice over {{.*}} []> {{.*}} -> tensor<4x6xf32, {{.*}}[4, did(tp) * 3], alloc = (0, 1)>>
// CHECK-NEXT: return
func.func @scatter_to_result(%x: tensor<4x6xf32, #a>, %w: tensor<6x6xf32, #b>) -> tensor<4x6xf32, #s> {
  %0 = tv.linear %x, %w : (tensor<4x6xf32, #a>, tensor<6x6xf32, #b>) -> tensor<4x6xf32, #p>
  %1 = tv.reshard %0 : (tensor<4x6xf32, #p>) -> tensor<4x6xf32, #s>
  return %1 : tensor<4x6xf32, #s>
}

// -----

#m = #tv.mesh<tp = 2>
#t = #tv.view<#m, [did(tp) * 3, 4]>
#s = #tv.view<#m, [4, did(tp) * 3]>
#w = #tv.view<#m, [4, 6]>
// A transpose lies in its operand's memory, so the operand gets the order.
// CHECK-LABEL: @through_a_transpose
// CHECK: tv.gelu {{.*}} -> tensor<6x4xf32, {{.*}}[did(tp) * 3, 4], alloc = (0, 1)>>
// CHECK-NEXT: tv.transpose {{.*}} -> tensor<4x6xf32, {{.*}}[4, did(tp) * 3], alloc = (1, 0)>>
// CHECK-NEXT: tv.reshard {{.*}} plan <all_gather {{.*}} -> tensor<4x6xf32, {{.*}}[4, 6], alloc = (1, 0)>>
func.func @through_a_transpose(%x: tensor<6x4xf32, #t>) -> tensor<4x6xf32, #w> {
  %0 = tv.gelu %x : (tensor<6x4xf32, #t>) -> tensor<6x4xf32, #t>
  %1 = tv.transpose %0 perm [1, 0] : (tensor<6x4xf32, #t>) -> tensor<4x6xf32, #s>
  %2 = tv.reshard %1 : (tensor<4x6xf32, #s>) -> tensor<4x6xf32, #w>
  %3 = tv.gelu %2 : (tensor<4x6xf32, #w>) -> tensor<4x6xf32, #w>
  return %3 : tensor<4x6xf32, #w>
}

// -----

#m = #tv.mesh<tp = 2>
#h = #tv.view<#m, [2, did(tp) * 2, 3, 5]>
#t = #tv.view<#m, [2, 3, did(tp) * 2, 5]>
#r = #tv.view<#m, [2, 3, did(tp) * 10]>
// A reshape wants its operand row-major: what is transposed before is written so.
// CHECK-LABEL: @for_a_reshape
// CHECK: tv.gelu {{.*}} -> tensor<2x4x3x5xf32, {{.*}}alloc = (0, 2, 1, 3)>>
// CHECK-NEXT: tv.transpose {{.*}} -> tensor<2x3x4x5xf32, {{.*}}alloc = (0, 1, 2, 3)>>
// CHECK-NEXT: tv.reshape {{.*}} -> tensor<2x3x20xf32, {{.*}}alloc = (0, 1, 2)>>
func.func @for_a_reshape(%x: tensor<2x4x3x5xf32, #h>) -> tensor<2x3x20xf32, #r> {
  %0 = tv.gelu %x : (tensor<2x4x3x5xf32, #h>) -> tensor<2x4x3x5xf32, #h>
  %1 = tv.transpose %0 perm [0, 2, 1, 3] : (tensor<2x4x3x5xf32, #h>) -> tensor<2x3x4x5xf32, #t>
  %2 = tv.reshape %1 : (tensor<2x3x4x5xf32, #t>) -> tensor<2x3x20xf32, #r>
  %3 = tv.gelu %2 : (tensor<2x3x20xf32, #r>) -> tensor<2x3x20xf32, #r>
  return %3 : tensor<2x3x20xf32, #r>
}
