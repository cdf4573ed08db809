// RUN: tessera-opt %s --split-input-file --tv-bind --tv-propagate-shardings \
// RUN:   --tv-decompose-composites --tv-propagate-shardings --tv-decompose-reshardings \
// RUN:   --tv-elide-reshards --tv-place-together=explain=1 --tv-verify-decomposed 2> %t \
// RUN:   | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t

#m = #tv.mesh<x = 2, y = 2>
!x = tensor<4x16x48xf32, #tv.view<#m, [_, _, did(x) * _]>>
!w = tensor<96x48xf32, #tv.view<#m, [did(y) * _, _]>>
!d = tensor<48x96xf32, #tv.view<#m, [did(y) * _, did(x) * _]>>
!h = tensor<4x16x96xf32>
!y = tensor<4x16x48xf32, #tv.view<#m, [_, did(y) * _, _]>>

// What three ops read and a weight are gathered by moves of one kind, at once.
// REMARK: remark: places ops together all at once: {{[0-9]+}} bytes, 10.17 us
// CHECK-LABEL: @of_one_kind
func.func @of_one_kind(%x: !x, %g: !w, %u: !w, %d: !d) -> !y {
  %0 = tv.linear %x, %g : (!x, !w) -> !h
  %1 = tv.linear %x, %u : (!x, !w) -> !h
  %2 = tv.silu %0 : (!h) -> !h
  %3 = tv.mul %2, %1 : (!h, !h) -> !h
  %4 = tv.linear %3, %d : (!h, !d) -> tensor<4x16x48xf32>
  %5 = tv.add %x, %4 : (!x, tensor<4x16x48xf32>) -> !y
  return %5 : !y
}

// -----

#m = #tv.mesh<x = 4, y = 2>
!a = tensor<8192x1536xf32, #tv.view<#m, [did(y) * _, did(x) * _]>>
!w = tensor<6144x1536xf32, #tv.view<#m, [_, did(x) * _]>>
!h = tensor<8192x6144xf32>
!t = tensor<6144x8192xf32>
!y = tensor<6144x1536xf32, #tv.view<#m, [_, _]>>

// A softmax whose operand nothing splits takes less split.
// CHECK-LABEL: @split_softmax
// CHECK-NOT: tv.softmax
// CHECK: tv.reduce max
// CHECK: return
func.func @split_softmax(%a: !a, %w: !w) -> !y {
  %0 = tv.linear %a, %w : (!a, !w) -> !h
  %1 = tv.softmax %0 dim 1 : (!h) -> !h
  %2 = tv.transpose %1 perm [1, 0] : (!h) -> !t
  %3 = tv.matmul %2, %a : (!t, !a) -> !y
  return %3 : !y
}

// -----

#m = #tv.mesh<x = 2, y = 2>
!a = tensor<8192x1536xbf16, #tv.view<#m, [did(x) * _, _]>>
!w = tensor<6144x1536xbf16, #tv.view<#m, [did(y) * _, _]>>
!h = tensor<8192x6144xbf16>
!t = tensor<6144x8192xbf16>
!y = tensor<6144x1536xbf16>

// One whose operand a weight splits takes less whole: it had been decomposed.
// CHECK-LABEL: @whole_softmax
// CHECK-NOT: tv.reduce
// CHECK: tv.softmax
// CHECK-NOT: tv.reduce
// CHECK: return
func.func @whole_softmax(%a: !a, %w: !w) -> !y {
  %0 = tv.linear %a, %w : (!a, !w) -> !h
  %1 = tv.softmax %0 dim 1 : (!h) -> !h
  %2 = tv.transpose %1 perm [1, 0] : (!h) -> !t
  %3 = tv.matmul %2, %a : (!t, !a) -> !y
  return %3 : !y
}

// -----

#m = #tv.mesh<x = 2, y = 3>
!a = tensor<3072x3072xf32, #tv.view<#m, [_, did(x) * _]>>
!b = tensor<3072x3072xf32, #tv.view<#m, [did(x) * _, _]>>
!c = tensor<3072x6144xf32, #tv.view<#m, [did(x) * did(y) * _, _]>>
!r = tensor<6144x3072xf32>

// A concat may be split along its dimension: each of these is on one half.
// CHECK-LABEL: @split_concat
// CHECK: tv.concat {{.*}} -> tensor<6144x3072xf32, #tv.view<#{{[a-z0-9]+}}, [did(x) * 3072, 3072]>>
func.func @split_concat(%a: !a, %b: !b, %c: !c) -> tensor<6144x6144xf32> {
  %0 = tv.concat %a, %b dim 0 : (!a, !b) -> !r
  %1 = tv.matmul %0, %c : (!r, !c) -> tensor<6144x6144xf32>
  return %1 : tensor<6144x6144xf32>
}

// -----

#m = #tv.mesh<x = 2, y = 2>
!x = tensor<8x12xf32, #tv.view<#m, [_, did(x) * did(y) * _]>>
!w = tensor<8x24xf32, #tv.view<#m, [did(y) * _, did(x) * _]>>
!y = tensor<8x12xf32, #tv.view<#m, [_, did(y) * _]>>
!h = tensor<8x12xf32>
!g = tensor<8x24xf32>

// What later ops gather goes with what the first did, as nothing waits for it
// between: one latency for two.
// REMARK: remark: places ops together all at once: {{[0-9]+}} bytes, 5.004 us
// CHECK-LABEL: @gathered_with_what_was
// CHECK: tv.reshard %arg1
// CHECK: tv.reshard %arg0
// CHECK: tv.add
func.func @gathered_with_what_was(%x: !x, %w: !w) -> (!h, !y, tensor<8x8xf32>) {
  %0 = tv.exp %x : (!x) -> !h
  %1 = tv.mul %x, %x : (!x, !x) -> !h
  %2 = tv.add %w, %w : (!w, !w) -> !g
  %3 = tv.add %0, %x : (!h, !x) -> !y
  %4 = tv.linear %2, %w : (!g, !w) -> tensor<8x8xf32>
  return %1, %3, %4 : !h, !y, tensor<8x8xf32>
}

// -----

#m = #tv.mesh<x = 2, y = 2>
!a = tensor<2048x3072xf32, #tv.view<#m, [did(x) * _, did(y) * _]>>
!b = tensor<3072x6144xf32, #tv.view<#m, [_, did(y) * did(x) * _]>>
!y = tensor<2048x6144xf32, #tv.view<#m, [_, did(y) * did(x) * _]>>
!z = tensor<2048x6144xf32, #tv.view<#m, [did(y) * _, did(x) * _]>>
!s = tensor<3072x2048xf32, #tv.view<#m, [_, did(y) * did(x) * _]>>
!t = tensor<3072x2048xf32>

// With one of two softmaxes whole they are few.
// REMARK: remark: places ops together all at once: {{[0-9]+}} bytes, 283.4 us; otherwise {{[0-9]+}} bytes, 316.6 us
// CHECK-LABEL: @few_with_a_softmax
// CHECK: tv.softmax
// CHECK: return
func.func @few_with_a_softmax(%a: !a, %b: !b) -> (!s, tensor<3072x6144xf32>, !z, !y) {
  %0 = tv.exp %a : (!a) -> tensor<2048x3072xf32>
  %1 = tv.transpose %0 perm [1, 0] : (tensor<2048x3072xf32>) -> !t
  %2 = tv.softmax %1 dim 1 : (!t) -> !s
  %3 = tv.matmul %a, %b : (!a, !b) -> !y
  %4 = tv.matmul %1, %3 : (!t, !y) -> tensor<3072x6144xf32>
  %5 = tv.softmax %3 dim 1 : (!y) -> !z
  return %2, %4, %5, %3 : !s, tensor<3072x6144xf32>, !z, !y
}
