// RUN: tessera-opt %s --split-input-file --tv-split-scans --type-aliases | FileCheck %s

// Narrow floats are summed in f32, from the end, and rounded once.
// CHECK-LABEL: @narrow
// CHECK-NEXT: %[[X:.*]] = tv.cast %{{.*}} -> tensor<4x12xf32>
// CHECK-NEXT: %[[RUNS:.*]] = tv.reshape %[[X]] : {{.*}} -> tensor<4x2x6xf32>
// CHECK-NEXT: %[[SUMS:.*]] = tv.cumsum reverse %[[RUNS]] dim 2
// CHECK-NEXT: %[[FIRST:.*]] = tv.slice %[[SUMS]] offsets [0, 0, 0] : {{.*}} -> tensor<4x2x1xf32>
// CHECK-NEXT: %[[TOTALS:.*]] = tv.reshape %[[FIRST]] : {{.*}} -> tensor<4x2xf32>
// CHECK-NEXT: %[[AFTER:.*]] = tv.cumsum reverse %[[TOTALS]] dim 1 : (tensor<4x2xf32>) -> [[WHOLE:![a-z0-9_]+]]
// CHECK-NEXT: %[[SHIFTED:.*]] = tv.pad %[[AFTER]] low [0, 0] high [0, 1] value 0.0
// CHECK-NEXT: %[[REST:.*]] = tv.slice %[[SHIFTED]] offsets [0, 1] : {{.*}} -> [[WHOLE]]
// CHECK-NEXT: %[[EACH:.*]] = tv.broadcast %[[REST]] dims [0, 1]
// CHECK-NEXT: %[[ADDED:.*]] = tv.add %[[SUMS]], %[[EACH]]
// CHECK-NEXT: %[[FLAT:.*]] = tv.reshape %[[ADDED]] : {{.*}} -> tensor<4x12xf32>
// CHECK-NEXT: %[[Y:.*]] = tv.cast %[[FLAT]]
// CHECK-NEXT: return %[[Y]]
#m = #tv.mesh<dp = 2, tp = 2>
!x = tensor<4x12xbf16, #tv.view<#m, [did(dp) * 2, did(tp) * 6]>>
func.func @narrow(%x: !x) -> !x {
  %y = tv.cumsum reverse %x dim 1 : (!x) -> !x
  return %y : !x
}

// -----

// The totals keep what splits rows.
// CHECK: !t4x2xf32 = tensor<4x2xf32, #tv.view<#mesh, [did(dp) * 2, 2]>>
// CHECK-LABEL: @rows
// CHECK: tv.cumsum %{{.*}} dim 1 : (tensor<4x2xf32>) -> !t4x2xf32
#m = #tv.mesh<dp = 2, tp = 2>
!x = tensor<4x12xf32, #tv.view<#m, [did(dp) * 2, did(tp) * 6]>>
func.func @rows(%x: !x) -> !x {
  %y = tv.cumsum %x dim 1 : (!x) -> !x
  return %y : !x
}

// -----

// Runs of 2, which devices have in turn: 26 elements are 13 runs.
// CHECK-LABEL: @in_turn
// CHECK: tv.cumsum %{{.*}} dim 1 : (tensor<13x2xi32>)
// CHECK: tv.cumsum %{{.*}} dim 0 : (tensor<13xi32>) -> !t13xi32
#m = #tv.mesh<tp = 2>
!x = tensor<26xi32, #tv.view<#m, [7 * did(tp) * 2]>>
func.func @in_turn(%x: !x) -> !x {
  %y = tv.cumsum %x dim 0 : (!x) -> !x
  return %y : !x
}

// -----

// What is better gathered, or has nothing to split: each element a run of its own,
// totals of more bits than their run, another result, addends, bounded groups, a
// dynamic dimension.
// CHECK-LABEL: @stay
// CHECK-COUNT-7: tv.cumsum
// CHECK-NOT: tv.
// CHECK: return
#m = #tv.mesh<tp = 2>
!x = tensor<8xf32, #tv.view<#m, [4 * did(tp)]>>
!b = tensor<8xbf16, #tv.view<#m, [2 * did(tp) * 2]>>
!s = tensor<8xf32, #tv.view<#m, [did(tp) * 4]>>
!w = tensor<8xf32, #tv.view<#m, [8]>>
!p = tensor<8xf32, #tv.view<#m, [8], partial = [tp : sum]>>
!g = tensor<12xf32, #tv.view<#m, [(did(tp) * 2 | 3) * 4]>>
!d = tensor<?xf32, #tv.view<#m, [did(tp) * _]>>
func.func @stay(%x: !x, %b: !b, %s: !s, %w: !w, %p: !p, %g: !g, %d: !d) {
  %0 = tv.cumsum %x dim 0 : (!x) -> !x
  %1 = tv.cumsum %b dim 0 : (!b) -> !b
  %2 = tv.cumsum %s dim 0 : (!s) -> !w
  %3 = tv.cumsum %w dim 0 : (!w) -> !s
  %4 = tv.cumsum %p dim 0 : (!p) -> !p
  %5 = tv.cumsum %g dim 0 : (!g) -> !g
  %6 = tv.cumsum %d dim 0 : (!d) -> !d
  return
}

// -----

// Not where the user wrote what each device does.

#m = #tv.mesh<x = 2>
!x = tensor<4x12xf32, #tv.view<#m, [_, did(x) * _]>>
// CHECK-LABEL: @written_local
// CHECK-NEXT: tv.cumsum
// CHECK-NEXT: return
func.func @written_local(%x: !x) -> !x {
  %y = tv.cumsum %x dim 1 {tv.local} : (!x) -> !x
  return %y : !x
}
