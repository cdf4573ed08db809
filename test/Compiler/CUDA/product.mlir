// RUN: tessera-compile %s --compile-from=local --target=cuda:sm_90a --matmul=own --dump-dir=%t --dump-kernels=%t/programs -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty
// RUN: FileCheck %s < %t/kernels.cu
// RUN: FileCheck %s --check-prefix=SCHEDULE < %t/7-scheduled.mlir
// RUN: FileCheck %s --check-prefix=PLAN < %t/plan.txt
// RUN: FileCheck %s --check-prefix=PROGRAM < %t/programs/linear_0.cu
// RUN: sed 's/bf16/f16/g' %s | tessera-compile --compile-from=local --target=cuda:sm_90a --matmul=own -o %t.tsr 2>&1 | FileCheck %s --check-prefix=CLEAN --allow-empty

// No spills, no serialised products.
// CLEAN-NOT: {{warning|error}}

// Tiles that leave few multiprocessors idle, the widest where their number is known only
// when it runs; one block a cluster where there is one tile of rows.
// SCHEDULE: plan.product {{.*}}{schedule.product = #schedule.product<columns(256) stages(4) cluster(2) rolled(true)>}
// SCHEDULE: plan.product {{.*}}{schedule.product = #schedule.product<columns(128) stages(6) cluster(1)>}

// The epilogue is a functor; what it reads comes by the parameters. What is stored
// first is what the source defines first.
// CHECK: #include "gemm/gemm.cuh"
// CHECK: struct linear_0_Parameters {
// CHECK-NEXT: Tensor<const bf16, 3, 2> x0;
// CHECK-NEXT: Tensor<const bf16, 2, 1> x1;
// CHECK-NEXT: Tensor<const bf16, 1, 0> x2;
// CHECK-NEXT: Tensor<const bf16, 3, 2> x3;
// CHECK-NEXT: Tensor<bf16, 3, 2> y0;
// CHECK-NEXT: Tensor<bf16, 3, 2> y1;
// CHECK: struct linear_0_Mods : GemmMods {
// CHECK: static constexpr int Results = 2;
// CHECK: static __device__ void epilogue(const Args &args, float (&x)[2], const GemmElement &at) {
// CHECK: const float sum = x[0];
// CHECK: = *p.x2.at(column);
// CHECK: const float add0 = sum + extf0;
// CHECK-NEXT: const bf16 trunc0 = narrow<bf16>(add0);
// CHECK-NEXT: const float extf1 = widen<float>(trunc0);
// CHECK: = *p.x3.at(batch, row, column);
// CHECK: const float add1 = extf1 + extf2;
// CHECK-NEXT: x[0] = extf1;
// CHECK-NEXT: x[1] = add1;
// CHECK: using linear_0_Config = GemmConfig<bf16, 256, 4, 2, linear_0_Mods, 3, false>;
// CHECK: __cluster_dims__(2) __launch_bounds__(384, 1)
// CHECK-NEXT: linear_0(const __grid_constant__ linear_0_Boxed boxed)
// CHECK: int(p.x0.size[0]), int(p.x0.size[1]), int(p.y0.size[2]), int(p.x0.size[2]), 8, {&p}};

// A batch of small products, one block each row of tiles.
// CHECK: using matmul_1_Config = GemmConfig<bf16, 128, 6, 1, matmul_1_Mods, 3, true>;

// A block for each tile, and whole clusters; all blocks that there are where the number
// of tiles is known only when it runs.
// PLAN: as linear_0 of 384 threads and 230400 bytes of shared memory in clusters of 2, persistent, over %{{.*}}.0, 4, 32 by 1, operand 0 in boxes of 1x128x64, operand 1 in boxes of 128x64, operand 4 in boxes of 1x64x64, operand 5 in boxes of 1x64x64
// PLAN: as matmul_1 of 384 threads and 230400 bytes of shared memory, persistent, over 3, 1, 1 by 1, operand 0 in boxes of 1x128x64, operand 1 in boxes of 1x128x64, operand 2 in boxes of 1x64x64

// PROGRAM: struct alignas(64) TensorMap
// PROGRAM: linear_0_Boxed boxed_linear_0 = {p, {makeMap<false>(p.x0, {1, 128, 64}), makeMap<false>(p.x1, {128, 64}), makeMap<false>(p.y0, {1, 64, 64}), makeMap<false>(p.y1, {1, 64, 64})}};
// PROGRAM: linear_0<<<getBlocks(1.0 * p.y0.size[0] * 4 * 32, 1, 2, 132), 384, 230400>>>(boxed_linear_0);

#m = #tv.mesh<tp = 1>
!x = tensor<?x300x64xbf16, #tv.local<#tv.view<#m, [_, 300, 64]>, of [b, 300, 64]>>
!w = tensor<8000x64xbf16, #tv.local<#tv.view<#m, [8000, 64]>, of [8000, 64]>>
!b = tensor<8000xbf16, #tv.local<#tv.view<#m, [8000]>, of [8000]>>
!y = tensor<?x300x8000xbf16, #tv.local<#tv.view<#m, [_, 300, 8000]>, of [b, 300, 8000]>>
!q = tensor<3x7x16xbf16, #tv.local<#tv.view<#m, [3, 7, 16]>, of [3, 7, 16]>>
!k = tensor<3x40x16xbf16, #tv.local<#tv.view<#m, [3, 40, 16]>, of [3, 40, 16]>>
!t = tensor<3x16x40xbf16, #tv.local<#tv.view<#m, [3, 16, 40]>, of [3, 16, 40]>>
!s = tensor<3x7x40xbf16, #tv.local<#tv.view<#m, [3, 7, 40]>, of [3, 7, 40]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["b"]}, %w: !w {tv.name = "w"},
                %b: !b {tv.name = "b"}, %r: !y {tv.name = "r", tv.dims = ["b"]},
                %q: !q {tv.name = "q"}, %k: !k {tv.name = "k"})
    -> (!y {tv.name = "h"}, !y {tv.name = "y"}, !s {tv.name = "s"})
    attributes {tv.sizes = {b = 8}} {
  %h = tv.linear %x, %w bias %b : (!x, !w, !b) -> !y
  %y = tv.add %h, %r : (!y, !y) -> !y
  %t = tv.transpose %k perm [0, 2, 1] : (!k) -> !t
  %s = tv.matmul %q, %t : (!q, !t) -> !s
  return %h, %y, %s : !y, !y, !s
}
