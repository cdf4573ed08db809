// What a block mask is built by: one kernel, whose blocks have verdicts from intervals and
// count their pairs only where these do not decide; of few blocks it counts each of their
// rows, and another one adds these. Where a mask loads, one before it finds the least and
// the largest of each block. No pair is in memory.
// RUN: split-file %s %t
// RUN: tessera-opt %t/few.mlir --tessera="to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=FEW
// RUN: tessera-opt %t/many.mlir --tessera="to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=MANY
// RUN: tessera-opt %t/documents.mlir --tessera="to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=DOCUMENTS
// RUN: tessera-opt %t/documents.mlir --tessera="to=kernels target=cpu" | FileCheck %s --check-prefix=DOCUMENTS
// RUN: tessera-opt %t/split.mlir --tessera="to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=SPLIT
// RUN: tessera-opt %t/unknown.mlir --tessera="to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=UNKNOWN
// RUN: tessera-compile %t/documents.mlir --target=cuda:sm_90a --dump-dir=%t/documents -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=TEXT < %t/documents/kernels.cu

// The sum over a row's keys, too, is in a branch.
// FEW: scf.parallel {{.*}} to (%c1, %c1, %c2, %c2, %c4096)
// FEW: scf.if
// FEW-NEXT: scf.parallel {{.*}} to (%c4096)
// FEW: func.func @main
// FEW-NEXT: %[[ROWS:.*]] = plan.launch @{{.*}}() {{.*}} : () -> tensor<1x1x2x2x4096xi32,
// FEW-NEXT: plan.launch @{{.*}}(%[[ROWS]]) {{.*}} -> tensor<1x1x2x2xi8,
// FEW-NEXT: return

// None if the first key is behind the last query, all if the last key is not behind the
// first query. The blocks' sizes divide what there is, so no pair asks whether it is one.
// MANY: scf.parallel (%{{.*}}, %{{.*}}, %[[Q:.*]], %[[K:.*]]) = {{.*}} to (%c1, %c1, %c16, %c16)
// MANY: %[[QI:.*]] = arith.index_cast %[[Q]] : index to i32
// MANY-NEXT: %[[KI:.*]] = arith.index_cast %[[K]] : index to i32
// MANY-NEXT: %[[Q0:.*]] = arith.muli %[[QI]], %c128_i32
// MANY-NEXT: %[[Q1:.*]] = arith.addi %[[Q0]], %c127_i32
// MANY-NEXT: %[[K0:.*]] = arith.muli %[[KI]], %c128_i32
// MANY-NEXT: %[[K1:.*]] = arith.addi %[[K0]], %c127_i32
// MANY-NEXT: %[[NEVER:.*]] = arith.cmpi sgt, %[[K0]], %[[Q1]] : i32
// MANY-NEXT: %[[ALWAYS:.*]] = arith.cmpi sle, %[[K1]], %[[Q0]] : i32
// MANY-NEXT: %[[DECIDED:.*]] = arith.ori %[[NEVER]], %[[ALWAYS]] : i1
// MANY-NEXT: %[[ASKS:.*]] = arith.xori %[[DECIDED]], %true
// MANY-NEXT: %[[COUNT:.*]] = scf.if %[[ASKS]] -> (i32) {
// MANY-NEXT: %[[SUM:.*]] = scf.parallel (%{{.*}}) = (%c0) to (%c16384) {{.*}} init (%c0_i32) -> i32
// MANY-NOT: arith.cmpi slt
// MANY-NOT: arith.select
// MANY: scf.yield %[[SUM]] : i32
// MANY-NEXT: } else {
// MANY-NEXT: scf.yield %c0_i32
// MANY: arith.select
// MANY: arith.select
// MANY-NEXT: memref.store
// MANY: func.func @main
// MANY-NEXT: plan.launch @{{.*}}() {{.*}} : () -> tensor<1x1x16x16xi8,
// MANY-NEXT: return

// Queries and keys are of the same documents: one kernel has the bounds of both.
// DOCUMENTS: func.func @[[BOUNDS:[a-z_0-9]*]](
// DOCUMENTS: scf.parallel {{.*}} to (%c2, %c16)
// DOCUMENTS: scf.parallel {{.*}} to (%c128) {{.*}} -> (i32, i32)
// DOCUMENTS: func.func @[[MASK:[a-z_0-9]*]](
// DOCUMENTS: %[[QLOW:.*]] = memref.load %arg0[%[[B:.*]], %[[Q:[a-z0-9]*]]]
// DOCUMENTS-NEXT: %[[QHIGH:.*]] = memref.load %arg1[%[[B]], %[[Q]]]
// DOCUMENTS-NEXT: %[[KLOW:.*]] = memref.load %arg0[%[[B]], %[[K:[a-z0-9]*]]]
// DOCUMENTS-NEXT: %[[KHIGH:.*]] = memref.load %arg1[%[[B]], %[[K]]]
// DOCUMENTS-DAG: arith.cmpi slt, %[[QHIGH]], %[[KLOW]]
// DOCUMENTS-DAG: arith.cmpi sgt, %[[QLOW]], %[[KHIGH]]
// DOCUMENTS-DAG: arith.cmpi sge, %[[QLOW]], %[[KHIGH]]
// DOCUMENTS-DAG: arith.cmpi sle, %[[QHIGH]], %[[KLOW]]
// DOCUMENTS: scf.if
// DOCUMENTS-NEXT: scf.parallel {{.*}} to (%c16384)
// DOCUMENTS: func.func @main
// DOCUMENTS-NEXT: %[[BOTH:.*]]:2 = plan.launch @[[BOUNDS]](%arg0)
// DOCUMENTS-NEXT: plan.launch @[[MASK]](%[[BOTH]]#0, %[[BOTH]]#1, %arg0)
// DOCUMENTS-NEXT: return

// All threads of a block have one condition.
// TEXT: void map_1_rows(
// TEXT: for (Row first = group.first();
// TEXT: if (xori{{[0-9]+}}) {
// TEXT: for (Point at = group.member();
// TEXT: group.template reduce<
// TEXT: else {
// TEXT-NEXT: either0 = 0;

// A device has some of the blocks of queries, and bounds of keys for each of these.
// SPLIT: func.func @main
// SPLIT-NEXT: plan.launch @{{.*}} -> (tensor<1x1x8x16xi32,
// SPLIT-NEXT: plan.launch @{{.*}} -> tensor<1x1x8x16xi8,
// SPLIT-NEXT: return

// Of numbers that depend on both, in an op without a rule, nothing is known.
// UNKNOWN: scf.parallel {{.*}} to (%c1, %c1, %c16, %c16)
// UNKNOWN-NEXT: scf.parallel
// UNKNOWN-NOT: scf.if

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

//--- documents.mlir
#m = #tv.mesh<tp = 2>
!bm = tensor<2x1x16x16xi8, #tv.view<#m, [_, _, _, _]>>
!ids = tensor<2x2048xi32, #tv.view<#m, [_, _]>>
func.func @main(%ids: !ids) -> !bm {
  %bm = tv.block_mask of [2048, 2048] blocks [128, 128] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %ids[%b, %qi] : !ids -> i32
      %j = tv.load %ids[%b, %ki] : !ids -> i32
      %same = arith.cmpi eq, %i, %j : i32
      tv.yield %same : i1
    }
  return %bm : !bm
}

//--- split.mlir
#m = #tv.mesh<tp = 2>
!bm = tensor<1x1x16x16xi8, #tv.view<#m, [_, _, did(tp) * _, _]>>
!ids = tensor<2048xi32, #tv.view<#m, [_]>>
func.func @main(%ids: !ids) -> !bm {
  %bm = tv.block_mask of [2048, 2048] blocks [128, 128] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %ids[%ki] : !ids -> i32
      %n = arith.index_cast %i : i32 to index
      %c = arith.cmpi sle, %n, %qi : index
      tv.yield %c : i1
    }
  return %bm : !bm
}

//--- unknown.mlir
#m = #tv.mesh<tp = 2>
!bm = tensor<1x1x16x16xi8, #tv.view<#m, [_, _, _, _]>>
func.func @main() -> !bm {
  %bm = tv.block_mask of [2048, 2048] blocks [128, 128] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %x = arith.xori %qi, %ki : index
      %w = arith.constant 5 : index
      %c = arith.cmpi slt, %x, %w : index
      tv.yield %c : i1
    }
  return %bm : !bm
}
