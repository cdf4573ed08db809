// Sums of columns in the kernel of the rows, on GPUs.

// RUN: split-file %s %t
// DEFINE: %{group} = --tv-set-target=target=cuda:sm_90a --tv-expand-composites --tv-group-ops
// RUN: tessera-opt %t/rows.mlir %{group} | FileCheck %s --check-prefix=ROWS
// RUN: tessera-opt %t/rows.mlir %{group} --tv-emit-kernels | FileCheck %s --check-prefix=KERNEL
// RUN: tessera-opt %t/rows.mlir %{group} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/rows.mlir --tessera="from=local to=kernels target=cuda:sm_90a" --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/rows.mlir --tessera="from=local to=scheduled target=cuda:sm_90a" --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/rows.mlir --tv-group-ops | FileCheck %s --check-prefix=CPU
// RUN: tessera-opt %t/few.mlir %{group} | FileCheck %s --check-prefix=FEW
// RUN: tessera-opt %t/waits.mlir %{group} | FileCheck %s --check-prefix=WAITS
// RUN: tessera-opt %t/waits.mlir %{group} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/apart.mlir %{group} | FileCheck %s --check-prefix=APART
// RUN: tessera-opt %t/narrow.mlir --tv-set-target=target=cuda:sm_90a --tv-expand-composites --tv-split-reductions | FileCheck %s --check-prefix=NARROW
// EQUAL: interpret: @main equals the source on

//--- rows.mlir
// Of what the rows' ops make, which then is in no memory; of what they read; and of what they
// store. The step of the second stands before the rows', that of the third behind it.
#m = #tv.mesh<tp = 1>
!x = tensor<400x256xf32, #tv.local<#tv.view<#m, [400, 256], alloc = (0, 1)>, of [400, 256]>>
!r = tensor<400xf32, #tv.local<#tv.view<#m, [400], alloc = (0)>, of [400]>>
!c = tensor<256xf32, #tv.local<#tv.view<#m, [256], alloc = (0)>, of [256]>>
// ROWS: func.func @main
// ROWS-NEXT: %[[G:.*]]:4 = plan.group {
// ROWS-DAG: tv.reduce sum %arg1 dims [0]
// ROWS-DAG: tv.map %arg0, %arg1
// ROWS-DAG: tv.reduce sum %{{.*}} dims [1]
// ROWS: plan.yield
// ROWS-NEXT: }
// ROWS-NEXT: return %[[G]]#
// KERNEL: func.func @{{.*}}(%[[X:.*]]: memref<400x256xf32{{.*}}, %[[PART:.*]]: memref<134x256xf32
// A run has three rows, the last one less.
// KERNEL: scf.parallel (%[[OWN:.*]]) = (%c0) to (%c134)
// KERNEL: scf.parallel (%[[COLUMN:.*]]) = (%c0) to (%c256)
// KERNEL-NEXT: memref.store %{{.*}}, %{{.*}}[%[[OWN]], %[[COLUMN]]]
// KERNEL: %[[FIRST:.*]] = arith.muli %[[OWN]], %c3
// KERNEL-NEXT: %[[LEFT:.*]] = arith.subi %c400, %[[FIRST]]
// KERNEL-NEXT: %[[COUNT:.*]] = arith.minui %c3, %[[LEFT]]
// KERNEL-NEXT: scf.for %[[I:.*]] = %c0 to %[[COUNT]] step %c1
// KERNEL-NEXT: arith.addi %[[FIRST]], %[[I]]
// KERNEL: scf.parallel
// KERNEL: %[[BEFORE:.*]] = memref.load %[[SUM:.*]][%[[OWN]], %[[J:.*]]]
// KERNEL-NEXT: %[[AFTER:.*]] = arith.addf %[[BEFORE]]
// KERNEL-NEXT: memref.store %[[AFTER]], %[[SUM]][%[[OWN]], %[[J]]]
// KERNEL: scf.parallel
// KERNEL: maximumf
// KERNEL: %{{.*}}:3 = scf.parallel (%{{.*}}) = (%c0) to (%c134)
// On a CPU each has a kernel of its own.
// CPU-COUNT-4: plan.group
func.func @main(%x: !x, %dy: !x) -> (!x, !c, !c, !c) {
  %0 = tv.reduce sum %dy dims [0] : (!x) -> !c
  %p = tv.mul %x, %dy : (!x, !x) -> !x
  %1 = tv.reduce sum %p dims [0] : (!x) -> !c
  %s = tv.reduce sum %p dims [1] : (!x) -> !r
  %b = tv.broadcast %s dims [0] : (!r) -> !x
  %y = tv.sub %dy, %b : (!x, !x) -> !x
  %2 = tv.reduce max %y dims [0] : (!x) -> !c
  return %y, %0, %1, %2 : !x, !c, !c, !c
}

//--- few.mlir
// Less than three rows for each of 132 multiprocessors.
#m = #tv.mesh<tp = 1>
!x = tensor<395x256xf32, #tv.local<#tv.view<#m, [395, 256], alloc = (0, 1)>, of [395, 256]>>
!r = tensor<395xf32, #tv.local<#tv.view<#m, [395], alloc = (0)>, of [395]>>
!c = tensor<256xf32, #tv.local<#tv.view<#m, [256], alloc = (0)>, of [256]>>
// FEW-COUNT-2: plan.group
func.func @main(%x: !x) -> (!r, !c) {
  %0 = tv.reduce sum %x dims [0] : (!x) -> !c
  %1 = tv.reduce max %x dims [1] : (!x) -> !r
  return %1, %0 : !r, !c
}

//--- waits.mlir
// The rows' kernel waits for the sum, and another sum is of what comes after it.
#m = #tv.mesh<tp = 1>
!x = tensor<400x256xf32, #tv.local<#tv.view<#m, [400, 256], alloc = (0, 1)>, of [400, 256]>>
!r = tensor<400xf32, #tv.local<#tv.view<#m, [400], alloc = (0)>, of [400]>>
!c = tensor<256xf32, #tv.local<#tv.view<#m, [256], alloc = (0)>, of [256]>>
// WAITS: plan.group
// WAITS-NEXT: tv.reduce sum %arg0 dims [0]
// WAITS-NEXT: plan.yield
// WAITS: plan.group
// WAITS: tv.reduce max %{{.*}} dims [1]
// WAITS: plan.group
// WAITS: tv.reduce sum %{{.*}} dims [0]
// WAITS: plan.yield
func.func @main(%x: !x) -> (!r, !c) {
  %0 = tv.reduce sum %x dims [0] : (!x) -> !c
  %b = tv.broadcast %0 dims [1] : (!c) -> !x
  %s = tv.sub %x, %b : (!x, !x) -> !x
  %1 = tv.reduce max %s dims [1] : (!x) -> !r
  %c = tv.cumsum %x dim 1 : (!x) -> !x
  %d = tv.mul %c, %x : (!x, !x) -> !x
  %2 = tv.reduce sum %d dims [0] : (!x) -> !c
  return %1, %2 : !r, !c
}

//--- apart.mlir
// No more than three; and none of what the rows' kernel does not read.
#m = #tv.mesh<tp = 1>
!x = tensor<400x256xf32, #tv.local<#tv.view<#m, [400, 256], alloc = (0, 1)>, of [400, 256]>>
!r = tensor<400xf32, #tv.local<#tv.view<#m, [400], alloc = (0)>, of [400]>>
!c = tensor<256xf32, #tv.local<#tv.view<#m, [256], alloc = (0)>, of [256]>>
// APART: plan.group
// APART-NEXT: tv.reduce max %arg0 dims [1]
// APART-COUNT-3: tv.reduce {{.*}} dims [0]
// APART: plan.yield
// APART: plan.group
// APART-NEXT: tv.map
// APART: tv.reduce sum %{{.*}} dims [0]
// APART-NEXT: plan.yield
// APART: plan.group
// APART-NEXT: tv.reduce max %arg1 dims [0]
// APART-NEXT: plan.yield
func.func @main(%x: !x, %z: !x) -> (!r, !c, !c, !c, !c, !c) {
  %0 = tv.reduce max %x dims [1] : (!x) -> !r
  %1 = tv.reduce sum %x dims [0] : (!x) -> !c
  %2 = tv.reduce max %x dims [0] : (!x) -> !c
  %3 = tv.reduce min %x dims [0] : (!x) -> !c
  %q = tv.mul %x, %x : (!x, !x) -> !x
  %4 = tv.reduce sum %q dims [0] : (!x) -> !c
  %5 = tv.reduce max %z dims [0] : (!x) -> !c
  return %0, %1, %2, %3, %4, %5 : !r, !c, !c, !c, !c, !c
}

//--- narrow.mlir
// Eight blocks of columns would be in two steps, if the rows' kernel did not have them.
#m = #tv.mesh<tp = 1>
!x = tensor<8192x256xf32, #tv.local<#tv.view<#m, [8192, 256], alloc = (0, 1)>, of [8192, 256]>>
!r = tensor<8192xf32, #tv.local<#tv.view<#m, [8192], alloc = (0)>, of [8192]>>
!c = tensor<256xf32, #tv.local<#tv.view<#m, [256], alloc = (0)>, of [256]>>
// NARROW: func.func @main
// NARROW-DAG: tv.reduce max %arg0 dims [1]
// NARROW-DAG: tv.reduce sum %arg0 dims [0]
// NARROW: tv.reshape %arg1
// NARROW: tv.reduce sum %{{.*}} dims [1]
func.func @main(%x: !x, %z: !x) -> (!r, !c, !c) {
  %0 = tv.reduce max %x dims [1] : (!x) -> !r
  %1 = tv.reduce sum %x dims [0] : (!x) -> !c
  %2 = tv.reduce sum %z dims [0] : (!x) -> !c
  return %0, %1, %2 : !r, !c, !c
}
