// Views are decided; the collectives that follow from them, and no others.
//
// RUN: tessera-opt %s --split-input-file --tv-decompose-reshardings \
// RUN:   --tv-verify-decomposed --tv-elide-reshards --tv-verify-decomposed \
// RUN:   --tv-plan-reshards --tv-verify-planned --tv-reorder-sharded-axis \
// RUN:   --tv-make-resharding-contiguous --tv-verify-allocated --tv-localize \
// RUN:   --tv-verify-localized | FileCheck %s

#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [2, 3, 4]>
#h = #tv.view<#m, [2, 3, did(tp) * 8]>
#w0 = #tv.view<#m, [did(tp) * 8, 4]>
#w1 = #tv.view<#m, [4, did(tp) * 8]>

// CHECK-LABEL: @loop_split_mlp
// CHECK-NOT: comm.
// CHECK: comm.all_reduce
// CHECK-NOT: comm.
// CHECK: return
func.func @loop_split_mlp(%x: tensor<2x3x4xf32, #x>, %w0: tensor<16x4xf32, #w0>,
    %w1: tensor<4x16xf32, #w1>) -> tensor<2x3x4xf32, #x> {
  %0 = tv.linear %x, %w0 : (tensor<2x3x4xf32, #x>, tensor<16x4xf32, #w0>) -> tensor<2x3x16xf32, #h>
  %1 = tv.gelu tanh %0 : (tensor<2x3x16xf32, #h>) -> tensor<2x3x16xf32, #h>
  %2 = tv.linear %1, %w1 : (tensor<2x3x16xf32, #h>, tensor<4x16xf32, #w1>) -> tensor<2x3x4xf32, #x>
  return %2 : tensor<2x3x4xf32, #x>
}

// -----

#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [6, did(tp) * 4]>
#w = #tv.view<#m, [4, did(tp) * 4]>
#b = #tv.view<#m, [4]>
#y = #tv.view<#m, [6, 4]>

// The bias becomes partial, which moves nothing, and is added once.
// CHECK-LABEL: @row_parallel_with_bias
// CHECK-NOT: comm.
// CHECK: %[[BIAS:.*]] = comm.slice
// CHECK-NOT: comm.
// CHECK: tv.linear {{.*}} bias %[[BIAS]]
// CHECK: comm.all_reduce
// CHECK-NOT: comm.
// CHECK: return
func.func @row_parallel_with_bias(%x: tensor<6x8xf32, #x>, %w: tensor<4x8xf32, #w>, %b: tensor<4xf32, #b>)
    -> tensor<6x4xf32, #y> {
  %0 = tv.linear %x, %w bias %b : (tensor<6x8xf32, #x>, tensor<4x8xf32, #w>, tensor<4xf32, #b>) -> tensor<6x4xf32, #y>
  return %0 : tensor<6x4xf32, #y>
}

// -----

#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [6, did(tp) * 4]>
#w = #tv.view<#m, [4, did(tp) * 4]>
#y = #tv.view<#m, [did(tp) * 3, 4]>

// CHECK-LABEL: @sharded_residual
// CHECK-NOT: comm.
// CHECK: comm.reduce_scatter
// CHECK-NOT: comm.
// CHECK: tv.add
// CHECK-NOT: comm.
// CHECK: return
func.func @sharded_residual(%x: tensor<6x8xf32, #x>, %w: tensor<4x8xf32, #w>, %r: tensor<6x4xf32, #y>)
    -> tensor<6x4xf32, #y> {
  %0 = tv.linear %x, %w : (tensor<6x8xf32, #x>, tensor<4x8xf32, #w>) -> tensor<6x4xf32, #y>
  %1 = tv.add %0, %r : (tensor<6x4xf32, #y>, tensor<6x4xf32, #y>) -> tensor<6x4xf32, #y>
  return %1 : tensor<6x4xf32, #y>
}

// -----

#m = #tv.mesh<x = 2, y = 2>
#i = #tv.view<#m, [did(y) * 3, 8]>
#w = #tv.view<#m, [did(x) * 2, 8]>
#o = #tv.view<#m, [did(y) * 3, did(x) * 2]>

// CHECK-LABEL: @rows_on_one_axis_columns_on_another
// CHECK-NOT: comm.
// CHECK: return
func.func @rows_on_one_axis_columns_on_another(%x: tensor<6x8xf32, #i>, %w: tensor<4x8xf32, #w>)
    -> tensor<6x4xf32, #o> {
  %0 = tv.linear %x, %w : (tensor<6x8xf32, #i>, tensor<4x8xf32, #w>) -> tensor<6x4xf32, #o>
  return %0 : tensor<6x4xf32, #o>
}

// -----

#m = #tv.mesh<x = 2>
#i = #tv.view<#m, [did(x) * 2, 8]>
#w = #tv.view<#m, [did(x) * 50, 8]>
#o = #tv.view<#m, [4, did(x) * 50]>

// Both want axis x: the smaller moves.
// CHECK-LABEL: @bytes_decide_which_operand_moves
// CHECK-NOT: comm.
// CHECK: %[[X:.*]] = comm.all_gather %arg0
// CHECK: tv.linear %[[X]], %arg1
// CHECK-NOT: comm.
// CHECK: return
func.func @bytes_decide_which_operand_moves(%x: tensor<4x8xf32, #i>, %w: tensor<100x8xf32, #w>)
    -> tensor<4x100xf32, #o> {
  %0 = tv.linear %x, %w : (tensor<4x8xf32, #i>, tensor<100x8xf32, #w>) -> tensor<4x100xf32, #o>
  return %0 : tensor<4x100xf32, #o>
}

// -----

#m = #tv.mesh<x = 2>
#i = #tv.view<#m, [did(x) * 2, 8]>
#w = #tv.view<#m, [did(x) * 2, 8]>
#k = #tv.view<#m, [4, 4]>

// A tie: as many bytes for one as for the other.
// CHECK-LABEL: @on_a_tie_the_weight_stays
// CHECK: comm.all_gather %arg1
// CHECK-NOT: comm.all_gather %arg0
// CHECK: return
func.func @on_a_tie_the_weight_stays(%w: tensor<4x8xf32, #w> {tv.role = "weight"}, %x: tensor<4x8xf32, #i>)
    -> tensor<4x4xf32, #k> {
  %0 = tv.linear %x, %w : (tensor<4x8xf32, #i>, tensor<4x8xf32, #w>) -> tensor<4x4xf32, #k>
  return %0 : tensor<4x4xf32, #k>
}

// A parameter is one.
// CHECK-LABEL: @on_a_tie_the_parameter_stays
// CHECK: comm.all_gather %arg1
// CHECK-NOT: comm.all_gather %arg0
// CHECK: return
func.func @on_a_tie_the_parameter_stays(%w: tensor<4x8xf32, #w> {tv.name = "w", tv.role = "parameter"}, %x: tensor<4x8xf32, #i>)
    -> (tensor<4x4xf32, #k>, tensor<4x8xf32, #w> {tv.name = "w"}) {
  %0 = tv.linear %x, %w : (tensor<4x8xf32, #i>, tensor<4x8xf32, #w>) -> tensor<4x4xf32, #k>
  return %0, %w : tensor<4x4xf32, #k>, tensor<4x8xf32, #w>
}

// -----

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [2, did(tp) * 3, 4]>
#h = #tv.view<#m, [2, 6, did(tp) * 8]>
#w0 = #tv.view<#m, [did(tp) * 8, 4]>
#w1 = #tv.view<#m, [4, did(tp) * 8]>
#v = #tv.view<#m, [4]>

// CHECK-LABEL: @sequence_parallel
// CHECK-NOT: comm.
// CHECK: tv.layer_norm
// CHECK: comm.all_gather
// CHECK-NOT: comm.
// CHECK: comm.reduce_scatter
// CHECK-NOT: comm.
// CHECK: tv.add
// CHECK-NOT: comm.
// CHECK: return
func.func @sequence_parallel(%x: tensor<2x6x4xf32, #s>, %g: tensor<4xf32, #v>, %b: tensor<4xf32, #v>,
    %w0: tensor<16x4xf32, #w0>, %w1: tensor<4x16xf32, #w1>) -> tensor<2x6x4xf32, #s> {
  %n = tv.layer_norm %x, %g, %b epsilon(1.0e-5) : (tensor<2x6x4xf32, #s>, tensor<4xf32, #v>, tensor<4xf32, #v>) -> tensor<2x6x4xf32, #s>
  %0 = tv.linear %n, %w0 : (tensor<2x6x4xf32, #s>, tensor<16x4xf32, #w0>) -> tensor<2x6x16xf32, #h>
  %1 = tv.gelu %0 : (tensor<2x6x16xf32, #h>) -> tensor<2x6x16xf32, #h>
  %2 = tv.linear %1, %w1 : (tensor<2x6x16xf32, #h>, tensor<4x16xf32, #w1>) -> tensor<2x6x4xf32, #s>
  %3 = tv.add %2, %x : (tensor<2x6x4xf32, #s>, tensor<2x6x4xf32, #s>) -> tensor<2x6x4xf32, #s>
  return %3 : tensor<2x6x4xf32, #s>
}

// -----

#m = #tv.mesh<tp = 2>
#t = #tv.view<#m, [did(tp) * 50, 4]>
#i = #tv.view<#m, [2, 3]>
#o = #tv.view<#m, [2, 3, 4]>

// A masked local gather, then a sum.
// CHECK-LABEL: @vocabulary_split
// CHECK-NOT: comm.
// CHECK: tv.gather
// CHECK: comm.all_reduce
// CHECK-NOT: comm.
// CHECK: return
func.func @vocabulary_split(%t: tensor<100x4xf32, #t>, %i: tensor<2x3xi32, #i>) -> tensor<2x3x4xf32, #o> {
  %0 = tv.gather %t, %i dim 0 : (tensor<100x4xf32, #t>, tensor<2x3xi32, #i>) -> tensor<2x3x4xf32, #o>
  return %0 : tensor<2x3x4xf32, #o>
}

// -----

#m = #tv.mesh<x = 2>
#a = #tv.view<#m, [3, did(x) * 5]>
#b = #tv.view<#m, [3 * did(x) * 5]>

// CHECK-LABEL: @strided_reshape
// CHECK-NOT: comm.
// CHECK: return
func.func @strided_reshape(%a: tensor<3x10xf32, #a>) -> tensor<30xf32, #b> {
  %0 = tv.reshape %a : (tensor<3x10xf32, #a>) -> tensor<30xf32, #b>
  return %0 : tensor<30xf32, #b>
}

// -----

#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [6, did(tp) * 4]>
#w = #tv.view<#m, [4, did(tp) * 4]>
#y = #tv.view<#m, [6, 4]>

// One reshard of the sum instead of one for each addend, through what is linear.
// CHECK-LABEL: @delayed_through_linear_ops
// CHECK-NOT: comm.
// CHECK: tv.add
// CHECK-NEXT: comm.all_reduce
// CHECK-NOT: comm.
// CHECK: return
func.func @delayed_through_linear_ops(%x: tensor<6x8xf32, #x>, %v: tensor<4x8xf32, #w>, %w: tensor<4x8xf32, #w>,
    %s: tensor<6x4xf32, #y>) -> tensor<6x4xf32, #y> {
  %0 = tv.linear %x, %v : (tensor<6x8xf32, #x>, tensor<4x8xf32, #w>) -> tensor<6x4xf32, #y>
  %1 = tv.linear %x, %w : (tensor<6x8xf32, #x>, tensor<4x8xf32, #w>) -> tensor<6x4xf32, #y>
  %2 = tv.mul %0, %s : (tensor<6x4xf32, #y>, tensor<6x4xf32, #y>) -> tensor<6x4xf32, #y>
  %3 = tv.add %2, %1 : (tensor<6x4xf32, #y>, tensor<6x4xf32, #y>) -> tensor<6x4xf32, #y>
  return %3 : tensor<6x4xf32, #y>
}

// CHECK-LABEL: @not_delayed_through_gelu
// CHECK: comm.all_reduce
// CHECK: tv.gelu
// CHECK: comm.all_reduce
// CHECK: tv.add
// CHECK: return
func.func @not_delayed_through_gelu(%x: tensor<6x8xf32, #x>, %v: tensor<4x8xf32, #w>, %w: tensor<4x8xf32, #w>)
    -> tensor<6x4xf32, #y> {
  %0 = tv.linear %x, %v : (tensor<6x8xf32, #x>, tensor<4x8xf32, #w>) -> tensor<6x4xf32, #y>
  %2 = tv.gelu %0 : (tensor<6x4xf32, #y>) -> tensor<6x4xf32, #y>
  %1 = tv.linear %x, %w : (tensor<6x8xf32, #x>, tensor<4x8xf32, #w>) -> tensor<6x4xf32, #y>
  %3 = tv.add %2, %1 : (tensor<6x4xf32, #y>, tensor<6x4xf32, #y>) -> tensor<6x4xf32, #y>
  return %3 : tensor<6x4xf32, #y>
}

// -----

#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [6, did(tp) * 4]>
#w = #tv.view<#m, [6, 8]>

// An op that needs a dimension whole gets it whole, and moves it back.
// CHECK-LABEL: @softmax_of_a_split_dimension
// CHECK: comm.all_gather
// CHECK-NOT: comm.
// CHECK: tv.softmax
// CHECK: comm.slice
// CHECK-NOT: comm.
// CHECK: return
func.func @softmax_of_a_split_dimension(%x: tensor<6x8xf32, #x>) -> tensor<6x8xf32, #x> {
  %0 = tv.softmax %x dim 1 : (tensor<6x8xf32, #x>) -> tensor<6x8xf32, #x>
  return %0 : tensor<6x8xf32, #x>
}

// -----

#m = #tv.mesh<tp = 3>
#q = #tv.view<#m, [2, did(tp) * 2, 5, 12]>
#h = #tv.view<#m, [2, did(tp) * 2, 5, 4]>
#t = #tv.view<#m, [2, did(tp) * 2, 5]>

// Heads over 3 devices, 6, of them 2 on each; slices do not touch the heads.
// CHECK-LABEL: @heads_split
// CHECK-NOT: comm.
// CHECK: return
func.func @heads_split(%qkv: tensor<2x6x5x12xf32, #q>) -> tensor<2x6x5x4xf32, #h> {
  %q = tv.slice %qkv offsets [0, 0, 0, 0] : (tensor<2x6x5x12xf32, #q>) -> tensor<2x6x5x4xf32, #h>
  %k = tv.slice %qkv offsets [0, 0, 0, 4] : (tensor<2x6x5x12xf32, #q>) -> tensor<2x6x5x4xf32, #h>
  %v = tv.slice %qkv offsets [0, 0, 0, 8] : (tensor<2x6x5x12xf32, #q>) -> tensor<2x6x5x4xf32, #h>
  %o, %lse = tv.attention %q, %k, %v scale(0.5) causal : (tensor<2x6x5x4xf32, #h>, tensor<2x6x5x4xf32, #h>, tensor<2x6x5x4xf32, #h>) -> (tensor<2x6x5x4xf32, #h>, tensor<2x6x5xf32, #t>)
  return %o : tensor<2x6x5x4xf32, #h>
}

// -----

#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [did(tp) * _, 8]>
#w = #tv.view<#m, [did(tp) * 2, 8]>
#y = #tv.view<#m, [_, did(tp) * 2]>

// A dynamic extent: costs at its maximum, views for any.
// CHECK-LABEL: @dynamic_rows
// CHECK: comm.all_gather %arg0 {{.*}} tensor<?x8xf32
// CHECK-NOT: comm.
// CHECK: return
func.func @dynamic_rows(%x: tensor<?x8xf32, #x> {tv.dims = ["b"]}, %w: tensor<4x8xf32, #w>)
    -> tensor<?x4xf32, #y> attributes {tv.sizes = {b = 3}} {
  %0 = tv.linear %x, %w : (tensor<?x8xf32, #x>, tensor<4x8xf32, #w>) -> tensor<?x4xf32, #y>
  return %0 : tensor<?x4xf32, #y>
}

// -----

#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [64, did(tp) * 16]>
#w = #tv.view<#m, [32, did(tp) * 16]>
#y = #tv.view<#m, [64, 32]>

// Gathering both operands would move fewer bytes than the all-reduce, but then
// each device would do all of the product.
// CHECK-LABEL: @work_is_not_repeated_to_save_bytes
// CHECK-NOT: comm.
// CHECK: comm.all_reduce
// CHECK-NOT: comm.
// CHECK: return
func.func @work_is_not_repeated_to_save_bytes(%x: tensor<64x32xf32, #x>, %w: tensor<32x32xf32, #w>)
    -> tensor<64x32xf32, #y> {
  %0 = tv.linear %x, %w : (tensor<64x32xf32, #x>, tensor<32x32xf32, #w>) -> tensor<64x32xf32, #y>
  return %0 : tensor<64x32xf32, #y>
}

// -----

#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [3, did(tp)]>
#w = #tv.view<#m, [7, did(tp)]>
#y = #tv.view<#m, [3, 7]>

// Nor are there two latencies, of 12 and 28 bytes, in place of one of 84.
// CHECK-LABEL: @one_latency_for_two
// CHECK-NOT: comm.
// CHECK: comm.all_reduce
// CHECK-NOT: comm.
// CHECK: return
func.func @one_latency_for_two(%x: tensor<3x2xf32, #x>, %w: tensor<7x2xf32, #w>) -> tensor<3x7xf32, #y> {
  %0 = tv.linear %x, %w : (tensor<3x2xf32, #x>, tensor<7x2xf32, #w>) -> tensor<3x7xf32, #y>
  return %0 : tensor<3x7xf32, #y>
}

// -----

#m = #tv.mesh<tp = 4>
#x = #tv.view<#m, [32768, 2048]>
#w = #tv.view<#m, [did(tp) * 512, 1024]>
#y = #tv.view<#m, [32768, 1024]>

// But where it is little beside the move, it is: all of the product takes 229 us, a
// quarter with the all-reduce 398 us.
// CHECK-LABEL: @work_beside_a_large_move
// CHECK-NOT: comm.
// CHECK: comm.all_gather %arg1
// CHECK-NOT: comm.
// CHECK: return
func.func @work_beside_a_large_move(%x: tensor<32768x2048xbf16, #x>, %w: tensor<2048x1024xbf16, #w>)
    -> tensor<32768x1024xbf16, #y> {
  %0 = tv.matmul %x, %w : (tensor<32768x2048xbf16, #x>, tensor<2048x1024xbf16, #w>) -> tensor<32768x1024xbf16, #y>
  return %0 : tensor<32768x1024xbf16, #y>
}

// -----

#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [did(tp) * 4]>
#y = #tv.view<#m, [1000, 8]>

// CHECK-LABEL: @gather_before_expansion
// CHECK-NOT: comm.
// CHECK: comm.all_gather %arg0
// CHECK: tv.broadcast
// CHECK-NOT: comm.
// CHECK: return
func.func @gather_before_expansion(%x: tensor<8xf32, #x>) -> tensor<1000x8xf32, #y> {
  %0 = tv.broadcast %x dims [1] : (tensor<8xf32, #x>) -> tensor<1000x8xf32, #y>
  return %0 : tensor<1000x8xf32, #y>
}

// -----

#m = #tv.mesh<x = 2, y = 2>
#a = #tv.view<#m, [did(x) * did(y) * 2, 8]>
#b = #tv.view<#m, [did(y) * 2, 8]>
#o = #tv.view<#m, [did(x) * 4, did(y) * 2]>

// The rows give up only the axis that the columns want.
// CHECK-LABEL: @conflict_on_one_of_two_axes
// CHECK-NOT: comm.
// CHECK: %[[A:.*]] = comm.all_gather %arg0 {{.*}} [y]
// CHECK: tv.linear %[[A]], %arg1
// CHECK-NOT: comm.
// CHECK: return
func.func @conflict_on_one_of_two_axes(%x: tensor<8x8xf32, #a>, %w: tensor<4x8xf32, #b>) -> tensor<8x4xf32, #o> {
  %0 = tv.linear %x, %w : (tensor<8x8xf32, #a>, tensor<4x8xf32, #b>) -> tensor<8x4xf32, #o>
  return %0 : tensor<8x4xf32, #o>
}

// -----

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [did(tp) * 4, 3]>
#o = #tv.view<#m, [did(tp) * 2, 3]>

// A slice of a split dimension is taken where the data lie; the reshard moves what
// a device of the result lacks: one row.
// CHECK-LABEL: @slice_across_a_shard_edge
// CHECK-NOT: comm.
// CHECK: %[[S:.*]] = tv.slice %arg0 {{.*}}[(did(tp) * 3 | 2:6), 3]
// CHECK: comm.all_to_all %[[S]]
// CHECK-NOT: comm.
// CHECK: return
func.func @slice_across_a_shard_edge(%x: tensor<8x3xf32, #s>) -> tensor<4x3xf32, #o> {
  %0 = tv.slice %x offsets [3, 0] : (tensor<8x3xf32, #s>) -> tensor<4x3xf32, #o>
  return %0 : tensor<4x3xf32, #o>
}

// -----

#m = #tv.mesh<tp = 4>
#s = #tv.view<#m, [did(tp) * 2, 3]>
#o = #tv.view<#m, [did(tp) * 3, 3]>

// What is padded and what is concatenated moves to its place in the result first.
// CHECK-LABEL: @pad_across_shard_edges
// CHECK-NOT: comm.
// CHECK: %[[X:.*]] = comm.all_to_all %arg0 {{.*}}[(did(tp) * 3 | 2:9), 3]
// CHECK: tv.pad %[[X]]
// CHECK-NOT: comm.
// CHECK: return
func.func @pad_across_shard_edges(%x: tensor<7x3xf32, #s>) -> tensor<10x3xf32, #o> {
  %0 = tv.pad %x low [2, 0] high [1, 0] value 0.5 : f32 : (tensor<7x3xf32, #s>) -> tensor<10x3xf32, #o>
  return %0 : tensor<10x3xf32, #o>
}

// CHECK-LABEL: @concat_across_shard_edges
// CHECK-NOT: comm.
// CHECK-DAG: %[[X:.*]] = comm.all_to_all %arg0 {{.*}}[did(tp) * 3, 3]
// CHECK-DAG: %[[Z:.*]] = comm.slice %arg1 {{.*}}[(did(tp) | 2:4) * 2, 3]
// CHECK: tv.concat %[[X]], %[[Z]]
// CHECK-NOT: comm.
// CHECK: return
func.func @concat_across_shard_edges(%x: tensor<7x3xf32, #s>, %z: tensor<3x3xf32, #tv.view<#m, [3, 3]>>)
    -> tensor<10x3xf32, #o> {
  %0 = tv.concat %x, %z dim 0 : (tensor<7x3xf32, #s>, tensor<3x3xf32, #tv.view<#m, [3, 3]>>) -> tensor<10x3xf32, #o>
  return %0 : tensor<10x3xf32, #o>
}

// -----

// What moves for one op moves together: rows and columns go to their places among the
// columns at once, where the first would become rows and the result columns again if each
// move took its own latency, or the bytes of the busiest device.
// CHECK-LABEL: @operands_move_together
// CHECK-NOT: comm.
// CHECK-DAG: %[[A:.*]] = comm.all_to_all %arg0 {{.*}}[8, did(tp) * 4]
// CHECK-DAG: %[[B:.*]] = comm.all_to_all %arg1 {{.*}}[8, (did(tp) * 2 | 3:8) * 2]
// CHECK: tv.concat %[[A]], %[[B]]
// CHECK-NOT: comm.
// CHECK: return
#m = #tv.mesh<tp = 4>
!a = tensor<8x6xf32, #tv.view<#m, [did(tp) * 2, 6]>>
!b = tensor<8x9xf32, #tv.view<#m, [8, did(tp) * 3]>>
!c = tensor<8x15xf32, #tv.view<#m, [8, did(tp) * 4]>>
func.func @operands_move_together(%a: !a, %b: !b) -> !c {
  %c = tv.concat %a, %b dim 1 : (!a, !b) -> !c
  return %c : !c
}

// -----

#m = #tv.mesh<x = 2, y = 2>
#s = #tv.view<#m, [did(x) * 8, 6], partial = [y : sum]>
#o = #tv.view<#m, [did(x) * 2, did(y) * 3]>

// Addends are sliced before they are added.
// CHECK-LABEL: @slice_of_addends
// CHECK-NOT: comm.
// CHECK: %[[S:.*]] = tv.slice %arg0
// CHECK: comm.all_reduce %[[S]] {{.*}} [y]
// CHECK: comm.exchange
// CHECK-NOT: comm.
// CHECK: return
func.func @slice_of_addends(%x: tensor<16x6xf32, #s>) -> tensor<4x6xf32, #o> {
  %0 = tv.slice %x offsets [7, 0] : (tensor<16x6xf32, #s>) -> tensor<4x6xf32, #o>
  return %0 : tensor<4x6xf32, #o>
}
