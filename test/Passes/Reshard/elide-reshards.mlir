// RUN: tessera-opt %s --split-input-file --tv-elide-reshards \
// RUN:   --tv-verify-decomposed | FileCheck %s

#m = #tv.mesh<tp = 2>
#p = #tv.view<#m, [8, 4], partial = [tp : sum]>
#w = #tv.view<#m, [8, 4]>
#s = #tv.view<#m, [did(tp) * 4, 4]>
#c = #tv.view<#m, [8, did(tp) * 2]>

// CHECK-LABEL: @identity
// CHECK-NEXT: return %arg0
func.func @identity(%x: tensor<8x4xf32, #w>) -> tensor<8x4xf32, #w> {
  %0 = tv.reshard %x : (tensor<8x4xf32, #w>) -> tensor<8x4xf32, #w>
  return %0 : tensor<8x4xf32, #w>
}

// CHECK-LABEL: @equal_moves_of_one_value
// CHECK-COUNT-1: tv.reshard
// CHECK-NOT: tv.reshard
// CHECK: return
func.func @equal_moves_of_one_value(%x: tensor<8x4xf32, #s>) -> tensor<8x4xf32, #w> {
  %0 = tv.reshard %x : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #w>
  %1 = tv.reshard %x : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #w>
  %2 = tv.add %0, %1 : (tensor<8x4xf32, #w>, tensor<8x4xf32, #w>) -> tensor<8x4xf32, #w>
  return %2 : tensor<8x4xf32, #w>
}

// Every use of the all-reduced value is one slice: a reduce-scatter.
// CHECK-LABEL: @slices_of_an_all_reduced_value
// CHECK-NEXT: %[[S:.*]] = tv.reshard %arg0 : {{.*}}partial = [tp : sum]>>) -> tensor<8x4xf32, {{.*}}[did(tp) * 4, 4]>>
// CHECK-NEXT: tv.gelu %[[S]]
// CHECK-NEXT: tv.add %[[S]]
func.func @slices_of_an_all_reduced_value(%x: tensor<8x4xf32, #p>) -> tensor<8x4xf32, #s> {
  %0 = tv.reshard %x : (tensor<8x4xf32, #p>) -> tensor<8x4xf32, #w>
  %1 = tv.reshard %0 : (tensor<8x4xf32, #w>) -> tensor<8x4xf32, #s>
  %2 = tv.gelu %1 : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #s>
  %3 = tv.reshard %0 : (tensor<8x4xf32, #w>) -> tensor<8x4xf32, #s>
  %4 = tv.add %3, %2 : (tensor<8x4xf32, #s>, tensor<8x4xf32, #s>) -> tensor<8x4xf32, #s>
  return %4 : tensor<8x4xf32, #s>
}

// Not when they differ: two reduce-scatters would move as much as the one
// all-reduce, whose slices are free.
// CHECK-LABEL: @other_slices_stay
// CHECK-NEXT: %[[W:.*]] = tv.reshard %arg0
// CHECK-NEXT: tv.reshard %[[W]]
// CHECK-NEXT: tv.reshard %[[W]]
func.func @other_slices_stay(%x: tensor<8x4xf32, #p>) -> (tensor<8x4xf32, #s>, tensor<8x4xf32, #c>) {
  %0 = tv.reshard %x : (tensor<8x4xf32, #p>) -> tensor<8x4xf32, #w>
  %1 = tv.reshard %0 : (tensor<8x4xf32, #w>) -> tensor<8x4xf32, #s>
  %2 = tv.reshard %0 : (tensor<8x4xf32, #w>) -> tensor<8x4xf32, #c>
  return %1, %2 : tensor<8x4xf32, #s>, tensor<8x4xf32, #c>
}

// CHECK-LABEL: @there_and_back
// CHECK-NEXT: return %arg0
func.func @there_and_back(%x: tensor<8x4xf32, #w>) -> tensor<8x4xf32, #w> {
  %0 = tv.reshard %x : (tensor<8x4xf32, #w>) -> tensor<8x4xf32, #s>
  %1 = tv.reshard %0 : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #w>
  return %1 : tensor<8x4xf32, #w>
}

// -----

#m = #tv.mesh<tp = 2>
#v = #tv.view<#m, [did(tp) * 4]>
#e = #tv.view<#m, [6, did(tp) * 4]>
#w = #tv.view<#m, [6, 8]>

// The value that is repeated moves, not what it becomes.
// CHECK-LABEL: @gather_after_an_expansion
// CHECK-NEXT: %[[G:.*]] = tv.reshard %arg0 : {{.*}} -> tensor<8xf32,
// CHECK-NEXT: tv.broadcast %[[G]]
// CHECK-NEXT: return
func.func @gather_after_an_expansion(%x: tensor<8xf32, #v>) -> tensor<6x8xf32, #w> {
  %0 = tv.broadcast %x dims [1] : (tensor<8xf32, #v>) -> tensor<6x8xf32, #e>
  %1 = tv.reshard %0 : (tensor<6x8xf32, #e>) -> tensor<6x8xf32, #w>
  return %1 : tensor<6x8xf32, #w>
}

// -----

// What the user wrote stays: x comes whole, though its part would do, and goes back.

#m = #tv.mesh<tp = 2>
#w = #tv.view<#m, [8, 4]>
#s = #tv.view<#m, [did(tp) * 4, 4]>

// CHECK-LABEL: @written_there_and_back
// CHECK-NEXT: %[[W:.*]] = tv.reshard %arg0 {tv.user_move}
// CHECK-NEXT: %[[S:.*]] = tv.reshard %[[W]]
// CHECK-NEXT: return %[[S]]
func.func @written_there_and_back(%x: tensor<8x4xf32, #s>) -> tensor<8x4xf32, #s> {
  %0 = tv.reshard %x {tv.user_move} : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #w>
  %1 = tv.reshard %0 : (tensor<8x4xf32, #w>) -> tensor<8x4xf32, #s>
  return %1 : tensor<8x4xf32, #s>
}

// A move that changes nothing stands for the view, too.
// CHECK-LABEL: @written_identity
// CHECK-NEXT: %[[W:.*]] = tv.reshard %arg0 {tv.user_move} : {{.*}}partial = [tp : sum]>>) -> tensor<8x4xf32, {{.*}}[8, 4]>>
// CHECK-NEXT: tv.reshard %[[W]]
func.func @written_identity(%x: tensor<8x4xf32, #tv.view<#m, [8, 4], partial = [tp : sum]>>) -> tensor<8x4xf32, #s> {
  %0 = tv.reshard %x : (tensor<8x4xf32, #tv.view<#m, [8, 4], partial = [tp : sum]>>) -> tensor<8x4xf32, #w>
  %1 = tv.reshard %0 {tv.user_move} : (tensor<8x4xf32, #w>) -> tensor<8x4xf32, #w>
  %2 = tv.reshard %1 : (tensor<8x4xf32, #w>) -> tensor<8x4xf32, #s>
  return %2 : tensor<8x4xf32, #s>
}

// An equal move of the same value is this one.
// CHECK-LABEL: @written_after_an_equal_move
// CHECK-NEXT: %[[W:.*]] = tv.reshard %arg0 {tv.user_move}
// CHECK-NEXT: tv.add %[[W]], %[[W]]
func.func @written_after_an_equal_move(%x: tensor<8x4xf32, #s>) -> tensor<8x4xf32, #w> {
  %0 = tv.reshard %x : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #w>
  %1 = tv.reshard %x {tv.user_move} : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #w>
  %2 = tv.add %0, %1 : (tensor<8x4xf32, #w>, tensor<8x4xf32, #w>) -> tensor<8x4xf32, #w>
  return %2 : tensor<8x4xf32, #w>
}

// -----

#m = #tv.mesh<tp = 2>
#v = #tv.view<#m, [did(tp) * 4]>
#e = #tv.view<#m, [6, did(tp) * 4]>
#w = #tv.view<#m, [6, 8]>

// No op is placed across it.
// CHECK-LABEL: @written_after_an_expansion
// CHECK-NEXT: tv.broadcast
// CHECK-NEXT: tv.reshard {{.*}} {tv.user_move}
// CHECK-NEXT: return
func.func @written_after_an_expansion(%x: tensor<8xf32, #v>) -> tensor<6x8xf32, #w> {
  %0 = tv.broadcast %x dims [1] : (tensor<8xf32, #v>) -> tensor<6x8xf32, #e>
  %1 = tv.reshard %0 {tv.user_move} : (tensor<6x8xf32, #e>) -> tensor<6x8xf32, #w>
  return %1 : tensor<6x8xf32, #w>
}

// -----

#m = #tv.mesh<tp = 2>
!x = tensor<2x8x6xf32, #tv.view<#m, [2, did(tp) * 4, 6]>>
!xs = tensor<16x6xf32, #tv.view<#m, [2 * did(tp) * 4, 6]>>
!t = tensor<6x16xf32, #tv.view<#m, [6, 2 * did(tp) * 4]>>
!xw = tensor<2x8x6xf32, #tv.view<#m, [2, 8, 6]>>
!rw = tensor<16x6xf32, #tv.view<#m, [16, 6]>>
!tw = tensor<6x16xf32, #tv.view<#m, [6, 16]>>

// One value whole, as it is, reshaped and transposed: one gather.
// CHECK-LABEL: @one_gather
// CHECK-NEXT: %[[W:.*]] = tv.reshard %arg0 : {{.*}} -> tensor<2x8x6xf32, #tv.view<#mesh, [2, 8, 6]>>
// CHECK-NEXT: %[[R:.*]] = tv.reshape %[[W]] : {{.*}} -> tensor<16x6xf32, #tv.view<#mesh, [16, 6]>>
// CHECK-NEXT: %[[S:.*]] = tv.reshape %[[W]]
// CHECK-NEXT: %[[T:.*]] = tv.transpose %[[S]] {{.*}} -> tensor<6x16xf32, #tv.view<#mesh, [6, 16]>>
// CHECK-NEXT: return %[[W]], %[[R]], %[[T]]
func.func @one_gather(%x: !x) -> (!xw, !rw, !tw) {
  %0 = tv.reshard %x : (!x) -> !xw
  %r = tv.reshape %x : (!x) -> !xs
  %1 = tv.reshard %r : (!xs) -> !rw
  %t = tv.transpose %r perm [1, 0] : (!xs) -> !t
  %2 = tv.reshard %t : (!t) -> !tw
  return %0, %1, %2 : !xw, !rw, !tw
}

// As far up as they share it; what the user wrote does not go up, others join it.
// CHECK-LABEL: @one_gather_in_the_middle
// CHECK-NEXT: %[[R:.*]] = tv.reshape %arg0
// CHECK-NEXT: %[[W:.*]] = tv.reshard %[[R]] {tv.user_move}
// CHECK-NEXT: %[[T:.*]] = tv.transpose %[[W]]
// CHECK-NEXT: return %[[T]], %[[W]]
func.func @one_gather_in_the_middle(%x: !x) -> (!tw, !rw) {
  %r = tv.reshape %x : (!x) -> !xs
  %t = tv.transpose %r perm [1, 0] : (!xs) -> !t
  %0 = tv.reshard %t : (!t) -> !tw
  %1 = tv.reshard %r {tv.user_move} : (!xs) -> !rw
  return %0, %1 : !tw, !rw
}

// A move alone stays where it is.
// CHECK-LABEL: @a_move_alone
// CHECK-NEXT: tv.transpose
// CHECK-NEXT: tv.reshard
// CHECK-NEXT: return
func.func @a_move_alone(%r: !xs) -> !tw {
  %t = tv.transpose %r perm [1, 0] : (!xs) -> !t
  %0 = tv.reshard %t : (!t) -> !tw
  return %0 : !tw
}

// Unless it needs a copy less where it goes: its rows are not in between.
// CHECK-LABEL: @a_copy_less
// CHECK-NEXT: tv.reshard
// CHECK-NEXT: tv.reshape
// CHECK-NEXT: return
func.func @a_copy_less(%x: !x) -> !rw {
  %r = tv.reshape %x : (!x) -> !xs
  %0 = tv.reshard %r : (!xs) -> !rw
  return %0 : !rw
}

// Addends along another axis pass.
#d = #tv.mesh<dp = 2, tp = 2>
!p = tensor<8x4xf32, #tv.view<#d, [did(tp) * 4, 4], partial = [dp : sum]>>
!pt = tensor<4x8xf32, #tv.view<#d, [4, did(tp) * 4], partial = [dp : sum]>>
!g = tensor<8x4xf32, #tv.view<#d, [8, 4], partial = [dp : sum]>>
!gt = tensor<4x8xf32, #tv.view<#d, [4, 8], partial = [dp : sum]>>
// CHECK-LABEL: @addends
// CHECK-COUNT-1: tv.reshard %arg0
// CHECK-NOT: tv.reshard
// CHECK: return
func.func @addends(%x: !p) -> (!g, !gt) {
  %0 = tv.reshard %x : (!p) -> !g
  %t = tv.transpose %x perm [1, 0] : (!p) -> !pt
  %1 = tv.reshard %t : (!pt) -> !gt
  return %0, %1 : !g, !gt
}

// -----

#m = #tv.mesh<tp = 2>
#p = #tv.view<#m, [8, 4], partial = [tp : sum]>
#w = #tv.view<#m, [8, 4]>
#s = #tv.view<#m, [did(tp) * 4, 4]>

// A sum that one use needs whole and another in part is made whole, and cut for nothing.
// CHECK-LABEL: @whole_and_part
// CHECK-NEXT: %[[W:.*]] = tv.reshard %arg0 : {{.*}}partial = [tp : sum]>>) -> tensor<8x4xf32, {{.*}}[8, 4]>>
// CHECK-NEXT: %[[S:.*]] = tv.reshard %[[W]] : {{.*}} -> tensor<8x4xf32, {{.*}}[did(tp) * 4, 4]>>
// CHECK-NEXT: return %[[S]], %[[W]]
func.func @whole_and_part(%x: tensor<8x4xf32, #p>) -> (tensor<8x4xf32, #s>, tensor<8x4xf32, #w>) {
  %0 = tv.reshard %x : (tensor<8x4xf32, #p>) -> tensor<8x4xf32, #s>
  %1 = tv.reshard %x : (tensor<8x4xf32, #p>) -> tensor<8x4xf32, #w>
  return %0, %1 : tensor<8x4xf32, #s>, tensor<8x4xf32, #w>
}

// So is one of which a part became whole only later.
// CHECK-LABEL: @whole_from_part
// CHECK-NEXT: %[[W:.*]] = tv.reshard %arg0 : {{.*}}partial = [tp : sum]>>) -> tensor<8x4xf32, {{.*}}[8, 4]>>
// CHECK-NEXT: %[[S:.*]] = tv.reshard %[[W]] : {{.*}} -> tensor<8x4xf32, {{.*}}[did(tp) * 4, 4]>>
// CHECK-NEXT: %[[E:.*]] = tv.exp %[[S]]
// CHECK-NEXT: return %[[E]], %[[W]]
func.func @whole_from_part(%x: tensor<8x4xf32, #p>) -> (tensor<8x4xf32, #s>, tensor<8x4xf32, #w>) {
  %0 = tv.reshard %x : (tensor<8x4xf32, #p>) -> tensor<8x4xf32, #s>
  %1 = tv.exp %0 : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #s>
  %2 = tv.reshard %0 : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #w>
  return %1, %2 : tensor<8x4xf32, #s>, tensor<8x4xf32, #w>
}

// What the user wrote is cut from nothing else, and nothing is cut from it.
// CHECK-LABEL: @parts_the_user_wrote
// CHECK-NEXT: tv.reshard %arg0 {tv.user_move}
// CHECK-NEXT: tv.reshard %arg0 : {{.*}} -> tensor<8x4xf32, {{.*}}[8, 4]>>
func.func @parts_the_user_wrote(%x: tensor<8x4xf32, #p>) -> (tensor<8x4xf32, #s>, tensor<8x4xf32, #w>) {
  %0 = tv.reshard %x {tv.user_move} : (tensor<8x4xf32, #p>) -> tensor<8x4xf32, #s>
  %1 = tv.reshard %x : (tensor<8x4xf32, #p>) -> tensor<8x4xf32, #w>
  return %0, %1 : tensor<8x4xf32, #s>, tensor<8x4xf32, #w>
}

// What ops of one operand make is whole for one move of that operand, not for many.
// CHECK-LABEL: @behind_ops_of_one_operand
// CHECK-NEXT: %[[W:.*]] = tv.reshard %arg0 : {{.*}} -> tensor<8x4xf32, {{.*}}[8, 4]>>
// CHECK-NEXT: %[[E:.*]] = tv.exp %[[W]]
// CHECK-NEXT: %[[T:.*]] = tv.tanh %[[W]]
// CHECK-NEXT: %[[C:.*]] = tv.cast %[[T]]
// CHECK-NEXT: return %[[E]], %[[C]]
func.func @behind_ops_of_one_operand(%x: tensor<8x4xf32, #s>) -> (tensor<8x4xf32, #w>, tensor<8x4xbf16, #w>) {
  %0 = tv.exp %x : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #s>
  %1 = tv.reshard %0 : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #w>
  %2 = tv.tanh %x : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #s>
  %3 = tv.cast %2 : (tensor<8x4xf32, #s>) -> tensor<8x4xbf16, #s>
  %4 = tv.reshard %3 : (tensor<8x4xbf16, #s>) -> tensor<8x4xbf16, #w>
  return %1, %4 : tensor<8x4xf32, #w>, tensor<8x4xbf16, #w>
}

// Where that is no less, each moves for itself: two of bf16 are no more than one of f32.
// CHECK-LABEL: @behind_casts
// CHECK-COUNT-2: tv.reshard {{.*}}bf16
// CHECK: return
#rows = #tv.view<#m, [did(tp) * 4096, 4096]>
#whole = #tv.view<#m, [8192, 4096]>
!f = tensor<8192x4096xf32, #rows>
!h = tensor<8192x4096xbf16, #rows>
!hw = tensor<8192x4096xbf16, #whole>
func.func @behind_casts(%x: !f) -> (!hw, !hw) {
  %0 = tv.cast %x : (!f) -> !h
  %1 = tv.reshard %0 : (!h) -> !hw
  %2 = tv.exp %x : (!f) -> !f
  %3 = tv.cast %2 : (!f) -> !h
  %4 = tv.reshard %3 : (!h) -> !hw
  return %1, %4 : !hw, !hw
}

// One move serves ops of one operand that need their operand in two ways: from whole to
// columns nothing moves.
// CHECK-LABEL: @two_ways_behind_ops_of_one_operand
// CHECK-NEXT: %[[W:.*]] = tv.reshard %arg0 : {{.*}} -> tensor<8x4xf32, {{.*}}[8, 4]>>
// CHECK-NEXT: %[[E:.*]] = tv.exp %[[W]]
// CHECK-NEXT: %[[C:.*]] = tv.reshard %[[W]] : {{.*}} -> tensor<8x4xf32, {{.*}}[8, did(tp) * 2]>>
// CHECK-NEXT: %[[T:.*]] = tv.tanh %[[C]]
// CHECK-NEXT: return %[[E]], %[[T]]
#c = #tv.view<#m, [8, did(tp) * 2]>
func.func @two_ways_behind_ops_of_one_operand(%x: tensor<8x4xf32, #s>)
    -> (tensor<8x4xf32, #w>, tensor<8x4xf32, #c>) {
  %0 = tv.exp %x : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #s>
  %1 = tv.reshard %0 : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #w>
  %2 = tv.tanh %x : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #s>
  %3 = tv.reshard %2 : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #c>
  return %1, %3 : tensor<8x4xf32, #w>, tensor<8x4xf32, #c>
}

// Whichever comes first, through a transpose too; where the user wrote one of them, each
// moves for itself.
// CHECK-LABEL: @columns_before_whole
// CHECK-NEXT: %[[W:.*]] = tv.reshard %arg0 : {{.*}} -> tensor<8x4xf32, {{.*}}[8, 4]>>
// CHECK-NEXT: %[[C:.*]] = tv.reshard %[[W]] : {{.*}} -> tensor<8x4xf32, {{.*}}[8, did(tp) * 2]>>
// CHECK-NEXT: %[[T:.*]] = tv.transpose %[[C]]
// CHECK-NEXT: %[[E:.*]] = tv.exp %[[W]]
// CHECK-NEXT: return %[[T]], %[[E]]
#st = #tv.view<#m, [4, did(tp) * 4]>
#ct = #tv.view<#m, [did(tp) * 2, 8]>
func.func @columns_before_whole(%x: tensor<8x4xf32, #s>)
    -> (tensor<4x8xf32, #ct>, tensor<8x4xf32, #w>) {
  %0 = tv.transpose %x perm [1, 0] : (tensor<8x4xf32, #s>) -> tensor<4x8xf32, #st>
  %1 = tv.reshard %0 : (tensor<4x8xf32, #st>) -> tensor<4x8xf32, #ct>
  %2 = tv.exp %x : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #s>
  %3 = tv.reshard %2 : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #w>
  return %1, %3 : tensor<4x8xf32, #ct>, tensor<8x4xf32, #w>
}

// CHECK-LABEL: @two_ways_the_user_wrote
// CHECK-NEXT: tv.exp %arg0
// CHECK-NEXT: tv.reshard {{.*}} {tv.user_move}
// CHECK-NEXT: tv.tanh %arg0
// CHECK-NEXT: tv.reshard
func.func @two_ways_the_user_wrote(%x: tensor<8x4xf32, #s>)
    -> (tensor<8x4xf32, #w>, tensor<8x4xf32, #c>) {
  %0 = tv.exp %x : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #s>
  %1 = tv.reshard %0 {tv.user_move} : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #w>
  %2 = tv.tanh %x : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #s>
  %3 = tv.reshard %2 : (tensor<8x4xf32, #s>) -> tensor<8x4xf32, #c>
  return %1, %3 : tensor<8x4xf32, #w>, tensor<8x4xf32, #c>
}

// -----

#m = #tv.mesh<x = 2, y = 3>
#xy = #tv.view<#m, [did(x) * did(y) * 2, 12]>
#yx = #tv.view<#m, [did(y) * did(x) * 2, 12]>
#y = #tv.view<#m, [did(y) * 4, 12]>
#cy = #tv.view<#m, [12, did(y) * 4]>
#cyx = #tv.view<#m, [12, did(y) * did(x) * 2]>
#b = #tv.view<#m, [did(y) * 4, did(x) * 6]>
#p = #tv.view<#m, [12, did(x) * 6], partial = [y : sum]>
#r = #tv.view<#m, [12, did(x) * did(y) * 2]>

// The move of the sum goes with that of %c, so that to place the addition alone anew saves
// no latency, nor does it to place the product alone; both together save one.
// CHECK-LABEL: @two_ops_together
// CHECK-NEXT: tv.reshard %arg0 : {{.*}}[12, did(y) * did(x) * 2]>>
// CHECK-NEXT: tv.reshard %arg1 : {{.*}}[12, did(y) * did(x) * 2]>>
// CHECK-NEXT: tv.add
// CHECK-NEXT: %[[P:.*]] = tv.matmul %{{.*}}, %arg2 : {{.*}}partial = [(x, y) : sum]>>
// CHECK-NEXT: tv.reshard %[[P]]
// CHECK-NEXT: return
func.func @two_ops_together(%a: tensor<12x12xf32, #xy>, %b: tensor<12x12xf32, #y>,
                            %c: tensor<12x12xf32, #yx>) -> tensor<12x12xf32, #r> {
  %0 = tv.reshard %b : (tensor<12x12xf32, #y>) -> tensor<12x12xf32, #xy>
  %1 = tv.add %a, %0 : (tensor<12x12xf32, #xy>, tensor<12x12xf32, #xy>) -> tensor<12x12xf32, #xy>
  %2 = tv.reshard %1 : (tensor<12x12xf32, #xy>) -> tensor<12x12xf32, #cy>
  %3 = tv.reshard %c : (tensor<12x12xf32, #yx>) -> tensor<12x12xf32, #b>
  %4 = tv.matmul %2, %3 : (tensor<12x12xf32, #cy>, tensor<12x12xf32, #b>) -> tensor<12x12xf32, #p>
  %5 = tv.reshard %4 : (tensor<12x12xf32, #p>) -> tensor<12x12xf32, #r>
  return %5 : tensor<12x12xf32, #r>
}

// -----

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [did(tp) * 4, 8]>
#c = #tv.view<#m, [8, did(tp) * 4]>
!s = tensor<8x8xf32, #s>
!c = tensor<8x8xf32, #c>
!sh = tensor<8x8xbf16, #s>
!ch = tensor<8x8xbf16, #c>

// What one op is the first to need takes one latency, a move behind a cast too: before it,
// as bf16, it is fewer bytes.
// CHECK-LABEL: @behind_a_cast
// CHECK-NEXT: tv.reshard %arg0 : {{.*}}bf16
// CHECK-NEXT: tv.cast
// CHECK-NEXT: tv.reshard %arg1
// CHECK-NEXT: tv.add
func.func @behind_a_cast(%a: !sh, %b: !s) -> !c {
  %0 = tv.reshard %a : (!sh) -> !ch
  %1 = tv.cast %0 : (!ch) -> !c
  %2 = tv.reshard %b : (!s) -> !c
  %3 = tv.add %1, %2 : (!c, !c) -> !c
  return %3 : !c
}

// -----

#m = #tv.mesh<x = 2, y = 3>
!t = tensor<1024x12288xf32, #tv.view<#m, [1024, 6144 * did(x)]>>
!c = tensor<2048x6144xf32, #tv.view<#m, [2048, 3072 * did(x)]>>
!r = tensor<2048x6144xf32, #tv.view<#m, [did(y) * 683, 6144]>>

// A move that cannot be planned is none: that of the reshape's operand has too many pieces.
// CHECK-LABEL: @too_many_pieces
// CHECK-NEXT: tv.reshape
// CHECK-NEXT: tv.reshard
// CHECK-NEXT: return
func.func @too_many_pieces(%x: !t) -> !r {
  %0 = tv.reshape %x : (!t) -> !c
  %1 = tv.reshard %0 : (!c) -> !r
  return %1 : !r
}
