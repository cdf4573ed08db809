// Small moves that go together with others, whatever else is placed.
// RUN: tessera-opt %s --split-input-file --tv-bind --tv-propagate-shardings \
// RUN:   --tv-decompose-composites --tv-propagate-shardings --tv-decompose-reshardings \
// RUN:   --tv-elide-reshards --tv-place-together=explain=1 --tv-verify-decomposed \
// RUN:   -o /dev/null 2> %t
// RUN: FileCheck %s < %t

#m = #tv.mesh<x = 4, y = 2>
!x = tensor<64x48xf32, #tv.view<#m, [_, did(x) * _]>>
!y = tensor<64x48xf32, #tv.view<#m, [did(x) * _, _]>>
!w = tensor<96x48xf32, #tv.view<#m, [did(x) * _, _]>>
!v = tensor<48x96xf32, #tv.view<#m, [_, _]>>
!z = tensor<64xf32, #tv.view<#m, [did(x) * did(y) * _]>>

// `x`, which is read twice, is gathered with the weight for the op that reads it first.
// CHECK: remark: places ops together: {{.*}}, 5.{{[0-9]+}} us; otherwise
func.func @read_twice(%x: !x, %w: !w, %v: !v) -> (!y, !z) {
  %0 = tv.linear %x, %w : (!x, !w) -> tensor<64x96xf32>
  %1 = tv.gelu tanh %0 : (tensor<64x96xf32>) -> tensor<64x96xf32>
  %2 = tv.linear %1, %v : (tensor<64x96xf32>, !v) -> tensor<64x48xf32>
  %3 = tv.add %x, %2 : (!x, tensor<64x48xf32>) -> !y
  %4 = tv.mul %3, %3 : (!y, !y) -> tensor<64x48xf32>
  %5 = tv.reduce sum %4 dims [1] : (tensor<64x48xf32>) -> !z
  return %3, %5 : !y, !z
}

// -----

#m = #tv.mesh<x = 2, y = 2>
!x = tensor<48x24xf32, #tv.view<#m, [did(y) * _, did(x) * _]>>
!y = tensor<24x48xf32, #tv.view<#m, [_, did(x) * _]>>
!z = tensor<24x2x24xf32, #tv.view<#m, [_, did(y) * ?, ?]>>
!t = tensor<24x24x2xf32>

// All that is returned moves at the end.
// CHECK: remark: places ops together: {{.*}}, 5.{{[0-9]+}} us; otherwise
func.func @returned_together(%x: !x) -> (!t, !y, !z) {
  %0 = tv.reshape %x : (!x) -> !z
  %1 = tv.transpose %0 perm [0, 2, 1] : (!z) -> !t
  %2 = tv.transpose %x perm [1, 0] : (!x) -> !y
  return %1, %2, %0 : !t, !y, !z
}

// -----

#m = #tv.mesh<x = 2, y = 2>
!a = tensor<96x48xf32, #tv.view<#m, [did(y) * _, did(x) * _]>>
!b = tensor<96x96xf32, #tv.view<#m, [did(y) * _, did(x) * _]>>
!c = tensor<96x96xf32, #tv.view<#m, [_, _]>>
!y = tensor<96x96xf32, #tv.view<#m, [did(x) * _, did(y) * _]>>
!z = tensor<48x2x96xf32>
!t = tensor<96x96xf32>

// What is read before the end does not wait for it, nor for moves that it makes needless.
// CHECK: remark: places ops together: {{.*}}, 10.{{[0-9]+}} us; otherwise
func.func @read_before(%a0: !a, %a1: !a, %b: !b, %c: !c) -> (!z, !t, !c, !y) {
  %0 = tv.concat %a0, %a1 dim 1 : (!a, !a) -> !y
  %1 = tv.reshape %0 : (!y) -> !z
  %2 = tv.add %0, %b : (!y, !b) -> !t
  %3 = tv.matmul %b, %c : (!b, !c) -> !c
  return %1, %2, %3, %0 : !z, !t, !c, !y
}

// -----

#m = #tv.mesh<x = 2, y = 2>
!a = tensor<96x48xf32, #tv.view<#m, [did(y) * _, did(x) * _]>>
!b = tensor<48x24xf32, #tv.view<#m, [_, did(y) * _]>>
!c = tensor<24x96xf32, #tv.view<#m, [did(x) * did(y) * _, _]>>
!y = tensor<96x24xf32, #tv.view<#m, [_, did(y) * _]>>
!z = tensor<24x96xbf16, #tv.view<#m, [_, did(x) * _]>>

// `c` is gathered once for all when the products around `b` have left it where it is.
// CHECK: remark: places ops together: {{.*}}, 10.{{[0-9]+}} us; otherwise
func.func @again(%a: !a, %b: !b, %c: !c)
    -> (!y, tensor<48x96xf32>, tensor<24x96xf32>, !z) {
  %0 = tv.matmul %a, %b : (!a, !b) -> !y
  %1 = tv.matmul %b, %c : (!b, !c) -> tensor<48x96xf32>
  %2 = tv.softmax %c dim 0 : (!c) -> tensor<24x96xf32>
  %3 = tv.cast %c : (!c) -> !z
  return %0, %1, %2, %3 : !y, tensor<48x96xf32>, tensor<24x96xf32>, !z
}
