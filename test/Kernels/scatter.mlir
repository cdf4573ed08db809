// A scatter on a GPU: the updates of each row, chunk by chunk; few updates, or of sizes that
// are not known, one by one.
// RUN: split-file %s %t
// RUN: tessera-opt %t/many.mlir --tessera="from=local to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=MANY
// RUN: tessera-opt %t/many.mlir --tessera="from=local to=kernels target=cuda:sm_90a" --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/many.mlir --tessera="from=local to=kernels target=cpu" | FileCheck %s --check-prefix=LOOP
// RUN: tessera-opt %t/max.mlir --tessera="from=local to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=MAX
// RUN: tessera-opt %t/max.mlir --tessera="from=local to=kernels target=cuda:sm_90a" --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: sed 's/2x750/2x250/g; s/2, 750/2, 250/g' %t/many.mlir | tessera-opt --tessera="from=local to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=LOOP
// RUN: tessera-opt %t/small.mlir --tessera="from=local to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=SMALL
// RUN: tessera-opt %t/small.mlir --tessera="from=local to=kernels target=cuda:sm_90a" --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/small.mlir --tessera="from=local to=kernels target=cpu" | FileCheck %s --check-prefix=WIDE
// EQUAL: interpret: @main equals the source on

// 1500 updates are 6 chunks of 256, the last one not full. Their indices' rows; the chunks
// sorted by row; which of them a row has updates in; what those have, in parts; the sum of the
// parts.
// MANY: func.func @scatter_0({{.*}}memref<6x256xi32{{.*}}memref<6x256xi32{{.*}}memref<6x9xi32{{.*}}memref<6x9xi32{{.*}}memref<6x9x1xi32{{.*}}memref<6x9xi32{{.*}}memref<6x9x4xf32
// MANY: scf.parallel ({{.*}}) to (%c6, %c256)
// MANY: scf.parallel ({{.*}}) to (%c6, %c9)
// MANY: scf.parallel ({{.*}}) to (%c6, %c256)
// MANY: scf.for {{.*}} to %c256
// MANY: scf.parallel ({{.*}}) to (%c6, %c9)
// MANY: scf.for {{.*}} to %c1
// MANY: scf.parallel ({{.*}}) to (%c6, %c9, %c4)
// MANY: scf.parallel ({{.*}}) to (%c9, %c4)
// MANY: scf.for {{.*}} to %c6

// A sum over devices, in few bits: each rounds what it has summed in f32.
// RUN: tessera-opt %t/partial.mlir --tessera="from=local to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=PARTIAL
// RUN: tessera-opt %t/partial.mlir --tessera="from=local to=kernels target=cpu" | FileCheck %s --check-prefix=PARTIAL
// PARTIAL: func.func @main
// PARTIAL: plan.launch

// No parts begin with 0 where the largest is wanted.
// MAX: func.func @scatter_0
// MAX-COUNT-5: scf.parallel
// MAX-NOT: scf.parallel

// LOOP: func.func @scatter_0
// LOOP-COUNT-2: scf.parallel
// LOOP-NOT: scf.parallel

// Small floats, from 0: one kernel, which adds in f32, parts too, and has the zeros at hand.
// SMALL: func.func @scatter_0(%{{[^:]*}}: memref<1500xi32{{.*}}, %{{[^:]*}}: memref<1500x4xbf16{{.*}}, %{{[^:]*}}: memref<9x4xbf16{{.*}}memref<6x9x4xf32
// SMALL: func.func @main
// SMALL-COUNT-1: plan.launch
// SMALL-NOT: plan.launch
// WIDE: func.func @main
// WIDE: plan.launch @scatter{{.*}} -> tensor<9x4xf32

//--- many.mlir
#m = #tv.mesh<tp = 1>
!w = tensor<9x4xf32, #tv.local<#tv.view<#m, [9, 4]>, of [9, 4]>>
!i = tensor<2x750xi32, #tv.local<#tv.view<#m, [2, 750]>, of [2, 750]>>
!u = tensor<2x750x4xf32, #tv.local<#tv.view<#m, [2, 750, 4]>, of [2, 750, 4]>>
func.func @main(%w: !w, %i: !i {tv.range = [-2, 12]}, %u: !u) -> !w {
  %y = tv.scatter sum %w, %i, %u dim 0 : (!w, !i, !u) -> !w
  return %y : !w
}

//--- partial.mlir
#m = #tv.mesh<dp = 2>
!w = tensor<9x4xbf16, #tv.local<#tv.view<#m, [9, 4], partial = [dp : sum]>, of [9, 4]>>
!i = tensor<1x750xi32, #tv.local<#tv.view<#m, [did(dp), 750]>, of [2, 750]>>
!u = tensor<1x750x4xbf16, #tv.local<#tv.view<#m, [did(dp), 750, 4]>, of [2, 750, 4]>>
func.func @main(%w: !w, %i: !i, %u: !u) -> !w {
  %y = tv.scatter sum %w, %i, %u dim 0 : (!w, !i, !u) -> !w
  return %y : !w
}

//--- max.mlir
#m = #tv.mesh<tp = 1>
!w = tensor<4x9xi32, #tv.local<#tv.view<#m, [4, 9]>, of [4, 9]>>
!i = tensor<1500xi32, #tv.local<#tv.view<#m, [1500]>, of [1500]>>
!u = tensor<4x1500xi32, #tv.local<#tv.view<#m, [4, 1500]>, of [4, 1500]>>
func.func @main(%w: !w, %i: !i {tv.range = [-2, 12]}, %u: !u) -> !w {
  %y = tv.scatter max %w, %i, %u dim 1 : (!w, !i, !u) -> !w
  return %y : !w
}

//--- small.mlir
#m = #tv.mesh<tp = 1>
!w = tensor<9x4xbf16, #tv.local<#tv.view<#m, [9, 4]>, of [9, 4]>>
!i = tensor<1500xi32, #tv.local<#tv.view<#m, [1500]>, of [1500]>>
!u = tensor<1500x4xbf16, #tv.local<#tv.view<#m, [1500, 4]>, of [1500, 4]>>
func.func @main(%i: !i {tv.range = [-2, 12]}, %u: !u) -> !w {
  %w = tv.constant dense<0.0> : tensor<bf16> : () -> !w
  %y = tv.scatter sum %w, %i, %u dim 0 : (!w, !i, !u) -> !w
  return %y : !w
}
