// RUN: tessera-opt %s --split-input-file --tv-bind --tv-propagate-shardings \
// RUN:   --tv-decompose-reshardings --tv-elide-reshards --tv-place-together=explain=1 \
// RUN:   --tv-verify-decomposed 2> %t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

#m = #tv.mesh<x = 2, y = 2>
!a = tensor<64x48xf32, #tv.view<#m, [did(x) * did(y) * _, _]>>
!w = tensor<96x48xf32, #tv.view<#m, [_, did(y) * did(x) * _]>>
!v = tensor<48x96xf32, #tv.view<#m, [_, did(x) * _]>>
!y = tensor<64x48xf32, #tv.view<#m, [_, did(y) * _]>>
!h = tensor<64x96xf32>
!t = tensor<64x48xf32>

// What two ops read moves together with the weight that the first of them reads.
// REMARK: remark: places ops together: {{[0-9]+}} bytes, 10.16 us; otherwise
// REMARK: remark: places ops together all at once: {{[0-9]+}} bytes, 10.13 us; otherwise
// CHECK-LABEL: @gathered_with_a_weight
// CHECK-DAG: %[[A:.*]] = tv.reshard %arg0
// CHECK-DAG: %[[W:.*]] = tv.reshard %arg1
// CHECK: tv.linear %[[A]], %[[W]]
func.func @gathered_with_a_weight(%a: !a, %w: !w, %v: !v) -> (!y, tensor<64xf32>) {
  %0 = tv.linear %a, %w : (!a, !w) -> !h
  %1 = tv.gelu tanh %0 : (!h) -> !h
  %2 = tv.linear %1, %v : (!h, !v) -> !t
  %3 = tv.add %a, %2 : (!a, !t) -> !y
  %4 = tv.mul %3, %3 : (!y, !y) -> !t
  %5 = tv.reduce sum %4 dims [1] : (!t) -> tensor<64xf32>
  return %3, %5 : !y, tensor<64xf32>
}

// -----

#m = #tv.mesh<dp = 2, tp = 4>
!x = tensor<4x2048x1536xf32, #tv.view<#m, [_, _, did(dp) * _]>>
!g = tensor<6144x1536xf32, #tv.view<#m, [_, did(tp) * _]>>
!u = tensor<6144x1536xf32, #tv.view<#m, [did(dp) * _, did(tp) * _]>>
!d = tensor<1536x6144xf32, #tv.view<#m, [_, did(tp) * _]>>
!h = tensor<4x2048x6144xf32>
!t = tensor<4x2048x1536xf32>

// Three ops read parts of rows: these come directly, not by a gather of all.
// REMARK: remark: places ops together: {{[0-9]+}} bytes, 307.7 us; otherwise {{[0-9]+}} bytes, 707.6 us
// CHECK-LABEL: @directly
// CHECK-NOT: tensor<4x2048x1536xf32, #tv.view<#{{[a-z0-9]+}}, [4, 2048, 1536]>>
// CHECK: return
func.func @directly(%x: !x, %g: !g, %u: !u, %d: !d) -> !t {
  %0 = tv.linear %x, %g : (!x, !g) -> !h
  %1 = tv.linear %x, %u : (!x, !u) -> !h
  %2 = tv.silu %0 : (!h) -> !h
  %3 = tv.mul %2, %1 : (!h, !h) -> !h
  %4 = tv.linear %3, %d : (!h, !d) -> !t
  %5 = tv.add %x, %4 : (!x, !t) -> !t
  return %5 : !t
}

// -----

#m = #tv.mesh<x = 4, y = 2>
!a = tensor<384x6144xf32, #tv.view<#m, [did(y) * _, _]>>
!b = tensor<6144x384xf32, #tv.view<#m, [did(x) * _, _]>>
!c = tensor<384x384xf32, #tv.view<#m, [_, did(x) * did(y) * _]>>
!t = tensor<384x384xf32>

// The argument and the product by it have two uses each: neither alone is better elsewhere.
// REMARK: remark: places ops together: {{[0-9]+}} bytes, 14.74 us; otherwise {{[0-9]+}} bytes, 19.11 us
// CHECK-LABEL: @two_at_once
func.func @two_at_once(%a: !a, %b: !b, %c: !c) -> (!t, !t) {
  %0 = tv.matmul %a, %b : (!a, !b) -> !t
  %1 = tv.mul %0, %c : (!t, !c) -> !t
  %2 = tv.transpose %1 perm [1, 0] : (!t) -> !t
  %3 = tv.matmul %2, %c : (!t, !c) -> !t
  return %3, %2 : !t, !t
}

// -----

#m = #tv.mesh<x = 6, y = 4>
!a = tensor<48x96xf32, #tv.view<#m, [did(y) * _, did(x:(1)2) * _]>>
!r = tensor<48x96xf32, #tv.view<#m, [did(x) * _, _]>>
!s = tensor<96x96xf32, #tv.view<#m, [did(x) * _, _]>>
!q = tensor<96x48xf32, #tv.view<#m, [did(y) * _, _]>>
!y = tensor<96x96xf32, #tv.view<#m, [_, _]>>

// One result is whole; so is the other, for then both sums are one move.
// REMARK: remark: places ops together: {{[0-9]+}} bytes, 10.31 us; otherwise {{[0-9]+}} bytes, 20.18 us
// CHECK-LABEL: @both_whole
// CHECK: partial = [(x, y) : sum]>>) -> tensor<96x96xf32, {{.*}} [96, 96]>>
// CHECK: partial = [(x, y) : sum]>>) -> tensor<48x48xf32, {{.*}} [48, 48]>>
func.func @both_whole(%a: !a, %r: !r, %s: !s, %q: !q) -> (!y, tensor<48x48xf32>) {
  %0 = tv.concat %a, %r dim 0 : (!a, !r) -> tensor<96x96xf32>
  %1 = tv.matmul %0, %s : (tensor<96x96xf32>, !s) -> !y
  %2 = tv.matmul %r, %q : (!r, !q) -> tensor<48x48xf32>
  return %1, %2 : !y, tensor<48x48xf32>
}
