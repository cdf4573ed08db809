// A slice that is one run of memory is where it is, in any shape.

// RUN: split-file %s %t
// DEFINE: %{kernels} = --tessera="from=local to=kernels"
// RUN: tessera-opt %t/stacked.mlir %{kernels} | FileCheck %s --check-prefix=STACKED
// RUN: tessera-opt %t/stacked.mlir %{kernels} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/runs.mlir %{kernels} | FileCheck %s --check-prefix=RUNS
// RUN: tessera-opt %t/runs.mlir %{kernels} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: not tessera-opt %t/aligned.mlir --tessera="from=local to=kernels target=cuda:sm_90a matmul=own" 2>&1 | FileCheck %s --check-prefix=ALIGNED
// EQUAL: interpret: @main equals the source on

//--- stacked.mlir
// A layer of stacked weights is where it is, split or not.
#m = #tv.mesh<tp = 2>
!s = tensor<3x4x8xf32, #tv.local<#tv.view<#m, [3, did(tp) * 4, 8]>, of [3, 8, 8]>>
!l = tensor<1x4x8xf32, #tv.local<#tv.view<#m, [1, did(tp) * 4, 8]>, of [1, 8, 8]>>
!w = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 8]>, of [8, 8]>>
!x = tensor<5x8xf32, #tv.local<#tv.view<#m, [5, 8]>, of [5, 8]>>
!y = tensor<5x4xf32, #tv.local<#tv.view<#m, [5, did(tp) * 4]>, of [5, 8]>>
func.func @main(%x: !x, %s: !s) -> !y {
  %0 = tv.slice %s offsets [2, 0, 0] : (!s) -> !l
  %w = tv.reshape %0 : (!l) -> !w
  %y = tv.linear %x, %w : (!x, !w) -> !y
  return %y : !y
}
// STACKED: func.func @main
// STACKED-NEXT: %[[L:.*]] = plan.alias slice %arg1 at [2, 0, 0]
// STACKED-NEXT: %[[W:.*]] = plan.alias reshape %[[L]]
// STACKED-NEXT: plan.contract %arg0 [0, 1], %[[W]]

//--- runs.mlir
// One dimension is cut, behind it all is there: a run. Two cut ones are none.
#m = #tv.mesh<tp = 1>
!s = tensor<3x4x8xf32, #tv.local<#tv.view<#m, [3, 4, 8]>, of [3, 4, 8]>>
!a = tensor<2x4x8xf32, #tv.local<#tv.view<#m, [2, 4, 8]>, of [2, 4, 8]>>
!b = tensor<1x2x8xf32, #tv.local<#tv.view<#m, [1, 2, 8]>, of [1, 2, 8]>>
!c = tensor<2x2x8xf32, #tv.local<#tv.view<#m, [2, 2, 8]>, of [2, 2, 8]>>
!ar = tensor<64xf32, #tv.local<#tv.view<#m, [64]>, of [64]>>
!br = tensor<16xf32, #tv.local<#tv.view<#m, [16]>, of [16]>>
!cr = tensor<32xf32, #tv.local<#tv.view<#m, [32]>, of [32]>>
func.func @main(%s: !s) -> (!ar, !br, !cr) {
  %a = tv.slice %s offsets [1, 0, 0] : (!s) -> !a
  %ar = tv.reshape %a : (!a) -> !ar
  %0 = tv.exp %ar : (!ar) -> !ar
  %b = tv.slice %s offsets [1, 1, 0] : (!s) -> !b
  %br = tv.reshape %b : (!b) -> !br
  %1 = tv.exp %br : (!br) -> !br
  %c = tv.slice %s offsets [0, 1, 0] : (!s) -> !c
  %cr = tv.reshape %c : (!c) -> !cr
  %2 = tv.exp %cr : (!cr) -> !cr
  return %0, %1, %2 : !ar, !br, !cr
}
// RUNS: func.func @main
// RUNS: %[[A:.*]] = plan.alias slice %arg0 at [1, 0, 0]
// RUNS-NEXT: plan.alias reshape %[[A]]
// RUNS: %[[B:.*]] = plan.alias slice %arg0 at [1, 1, 0]
// RUNS-NEXT: plan.alias reshape %[[B]]
// RUNS: %[[C:.*]] = plan.alias slice %arg0 at [0, 1, 0]
// RUNS-NEXT: %[[COPY:.*]] = plan.copy %[[C]]
// RUNS-NEXT: plan.alias reshape %[[COPY]]

//--- aligned.mlir
// A run may begin at any element, where a kernel of boxes cannot read.
#m = #tv.mesh<tp = 1>
!s = tensor<260xbf16, #tv.local<#tv.view<#m, [260]>, of [260]>>
!a = tensor<256xbf16, #tv.local<#tv.view<#m, [256]>, of [256]>>
!x = tensor<16x16xbf16, #tv.local<#tv.view<#m, [16, 16]>, of [16, 16]>>
func.func @main(%s: !s, %x: !x) -> !x {
  %a = tv.slice %s offsets [4] : (!s) -> !a
  %w = tv.reshape %a : (!a) -> !x
  %y = tv.linear %x, %w : (!x, !x) -> !x
  return %y : !x
}
// ALIGNED: own does not fit: what it contracts must be innermost in memory
