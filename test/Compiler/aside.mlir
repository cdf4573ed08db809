// What is launched aside may run beside the steps up to the first that reads its results, but
// where one of them writes what it reads.
// RUN: tessera-compile %s --compile-to=kernels -o %t.mlir
// RUN: sed 's/ scalars \[\] from "tv.reduce"/ scalars [] aside from "tv.reduce"/' %t.mlir > %t.aside.mlir
// RUN: FileCheck %s --check-prefix=KERNELS < %t.aside.mlir
// RUN: tessera-compile %t.aside.mlir --compile-from=kernels --compile-to=plan -o - | FileCheck %s
// RUN: tessera-opt %t.aside.mlir | FileCheck %s --check-prefix=KERNELS

// KERNELS-COUNT-3: plan.launch @reduce_{{[0-9]+}}({{.*}}) scalars [] aside from "tv.reduce"

// CHECK: state 'w' %[[STATE:[0-9]+]] becomes
// CHECK: launch reduce_{{[0-9]+}} %[[STATE]], %[[#]] //
// CHECK: launch reduce_{{[0-9]+}} %[[#]], %[[SUM:[0-9]+]] until step 4 //
// CHECK: launch reduce_{{[0-9]+}} %[[#]], %[[#]] until step 5 //
// CHECK: launch map_{{[0-9]+}} %[[STATE]]
// CHECK: launch map_{{[0-9]+}} {{.*}}%[[SUM]]
#m = #tv.mesh<tp = 1>
!w = tensor<4x8xf32, #tv.view<#m, [_, _]>>
!d = tensor<6x10xf32, #tv.view<#m, [_, _]>>
!e = tensor<5x7xf32, #tv.view<#m, [_, _]>>
!ws = tensor<8xf32, #tv.view<#m, [_]>>
!ds = tensor<10xf32, #tv.view<#m, [_]>>
!es = tensor<7xf32, #tv.view<#m, [_]>>
func.func @main(%w: !w {tv.name = "w", tv.role = "parameter"}, %d: !d, %e: !e) -> (!w {tv.name = "w"}, !ws, !es, !d) {
  %of_state = tv.reduce sum %w dims [0] : (!w) -> !ws
  %read = tv.reduce sum %d dims [0] : (!d) -> !ds
  %returned = tv.reduce sum %e dims [0] : (!e) -> !es
  %next = tv.add %w, %w : (!w, !w) -> !w
  %wide = tv.broadcast %read dims [1] : (!ds) -> !d
  %sum = tv.add %wide, %d : (!d, !d) -> !d
  return %next, %of_state, %returned, %sum : !w, !ws, !es, !d
}
