// Reshapes of slices: windows where they split what is left, or merge what lies in one
// piece, else copies.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=1 to=kernels" --interpret=1 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=kernels" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels" --interpret=4 | FileCheck %s %no_other_collective

// Of a slice [2, 5, 6] of [2, 5, 18]: its last dimension in two, those before it in one,
// both, and with dimensions of one element; one of the rows and all before them.
// CHECK: func.func @main
// CHECK: %[[P:.*]] = plan.contract
// CHECK: %[[S:.*]] = plan.alias slice %[[P]] at [0, 0, 6]
// CHECK-NEXT: plan.alias reshape %[[S]]
// CHECK-NEXT: plan.alias reshape %[[S]]
// CHECK-NEXT: plan.alias reshape %[[S]]
// CHECK-NEXT: plan.alias reshape %[[S]]
// CHECK-NEXT: %[[ROW:.*]] = plan.alias slice %[[P]] at [0, 2, 0]
// CHECK-NEXT: plan.alias reshape %[[ROW]]
// CHECK-NOT: plan.copy
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<2x5x8xf32, #tv.view<#m, [_, _, _]>>
!w = tensor<18x8xf32, #tv.view<#m, [3 * (did(tp) * _ | 3) * 2, _]>>
!p = tensor<2x5x18xf32>
!s = tensor<2x5x6xf32>
!r = tensor<2x1x18xf32>
!a = tensor<2x5x3x2xf32>
!b = tensor<10x6xf32>
!c = tensor<10x3x2xf32>
!d = tensor<1x2x5x1x6xf32>
!e = tensor<2x18xf32>
func.func @main(%x: !x, %w: !w) -> (!a, !b, !c, !d, !e) {
  %p = tv.linear %x, %w : (!x, !w) -> !p
  %s = tv.slice %p offsets [0, 0, 6] : (!p) -> !s
  %a0 = tv.reshape %s : (!s) -> !a
  %b0 = tv.reshape %s : (!s) -> !b
  %c0 = tv.reshape %s : (!s) -> !c
  %d0 = tv.reshape %s : (!s) -> !d
  %r = tv.slice %p offsets [0, 2, 0] : (!p) -> !r
  %e0 = tv.reshape %r : (!r) -> !e
  %a = tv.cumsum %a0 dim 0 : (!a) -> !a
  %b = tv.cumsum %b0 dim 0 : (!b) -> !b
  %c = tv.cumsum %c0 dim 0 : (!c) -> !c
  %d = tv.cumsum %d0 dim 1 : (!d) -> !d
  %e = tv.cumsum %e0 dim 0 : (!e) -> !e
  return %a, %b, %c, %d, %e : !a, !b, !c, !d, !e
}

// -----

// A cut dimension and the one before it, some of them, two in another order, and what
// would lie in another order than it is read.
// CHECK: func.func @main
// CHECK: plan.contract
// CHECK-COUNT-4: plan.copy {{.*}} from "tv.reshape"
// CHECK-NOT: plan.copy
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<6x5x8xf32, #tv.view<#m, [did(tp) * _, _, _]>>
!w = tensor<18x8xf32, #tv.view<#m, [_, _]>>
!p = tensor<6x5x18xf32>
!s = tensor<6x5x4xf32>
!t = tensor<5x6x4xf32>
!u = tensor<6x4x5xf32>
!a = tensor<6x20xf32>
!b = tensor<6x10x2xf32>
!c = tensor<30x4xf32>
!d = tensor<6x1x4x5xf32>
func.func @main(%x: !x, %w: !w) -> (!a, !b, !c, !d) {
  %p = tv.linear %x, %w : (!x, !w) -> !p
  %s = tv.slice %p offsets [0, 0, 3] : (!p) -> !s
  %t = tv.transpose %s perm [1, 0, 2] : (!s) -> !t
  %u = tv.transpose %s perm [0, 2, 1] : (!s) -> !u
  %a0 = tv.reshape %s : (!s) -> !a
  %b0 = tv.reshape %s : (!s) -> !b
  %d0 = tv.reshape %u : (!u) -> !d
  %c0 = tv.reshape %t : (!t) -> !c
  %a = tv.cumsum %a0 dim 1 : (!a) -> !a
  %b = tv.cumsum %b0 dim 1 : (!b) -> !b
  %c = tv.cumsum %c0 dim 1 : (!c) -> !c
  %d = tv.cumsum %d0 dim 2 : (!d) -> !d
  return %a, %b, %c, %d : !a, !b, !c, !d
}
