// Attention from x: a merged qkv weight, the reshape to heads, and the output
// projection, whose weight has no view and takes one. The only view is that of the
// qkv weight, by head: its rows go to devices in groups of whole heads, 6 rows each.
// Exactly one all-reduce; 16 heads on 3 devices are 6, 6 and 4.
// RUN: tessera-opt %s --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --tessera="mesh=tp=4 to=local" --interpret=4 | FileCheck %s %no_other_collective
// RUN: sed '/lse/!s/f32/bf16/g' %s | tessera-opt --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program | FileCheck %s %no_other_collective
// RUN: sed '/lse/!s/f32/f16/g' %s | tessera-opt --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program | FileCheck %s %no_other_collective

// CHECK: tv.attention
// CHECK: tv.linear
// CHECK: comm.all_reduce
// CHECK-NEXT: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 768 bytes 0 copies
// RAN tp=3: all-reduce 1024 bytes 0 copies
// RAN tp=4: all-reduce 1152 bytes 0 copies
#m = #tv.mesh<tp = 2>
!w = tensor<96x32xf32, #tv.view<#m, [(did(tp) * _ | 16) * 6, _]>>
!x = tensor<2x3x32xf32>
!merged = tensor<2x3x96xf32>
!qkv = tensor<2x3x16x6xf32>
!part = tensor<2x3x16x2xf32>
!head = tensor<2x16x3x2xf32>
!lse = tensor<2x16x3xf32>
func.func @main(%x: !x {tv.name = "x"}, %w: !w {tv.name = "qkv", tv.role = "weight"},
                %o: tensor<32x32xf32> {tv.name = "out", tv.role = "weight"}) -> !x {
  %p = tv.linear %x, %w : (!x, !w) -> !merged
  %qkv = tv.reshape %p : (!merged) -> !qkv
  %q0 = tv.slice %qkv offsets [0, 0, 0, 0] : (!qkv) -> !part
  %k0 = tv.slice %qkv offsets [0, 0, 0, 2] : (!qkv) -> !part
  %v0 = tv.slice %qkv offsets [0, 0, 0, 4] : (!qkv) -> !part
  %q = tv.transpose %q0 perm [0, 2, 1, 3] : (!part) -> !head
  %k = tv.transpose %k0 perm [0, 2, 1, 3] : (!part) -> !head
  %v = tv.transpose %v0 perm [0, 2, 1, 3] : (!part) -> !head
  %a, %lse = tv.attention %q, %k, %v scale(0.5) causal : (!head, !head, !head) -> (!head, !lse)
  %t = tv.transpose %a perm [0, 2, 1, 3] : (!head) -> !part
  %r = tv.reshape %t : (!part) -> !x
  %y = tv.linear %r, %o : (!x, tensor<32x32xf32>) -> !x
  return %y : !x
}
