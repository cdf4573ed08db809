// Gradients of attention that a GPU runs without scores in memory (on other targets they
// are like any others): as flash.mlir, and back. Here heads over tp, uneven on 2 and 4 devices.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels target=cuda:sm_90a attention=flash" --interpret=4 | FileCheck %s %no_other_collective

// CHECK: plan.attention_grad
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!part = tensor<1x130x3x64xbf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!head = tensor<1x3x130x64xbf16>
!lse = tensor<1x3x130xf32>
func.func @main(%q0: !part, %k0: !part, %v0: !part, %do0: !part) -> (!part, !part, !part) {
  %q = tv.transpose %q0 perm [0, 2, 1, 3] : (!part) -> !head
  %k = tv.transpose %k0 perm [0, 2, 1, 3] : (!part) -> !head
  %v = tv.transpose %v0 perm [0, 2, 1, 3] : (!part) -> !head
  %do = tv.transpose %do0 perm [0, 2, 1, 3] : (!part) -> !head
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!head, !head, !head) -> (!head, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
      : (!head, !head, !head, !head, !head, !lse) -> (!head, !head, !head)
  %dq0 = tv.transpose %dq perm [0, 2, 1, 3] : (!head) -> !part
  %dk0 = tv.transpose %dk perm [0, 2, 1, 3] : (!head) -> !part
  %dv0 = tv.transpose %dv perm [0, 2, 1, 3] : (!head) -> !part
  return %dq0, %dk0, %dv0 : !part, !part, !part
}

// -----

// More keys than queries, two heads a group, a soft cap, keys of the query's document
// only, and a log-sum-exp that is used. The kernels may spill.
// CHECK: plan.attention_grad
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x66x128xf16, #tv.view<#m, [_, (did(tp) * _ | 2) * 2, _, _]>>
!k = tensor<1x2x130x128xf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<1x4x66x128xf16>
!lse = tensor<1x4x66xf32>
!of_query = tensor<1x66xi32, #tv.view<#m, [_, _]>>
!of_key = tensor<1x130xi32, #tv.view<#m, [_, _]>>
func.func @main(%do: !q, %dlse: !lse, %q: !q, %k: !k, %v: !k, %of_query: !of_query,
                %of_key: !of_key) -> (!a, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.0883883) : (!q, !k, !k) -> (!a, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %cap = arith.constant 2.0 : f32
      %u = arith.divf %s, %cap : f32
      %t = math.tanh %u : f32
      %y = arith.mulf %t, %cap : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %of_query[%b, %qi] : !of_query -> i32
      %j = tv.load %of_key[%b, %ki] : !of_key -> i32
      %same = arith.cmpi eq, %i, %j : i32
      tv.yield %same : i1
    }
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse dlse %dlse scale(0.0883883)
      : (!q, !q, !k, !k, !a, !lse, !lse) -> (!a, !k, !k)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %cap = arith.constant 2.0 : f32
      %u = arith.divf %s, %cap : f32
      %t = math.tanh %u : f32
      %y = arith.mulf %t, %cap : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %of_query[%b, %qi] : !of_query -> i32
      %j = tv.load %of_key[%b, %ki] : !of_key -> i32
      %same = arith.cmpi eq, %i, %j : i32
      tv.yield %same : i1
    }
  return %dq, %dk, %dv : !a, !k, !k
}

// -----

// A window: blocks that no query sees, or no key is seen by, are left out.
// CHECK: plan.attention_grad
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x300x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<1x2x300x64xbf16>
!lse = tensor<1x2x300xf32>
func.func @main(%do: !q, %q: !q, %k: !q, %v: !q) -> (!a, !a, !a) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) : (!q, !q, !q) -> (!a, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %back = arith.constant 90 : index
      %d = arith.subi %qi, %ki : index
      %before = arith.cmpi sge, %qi, %ki : index
      %behind = arith.cmpi slt, %d, %back : index
      %y = arith.andi %before, %behind : i1
      tv.yield %y : i1
    }
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125)
      : (!q, !q, !q, !q, !a, !lse) -> (!a, !a, !a)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %back = arith.constant 90 : index
      %d = arith.subi %qi, %ki : index
      %before = arith.cmpi sge, %qi, %ki : index
      %behind = arith.cmpi slt, %d, %back : index
      %y = arith.andi %before, %behind : i1
      tv.yield %y : i1
    }
  return %dq, %dk, %dv : !a, !a, !a
}

// -----

// Heads of 96 elements: a half of the second panel. (With a log-sum-exp the kernel
// forward may spill: 8 bytes.)
// CHECK: plan.attention_grad
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x140x96xf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<1x2x140x96xf16>
!lse = tensor<1x2x140xf32>
func.func @main(%do: !q, %q: !q, %k: !q, %v: !q) -> (!a, !a, !a, !a) {
  %o, %lse = tv.attention %q, %k, %v scale(0.1) causal : (!q, !q, !q) -> (!a, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.1) causal
      : (!q, !q, !q, !q, !a, !lse) -> (!a, !a, !a)
  return %o, %dq, %dk, %dv : !a, !a, !a, !a
}

// -----

// The gradients side by side, as one weight of all three has it: each is written in its
// place, whichever variant runs.
// CHECK: plan.attention_grad
// CHECK: plan.join {{.*}} dim 3
// CHECK-NOT: plan.launch @concat
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!part = tensor<1x130x3x64xbf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!all = tensor<1x130x3x192xbf16>
!head = tensor<1x3x130x64xbf16>
!lse = tensor<1x3x130xf32>
func.func @main(%q0: !part, %k0: !part, %v0: !part, %do0: !part) -> !all {
  %q = tv.transpose %q0 perm [0, 2, 1, 3] : (!part) -> !head
  %k = tv.transpose %k0 perm [0, 2, 1, 3] : (!part) -> !head
  %v = tv.transpose %v0 perm [0, 2, 1, 3] : (!part) -> !head
  %do = tv.transpose %do0 perm [0, 2, 1, 3] : (!part) -> !head
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!head, !head, !head) -> (!head, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
      : (!head, !head, !head, !head, !head, !lse) -> (!head, !head, !head)
  %dq0 = tv.transpose %dq perm [0, 2, 1, 3] : (!head) -> !part
  %dk0 = tv.transpose %dk perm [0, 2, 1, 3] : (!head) -> !part
  %dv0 = tv.transpose %dv perm [0, 2, 1, 3] : (!head) -> !part
  %all = tv.concat %dq0, %dk0, %dv0 dim 3 : (!part, !part, !part) -> !all
  return %all : !all
}

// -----

// Heads of 192 with values of 128, two a group, more keys than queries; a log-sum-exp that is
// used. Two blocks have a tile of keys.
// CHECK: plan.attention_grad
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x130x192xbf16, #tv.view<#m, [_, (did(tp) * _ | 2) * 2, _, _]>>
!k = tensor<1x2x200x192xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!v = tensor<1x2x200x128xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<1x4x130x128xbf16, #tv.view<#m, [_, (did(tp) * _ | 2) * 2, _, _]>>
!lse = tensor<1x4x130xf32>
func.func @main(%do: !a, %dlse: !lse, %q: !q, %k: !k, %v: !v) -> (!q, !k, !v) {
  %o, %lse = tv.attention %q, %k, %v scale(0.0721688) causal : (!q, !k, !v) -> (!a, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse dlse %dlse scale(0.0721688) causal
      : (!a, !q, !k, !v, !a, !lse, !lse) -> (!q, !k, !v)
  return %dq, %dk, %dv : !q, !k, !v
}

// -----

// Heads of 256, batches over tp, a block mask and a factor of each query: all blocks ask,
// for which there are few registers: kernels may spill 1200 bytes.
// CHECK: plan.attention_grad
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<4x2x140x256xf16, #tv.view<#m, [did(tp) * _, _, _, _]>>
!lse = tensor<4x2x140xf32>
!factor_of_lse = tensor<2x140xf32, #tv.view<#m, [_, _]>>
!bm = tensor<1x1x2x2xi8>
func.func @main(%do: !x, %q: !x, %k: !x, %v: !x, %factor: !factor_of_lse) -> (!x, !x, !x) {
  %bm = tv.block_mask of [140, 140] blocks [128, 128] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %m = arith.cmpi sle, %ki, %qi : index
      tv.yield %m : i1
    }
  %o, %lse = tv.attention %q, %k, %v scale(0.0625) block_mask(%bm) blocks [128, 128] : (!x, !x, !x, !bm) -> (!x, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) { // as the lse
      %c = tv.load %factor[%h, %qi] : !factor_of_lse -> f32
      %y = arith.mulf %s, %c : f32 // as the lse
      tv.yield %y : f32 // as the lse
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %m = arith.cmpi sle, %ki, %qi : index
      tv.yield %m : i1
    }
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.0625) block_mask(%bm) blocks [128, 128]
      : (!x, !x, !x, !x, !x, !lse, !bm) -> (!x, !x, !x)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) { // as the lse
      %c = tv.load %factor[%h, %qi] : !factor_of_lse -> f32
      %y = arith.mulf %s, %c : f32 // as the lse
      tv.yield %y : f32 // as the lse
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %m = arith.cmpi sle, %ki, %qi : index
      tv.yield %m : i1
    }
  return %dq, %dk, %dv : !x, !x, !x
}
