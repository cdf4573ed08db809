// RUN: tessera-compile %s --compile-from=local --compile-to=plan | FileCheck %s
// RUN: tessera-compile %s --compile-from=local --compile-to=kernels -o %t.mlir
// RUN: tessera-compile %t.mlir --compile-from=kernels --compile-to=plan | FileCheck %s --check-prefix=RESUMED
// RUN: not tessera-compile %s --compile-to=nowhere 2>&1 | FileCheck %s --check-prefix=PHASE
// RUN: rm -rf %t.dump && tessera-compile %s --compile-from=local -o %t.tsr --dump-dir=%t.dump
// RUN: test -s %t.dump/kernels.s && test -s %t.dump/6-kernels.mlir

// PHASE: error: there is no phase 'nowhere'; there are source, differentiated, bind, propagated, planned, local, kernels, scheduled, plan, module

// RESUMED: launch map_0
// RESUMED: allgather over [tp]

// CHECK: mesh <tp = 2>
// CHECK: size b <= 64 multiple of 1
// CHECK: %[[X:[0-9]+]] = external f32 of [b, 8] as [_, did(tp) * 4] // x
// CHECK: = symmetric f32 of [b, 8] as [_, did(tp) * 4]
// CHECK: %[[Y:[0-9]+]] = external f32 of [b, 8] as [_, 8] // y
// CHECK: input 'x' %[[X]]
// CHECK: output 'y' %[[Y]]
// CHECK: launch map_0 %[[X]], %[[H:[0-9]+]] // tv.map at {{.*}}:[[# @LINE + 9]]:8
// CHECK: allgather over [tp] %[[H]] to %[[Y]] rather than nothing // comm.all_gather
#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [_, did(tp) * 4]>
#y = #tv.view<#m, [_, 8]>
!x = tensor<?x4xf32, #tv.local<#x, of [b, 8]>>
!y = tensor<?x8xf32, #tv.local<#y, of [b, 8]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["b"]}) -> (!y {tv.name = "y"})
    attributes {tv.sizes = {b = 64}} {
  %0 = tv.gelu %x : (!x) -> !x
  %1 = comm.all_gather %0 over #m [tp] id 0 loser "nothing" : (!x) -> !y
  return %1 : !y
}
