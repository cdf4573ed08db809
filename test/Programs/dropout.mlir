// Random numbers depend on the global index alone. Kernels make those of neighbours
// together, so here first numbers lie anywhere among four, in rows of all lengths.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=4 to=kernels target=cuda:sm_90a" --interpret=4 -o /dev/null

// Vectors of 4 and of 8; rows and columns that are split evenly, and not: with
// 23 columns on 3 devices two have 8 each, with 25 on 2 one has 12 from 13 on.
// CHECK: tv.dropout
// CHECK: tv.dropout
// CHECK: tv.dropout
// CHECK: tv.dropout
// CHECK: return
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!a = tensor<6x96xf32, #tv.view<#m, [_, did(x) * _]>>
!b = tensor<7x23xbf16, #tv.view<#m, [_, did(x) * _]>>
!c = tensor<3x5x25xf32, #tv.view<#m, [_, _, did(x) * _]>>
!d = tensor<7x50xbf16, #tv.view<#m, [did(x) * _, _]>>
func.func @main(%a: !a, %b: !b, %c: !c, %d: !d) -> (!a, !b, !c, !d) {
  %0 = tv.dropout %a rate(0.3) seed(7) stream(1) : (!a) -> !a
  %1 = tv.dropout %b rate(0.5) seed(123456789012345) stream(2) : (!b) -> !b
  %2 = tv.dropout %c rate(0.25) seed(7) stream(98765432109876) : (!c) -> !c
  %3 = tv.dropout %d rate(0.1) seed(7) stream(4) : (!d) -> !d
  %4 = tv.add %1, %b : (!b, !b) -> !b
  return %0, %4, %2, %3 : !a, !b, !c, !d
}

// -----

// In rows of a warp and of a block, in each of their stages.
// CHECK: tv.dropout
// CHECK: tv.layer_norm
// CHECK: tv.dropout
// CHECK: tv.softmax
// CHECK: return
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!a = tensor<7x48xf32, #tv.view<#m, [did(x) * _, _]>>
!b = tensor<5x1032xbf16, #tv.view<#m, [did(x) * _, _]>>
!w = tensor<48xf32>
func.func @main(%a: !a, %r: !a, %w: !w, %b: !b) -> (!a, !b) {
  %0 = tv.dropout %a rate(0.3) seed(7) stream(1) : (!a) -> !a
  %1 = tv.add %0, %r : (!a, !a) -> !a
  %2 = tv.layer_norm %1, %w, %w epsilon(1.0e-5) : (!a, !w, !w) -> !a
  %3 = tv.dropout %b rate(0.5) seed(8) stream(1) : (!b) -> !b
  %4 = tv.softmax %3 dim 1 : (!b) -> !b
  return %2, %4 : !a, !b
}

// -----

// Not along memory: transposed, a part, and with a border around.
// CHECK: tv.dropout
// CHECK: return
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!a = tensor<36x40xf32, #tv.view<#m, [did(x) * _, _]>>
!t = tensor<40x36xf32, #tv.view<#m, [_, did(x) * _]>>
!s = tensor<36x24xf32, #tv.view<#m, [did(x) * _, _]>>
!p = tensor<36x48xf32, #tv.view<#m, [did(x) * _, _]>>
func.func @main(%a: !a, %t: !t) -> (!t, !t, !s, !p) {
  %0 = tv.dropout %a rate(0.3) seed(7) stream(1) : (!a) -> !a
  %1 = tv.transpose %0 perm [1, 0] : (!a) -> !t
  %2 = tv.transpose %a perm [1, 0] : (!a) -> !t
  %3 = tv.dropout %2 rate(0.3) seed(7) stream(2) : (!t) -> !t
  %4 = tv.dropout %a rate(0.3) seed(7) stream(3) : (!a) -> !a
  %5 = tv.slice %4 offsets [0, 7] : (!a) -> !s
  %6 = tv.dropout %a rate(0.3) seed(7) stream(4) : (!a) -> !a
  %7 = tv.pad %6 low [0, 3] high [0, 5] value 1.0 : f32 : (!a) -> !p
  return %1, %3, %5, %7 : !t, !t, !s, !p
}

// -----

// A step draws other numbers, forward and backward the same, and layers that differ in
// their stream alone share a kernel.
// CHECK-COUNT-4: tv.dropout
// CHECK: return
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!a = tensor<7x23xf32, #tv.view<#m, [did(x) * _, _]>>
!t = tensor<i64, #tv.view<#m, []>>
func.func private @layers(%a: !a, %t: !t) -> !a {
  %0 = tv.dropout %a rate(0.3) seed(-7) stream(1) step %t : (!a, !t) -> !a
  %1 = tv.dropout %0 rate(0.3) seed(-7) stream(2) step %t : (!a, !t) -> !a
  return %1 : !a
}
func.func @main(%a: !a, %dy: !a, %t: !t {tv.range = [0, 9]}) -> (!a, !a) {
  %y, %da = tv.gradient @layers(%a, %t) of [0] with (%dy) to [0] : (!a, !t, !a) -> (!a, !a)
  return %y, %da : !a, !a
}
