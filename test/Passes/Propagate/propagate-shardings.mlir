// RUN: tessera-opt --tv-bind --tv-propagate-shardings --split-input-file %s | FileCheck %s

// One view on the first weight shards the whole MLP.

// CHECK-LABEL: @mlp_from_one_view
// CHECK-SAME: %[[W1:.*]]: tensor<8x32xf32, #tv.view<#mesh, [8, did(tp) * 16]>>
// CHECK: tv.linear {{.*}} -> tensor<2x32xf32, #tv.view<#mesh, [2, did(tp) * 16]>>
// CHECK: tv.gelu {{.*}} -> tensor<2x32xf32, #tv.view<#mesh, [2, did(tp) * 16]>>
// CHECK: tv.linear {{.*}} -> tensor<2x8xf32, #tv.view<#mesh, [2, 8]>>
#m = #tv.mesh<tp = 2>
!w0 = tensor<32x8xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @mlp_from_one_view(%w1: tensor<8x32xf32>, %x: tensor<2x8xf32>, %w0: !w0) -> tensor<2x8xf32> {
  %h = tv.linear %x, %w0 : (tensor<2x8xf32>, !w0) -> tensor<2x32xf32>
  %g = tv.gelu tanh %h : (tensor<2x32xf32>) -> tensor<2x32xf32>
  %y = tv.linear %g, %w1 : (tensor<2x32xf32>, tensor<8x32xf32>) -> tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// From the merged projection to the heads and back, by a view on the weight.

// CHECK-LABEL: @heads
// CHECK: tv.reshape {{.*}} -> tensor<2x4x6x6xf32, #tv.view<#mesh, [2, 4, did(tp) * 2, 6]>>
// CHECK: tv.slice {{.*}} -> tensor<2x4x6x2xf32, #tv.view<#mesh, [2, 4, did(tp) * 2, 2]>>
// CHECK: tv.transpose {{.*}} -> tensor<2x6x4x2xf32, #tv.view<#mesh, [2, did(tp) * 2, 4, 2]>>
#m = #tv.mesh<tp = 3>
!w = tensor<36x12xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @heads(%x: tensor<2x4x12xf32>, %w: !w) -> tensor<2x6x4x2xf32> {
  %p = tv.linear %x, %w : (tensor<2x4x12xf32>, !w) -> tensor<2x4x36xf32>
  %r = tv.reshape %p : (tensor<2x4x36xf32>) -> tensor<2x4x6x6xf32>
  %q = tv.slice %r offsets [0, 0, 0, 2] : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x2xf32>
  %t = tv.transpose %q perm [0, 2, 1, 3] : (tensor<2x4x6x2xf32>) -> tensor<2x6x4x2xf32>
  return %t : tensor<2x6x4x2xf32>
}

// -----

// [3, 10] with dimension 1 over x becomes a strided split of 30.

// CHECK-LABEL: @strided_result_of_a_reshape
// CHECK: tv.reshape {{.*}} -> tensor<30xf32, #tv.view<#mesh, [3 * did(x) * 5]>>
#m = #tv.mesh<x = 2>
!a = tensor<3x10xf32, #tv.view<#m, [_, did(x) * _]>>
func.func @strided_result_of_a_reshape(%a: !a) -> tensor<30xf32> {
  %r = tv.reshape %a : (!a) -> tensor<30xf32>
  return %r : tensor<30xf32>
}

// -----

// A constraint becomes a reshard, which moves nothing where the operand can follow.

// CHECK-LABEL: @constraints
// CHECK-NOT: tv.constrain
// CHECK: tv.add {{.*}} -> tensor<8xf32, #tv.view<#mesh, [did(x) * 4]>>
// CHECK-NEXT: tv.reshard %{{.*}} {tv.user_move} : (tensor<8xf32, #tv.view<#mesh, [did(x) * 4]>>) -> tensor<8xf32, #tv.view<#mesh, [did(x) * 4]>>
// CHECK-NEXT: tv.mul
// CHECK-NEXT: tv.reshard %{{.*}} {tv.user_move} : (tensor<8xf32, #tv.view<#mesh, [did(x) * 4]>>) -> tensor<8xf32, #tv.view<#mesh, [8]>>
#m = #tv.mesh<x = 2>
func.func @constraints(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = tv.add %a, %a : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = tv.constrain %0 : (tensor<8xf32>) -> tensor<8xf32> to #tv.view<#m, [did(x) * _]>
  %2 = tv.mul %1, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = tv.constrain %2 : (tensor<8xf32>) -> tensor<8xf32> to #tv.view<#m, [_]>
  return %3 : tensor<8xf32>
}

// -----

// Tied values have one view, from whichever of them or of their uses it comes; what
// makes them has it, too. An operand that lies otherwise moves.

// CHECK-LABEL: @tied(
// CHECK-SAME: %[[V:[a-z0-9]*]]: tensor<32x16xf32, #tv.view<#mesh, [did(tp) * 16, 16]>>, %{{[a-z0-9]*}}: tensor<8x32xbf16
// CHECK: %[[K:.*]] = tv.linear {{.*}} -> tensor<8x32xf32, #tv.view<#mesh, [8, did(tp) * 16]>>
// CHECK: tv.linear %{{.*}}, %[[V]] {{.*}} -> tensor<8x32xf32, #tv.view<#mesh, [8, did(tp) * 16]>>
// CHECK-NEXT: %[[MOVED:.*]] = tv.reshard %{{.*}} : (tensor<8x32xbf16, #tv.view<#mesh, [did(tp) * 4, 32]>>) -> tensor<8x32xbf16, #tv.view<#mesh, [8, did(tp) * 16]>>
// CHECK-NEXT: tv.transpose %[[K]]
// CHECK-NEXT: tv.neg %[[MOVED]]
#m = #tv.mesh<tp = 2>
!w = tensor<32x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!rows = tensor<8x32xbf16, #tv.view<#m, [did(tp) * _, _]>>
func.func @tied(%x: tensor<8x16xf32>, %k: !w, %v: tensor<32x16xf32>, %r: !rows) -> (tensor<32x8xf32>, tensor<8x32xf32>, tensor<8x32xbf16>) {
  %0 = tv.linear %x, %k : (tensor<8x16xf32>, !w) -> tensor<8x32xf32>
  %1 = tv.linear %x, %v : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
  %2:3 = tv.same_view %0, %1, %r : (tensor<8x32xf32>, tensor<8x32xf32>, !rows) -> (tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xbf16>)
  %3 = tv.transpose %2#0 perm [1, 0] : (tensor<8x32xf32>) -> tensor<32x8xf32>
  %4 = tv.neg %2#2 : (tensor<8x32xbf16>) -> tensor<8x32xbf16>
  return %3, %2#1, %4 : tensor<32x8xf32>, tensor<8x32xf32>, tensor<8x32xbf16>
}

// -----

// A view in the type of one result is that of all.

// CHECK-LABEL: @tied_by_a_type(
// CHECK: return %{{.*}}, %{{.*}} : tensor<8x4xf32, #tv.view<#mesh, [did(x) * 4, 4]>>, tensor<8x4xf32, #tv.view<#mesh, [did(x) * 4, 4]>>
#m = #tv.mesh<x = 2>
func.func @tied_by_a_type(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0:2 = tv.same_view %a, %b : (tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32, #tv.view<#m, [did(x) * _, _]>>)
  %1 = tv.neg %0#0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = tv.neg %0#1 : (tensor<8x4xf32, #tv.view<#m, [did(x) * _, _]>>) -> tensor<8x4xf32>
  return %1, %2 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// What a barrier does not let pass: from %a on no split, to %b none back, for %c both.

// CHECK-LABEL: @barriers
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<8xf32, #tv.view<#mesh, [did(x) * 4]>> {{.*}}, %[[B:[a-z0-9]*]]: tensor<8xf32, #tv.view<#mesh, [8]>>, %[[C:[a-z0-9]*]]: tensor<8xf32, #tv.view<#mesh, [did(x) * 4]>>
// CHECK-NOT: tv.barrier
// CHECK: %[[N:.*]] = tv.reshard %[[A]] {tv.user_move} : (tensor<8xf32, #tv.view<#mesh, [did(x) * 4]>>) -> tensor<8xf32, #tv.view<#mesh, [8]>>
// CHECK-NEXT: tv.neg %[[N]]
// CHECK-NEXT: %[[S:.*]] = tv.reshard %[[A]] {tv.user_move}
// CHECK-NEXT: tv.neg %[[S]]
// CHECK-NEXT: %[[F:.*]] = tv.reshard %[[B]] {tv.user_move} : (tensor<8xf32, #tv.view<#mesh, [8]>>) -> tensor<8xf32, #tv.view<#mesh, [did(x) * 4]>>
// CHECK-NEXT: tv.neg %[[F]]
// CHECK-NEXT: %[[K:.*]] = tv.reshard %[[C]] {tv.user_move}
// CHECK-NEXT: tv.neg %[[K]]
#m = #tv.mesh<x = 2>
!split = tensor<8xf32, #tv.view<#m, [did(x) * _]>>
func.func @barriers(%a: !split, %b: tensor<8xf32>, %c: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, !split, !split) {
  %0 = tv.barrier backward %a : (!split) -> tensor<8xf32>
  %1 = tv.neg %0 : (tensor<8xf32>) -> tensor<8xf32>
  %2 = tv.barrier forward %a : (!split) -> tensor<8xf32>
  %3 = tv.neg %2 : (tensor<8xf32>) -> tensor<8xf32>
  %4 = tv.barrier forward %b : (tensor<8xf32>) -> tensor<8xf32>
  %5 = tv.neg %4 : (tensor<8xf32>) -> !split
  %6 = tv.barrier backward %c : (tensor<8xf32>) -> tensor<8xf32>
  %7 = tv.neg %6 : (tensor<8xf32>) -> !split
  return %1, %3, %5, %7 : tensor<8xf32>, tensor<8xf32>, !split, !split
}

// -----

// Blocks stay blocks and cyclic stays cyclic where the extent is another one, but a slice
// keeps what each device has (keep-boxes.mlir); one value is not split over three devices.

// CHECK-LABEL: @windows
// CHECK: tv.slice {{.*}} offsets [1, 0] {{.*}} -> tensor<10x6xf32, #tv.view<#mesh, [(did(x) * 4 | 1:11), 2 * did(y)]>>
// CHECK: tv.slice {{.*}} offsets [0, 1] {{.*}} -> tensor<12x5xf32, #tv.view<#mesh, [did(x) * 4, (2 * did(y) | 1:6)]>>
// CHECK: tv.slice {{.*}} offsets [11, 0] {{.*}} -> tensor<1x6xf32, #tv.view<#mesh, [1, 2 * did(y)]>>
// CHECK: tv.pad {{.*}} -> tensor<14x6xf32, #tv.view<#mesh, [did(x) * 5, 2 * did(y)]>>
// CHECK: tv.concat {{.*}} -> tensor<13x6xf32, #tv.view<#mesh, [did(x) * 5, 2 * did(y)]>>
#m = #tv.mesh<x = 3, y = 3>
!a = tensor<12x6xf32, #tv.view<#m, [did(x) * _, _ * did(y)]>>
func.func @windows(%a: !a, %b: tensor<1x6xf32>)
    -> (tensor<10x6xf32>, tensor<12x5xf32>, tensor<1x6xf32>, tensor<14x6xf32>, tensor<13x6xf32>) {
  %s = tv.slice %a offsets [1, 0] : (!a) -> tensor<10x6xf32>
  %t = tv.slice %a offsets [0, 1] : (!a) -> tensor<12x5xf32>
  %u = tv.slice %a offsets [11, 0] : (!a) -> tensor<1x6xf32>
  %p = tv.pad %a low [1, 0] high [1, 0] value 0.0 : f32 : (!a) -> tensor<14x6xf32>
  %c = tv.concat %b, %a dim 0 : (tensor<1x6xf32>, !a) -> tensor<13x6xf32>
  return %s, %t, %u, %p, %c : tensor<10x6xf32>, tensor<12x5xf32>, tensor<1x6xf32>, tensor<14x6xf32>, tensor<13x6xf32>
}

// -----

// Equal parts stay where they are: the whole has the split of each, as many times, and a
// part has that of such a whole. Others are blocks.

// CHECK-LABEL: @parts
// CHECK: tv.concat {{.*}} -> tensor<30xf32, #tv.view<#mesh, [3 * (did(x) * 2 | 5) * 2]>>
// CHECK: tv.slice {{.*}} offsets [10] {{.*}} -> tensor<10xf32, #tv.view<#mesh, [did(x) * 4]>>
// CHECK: tv.pad {{.*}} -> tensor<20xf32, #tv.view<#mesh, [2 * (did(x) * 2 | 5) * 2]>>
// CHECK: tv.concat {{.*}} -> tensor<40xf32, #tv.view<#mesh, [did(x) * 14]>>
#m = #tv.mesh<x = 3>
!a = tensor<10xf32, #tv.view<#m, [did(x) * _]>>
func.func @parts(%a: !a) -> (tensor<10xf32>, tensor<20xf32>, tensor<40xf32>) {
  %c = tv.concat %a, %a, %a dim 0 : (!a, !a, !a) -> tensor<30xf32>
  %s = tv.slice %c offsets [10] : (tensor<30xf32>) -> tensor<10xf32>
  %p = tv.pad %a low [10] high [0] value 0.0 : f32 : (!a) -> tensor<20xf32>
  %d = tv.concat %a, %c dim 0 : (!a, tensor<30xf32>) -> tensor<40xf32>
  return %s, %p, %d : tensor<10xf32>, tensor<20xf32>, tensor<40xf32>
}

// -----

// Backward to what is summed over devices anyway, but not to what costs nothing
// as it is.

// CHECK-LABEL: @windows_backward
// CHECK-SAME: %{{.*}}: tensor<8x4xf32, #tv.view<#mesh, [8, did(x) * 2]>>
// CHECK-SAME: %{{.*}}: tensor<8xf32, #tv.view<#mesh, [8]>>
// CHECK: tv.reduce {{.*}} -> tensor<8xf32, #tv.view<#mesh, [did(x) * 4]>>
// CHECK: tv.mul {{.*}} -> tensor<8xf32, #tv.view<#mesh, [8]>>
#m = #tv.mesh<x = 2>
!a = tensor<8x4xf32, #tv.view<#m, [_, did(x) * _]>>
!r = tensor<10xf32, #tv.view<#m, [did(x) * _]>>
func.func @windows_backward(%a: !a, %b: tensor<8xf32>) -> (!r, !r) {
  %s = tv.reduce sum %a dims [1] : (!a) -> tensor<8xf32>
  %p = tv.pad %s low [1] high [1] value 0.0 : f32 : (tensor<8xf32>) -> !r
  %t = tv.mul %b, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %q = tv.pad %t low [1] high [1] value 0.0 : f32 : (tensor<8xf32>) -> !r
  return %p, %q : !r, !r
}

// -----

// What is open in a result may be split further, and nothing moves; what is closed is
// as it is written.

// CHECK-LABEL: @open_results
// CHECK-SAME: -> (tensor<8x4xf32, [[SPLIT:#tv.view<#mesh, .did\(x\) \* 4, 4.>]]> {{.*}}, tensor<8x4xf32, [[SPLIT]]> {{.*}}, tensor<8x4xf32, #tv.view<#mesh, [8, 4]>>
// CHECK: tv.add {{.*}} -> tensor<8x4xf32, [[SPLIT]]>
// CHECK: tv.mul {{.*}} -> tensor<8x4xf32, #tv.view<#mesh, [8, 4]>>
// CHECK-NOT: tv.reshard
// CHECK: return
#m = #tv.mesh<x = 2>
!a = tensor<8x4xf32, #tv.view<#m, [did(x) * _, _]>>
!open = tensor<8x4xf32, #tv.view<#m, [?, ?]>>
!half = tensor<8x4xf32, #tv.view<#m, [?, _]>>
!closed = tensor<8x4xf32, #tv.view<#m, [_, _]>>
func.func @open_results(%a: !a) -> (!open, !half, !closed) {
  %x = tv.add %a, %a : (!a, !a) -> !open
  %y = tv.add %a, %a : (!a, !a) -> !half
  %z = tv.mul %a, %a : (!a, !a) -> !closed
  return %x, %y, %z : !open, !half, !closed
}

// -----

// What a scatter addresses is carried between where it starts and what it becomes, in
// both directions; the updates stay whole.

// CHECK-LABEL: @scatter
// CHECK: %[[ZEROS:.*]] = tv.constant {{.*}} -> tensor<12x4xf32, #tv.view<#mesh, [did(tp) * 6, 4]>>
// CHECK: tv.scatter sum %[[ZEROS]], {{.*}} -> tensor<12x4xf32, #tv.view<#mesh, [did(tp) * 6, 4]>>
// CHECK: tv.mul {{.*}} -> tensor<5x4xf32, #tv.view<#mesh, [5, 4]>>
// CHECK: tv.scatter max %{{.*}} -> tensor<12x4xf32, #tv.view<#mesh, [did(tp) * 6, 4]>>
#m = #tv.mesh<tp = 2>
!w = tensor<12x4xf32, #tv.view<#m, [did(tp) * _, _]>>
!x = tensor<5x4xf32>
func.func @scatter(%w: !w, %ids: tensor<5xi32>, %x: !x) -> (!w, tensor<12x4xf32>) {
  %zeros = tv.constant dense<0.0> : tensor<f32> : () -> tensor<12x4xf32>
  %0 = tv.scatter sum %zeros, %ids, %x dim 0 : (tensor<12x4xf32>, tensor<5xi32>, !x) -> !w
  %y = tv.mul %x, %x : (!x, !x) -> !x
  %1 = tv.scatter max %w, %ids, %y dim 0 : (!w, tensor<5xi32>, !x) -> tensor<12x4xf32>
  return %0, %1 : !w, tensor<12x4xf32>
}

// -----

// The next value of a state lies as the state, which the program's end moves it to.

// CHECK-LABEL: @state
// CHECK-SAME: -> (tensor<4x4xf32, #tv.view<#mesh, [did(tp) * 2, 4]>> {tv.name = "s"},
// CHECK: %[[T:.*]] = tv.transpose {{.*}} -> tensor<4x4xf32, #tv.view<#mesh, [4, did(tp) * 2]>>
// CHECK: %[[NEXT:.*]] = tv.reshard %[[T]] : {{.*}} -> tensor<4x4xf32, #tv.view<#mesh, [did(tp) * 2, 4]>>
// CHECK: return %[[NEXT]], %[[T]]
#m = #tv.mesh<tp = 2>
!s = tensor<4x4xf32, #tv.view<#m, [did(tp) * 2, 4]>>
!t = tensor<4x4xf32>
func.func @state(%s: !s {tv.name = "s", tv.role = "state"}) -> (!t {tv.name = "s"}, !t {tv.name = "t"}) {
  %0 = tv.transpose %s perm [1, 0] : (!s) -> !t
  return %0, %0 : !t, !t
}

// -----

#m = #tv.mesh<x = 2, y = 2>
!a = tensor<3072x2048xf32, #tv.view<#m, [_, did(y) * _]>>
!b = tensor<3072x2048xf32, #tv.view<#m, [_, did(x) * _]>>
!c = tensor<4096x1536xf32, #tv.view<#m, [did(y) * _, _]>>
!y = tensor<3072x2048xf32>
!t = tensor<1536x4096xf32>

// Operands that split one loop differently wait, too, for what c says of the result: it
// leaves x to the columns.
// CHECK-LABEL: @one_loop_split_in_two_ways
// CHECK: tv.add {{.*}} -> tensor<3072x2048xf32, #tv.view<#{{.*}}, [1536 * did(y), did(x) * 1024]>>
func.func @one_loop_split_in_two_ways(%a: !a, %b: !b, %c: !c) -> !y {
  %0 = tv.add %a, %b : (!a, !b) -> !y
  %1 = tv.transpose %c perm [1, 0] : (!c) -> !t
  %2 = tv.reshape %1 : (!t) -> !y
  %3 = tv.mul %0, %2 : (!y, !y) -> !y
  return %3 : !y
}

// -----

// A priority is that of a dimension as it is written, one for two here. Where the rows pass
// first, the first sum lies by them.
#m = #tv.mesh<tp = 2>
!x = tensor<4x2x8xf32, #tv.view<#m, [flat(2) _, did(tp) * _], priority = [0, 1]>>
!z = tensor<4x2x8xf32, #tv.view<#m, [did(tp) * _, _, _]>>
// CHECK-LABEL: @priority_of_two
// CHECK: tv.add {{.*}} -> tensor<4x2x8xf32, #tv.view<#{{.*}}, [did(tp) * 2, 2, 8]>>
// CHECK: tv.add {{.*}} -> tensor<4x2x8xf32, #tv.view<#{{.*}}, [did(tp) * 2, 2, 8]>>
func.func @priority_of_two(%x: !x, %z: !z, %w: !x) -> tensor<4x2x8xf32> {
  %0 = tv.add %x, %w : (!x, !x) -> tensor<4x2x8xf32>
  %1 = tv.add %0, %z : (tensor<4x2x8xf32>, !z) -> tensor<4x2x8xf32>
  return %1 : tensor<4x2x8xf32>
}

// -----

// Attention of sequences that are split: keys would split what the softmax needs whole, and
// wait for the queries, which split it along rows.
#m = #tv.mesh<sp = 2>
!q = tensor<4x2048x64xf32, #tv.view<#m, [_, did(sp) * _, _]>>
!s = tensor<4x2048x2048xf32>
// CHECK-LABEL: @queries_before_keys
// CHECK: tv.matmul {{.*}} -> tensor<4x2048x2048xf32, #tv.view<#{{.*}}, [4, did(sp) * 1024, 2048]>>
// CHECK: tv.softmax {{.*}} -> tensor<4x2048x2048xf32, #tv.view<#{{.*}}, [4, did(sp) * 1024, 2048]>>
func.func @queries_before_keys(%q: !q, %k: !q, %v: !q) -> tensor<4x2048x64xf32> {
  %t = tv.transpose %k perm [0, 2, 1] : (!q) -> tensor<4x64x2048xf32>
  %0 = tv.matmul %q, %t : (!q, tensor<4x64x2048xf32>) -> !s
  %1 = tv.softmax %0 dim 2 : (!s) -> !s
  %2 = tv.matmul %1, %v : (!s, !q) -> tensor<4x2048x64xf32>
  return %2 : tensor<4x2048x64xf32>
}
