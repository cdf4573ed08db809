// RUN: tessera-opt %s --split-input-file --tv-bind --tv-propagate-shardings=explain=1 2> %t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

// What a composite along a split dimension returns stays split, with what is made of it:
// through a transpose, beside what is whole, of which each device takes its part, and under a
// view that says nothing.
// REMARK: 'tv.softmax' in line [[#@LINE+12]] becomes [16, did(tp) * 4], for so it comes from the core ops of 'tv.softmax' in line [[#@LINE+12]] and nothing else says how it lies
// CHECK-LABEL: @returned(
// CHECK: tv.softmax {{.*}} -> tensor<16x16xf32, #tv.view<#mesh, [16, did(tp) * 4]>>
// CHECK: tv.transpose {{.*}} -> tensor<16x16xf32, #tv.view<#mesh, [did(tp) * 4, 16]>>
// CHECK: tv.add {{.*}}, tensor<16x16xf32, #tv.view<#mesh, [16, 16]>>) -> tensor<16x16xf32, #tv.view<#mesh, [16, did(tp) * 4]>>
// CHECK: tv.exp {{.*}} -> tensor<16x16xf32, #tv.view<#mesh, [16, did(tp) * 4]>>
#m = #tv.mesh<tp = 4>
!x = tensor<16x16xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<16x16xf32>
!w = tensor<16x16xf32, #tv.view<#m, [_, _]>>
!o = tensor<16x16xf32, #tv.view<#m, [?, ?]>>
func.func @returned(%x: !x, %w: !w) -> (!y, !o) {
  %z = tv.softmax %x dim 1 : (!x) -> !y
  %t = tv.transpose %z perm [1, 0] : (!y) -> !y
  %a = tv.add %z, %w : (!y, !w) -> !y
  %m = tv.exp %a : (!y) -> !o
  return %t, %m : !y, !o
}

// -----

// Each other composite, along rows as well.
// CHECK-LABEL: @each(
// CHECK: tv.rms_norm {{.*}} -> tensor<16x16xf32, #tv.view<#mesh, [did(x) * 8, did(y) * 8]>>
// CHECK: tv.layer_norm {{.*}} -> tensor<16x16xf32, #tv.view<#mesh, [did(x) * 8, did(y) * 8]>>
// CHECK: tv.rope {{.*}} -> tensor<16x16xf32, #tv.view<#mesh, [did(x) * 8, did(y) * 8]>>
// CHECK: tv.cumsum {{.*}} -> tensor<16x16xf32, #tv.view<#mesh, [did(x) * 8, did(y) * 8]>>
#m = #tv.mesh<x = 2, y = 2>
!x = tensor<16x16xf32, #tv.view<#m, [did(x) * _, did(y) * _]>>
!w = tensor<16xf32>
!y = tensor<16x16xf32>
func.func @each(%x: !x, %w: !w) -> (!y, !y, !y, !y) {
  %a = tv.rms_norm %x, %w epsilon(1.0e-5) : (!x, !w) -> !y
  %b = tv.layer_norm %x, %w, %w epsilon(1.0e-5) : (!x, !w, !w) -> !y
  %c = tv.rope %x base(100.0) : (!x) -> !y
  %d = tv.cumsum %x dim 0 : (!x) -> !y
  return %a, %b, %c, %d : !y, !y, !y, !y
}

// -----

// Whole is what a product sums along it, what the user wants so, what meets an operand
// that its axis splits otherwise, and, of small values, what the next composite reads.
// CHECK-LABEL: @whole(
// CHECK-COUNT-3: tv.softmax {{.*}} -> tensor<16x16xf32, #tv.view<#mesh, [16, 16]>>
// CHECK: tv.softmax {{.*}} -> tensor<16x16xf32, #tv.view<#mesh, [did(tp) * 4, 16]>>
// CHECK: tv.add {{.*}} -> tensor<16x16xf32, #tv.view<#mesh, [did(tp) * 4, 16]>>
// CHECK-COUNT-2: tv.softmax {{.*}} -> tensor<16x16xf32, #tv.view<#mesh, [16, 16]>>
#m = #tv.mesh<tp = 4>
!x = tensor<16x16xf32, #tv.view<#m, [_, did(tp) * _]>>
!r = tensor<16x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!c = tensor<16x16xf32, #tv.view<#m, [_, _]>>
!y = tensor<16x16xf32>
func.func @whole(%x: !x, %w: !y, %r: !r) -> (!y, !c, !c, !y, !y) {
  %a = tv.softmax %x dim 1 : (!x) -> !y
  %p = tv.matmul %a, %w : (!y, !y) -> !y
  %b = tv.softmax %x dim 1 : (!x) -> !c
  %c = tv.softmax %x dim 1 : (!x) -> !y
  %e = tv.exp %c : (!y) -> !c
  %d = tv.softmax %x dim 1 : (!x) -> !y
  %s = tv.add %d, %r : (!y, !r) -> !y
  %f = tv.softmax %x dim 1 : (!x) -> !y
  %g = tv.softmax %f dim 1 : (!y) -> !y
  return %p, %b, %e, %s, %g : !y, !c, !c, !y, !y
}

// -----

// A large one's is split, too.
// CHECK-LABEL: @large(
// CHECK-COUNT-2: tv.softmax {{.*}} -> tensor<4096x4096xf32, #tv.view<#mesh, [4096, did(tp) * 1024]>>
#m = #tv.mesh<tp = 4>
!x = tensor<4096x4096xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<4096x4096xf32>
func.func @large(%x: !x) -> !y {
  %f = tv.softmax %x dim 1 : (!x) -> !y
  %g = tv.softmax %f dim 1 : (!y) -> !y
  return %g : !y
}
