// What a block mask is built by: one kernel counts the pairs of each block, or, of few
// blocks, of each of their rows, and another one adds these. No pair is in memory.
// RUN: split-file %s %t
// RUN: tessera-opt %t/few.mlir --tessera="to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=FEW
// RUN: tessera-opt %t/many.mlir --tessera="to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=MANY

// FEW: func.func @main
// FEW-NEXT: %[[ROWS:.*]] = plan.launch @{{.*}}() {{.*}} : () -> tensor<1x1x2x2x4096xi32,
// FEW-NEXT: plan.launch @{{.*}}(%[[ROWS]]) {{.*}} -> tensor<1x1x2x2xi8,
// FEW-NEXT: return

// MANY: func.func @main
// MANY-NEXT: plan.launch @{{.*}}() {{.*}} : () -> tensor<1x1x16x16xi8,
// MANY-NEXT: return

//--- few.mlir
#m = #tv.mesh<tp = 2>
!bm = tensor<1x1x2x2xi8, #tv.view<#m, [_, _, _, _]>>
func.func @main() -> !bm {
  %bm = tv.block_mask of [8192, 8192] blocks [4096, 4096] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi sle, %ki, %qi : index
      tv.yield %c : i1
    }
  return %bm : !bm
}

//--- many.mlir
#m = #tv.mesh<tp = 2>
!bm = tensor<1x1x16x16xi8, #tv.view<#m, [_, _, _, _]>>
func.func @main() -> !bm {
  %bm = tv.block_mask of [2048, 2048] blocks [128, 128] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi sle, %ki, %qi : index
      tv.yield %c : i1
    }
  return %bm : !bm
}
