// Packed sequences in the text of attention and its gradient: their tiles are a list that
// another kernel makes, once; maps are ragged; rows of no sequence are filled. A distance
// of keys bounds those of a sequence, a number of the batch's does not.
// RUN: tessera-compile %s --target=cuda:sm_90a --attention=flash --dump-dir=%t --dump-kernels=%t/programs -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s < %t/kernels.cu
// RUN: FileCheck %s --check-prefix=SCHEDULE < %t/7-scheduled.mlir
// RUN: FileCheck %s --check-prefix=PLAN < %t/plan.txt
// RUN: FileCheck %s --check-prefix=PROGRAM < %t/programs/attention_1.cu

// No spills, no serialised products.
// CLEAN-NOT: {{warning|error}}

// Two groups of 64 rows, also where three would have registers; of two heads there are few
// tiles, which blocks share. The gradient's tiles of keys are cut alike.
// SCHEDULE: plan.attention {{.*}} causal tiles %{{.*}} {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2) shared(true)>}
// SCHEDULE: mask_mod (
// SCHEDULE: arith.cmpi slt, {{.*}} {schedule.bound}
// SCHEDULE-NOT: schedule.bound
// SCHEDULE: plan.attention_grad {{.*}} causal tiles

// CHECK: struct attention_1_Mods : AttentionMods {
// CHECK: static constexpr bool Packed = true;
// CHECK: static __device__ PackedTiles packed(const Args &args) {
// CHECK-NEXT: return {reinterpret_cast<const PackedHeader *>(args.p->x3.data), 32};
// CHECK: static __device__ KeyRange keys(
// CHECK: begin = max(begin, int64(-39) + 1 * first);
// CHECK-NEXT: return {
// CHECK: attention_1_pieces[attention_1_Config::MostBlocks * attention_1_Config::Groups * 2 * attention_1_Config::PieceFloats];
// CHECK: fill_outside(attention_1_Mods::packed(f.args), p.y0, {});
// CHECK: fill_outside(attention_1_Mods::packed(f.args), p.y1, __int_as_float(0xff800000));
// CHECK: attention_fwd<attention_1_Config>(boxed.maps, f);
// CHECK: struct attention_grad_2_Mods : AttentionMods {
// CHECK: static constexpr bool Packed = true;
// CHECK: attention_grad_2_prepare(
// CHECK: const int blocks = BwdSide<attention_grad_2_Config>::blocks(f) * f.heads * f.batch;
// CHECK-COUNT-3: fill_outside(attention_grad_2_Mods::packed(f.args),
// CHECK: attention_grad_2_main(
// CHECK-NOT: fill_outside

// PLAN: launch packed_tiles_0
// PLAN-NOT: launch packed_tiles
// PLAN: as attention_1 {{.*}} operand 0 in ragged boxes of 1x1x128x64
// PLAN: as attention_grad_2_main {{.*}} in ragged boxes of 1x1x64x64

// PROGRAM: makeMap<true>(p.x0, {1, 1, 128, 64})
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x2000x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<1x4x2000xf32>
!begins = tensor<1x33xi32>
func.func private @attend(%q: !q, %k: !q, %v: !q, %begins: !begins) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) causal sequences(%begins)
      : (!q, !q, !q, !begins) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %width = arith.constant 40 : index
      %last = arith.constant 1900 : index
      %d = arith.subi %qi, %ki : index
      %c = arith.cmpi slt, %d, %width : index
      %e = arith.cmpi slt, %ki, %last : index
      %both = arith.andi %c, %e : i1
      tv.yield %both : i1
    }
  return %a : !q
}
func.func @main(%q: !q, %k: !q, %v: !q, %begins: !begins, %dy: !q) -> (!q, !q, !q, !q) {
  %y, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v, %begins) of [0] with (%dy) to [0, 1, 2]
    : (!q, !q, !q, !begins, !q) -> (!q, !q, !q, !q)
  return %y, %dq, %dk, %dv : !q, !q, !q, !q
}
