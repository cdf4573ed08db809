// Sequences in places of one size, padded with NaN, which gets nowhere: by mask_mod, and in
// kernels for GPUs by their tiles where a device has one batch.
// RUN: tessera-opt %s --split-input-file --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --split-input-file --tessera="mesh=x=2 to=local" --interpret=2 -o /dev/null
// RUN: tessera-opt %t --split-input-file --tessera="mesh=x=2 to=kernels target=cuda:sm_90a" --interpret=2 | FileCheck %s

// Three batches over x.
// CHECK: plan.attention

// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!q = tensor<3x2x72x64xbf16, #tv.view<#m, [did(x) * _, _, _, _]>>
!lse = tensor<3x2x72xf32>
!begins = tensor<3x4xi32>
!used = tensor<3x3xi32>
func.func private @attend(%q: !q, %k: !q, %v: !q, %begins: !begins, %used: !used) -> (!q, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) sequences(%begins) used(%used)
      : (!q, !q, !q, !begins, !used) -> (!q, !lse)
  return %a, %lse : !q, !lse
}
func.func private @pad(%x: !q) -> !q {
  %at = tv.iota 2 : () -> tensor<3x2x72x64xi32>
  %y = tv.map %x, %at : (!q, tensor<3x2x72x64xi32>) -> !q (%e: bf16, %p: i32) {
    %size = arith.constant 24 : i32
    %length = arith.constant 17 : i32
    %zero = arith.constant 0.0 : bf16
    %nan = arith.divf %zero, %zero : bf16
    %own = arith.remui %p, %size : i32
    %is = arith.cmpi slt, %own, %length : i32
    %z = arith.select %is, %e, %nan : bf16
    tv.yield %z : bf16
  }
  return %y : !q
}
func.func @main(%q: !q, %k: !q, %v: !q, %dy: !q) -> (!q, !lse, !q, !q, !q) {
  %n = tv.iota 1 : () -> !begins
  %begins = tv.map %n : (!begins) -> !begins (%i: i32) {
    %size = arith.constant 24 : i32
    %b = arith.muli %i, %size : i32
    tv.yield %b : i32
  }
  %m = tv.iota 1 : () -> !used
  %used = tv.map %m : (!used) -> !used (%i: i32) {
    %length = arith.constant 17 : i32
    tv.yield %length : i32
  }
  %pq = func.call @pad(%q) : (!q) -> !q
  %pk = func.call @pad(%k) : (!q) -> !q
  %pv = func.call @pad(%v) : (!q) -> !q
  %pdy = func.call @pad(%dy) : (!q) -> !q
  %y, %lse, %dq, %dk, %dv = tv.gradient @attend(%pq, %pk, %pv, %begins, %used) of [0] with (%pdy)
    to [0, 1, 2] : (!q, !q, !q, !begins, !used, !q) -> (!q, !lse, !q, !q, !q)
  return %y, %lse, %dq, %dk, %dv : !q, !lse, !q, !q, !q
}

// -----

// One batch, heads over x.
// CHECK: plan.attention {{.*}} causal tiles
// CHECK: plan.attention_grad {{.*}} causal tiles

// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!q = tensor<1x4x72x64xbf16, #tv.view<#m, [_, did(x) * _, _, _]>>
!lse = tensor<1x4x72xf32>
!begins = tensor<1x4xi32>
!used = tensor<1x3xi32>
func.func private @attend(%q: !q, %k: !q, %v: !q, %begins: !begins, %used: !used) -> (!q, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) causal sequences(%begins) used(%used)
      : (!q, !q, !q, !begins, !used) -> (!q, !lse)
  return %a, %lse : !q, !lse
}
func.func private @pad(%x: !q) -> !q {
  %at = tv.iota 2 : () -> tensor<1x4x72x64xi32>
  %y = tv.map %x, %at : (!q, tensor<1x4x72x64xi32>) -> !q (%e: bf16, %p: i32) {
    %size = arith.constant 24 : i32
    %length = arith.constant 17 : i32
    %zero = arith.constant 0.0 : bf16
    %nan = arith.divf %zero, %zero : bf16
    %own = arith.remui %p, %size : i32
    %is = arith.cmpi slt, %own, %length : i32
    %z = arith.select %is, %e, %nan : bf16
    tv.yield %z : bf16
  }
  return %y : !q
}
func.func @main(%q: !q, %k: !q, %v: !q, %dy: !q) -> (!q, !lse, !q, !q, !q) {
  %n = tv.iota 1 : () -> !begins
  %begins = tv.map %n : (!begins) -> !begins (%i: i32) {
    %size = arith.constant 24 : i32
    %b = arith.muli %i, %size : i32
    tv.yield %b : i32
  }
  %m = tv.iota 1 : () -> !used
  %used = tv.map %m : (!used) -> !used (%i: i32) {
    %length = arith.constant 17 : i32
    tv.yield %length : i32
  }
  %pq = func.call @pad(%q) : (!q) -> !q
  %pk = func.call @pad(%k) : (!q) -> !q
  %pv = func.call @pad(%v) : (!q) -> !q
  %pdy = func.call @pad(%dy) : (!q) -> !q
  %y, %lse, %dq, %dk, %dv = tv.gradient @attend(%pq, %pk, %pv, %begins, %used) of [0] with (%pdy)
    to [0, 1, 2] : (!q, !q, !q, !begins, !used, !q) -> (!q, !lse, !q, !q, !q)
  return %y, %lse, %dq, %dk, %dv : !q, !lse, !q, !q, !q
}
