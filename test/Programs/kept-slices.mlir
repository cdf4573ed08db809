// A slice of a split value stays where it is, and so does what follows it; devices may have
// nothing of it.
// RUN: tessera-opt %s --split-input-file --tessera="to=local" --interpret=4 | FileCheck %s %no_other_collective

// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 4>
!x = tensor<16x4xf32, #tv.view<#m, [did(tp) * _, _]>>
!s = tensor<10x4xf32>
!t = tensor<5x4xf32>
!w = tensor<6x4xf32>
!y = tensor<10x6xf32>
func.func @main(%x: !x, %w: !w) -> (!y, !s, !t) {
  %s = tv.slice %x offsets [3, 0] : (!x) -> !s
  %e = tv.exp %s : (!s) -> !s
  %y = tv.linear %e, %w : (!s, !w) -> !y
  %a = tv.add %e, %s : (!s, !s) -> !s
  %n = tv.neg %x : (!x) -> !x
  %t = tv.slice %n offsets [9, 0] : (!x) -> !t
  return %y, %a, %t : !y, !s, !t
}

// -----

// A reshape of it and what follows that, too.
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 4>
!x = tensor<16x2x4xf32, #tv.view<#m, [did(tp) * _, _, _]>>
!s = tensor<10x2x4xf32>
!r = tensor<20x4xf32>
!w = tensor<6x4xf32>
func.func @main(%x: !x, %w: !w) -> (!s, tensor<20x6xf32>, tensor<80xf32>) {
  %s = tv.slice %x offsets [3, 0, 0] : (!x) -> !s
  %r = tv.reshape %s : (!s) -> !r
  %y = tv.linear %r, %w : (!r, !w) -> tensor<20x6xf32>
  %e = tv.exp %r : (!r) -> !r
  %f = tv.reshape %e : (!r) -> tensor<80xf32>
  return %s, %y, %f : !s, tensor<20x6xf32>, tensor<80xf32>
}
