// Multi-head attention on a merged qkv whose heads are split: slices, transposes,
// causal attention and the transpose back run on each device's heads, and nothing
// moves. 6 heads are uneven on 4 devices (2, 2, 2, 0).
// RUN: tessera-opt %s --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --tessera="mesh=tp=4 to=local" --interpret=4 | FileCheck %s %no_other_collective
// RUN: sed '/lse/!s/f32/bf16/g' %s | tessera-opt --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program | FileCheck %s %no_other_collective
// RUN: sed '/lse/!s/f32/f16/g' %s | tessera-opt --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program | FileCheck %s %no_other_collective

// CHECK: tv.attention
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!qkv = tensor<2x5x6x12xf32, #tv.view<#m, [_, _, did(tp) * _, _]>>
!part = tensor<2x5x6x4xf32>
!head = tensor<2x6x5x4xf32>
!lse = tensor<2x6x5xf32>
func.func @main(%qkv: !qkv) -> !part {
  %q0 = tv.slice %qkv offsets [0, 0, 0, 0] : (!qkv) -> !part
  %k0 = tv.slice %qkv offsets [0, 0, 0, 4] : (!qkv) -> !part
  %v0 = tv.slice %qkv offsets [0, 0, 0, 8] : (!qkv) -> !part
  %q = tv.transpose %q0 perm [0, 2, 1, 3] : (!part) -> !head
  %k = tv.transpose %k0 perm [0, 2, 1, 3] : (!part) -> !head
  %v = tv.transpose %v0 perm [0, 2, 1, 3] : (!part) -> !head
  %a, %lse = tv.attention %q, %k, %v scale(0.5) causal : (!head, !head, !head) -> (!head, !lse)
  %t = tv.transpose %a perm [0, 2, 1, 3] : (!head) -> !part
  return %t : !part
}
