// As flash-queries.mlir and flash-positions.mlir, where blocks of positions are dealt out in turn:
// windows, and what is causal where keys are, are masks of their numbers, by which kernels leave out
// the blocks of keys that no query of a tile sees.
// RUN: tessera-opt %s --split-input-file --tessera="to=kernels target=cuda:sm_90a attention=flash" --interpret=4 | FileCheck %s

// CHECK: plan.attention {{.*}}memref<1x4x{{[0-9?]+}}x64xbf16
// CHECK-SAME: mask_mod
// CHECK: plan.attention_grad
// CHECK-SAME: mask_mod
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 281600 bytes 0 copies
// RAN tp=3: all-reduce of 2 375552 bytes 0 copies
// RAN tp=4: all-reduce of 2 422400 bytes 0 copies
#m = #tv.mesh<tp = 4>
!q = tensor<1x4x530x64xbf16, #tv.view<#m, [_, _, _ * did(tp) * 16, _]>>
!k = tensor<1x2x550x64xbf16, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<1x4x530xf32>
func.func @main(%q: !q, %k: !k, %v: !k, %do: !q) -> (!q, !q, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !k, !k) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %w = arith.constant 130 : index
      %end = arith.addi %ki, %w : index
      %near = arith.cmpi sgt, %end, %qi : index
      tv.yield %near : i1
    }
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
      : (!q, !q, !k, !k, !q, !lse) -> (!q, !k, !k)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %w = arith.constant 130 : index
      %end = arith.addi %ki, %w : index
      %near = arith.cmpi sgt, %end, %qi : index
      tv.yield %near : i1
    }
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// Other devices share the keys, in blocks of another size. (It may spill 32 bytes.)
// CHECK: plan.attention_grad
// CHECK-SAME: mask_mod
// RAN here: all-reduce 140288 bytes 0 copies, all-reduce of 2 146432 bytes 0 copies
#m = #tv.mesh<x = 2, y = 2>
!q = tensor<1x4x530x64xf16, #tv.view<#m, [_, _, _ * did(x) * 64, _]>>
!k = tensor<1x2x550x64xf16, #tv.view<#m, [_, _, _ * did(y) * 24, _]>>
!lse = tensor<1x4x530xf32, #tv.view<#m, [_, _, _ * did(x) * 64]>>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k, %o: !q, %lse: !lse) -> (!q, !k, !k) {
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.0625) causal
      : (!q, !q, !k, !k, !q, !lse) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

// -----

// Queries see the keys of their own document of 48 positions, and of the one before.
// CHECK: plan.attention {{.*}}memref<1x4x{{[0-9?]+}}x64xbf16
// CHECK-SAME: mask_mod
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 4>
!q = tensor<1x4x530x64xbf16, #tv.view<#m, [_, _, _ * did(tp) * 16, _]>>
!k = tensor<1x4x530x64xbf16, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<1x4x530xf32>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) : (!q, !k, !k) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %size = arith.constant 48 : index
      %one = arith.constant 1 : index
      %dq = arith.divui %qi, %size : index
      %dk = arith.divui %ki, %size : index
      %next = arith.addi %dk, %one : index
      %before = arith.cmpi sle, %dk, %dq : index
      %behind = arith.cmpi sge, %next, %dq : index
      %m = arith.andi %before, %behind : i1
      tv.yield %m : i1
    }
  return %o : !q
}
