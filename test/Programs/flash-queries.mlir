// Attention and its gradients on a GPU where devices share the queries of a sequence, as
// flash-grad.mlir: each has a block of them and all keys, so gradients of keys and values are
// sums over devices. Blocks are uneven on 3 and 4 devices, and begin inside of tiles.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels target=cuda:sm_90a attention=flash" --interpret=2 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels target=cuda:sm_90a attention=flash" --interpret=4 | FileCheck %s

// CHECK: plan.attention
// CHECK: causal_mod
// CHECK: plan.attention_grad
// CHECK: causal_mod
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 76800 bytes 0 copies
// RAN tp=3: all-reduce of 2 102400 bytes 0 copies
// RAN tp=4: all-reduce of 2 115200 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x130x64xbf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!k = tensor<1x2x150x64xbf16, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<1x4x130xf32>
func.func @main(%q: !q, %k: !k, %v: !k, %do: !q) -> (!q, !q, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !k, !k) -> (!q, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
      : (!q, !q, !k, !k, !q, !lse) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// Positions that functors get are those of the sequence: a window, and factors by head and
// query with their gradient. A log-sum-exp that is used.
// CHECK: plan.attention_grad
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 3 78880 bytes 0 copies
// RAN tp=3: all-reduce of 3 105184 bytes 0 copies
// RAN tp=4: all-reduce of 3 118432 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x130x64xf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!k = tensor<1x2x150x64xf16, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<1x4x130xf32, #tv.view<#m, [_, _, did(tp) * _]>>
!rows_of_lse = tensor<4x130xf32, #tv.view<#m, [_, _]>>
func.func @main(%q: !q, %k: !k, %v: !k, %rows: !rows_of_lse, %do: !q, %dl: !lse)
    -> (!q, !q, !k, !k, !rows_of_lse) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !k, !k) -> (!q, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %rows[%h, %qi] : !rows_of_lse -> f32
      %y = arith.mulf %s, %x : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %w = arith.constant 70 : index
      %end = arith.addi %ki, %w : index
      %near = arith.cmpi sgt, %end, %qi : index
      tv.yield %near : i1
    }
  %dq, %dk, %dv, %drows = tv.attention_grad %do, %q, %k, %v, %o, %lse dlse %dl scale(0.125) causal
      captured %rows
      : (!q, !q, !k, !k, !q, !lse, !lse, !rows_of_lse) -> (!q, !k, !k, !rows_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %rows[%h, %qi] : !rows_of_lse -> f32
      %y = arith.mulf %s, %x : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %w = arith.constant 70 : index
      %end = arith.addi %ki, %w : index
      %near = arith.cmpi sgt, %end, %qi : index
      tv.yield %near : i1
    }
    score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %rows[%h, %qi] : !rows_of_lse -> f32
      %a = arith.mulf %dy, %s : f32
      tv.accumulate 0 [%h, %qi], %a : f32
      %d = arith.mulf %dy, %x : f32
      tv.yield %d : f32
    }
  return %o, %dq, %dk, %dv, %drows : !q, !q, !k, !k, !rows_of_lse
}

// -----

// So are the numbers of the weights that dropout keeps.
// CHECK: plan.attention {{.*}} dropout
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<2x4x130x64xf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!k = tensor<2x4x130x64xf16, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<2x4x130xf32>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) dropout(0.25) seed(7) stream(1)
      : (!q, !k, !k) -> (!q, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %slope = arith.constant -0.125 : f32
      %d0 = arith.subi %qi, %ki : index
      %d1 = arith.index_cast %d0 : index to i32
      %d = arith.sitofp %d1 : i32 to f32
      %z = arith.mulf %d, %slope : f32
      %t = arith.addf %s, %z : f32
      tv.yield %t : f32
    }
  return %o : !q
}

// -----

// Positions that are dealt out in turn.
// CHECK: plan.attention
// CHECK: causal_mod
// CHECK: plan.attention_grad
// CHECK: causal_mod
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 76800 bytes 0 copies
// RAN tp=3: all-reduce of 2 102400 bytes 0 copies
// RAN tp=4: all-reduce of 2 115200 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x130x64xbf16, #tv.view<#m, [_, _, _ * did(tp) * 2, _]>>
!k = tensor<1x2x150x64xbf16, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<1x4x130xf32>
func.func @main(%q: !q, %k: !k, %v: !k, %do: !q) -> (!q, !q, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !k, !k) -> (!q, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
      : (!q, !q, !k, !k, !q, !lse) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}
