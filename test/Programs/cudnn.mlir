// Attentions that cuDNN computes, beside nothing that needs a kernel: these programs
// run on the fakes of its library, of the driver and of NCCL, too. Heads over tp.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels target=cuda:sm_90a attention=cudnn" --interpret=2 | FileCheck %s %no_other_collective

// CHECK: plan.attend {{.*}} causal
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<2x4x9x40xbf16, #tv.view<#m, [_, (did(tp) * _ | 2) * 2, _, _]>>
!k = tensor<2x2x9x40xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<2x4x9x40xbf16>
!lse = tensor<2x4x9xf32>
func.func @main(%q: !q, %k: !k, %v: !k) -> (!a, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.158114) causal : (!q, !k, !k) -> (!a, !lse)
  return %a, %lse : !a, !lse
}

// -----

// All queries see all keys; the batch over tp, uneven.
// CHECK: plan.attend {{.*}} scale(1.250000e-01) from
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<5x2x7x64xf16, #tv.view<#m, [did(tp) * _, _, _, _]>>
!k = tensor<5x2x12x64xf16, #tv.view<#m, [did(tp) * _, _, _, _]>>
!a = tensor<5x2x7x64xf16>
!lse = tensor<5x2x7xf32>
func.func @main(%q: !q, %k: !k, %v: !k) -> !a {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) : (!q, !k, !k) -> (!a, !lse)
  return %a : !a
}

// -----

// The last queries of more keys, all of one head's, out of one tensor; the result is
// whole on every device.
// CHECK: plan.attend {{.*}} causal
// CHECK: comm.all_gather
// RAN tp=1: nothing
// RAN tp=2: all-gather 640 bytes 1 copies
// RAN tp=3: all-gather 640 bytes 1 copies
// RAN tp=4: all-gather 960 bytes 1 copies
#m = #tv.mesh<tp = 2>
!kv = tensor<2x14x3x32xbf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!q = tensor<2x3x5x16xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!part = tensor<2x14x3x16xbf16>
!head = tensor<2x3x14x16xbf16>
!a = tensor<2x3x5x16xbf16, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<2x3x5xf32>
func.func @main(%q: !q, %kv: !kv) -> (!a, !lse) {
  %k0 = tv.slice %kv offsets [0, 0, 0, 0] : (!kv) -> !part
  %v0 = tv.slice %kv offsets [0, 0, 0, 16] : (!kv) -> !part
  %k = tv.transpose %k0 perm [0, 2, 1, 3] : (!part) -> !head
  %v = tv.transpose %v0 perm [0, 2, 1, 3] : (!part) -> !head
  %a, %lse = tv.attention %q, %k, %v scale(0.25) causal : (!q, !head, !head) -> (!a, !lse)
  return %a, %lse : !a, !lse
}
