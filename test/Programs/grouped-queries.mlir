// Grouped queries: 6 query heads on one key head, query heads over tp. Where
// the axis has more devices than there are key heads, a device has some heads of a
// group and all devices of the group have its keys; nothing moves.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s %no_other_collective

// CHECK: tv.attention
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<2x6x5x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<2x1x5x4xf32, #tv.view<#m, [_, _, _, _]>>
!a = tensor<2x6x5x4xf32>
!lse = tensor<2x6x5xf32>
func.func @main(%q: !q, %k: !k, %v: !k) -> !a {
  %a, %lse = tv.attention %q, %k, %v scale(0.5) causal : (!q, !k, !k) -> (!a, !lse)
  return %a : !a
}

// -----

// Blocks of 3 query heads over tp: the first device has all 3, the others have none.
// They read one key head; nothing moves.
// CHECK: tv.attention
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<2x3x5x4xf32, #tv.view<#m, [_, _ * did(tp) * 3, _, _]>>
!k = tensor<2x1x5x4xf32, #tv.view<#m, [_, _, _, _]>>
!a = tensor<2x3x5x4xf32>
!lse = tensor<2x3x5xf32>
func.func @main(%q: !q, %k: !k, %v: !k) -> !a {
  %a, %lse = tv.attention %q, %k, %v scale(0.5) causal : (!q, !k, !k) -> (!a, !lse)
  return %a : !a
}

// -----

// The one key head is on the second device, so that one works alone; nothing moves, as
// all have the rest.
// CHECK: tv.attention
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<2x4x5x4xf32>
!k = tensor<2x1x5x4xf32, #tv.view<#m, [_, (did(tp) * _ | 1:2), _, _]>>
!v = tensor<2x1x5x4xf32>
!lse = tensor<2x4x5xf32>
func.func @main(%q: !q, %k: !k, %v: !v) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.5) causal : (!q, !k, !v) -> (!q, !lse)
  return %a : !q
}
