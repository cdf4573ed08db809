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
