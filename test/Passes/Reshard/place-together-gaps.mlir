// RUN: tessera-opt %s --split-input-file --tv-bind --tv-propagate-shardings \
// RUN:   --tv-decompose-reshardings --tv-elide-reshards --tv-place-together=explain=1 \
// RUN:   --tv-verify-decomposed 2>&1 | FileCheck %s

#m = #tv.mesh<x = 2, y = 3>
!a = tensor<6144x6144xf32, #tv.view<#m, [did(x) * _, _]>>
!b = tensor<6144x6144xf32, #tv.view<#m, [_, did(x) * _]>>
!t = tensor<6144x6144xf32>

// The product's rows lie as what is gathered along the outer axis: in runs, which takes less
// than to bring them together.
// CHECK: remark: places ops together: {{[0-9]+}} bytes, 230.3 us; otherwise {{[0-9]+}} bytes, 681 us
// CHECK-LABEL: @in_runs
// CHECK: tv.exp
// CHECK-SAME: -> tensor<6144x6144xf32, {{.*}} [did(x) * did(y) * 1024, 6144]>>
// CHECK-NEXT: tv.reshard
// CHECK-NEXT: tv.matmul
// CHECK-SAME: -> tensor<6144x6144xf32, {{.*}} [2 * did(y) * 1024, did(x) * 3072]>>
func.func @in_runs(%a: !a, %b: !b) -> !t {
  %v = tv.exp %a : (!a) -> !t
  %y = tv.matmul %v, %b : (!t, !b) -> !t
  return %y : !t
}
