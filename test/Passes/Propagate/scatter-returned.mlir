// RUN: tessera-opt %s --split-input-file --tv-bind --tv-propagate-shardings --type-aliases | FileCheck %s

// A sum that is returned, or what becomes of it where nothing else uses it, lies in blocks
// over the devices that add it up: here after two uses, and of a result that may be split.
// CHECK: [[PART:!t3072x3072xf32[_0-9]*]] = tensor<3072x3072xf32, #tv.view<#mesh, [did(tp) * 1024, 3072]>>
// CHECK-LABEL: @two_uses
// CHECK: %[[Y:.*]] = tv.linear {{.*}} -> [[PART]]
// CHECK: tv.gelu {{.*}} -> [[PART]]
// CHECK: tv.mul {{.*}} -> [[PART]]
#m = #tv.mesh<tp = 3>
!x = tensor<3072x3072xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<3072x3072xf32>
!r = tensor<3072x3072xf32, #tv.view<#m, [?, ?]>>
func.func @two_uses(%x: !x, %w: !x) -> !r {
  %y = tv.linear %x, %w : (!x, !x) -> !y
  %e = tv.gelu tanh %y : (!y) -> !y
  %s = tv.mul %e, %y : (!y, !y) -> !r
  return %s : !r
}

// -----

// Beside rows that are split already, or columns; through a transpose.
// CHECK: [[BOTH:!t4096x4096xf32[_0-9]*]] = tensor<4096x4096xf32, #tv.view<#mesh, [did(x) * did(y) * 1024, 4096]>>
// CHECK: [[EACH:!t4096x4096xf32[_0-9]*]] = tensor<4096x4096xf32, #tv.view<#mesh, [did(y) * 2048, did(x) * 2048]>>
// CHECK-LABEL: @more_axes
// CHECK: tv.linear {{.*}} -> [[BOTH]]
// CHECK: tv.linear {{.*}} -> [[BOTH2:![_a-z0-9]+]]
// CHECK: tv.transpose %{{.*}} perm [1, 0] : ([[BOTH2]]) -> [[EACH]]
#m = #tv.mesh<x = 2, y = 2>
!x = tensor<4096x4096xf32, #tv.view<#m, [did(x) * _, did(y) * _]>>
!w = tensor<4096x4096xf32, #tv.view<#m, [_, did(y) * _]>>
!y = tensor<4096x4096xf32>
func.func @more_axes(%x: !x, %w: !w) -> (!y, !y) {
  %y = tv.linear %x, %w : (!x, !w) -> !y
  %z = tv.linear %x, %w : (!x, !w) -> !y
  %t = tv.transpose %z perm [1, 0] : (!y) -> !y
  return %y, %t : !y, !y
}

// -----

// What stays whole: the sum, if its uses want it otherwise, or it is returned too, or one
// of them is no part of what is returned; and a result that says so.
// CHECK: [[WHOLE:!t2048x2048xf32[_0-9]*]] = tensor<2048x2048xf32, #tv.view<#mesh, [2048, 2048]>>
// CHECK: [[PART:!t2048x2048xf32[_0-9]*]] = tensor<2048x2048xf32, #tv.view<#mesh, [did(tp) * 512, 2048]>>
// CHECK-LABEL: @uses
// CHECK: tv.linear {{.*}} -> [[WHOLE]]
// CHECK: tv.transpose {{.*}} -> [[PART]]
// CHECK: tv.add {{.*}} -> [[PART]]
// CHECK-COUNT-2: tv.linear {{.*}} -> [[WHOLE]]
#m = #tv.mesh<tp = 4>
!x = tensor<2048x2048xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<2048x2048xf32>
!closed = tensor<2048x2048xf32, #tv.view<#m, [_, _]>>
func.func @uses(%x: !x, %w: !x, %u: !y) -> (!y, !y, !closed) {
  %y = tv.linear %x, %w : (!x, !x) -> !y
  %t = tv.transpose %y perm [1, 0] : (!y) -> !y
  %s = tv.add %y, %t : (!y, !y) -> !y
  %a = tv.linear %w, %x : (!x, !x) -> !y
  %e = tv.exp %a : (!y) -> !y
  %p = tv.matmul %a, %u : (!y, !y) -> !y
  %c = tv.linear %w, %w : (!x, !x) -> !closed
  return %s, %e, %c : !y, !y, !closed
}

// -----

// Of a result that the user leaves open in one dimension it is that which is cut.
// CHECK: [[COLUMNS:!t2048x2048xf32[_0-9]*]] = tensor<2048x2048xf32, #tv.view<#mesh, [2048, did(tp) * 512]>>
// CHECK-LABEL: @open_columns
// CHECK: tv.linear {{.*}} -> [[COLUMNS]]
// CHECK: tv.exp {{.*}} -> [[COLUMNS]]
#m = #tv.mesh<tp = 4>
!x = tensor<2048x2048xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<2048x2048xf32>
!open = tensor<2048x2048xf32, #tv.view<#m, [_, ?]>>
func.func @open_columns(%x: !x, %w: !x) -> !open {
  %y = tv.linear %x, %w : (!x, !x) -> !y
  %e = tv.exp %y : (!y) -> !open
  return %e : !open
}

// -----

// A norm beside the sum, which is over columns as rows are too few, is not cut: each device
// takes its part of it. Two sums over the same devices are.
// CHECK: [[COLUMNS:!t3x1048576xf32[_0-9]*]] = tensor<3x1048576xf32, #tv.view<#mesh, [3, did(tp) * 262144]>>
// CHECK-LABEL: @beside
// CHECK: tv.linear {{.*}} -> [[COLUMNS]]
// CHECK: tv.linear {{.*}} -> [[COLUMNS]]
// CHECK: tv.rms_norm {{.*}} -> [[WHOLE:![_a-z0-9]+]]
// CHECK: tv.add {{.*}} -> [[COLUMNS]]
// CHECK: tv.add %{{.*}}, %{{.*}} : ([[COLUMNS]], [[WHOLE]]) -> [[COLUMNS]]
#m = #tv.mesh<tp = 4>
!x = tensor<3x512xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<1048576x512xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<3x1048576xf32>
func.func @beside(%x: !x, %v: !w, %w: !w, %r: !y, %g: tensor<1048576xf32>) -> !y {
  %a = tv.linear %x, %v : (!x, !w) -> !y
  %b = tv.linear %x, %w : (!x, !w) -> !y
  %n = tv.rms_norm %r, %g epsilon(1.0e-5) : (!y, tensor<1048576xf32>) -> !y
  %s = tv.add %a, %b : (!y, !y) -> !y
  %z = tv.add %s, %n : (!y, !y) -> !y
  return %z : !y
}

// -----

// A product of a sum is computed by rows, which are a part of the sum; not where only its
// columns can be cut, of which the sum has none.
// CHECK: [[LOGITS:!t3x1048576xf32[_0-9]*]] = tensor<3x1048576xf32, #tv.view<#mesh, [3, 1048576]>>
// CHECK: [[FEW:!t3x4096xf32[_0-9]*]] = tensor<3x4096xf32, #tv.view<#mesh, [3, 4096]>>
// CHECK: [[ROWS:!t4096x4096xf32[_0-9]*]] = tensor<4096x4096xf32, #tv.view<#mesh, [did(tp) * 1024, 4096]>>
// CHECK-LABEL: @behind_a_product
// CHECK: tv.linear {{.*}} -> [[ROWS]]
// CHECK: tv.rms_norm {{.*}} -> [[ROWS]]
// CHECK: tv.linear {{.*}} -> [[ROWS]]
// CHECK: tv.linear {{.*}} -> [[FEW]]
// CHECK: tv.linear {{.*}} -> [[LOGITS]]
#m = #tv.mesh<tp = 4>
!x = tensor<4096x4096xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<4096x4096xf32>
!g = tensor<4096xf32>
!few = tensor<3x4096xf32, #tv.view<#m, [_, did(tp) * _]>>
!f = tensor<3x4096xf32>
!v = tensor<1048576x4096xf32>
!l = tensor<3x1048576xf32>
func.func @behind_a_product(%x: !x, %w: !x, %g: !g, %u: !y, %few: !few, %v: !v) -> (!y, !l) {
  %y = tv.linear %x, %w : (!x, !x) -> !y
  %n = tv.rms_norm %y, %g epsilon(1.0e-5) : (!y, !g) -> !y
  %z = tv.linear %n, %u : (!y, !y) -> !y
  %f = tv.linear %few, %w : (!few, !x) -> !f
  %l = tv.linear %f, %v : (!f, !v) -> !l
  return %z, %l : !y, !l
}

// -----

// Over y alone: x, which splits both, goes to the columns of the result.
// CHECK: [[EACH:!t6144x3072xf32[_0-9]*]] = tensor<6144x3072xf32, #tv.view<#mesh, [did(y) * 3072, did(x) * 1536]>>
// CHECK-LABEL: @axis_of_both
// CHECK: tv.matmul {{.*}} -> [[EACH]]
#m = #tv.mesh<x = 2, y = 2>
!a = tensor<6144x3072xf32, #tv.view<#m, [_, did(y) * did(x) * _]>>
!b = tensor<3072x3072xf32, #tv.view<#m, [did(y) * _, did(x) * _]>>
!y = tensor<6144x3072xf32>
func.func @axis_of_both(%a: !a, %b: !b) -> !y {
  %y = tv.matmul %a, %b : (!a, !b) -> !y
  return %y : !y
}

// -----

// Of a slice, pad or concat the dimension is split that it keeps. Where it keeps none that
// can be split, the sum is whole.
// CHECK-DAG: [[SUM:!t2x2048x4096xf32[_0-9]*]] = tensor<2x2048x4096xf32, #tv.view<#mesh, [2, 2048, did(tp) * 1024]>>
// CHECK-DAG: [[WHOLE:!t2x2048x4096xf32[_0-9]*]] = tensor<2x2048x4096xf32, #tv.view<#mesh, [2, 2048, 4096]>>
// CHECK-DAG: [[FEWER:!t2x1024x4096xf32[_0-9]*]] = tensor<2x1024x4096xf32, #tv.view<#mesh, [2, 1024, did(tp) * 1024]>>
// CHECK-LABEL: @boxes
// CHECK: tv.linear {{.*}} -> [[SUM]]
// CHECK-NEXT: tv.gelu {{.*}} -> [[SUM]]
// CHECK-NEXT: tv.slice {{.*}} -> [[FEWER]]
// CHECK-NEXT: tv.linear {{.*}} -> [[SUM]]
// CHECK-NEXT: tv.pad {{.*}} : ([[SUM]])
// CHECK-NEXT: tv.linear {{.*}} -> [[SUM]]
// CHECK-NEXT: tv.linear {{.*}} -> [[SUM]]
// CHECK-NEXT: tv.concat {{.*}} : ([[SUM]], [[SUM]])
// CHECK-NEXT: tv.linear {{.*}} -> [[WHOLE]]
#m = #tv.mesh<tp = 4>
!x = tensor<2x2048x4096xf32, #tv.view<#m, [_, _, did(tp) * _]>>
!w = tensor<4096x4096xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<2x2048x4096xf32>
!s = tensor<2x1024x4096xf32>
!p = tensor<2x3072x4096xf32>
!c = tensor<2x4096x4096xf32>
!b = tensor<2x1024x2048xf32>
func.func @boxes(%x: !x, %w: !w, %v: !w) -> (!s, !p, !c, !b) {
  %0 = tv.linear %x, %w : (!x, !w) -> !y
  %1 = tv.gelu tanh %0 : (!y) -> !y
  %s = tv.slice %1 offsets [0, 7, 0] : (!y) -> !s
  %2 = tv.linear %x, %w : (!x, !w) -> !y
  %p = tv.pad %2 low [0, 1024, 0] high [0, 0, 0] value 1.0 : f32 : (!y) -> !p
  %3 = tv.linear %x, %w : (!x, !w) -> !y
  %4 = tv.linear %x, %v : (!x, !w) -> !y
  %c = tv.concat %3, %4 dim 1 : (!y, !y) -> !c
  %5 = tv.linear %x, %w : (!x, !w) -> !y
  %b = tv.slice %5 offsets [0, 7, 0] : (!y) -> !b
  return %s, %p, %c, %b : !s, !p, !c, !b
}

// -----

// What is open in one dimension may be on the way, too; where the other dimension is
// returned split it is not cut.
// CHECK: [[ROWS:!t2048x2048xf32[_0-9]*]] = tensor<2048x2048xf32, #tv.view<#mesh, [did(tp) * 512, 2048]>>
// CHECK-LABEL: @open_between
// CHECK: tv.linear {{.*}} -> [[ROWS]]
// CHECK: tv.reshard {{.*}} -> [[ROWS]]
// CHECK: tv.exp {{.*}} -> [[ROWS]]
// CHECK: tv.linear {{.*}} -> [[WHOLE:!t2048x2048xf32[_0-9]*]]
// CHECK: tv.reshard {{.*}} -> [[WHOLE]]
#m = #tv.mesh<tp = 4>
!x = tensor<2048x2048xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<2048x2048xf32>
!open = tensor<2048x2048xf32, #tv.view<#m, [?, _]>>
!columns = tensor<2048x2048xf32, #tv.view<#m, [_, ?]>>
func.func @open_between(%x: !x, %w: !x) -> (!y, !columns) {
  %0 = tv.linear %x, %w : (!x, !x) -> !y
  %1 = tv.constrain %0 : (!y) -> !open to #tv.view<#m, [?, _]>
  %2 = tv.exp %1 : (!open) -> !y
  %3 = tv.linear %w, %x : (!x, !x) -> !y
  %4 = tv.constrain %3 : (!y) -> !open to #tv.view<#m, [?, _]>
  %5 = tv.exp %4 : (!open) -> !columns
  return %2, %5 : !y, !columns
}
