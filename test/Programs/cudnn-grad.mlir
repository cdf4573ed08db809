// Gradients of attention that cuDNN computes, beside nothing that needs a kernel: these
// programs run on the fakes of its library, of the driver and of NCCL, too. Heads of
// groups over tp.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels target=cuda:sm_90a attention=cudnn" --interpret=2 | FileCheck %s %no_other_collective

// CHECK: plan.attend {{.*}} causal
// CHECK: plan.attend_grad {{.*}} causal
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x130x64xbf16, #tv.view<#m, [_, (did(tp) * _ | 2) * 2, _, _]>>
!k = tensor<1x2x130x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<1x4x130x64xbf16>
!lse = tensor<1x4x130xf32>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k) -> (!a, !a, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !k, !k) -> (!a, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
      : (!q, !q, !k, !k, !a, !lse) -> (!a, !k, !k)
  return %o, %dq, %dk, %dv : !a, !a, !k, !k
}

// -----

// All queries see all keys, of which there are more; the batch over tp, uneven.
// CHECK: plan.attend {{.*}}
// CHECK: plan.attend_grad {{.*}}
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<3x2x70x128xf16, #tv.view<#m, [did(tp) * _, _, _, _]>>
!k = tensor<3x2x150x128xf16, #tv.view<#m, [did(tp) * _, _, _, _]>>
!a = tensor<3x2x70x128xf16>
!lse = tensor<3x2x70xf32>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k) -> (!a, !a, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.0883883) : (!q, !k, !k) -> (!a, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.0883883)
      : (!q, !q, !k, !k, !a, !lse) -> (!a, !k, !k)
  return %o, %dq, %dk, %dv : !a, !a, !k, !k
}

// -----

// The last queries of more keys, all of one head's.
// CHECK: plan.attend {{.*}} causal
// CHECK: plan.attend_grad {{.*}} causal
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<2x6x37x64xf16, #tv.view<#m, [did(tp) * _, _, _, _]>>
!k = tensor<2x1x101x64xf16, #tv.view<#m, [did(tp) * _, _, _, _]>>
!a = tensor<2x6x37x64xf16>
!lse = tensor<2x6x37xf32>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k) -> (!a, !a, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !k, !k) -> (!a, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
      : (!q, !q, !k, !k, !a, !lse) -> (!a, !k, !k)
  return %o, %dq, %dk, %dv : !a, !a, !k, !k
}

// -----

// Heads that flash has no kernel for.
// CHECK: plan.attend {{.*}}
// CHECK: plan.attend_grad {{.*}}
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<2x4x96x40xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<2x4x96x40xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<2x4x96x40xbf16>
!lse = tensor<2x4x96xf32>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k) -> (!a, !a, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.158114) : (!q, !k, !k) -> (!a, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.158114)
      : (!q, !q, !k, !k, !a, !lse) -> (!a, !k, !k)
  return %o, %dq, %dk, %dv : !a, !a, !k, !k
}

// -----

// Whole blocks, of the widest heads.
// CHECK: plan.attend {{.*}} causal
// CHECK: plan.attend_grad {{.*}} causal
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x256x128xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<1x4x256x128xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<1x4x256x128xbf16>
!lse = tensor<1x4x256xf32>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k) -> (!a, !a, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.0883883) causal : (!q, !k, !k) -> (!a, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.0883883) causal
      : (!q, !q, !k, !k, !a, !lse) -> (!a, !k, !k)
  return %o, %dq, %dk, %dv : !a, !a, !k, !k
}

// -----

// Parts of one tensor, whose gradients are written into one.
// CHECK: plan.attend_grad
// CHECK: plan.join
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!qkv = tensor<2x70x3x96xbf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!part = tensor<2x70x3x32xbf16>
!head = tensor<2x3x70x32xbf16>
!do = tensor<2x3x70x32xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<2x3x70xf32>
func.func @main(%do: !do, %qkv: !qkv) -> !qkv {
  %q0 = tv.slice %qkv offsets [0, 0, 0, 0] : (!qkv) -> !part
  %k0 = tv.slice %qkv offsets [0, 0, 0, 32] : (!qkv) -> !part
  %v0 = tv.slice %qkv offsets [0, 0, 0, 64] : (!qkv) -> !part
  %q = tv.transpose %q0 perm [0, 2, 1, 3] : (!part) -> !head
  %k = tv.transpose %k0 perm [0, 2, 1, 3] : (!part) -> !head
  %v = tv.transpose %v0 perm [0, 2, 1, 3] : (!part) -> !head
  %o, %lse = tv.attention %q, %k, %v scale(0.25) causal : (!head, !head, !head) -> (!head, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.25) causal
      : (!do, !head, !head, !head, !head, !lse) -> (!head, !head, !head)
  %dq0 = tv.transpose %dq perm [0, 2, 1, 3] : (!head) -> !part
  %dk0 = tv.transpose %dk perm [0, 2, 1, 3] : (!head) -> !part
  %dv0 = tv.transpose %dv perm [0, 2, 1, 3] : (!head) -> !part
  %r = tv.concat %dq0, %dk0, %dv0 dim 3 : (!part, !part, !part) -> !qkv
  return %r : !qkv
}

// -----

// Parts of the last dimension, each of them heads.
// CHECK: func.func @main
// CHECK-NOT: {{plan.copy|@concat}}
// CHECK: plan.attend_grad
// CHECK-NOT: {{plan.copy|@concat}}
// CHECK: plan.join {{.*}} dim 2
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!qkv = tensor<2x70x288xbf16, #tv.view<#m, [_, _, 3 * (did(tp) * _ | 3) * 32]>>
!part = tensor<2x70x96xbf16>
!heads = tensor<2x70x3x32xbf16>
!head = tensor<2x3x70x32xbf16>
!do = tensor<2x3x70x32xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<2x3x70xf32>
func.func @main(%do: !do, %qkv: !qkv) -> !qkv {
  %q0 = tv.slice %qkv offsets [0, 0, 0] : (!qkv) -> !part
  %k0 = tv.slice %qkv offsets [0, 0, 96] : (!qkv) -> !part
  %v0 = tv.slice %qkv offsets [0, 0, 192] : (!qkv) -> !part
  %q1 = tv.reshape %q0 : (!part) -> !heads
  %k1 = tv.reshape %k0 : (!part) -> !heads
  %v1 = tv.reshape %v0 : (!part) -> !heads
  %q = tv.transpose %q1 perm [0, 2, 1, 3] : (!heads) -> !head
  %k = tv.transpose %k1 perm [0, 2, 1, 3] : (!heads) -> !head
  %v = tv.transpose %v1 perm [0, 2, 1, 3] : (!heads) -> !head
  %o, %lse = tv.attention %q, %k, %v scale(0.25) causal : (!head, !head, !head) -> (!head, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.25) causal
      : (!do, !head, !head, !head, !head, !lse) -> (!head, !head, !head)
  %dq1 = tv.transpose %dq perm [0, 2, 1, 3] : (!head) -> !heads
  %dk1 = tv.transpose %dk perm [0, 2, 1, 3] : (!head) -> !heads
  %dv1 = tv.transpose %dv perm [0, 2, 1, 3] : (!head) -> !heads
  %dq0 = tv.reshape %dq1 : (!heads) -> !part
  %dk0 = tv.reshape %dk1 : (!heads) -> !part
  %dv0 = tv.reshape %dv1 : (!heads) -> !part
  %r = tv.concat %dq0, %dk0, %dv0 dim 2 : (!part, !part, !part) -> !qkv
  return %r : !qkv
}

// -----

// A dimension of the three, before all others.
// CHECK: func.func @main
// CHECK-NOT: {{plan.copy|@concat}}
// CHECK: plan.attend_grad
// CHECK-NOT: {{plan.copy|@concat}}
// CHECK: plan.join {{.*}} dim 0
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!qkv = tensor<2x70x3x3x32xbf16, #tv.view<#m, [_, _, _, did(tp) * _, _]>>
!three = tensor<3x2x3x70x32xbf16>
!one = tensor<1x2x3x70x32xbf16>
!head = tensor<2x3x70x32xbf16>
!do = tensor<2x3x70x32xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<2x3x70xf32>
func.func @main(%do: !do, %qkv: !qkv) -> !qkv {
  %t = tv.transpose %qkv perm [2, 0, 3, 1, 4] : (!qkv) -> !three
  %q0 = tv.slice %t offsets [0, 0, 0, 0, 0] : (!three) -> !one
  %k0 = tv.slice %t offsets [1, 0, 0, 0, 0] : (!three) -> !one
  %v0 = tv.slice %t offsets [2, 0, 0, 0, 0] : (!three) -> !one
  %q = tv.reshape %q0 : (!one) -> !head
  %k = tv.reshape %k0 : (!one) -> !head
  %v = tv.reshape %v0 : (!one) -> !head
  %o, %lse = tv.attention %q, %k, %v scale(0.25) causal : (!head, !head, !head) -> (!head, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.25) causal
      : (!do, !head, !head, !head, !head, !lse) -> (!head, !head, !head)
  %dq0 = tv.reshape %dq : (!head) -> !one
  %dk0 = tv.reshape %dk : (!head) -> !one
  %dv0 = tv.reshape %dv : (!head) -> !one
  %dt = tv.concat %dq0, %dk0, %dv0 dim 0 : (!one, !one, !one) -> !three
  %r = tv.transpose %dt perm [1, 3, 0, 2, 4] : (!three) -> !qkv
  return %r : !qkv
}
