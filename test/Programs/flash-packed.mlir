// Packed sequences in kernels: their tiles are made once, for the attention, its gradient
// and another layer.
// RUN: tessera-opt %s --split-input-file --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --split-input-file --tessera="mesh=tp=2 to=kernels target=cuda:sm_90a attention=flash" --interpret=2 | FileCheck %s
// RUN: tessera-opt %t --split-input-file --tessera="mesh=tp=4 to=kernels target=cuda:sm_90a attention=flash" --interpret=4 | FileCheck %s

// Begins that need not rise, and positions of no sequence.
// CHECK: plan.attention {{.*}} causal tiles
// CHECK: plan.attention_grad {{.*}} causal tiles
// CHECK: func.func @main
// CHECK: %[[TILES:.*]] = plan.launch @packed_tiles_0(
// CHECK-NOT: plan.launch @packed_tiles
// CHECK: plan.launch @attention_1({{.*}}, %[[TILES]])
// CHECK: plan.launch @attention_1({{.*}}, %[[TILES]])
// CHECK: plan.launch @attention_grad_2({{.*}}, %[[TILES]])
// CHECK: plan.launch @attention_grad_2({{.*}}, %[[TILES]])
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x200x64xbf16, #tv.view<#m, [_, (did(tp) * _ | 2) * 2, _, _]>>
!k = tensor<1x2x200x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<1x4x200xf32>
!begins = tensor<1x8xi32>
func.func private @attend(%q: !q, %k: !k, %v: !k, %begins: !begins) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) causal sequences(%begins)
      : (!q, !k, !k, !begins) -> (!q, !lse)
  %c, %lse1 = tv.attention %a, %k, %v scale(0.125) causal sequences(%begins)
      : (!q, !k, !k, !begins) -> (!q, !lse)
  return %c : !q
}
func.func @main(%q: !q, %k: !k, %v: !k, %begins: !begins {tv.range = [-50, 230]}, %dy: !q)
    -> (!q, !q, !k, !k) {
  %y, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v, %begins) of [0] with (%dy) to [0, 1, 2]
    : (!q, !k, !k, !begins, !q) -> (!q, !q, !k, !k)
  return %y, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// A window and a bias that is added to the scores, and no causal mask.
// (The forward may spill 88 bytes.)
// CHECK: plan.attention {{.*}} tiles
// CHECK: plan.attention_grad {{.*}} tiles
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x200x128xf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<1x4x200xf32>
!bias_of_lse = tensor<4x200xf32>
!begins = tensor<1x4xi32>
func.func private @attend(%q: !q, %k: !q, %v: !q, %begins: !begins, %bias: !bias_of_lse) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) sequences(%begins)
      : (!q, !q, !q, !begins) -> (!q, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %bias[%h, %ki] : !bias_of_lse -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %width = arith.constant 40 : index
      %d = arith.subi %qi, %ki : index
      %c = arith.cmpi slt, %d, %width : index
      tv.yield %c : i1
    }
  return %a : !q
}
func.func @main(%q: !q, %k: !q, %v: !q, %begins: !begins {tv.range = [0, 201]}, %bias: !bias_of_lse,
                %dy: !q) -> (!q, !q, !q, !q) {
  %y, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v, %begins, %bias) of [0] with (%dy)
    to [0, 1, 2]
    : (!q, !q, !q, !begins, !bias_of_lse, !q) -> (!q, !q, !q, !q)
  return %y, %dq, %dk, %dv : !q, !q, !q, !q
}

// -----

// A captured tensor with a gradient takes all tiles, and a mask of the sequences.
// CHECK: plan.attention {{.*}} tiles
// CHECK: plan.attention_grad {{.*}} sums {{.*}} causal :
// RAN tp=1: nothing
// RAN tp=2: all-reduce 3200 bytes 0 copies
// RAN tp=3: all-reduce 4288 bytes 0 copies
// RAN tp=4: all-reduce 4864 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x200x96xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<1x4x200xf32>
!bias_of_lse = tensor<4x200xf32>
!begins = tensor<1x4xi32>
func.func private @attend(%q: !q, %k: !q, %v: !q, %begins: !begins, %bias: !bias_of_lse) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) causal sequences(%begins)
      : (!q, !q, !q, !begins) -> (!q, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %bias[%h, %qi] : !bias_of_lse -> f32
      %y = arith.mulf %s, %x : f32
      tv.yield %y : f32
    }
  return %a : !q
}
func.func @main(%q: !q, %k: !q, %v: !q, %begins: !begins {tv.range = [0, 201]}, %bias: !bias_of_lse,
                %dy: !q) -> (!q, !q, !bias_of_lse) {
  %y, %dq, %db = tv.gradient @attend(%q, %k, %v, %begins, %bias) of [0] with (%dy) to [0, 4]
    : (!q, !q, !q, !begins, !bias_of_lse, !q) -> (!q, !q, !bias_of_lse)
  return %y, %dq, %db : !q, !q, !bias_of_lse
}

// -----

// Wide heads, values of fewer columns.
// CHECK: plan.attention {{.*}} tiles
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x200x192xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!v = tensor<1x2x200x128xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<1x2x200xf32>
!begins = tensor<1x6xi32>
func.func @main(%q: !q, %k: !q, %v: !v, %begins: !begins {tv.range = [0, 190]}) -> (!v, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.0721) causal sequences(%begins)
      : (!q, !q, !v, !begins) -> (!v, !lse)
  return %a, %lse : !v, !lse
}

// -----

// Batches of their own sequences: one on a device is packed.
// CHECK: plan.attention {{.*}}
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<4x2x200x64xbf16, #tv.view<#m, [did(tp) * _, _, _, _]>>
!lse = tensor<4x2x200xf32>
!begins = tensor<4x6xi32>
func.func private @attend(%q: !q, %k: !q, %v: !q, %begins: !begins) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) causal sequences(%begins)
      : (!q, !q, !q, !begins) -> (!q, !lse)
  return %a : !q
}
func.func @main(%q: !q, %k: !q, %v: !q, %begins: !begins {tv.range = [0, 201]}, %dy: !q)
    -> (!q, !q, !q, !q) {
  %y, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v, %begins) of [0] with (%dy) to [0, 1, 2]
    : (!q, !q, !q, !begins, !q) -> (!q, !q, !q, !q)
  return %y, %dq, %dk, %dv : !q, !q, !q, !q
}

// -----

// Used lengths: what is behind them is of no sequence, between two that are.
// CHECK: plan.attention {{.*}} causal tiles
// CHECK: plan.attention_grad {{.*}} causal tiles
// CHECK: func.func @main
// CHECK: plan.launch @packed_tiles_0(
// CHECK-NOT: plan.launch @packed_tiles
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x200x64xbf16, #tv.view<#m, [_, (did(tp) * _ | 2) * 2, _, _]>>
!k = tensor<1x2x200x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<1x4x200xf32>
!begins = tensor<1x8xi32>
!used = tensor<1x7xi32>
func.func private @attend(%q: !q, %k: !k, %v: !k, %begins: !begins, %used: !used) -> (!q, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) causal sequences(%begins) used(%used)
      : (!q, !k, !k, !begins, !used) -> (!q, !lse)
  return %a, %lse : !q, !lse
}
func.func @main(%q: !q, %k: !k, %v: !k, %begins: !begins {tv.range = [-50, 230]},
                %used: !used {tv.range = [-10, 80]}, %dy: !q) -> (!q, !lse, !q, !k, !k) {
  %y, %lse, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v, %begins, %used) of [0] with (%dy)
    to [0, 1, 2] : (!q, !k, !k, !begins, !used, !q) -> (!q, !lse, !q, !k, !k)
  return %y, %lse, %dq, %dk, %dv : !q, !lse, !q, !k, !k
}

// -----

// Batches of their own: one on a device is packed, in others rows of no sequence are 0
// before the kernel.
// CHECK: plan.attention {{.*}}
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<4x2x200x64xbf16, #tv.view<#m, [did(tp) * _, _, _, _]>>
!lse = tensor<4x2x200xf32>
!begins = tensor<4x6xi32>
!used = tensor<4x5xi32>
func.func private @attend(%q: !q, %k: !q, %v: !q, %begins: !begins, %used: !used) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) sequences(%begins) used(%used)
      : (!q, !q, !q, !begins, !used) -> (!q, !lse)
  return %a : !q
}
func.func @main(%q: !q, %k: !q, %v: !q, %begins: !begins {tv.range = [0, 201]},
                %used: !used {tv.range = [-1, 90]}, %dy: !q) -> (!q, !q, !q, !q) {
  %y, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v, %begins, %used) of [0] with (%dy)
    to [0, 1, 2] : (!q, !q, !q, !begins, !used, !q) -> (!q, !q, !q, !q)
  return %y, %dq, %dk, %dv : !q, !q, !q, !q
}
