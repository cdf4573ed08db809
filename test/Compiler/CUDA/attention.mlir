// RUN: split-file %s %t
// RUN: tessera-compile %t/mods.mlir --compile-from=local --target=cuda:sm_90a --attention=flash --dump-dir=%t/mods --dump-kernels=%t/programs -o %t/module.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s < %t/mods/kernels.cu
// RUN: FileCheck %s --check-prefix=SCHEDULE < %t/mods/7-scheduled.mlir
// RUN: FileCheck %s --check-prefix=PLAN < %t/mods/plan.txt
// RUN: FileCheck %s --check-prefix=PROGRAM < %t/programs/attention_0.cu
// RUN: tessera-compile %t/plain.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/plain -o %t/module.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s --check-prefix=PLAIN < %t/plain/kernels.cu
// RUN: FileCheck %s --check-prefix=TILES < %t/plain/7-scheduled.mlir
// RUN: sed 's/64/128/g' %t/plain.mlir | tessera-compile --compile-from=local --target=cuda:sm_90a -o %t/module.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: sed 's/64/256/g' %t/plain.mlir | tessera-compile --compile-from=local --target=cuda:sm_90a --attention=flash -o %t/module.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: sed 's/64/128/g; s/bf16/f16/g' %t/mods.mlir | tessera-compile --compile-from=local --target=cuda:sm_90a -o %t/module.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: tessera-compile %t/relative.mlir --target=cuda:sm_90a --attention=flash --dump-dir=%t/relative -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=RELATIVE < %t/relative/kernels.cu
// RUN: tessera-compile %t/keys.mlir --target=cuda:sm_90a --attention=flash --dump-dir=%t/keys -o %t/module.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s --check-prefix=KEYS < %t/keys/kernels.cu
// RUN: FileCheck %s --check-prefix=BOUNDS < %t/keys/7-scheduled.mlir
// RUN: sed 's/andi/ori/' %t/keys.mlir | tessera-compile --target=cuda:sm_90a --attention=flash --dump-dir=%t/keys -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=ANY < %t/keys/kernels.cu
// RUN: FileCheck %s --check-prefix=UNBOUND < %t/keys/7-scheduled.mlir
// RUN: tessera-compile %t/cap.mlir --target=cuda:sm_90a --attention=flash --dump-dir=%t/cap -o %t/module.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s --check-prefixes=CAP,BF16 < %t/cap/kernels.cu
// RUN: FileCheck %s --check-prefix=FACTORS < %t/cap/7-scheduled.mlir
// RUN: sed 's/300/256/g' %t/cap.mlir | tessera-opt --tessera="to=scheduled target=cuda:sm_90a attention=flash" | FileCheck %s --check-prefix=FEW
// RUN: sed 's/bf16/f16/g' %t/cap.mlir | tessera-compile --target=cuda:sm_90a --attention=flash --dump-dir=%t/cap -o %t/module.tsr
// RUN: FileCheck %s --check-prefixes=CAP,F16 < %t/cap/kernels.cu
// RUN: FileCheck %s --check-prefix=UNBOUNDED < %t/cap/kernels.cu
// RUN: sed 's/5.0e+1/1.0e+3/' %t/cap.mlir | tessera-compile --target=cuda:sm_90a --attention=flash --dump-dir=%t/cap -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=UNBOUNDED < %t/cap/kernels.cu
// RUN: sed 's/arith.mulf/arith.addf/' %t/cap.mlir | tessera-compile --target=cuda:sm_90a --attention=flash --dump-dir=%t/cap -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=UNBOUNDED < %t/cap/kernels.cu
// RUN: sed 's/math.tanh %u/arith.subf %x, %u/' %t/cap.mlir | tessera-compile --target=cuda:sm_90a --attention=flash --dump-dir=%t/cap -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=TWICE < %t/cap/kernels.cu

// No spills, no serialised products.
// CLEAN-NOT: {{warning|error}}

// Functions leave registers for two groups of 64 queries; what is loaded for a query, or
// a key, alone is loaded once. Factors around a function are the kernel's.
// SCHEDULE: plan.attention {{.*}} {schedule.attention = #schedule.attention<rows(128) keys(128) stages(4)>}
// SCHEDULE: memref.load {{.*}} {schedule.role = #schedule.role<query>}
// SCHEDULE: arith.cmpf {{.*}} {schedule.role = #schedule.role<key>}
// TILES: #schedule.attention<rows(192) keys(128) stages(4)>
// FACTORS: arith.{{divf|mulf}} {{.*}} {schedule.role = #schedule.role<inner_scale>}
// FACTORS: arith.mulf {{.*}} {schedule.role = #schedule.role<outer_scale>}

// The regions are functors; captured tensors come by the parameters.
// CHECK: #include "attention/attention_fwd.cuh"
// CHECK: struct attention_0_Parameters {
// CHECK-NEXT: Tensor<const bf16, 4, 3> x0;
// CHECK-NEXT: Tensor<const bf16, 4, 3> x1;
// CHECK-NEXT: Tensor<const bf16, 4, 3> x2;
// CHECK-NEXT: Tensor<const float, 1, 0> x3;
// CHECK-NEXT: Tensor<const float, 2, 1> x4;
// CHECK-NEXT: Tensor<bf16, 4, 3> y0;
// CHECK-NEXT: Tensor<float, 3, 2> y1;
// CHECK: struct attention_0_Mods : AttentionMods {
// CHECK: static constexpr float Scale = 0.125f;
// CHECK: static constexpr bool Causal = true;
// What is loaded for a query, or a key, alone is not loaded for each pair.
// CHECK: struct Row {
// CHECK-NEXT: float v0;
// CHECK: static __device__ Row row(const Args &args, int64 b, int64 h, int64 q) {
// CHECK: const int64 addi0 = h + muli0;
// CHECK: const float element0 = *p.x3.at(addi0);
// CHECK: return {element0};
// CHECK: struct Column {
// CHECK: static __device__ Column column(const Args &args, int64 b, int64 k) {
// CHECK: *p.x4.at(b, k);
// CHECK: static __device__ float score(const Args &args, float s, const At &at) {
// CHECK-NOT: *p.
// CHECK: const float add0 = s + at.row.v0;
// CHECK: return add0;
// CHECK: static __device__ bool mask(const Args &args, const At &at) {
// CHECK: at.column.v0
// CHECK: using attention_0_Config = FwdConfig<bf16, 64, attention_0_Mods, 64, 128, 128, 4>;
// CHECK: __launch_bounds__(384, 1)
// CHECK-NEXT: attention_0(const __grid_constant__ attention_0_Boxed boxed)
// CHECK: f.lse = p.y1.data;

// PLAN: as attention_0 of 384 threads and 181248 bytes of shared memory, persistent, over %{{.*}}.0, %{{.*}}.1, %{{.*}}.2 by 1, operand 0 in boxes of 1x1x128x64, operand 1 in boxes of 1x1x128x64, operand 2 in boxes of 1x1x128x64, operand 5 in boxes of 1x1x64x64

// PROGRAM: struct alignas(64) TensorMap
// PROGRAM: attention_0_Boxed boxed_attention_0 = {p, {makeMap<false>(p.x0, {1, 1, 128, 64}), makeMap<false>(p.x1, {1, 1, 128, 64}), makeMap<false>(p.x2, {1, 1, 128, 64}), makeMap<false>(p.y0, {1, 1, 64, 64})}};

// Without functors and log-sum-exp.
// PLAIN-NOT: Has
// PLAIN: __launch_bounds__(512, 1)
// PLAIN-NOT: f.lse

// A distance may be outside of the table; heads are not.
// RELATIVE-NOT: struct Row
// RELATIVE: float score(const Args &args, float s, const At &at) {
// RELATIVE: const int64 subi0 = at.key - at.query;
// RELATIVE: const bool cmpi0 = unsign(subi0) < unsign(int64(5));
// RELATIVE-NOT: cmpi1
// RELATIVE: if (cmpi0) {
// RELATIVE-NEXT: const float element0 = *p.x1.at(at.head, subi0);
// RELATIVE: else {
// RELATIVE-NEXT: either0 = 0.0f;

// Factors around a functor are the kernel's; a tanh is as exact as the type.
// CAP: static constexpr float Scale = 0.125f;
// CAP-NEXT: static constexpr float InnerScale = 0.0{{2|1999.*}}f;
// CAP-NEXT: static constexpr float OuterScale = 50.0f;
// BF16-NEXT: static constexpr bool BoundedTanh = true;
// CAP-NEXT: HasScore
// BF16: const float tanh0 = tanhFast(s);
// F16: const float tanh0 = tanh32(s);
// CAP-NEXT: return tanh0;
// BF16: FwdConfig<bf16, 64, attention_0_Mods, 64, 192, 128, 4>
// Two groups where there are as many tiles.
// FEW: #schedule.attention<rows(128) keys(128) stages(4)>

// Not in f16, nor a larger cap, nor if there is more than tanh.
// UNBOUNDED-NOT: BoundedTanh
// UNBOUNDED: FwdConfig<{{b?f16}}, 64, attention_0_Mods, 64, 128, 128, 4>

// Not if the score has another use.
// TWICE-NOT: InnerScale
// TWICE: OuterScale = 50.0f;
// TWICE-NOT: BoundedTanh
// TWICE: const float div0 = s / 50.0f;
// TWICE-NEXT: const float sub0 = s - div0;
// TWICE-NEXT: return sub0;

// Blocks of keys that the comparisons leave out, of the block's first query or its last;
// what falls as queries rise says nothing, nor do alternatives.
// KEYS: static __device__ KeyRange keys(const Args &args, int64 b, int64 h, int64 first, int64 last, int keys) {
// KEYS: const int32 element0 = *p.x{{[0-9]}}.at(b);
// KEYS: int64 begin = 0, end = keys;
// KEYS-NEXT: begin = max(begin, int64(-127) + 1 * first);
// KEYS-NEXT: end = min(end, int64(65) + 2 * last);
// KEYS-NEXT: end = min(end, int64(0) + 1 * int64(index_cast0));
// KEYS-NEXT: return {int(min(begin, int64(keys))), int(max(end, int64(0)))};
// ANY-NOT: KeyRange
// What falls as queries rise is no bound, nor what need not hold.
// BOUNDS: arith.cmpi slt, {{.*}}schedule.bound
// BOUNDS: arith.cmpi sge, {{.*}}schedule.bound
// BOUNDS: arith.cmpi slt, {{.*}}schedule.bound
// BOUNDS-NOT: schedule.bound
// UNBOUND-NOT: schedule.bound

//--- keys.mlir
#m = #tv.mesh<tp = 1>
!q = tensor<2x4x100x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
func.func @main(%q: !q {tv.name = "q"}, %length: tensor<2xi32> {tv.name = "length", tv.range = [0, 100]})
    -> (!q {tv.name = "o"}) {
  %o, %lse = tv.attention %q, %q, %q scale(0.125) : (!q, !q, !q) -> (!q, tensor<2x4x100xf32>)
    mask_mod (%b: index, %h: index, %i: index, %j: index) {
      %back = arith.constant 128 : index
      %ahead = arith.constant 64 : index
      %two = arith.constant 2 : index
      %sum = arith.constant 1000 : index
      %d = arith.subi %i, %j : index
      %after = arith.cmpi slt, %d, %back : index
      %twice = arith.muli %i, %two : index
      %last = arith.addi %twice, %ahead : index
      %before = arith.cmpi sge, %last, %j : index
      %n = tv.load %length[%b] : tensor<2xi32> -> i32
      %end = arith.index_cast %n : i32 to index
      %inside = arith.cmpi slt, %j, %end : index
      %s = arith.addi %i, %j : index
      %small = arith.cmpi slt, %s, %sum : index
      %0 = arith.andi %after, %before : i1
      %1 = arith.andi %0, %inside : i1
      %2 = arith.andi %1, %small : i1
      tv.yield %2 : i1
    }
  return %o : !q
}

//--- cap.mlir
#m = #tv.mesh<tp = 1>
!q = tensor<2x4x300x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
func.func @main(%q: !q {tv.name = "q"}) -> (!q {tv.name = "o"}) {
  %o, %lse = tv.attention %q, %q, %q scale(0.125)
      : (!q, !q, !q) -> (!q, tensor<2x4x300xf32>)
    score_mod (%x: f32, %b: index, %h: index, %i: index, %j: index) {
      %c = arith.constant 5.0e+1 : f32
      %u = arith.divf %x, %c : f32
      %t = math.tanh %u : f32
      %y = arith.mulf %t, %c : f32
      tv.yield %y : f32
    }
  return %o : !q
}

//--- relative.mlir
#m = #tv.mesh<tp = 1>
!q = tensor<2x4x100x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
func.func @main(%q: !q {tv.name = "q"}, %bias: tensor<4x5xf32> {tv.name = "bias"}) -> (!q {tv.name = "o"}) {
  %o, %lse = tv.attention %q, %q, %q scale(0.125)
      : (!q, !q, !q) -> (!q, tensor<2x4x100xf32>)
    score_mod (%s: f32, %b: index, %h: index, %i: index, %j: index) {
      %far = arith.subi %j, %i : index
      %x = tv.load %bias[%h, %far] : tensor<4x5xf32> -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
  return %o : !q
}

//--- mods.mlir
#m = #tv.mesh<tp = 2>
#q = #tv.view<#m, [_, did(tp) * 2, _, 64]>
#k = #tv.view<#m, [_, did(tp), _, 64]>
#l = #tv.view<#m, [_, did(tp) * 2, _]>
#bias = #tv.view<#m, [4]>
#mask = #tv.view<#m, [_, _]>
!q = tensor<?x2x?x64xbf16, #tv.local<#q, of [b, 4, s, 64]>>
!k = tensor<?x1x?x64xbf16, #tv.local<#k, of [b, 2, s, 64]>>
!l = tensor<?x2x?xf32, #tv.local<#l, of [b, 4, s]>>
!bias = tensor<4xf32, #tv.local<#bias, of [4]>>
!mask = tensor<?x?xf32, #tv.local<#mask, of [b, s]>>
func.func @main(%q: !q {tv.name = "q", tv.dims = ["b", "s"]},
                %k: !k {tv.name = "k", tv.dims = ["b", "s"]},
                %v: !k {tv.name = "v", tv.dims = ["b", "s"]},
                %bias: !bias {tv.name = "bias"},
                %mask: !mask {tv.name = "mask", tv.dims = ["b", "s"]})
    -> (!q {tv.name = "o"}, !l {tv.name = "lse"})
    attributes {tv.sizes = {b = 8, s = 32}} {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal
      : (!q, !k, !k) -> (!q, !l)
    score_mod (%x: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = tv.load %bias[%h] : !bias -> f32
      %y = arith.addf %x, %c : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = tv.load %mask[%b, %ki] : !mask -> f32
      %t = arith.constant -5.0e-1 : f32
      %r = arith.cmpf ogt, %c, %t : f32
      tv.yield %r : i1
    }
  return %o, %lse : !q, !l
}

//--- plain.mlir
#m = #tv.mesh<tp = 1>
!q = tensor<2x4x300x64xbf16, #tv.local<#tv.view<#m, [2, 4, 300, 64]>, of [2, 4, 300, 64]>>
!l = tensor<2x4x300xf32, #tv.local<#tv.view<#m, [2, 4, 300]>, of [2, 4, 300]>>
func.func @main(%q: !q {tv.name = "q"}) -> (!q {tv.name = "o"}) {
  %o, %lse = tv.attention %q, %q, %q scale(0.125) causal
      : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}
