// RUN: tessera-opt %s --tessera=to=kernels --type-aliases | FileCheck %s
// RUN: tessera-opt %s --tessera=to=kernels --interpret=2 -o /dev/null
// RUN: tessera-compile %s --quiet --compile-to=plan | FileCheck %s --check-prefix=PLAN

// What a step makes is written to the output's memory, which has it in other dimensions.
// (A step may write in another order, too.) Copied is what is an argument,
// or returned twice.
// PLAN: output 'y' %[[Y:[0-9]+]]
// PLAN: launch {{[a-z]+}}_0 %{{.*}}
// PLAN-NOT: copy %{{[0-9]+}} to %[[Y]] //
// CHECK-LABEL: @main
// CHECK: %[[E:[0-9]+]]:3 = plan.launch
// CHECK: %[[R:.*]] = plan.alias reshape %[[E]]#0
// CHECK: %[[Y:.*]] = plan.join %[[R]] dim 0
// CHECK: %[[X:.*]] = plan.copy %{{.*}} from "func.return"
// CHECK: %[[T:.*]] = plan.join %{{.*}} dim 0
// CHECK: %[[A:.*]] = plan.copy %{{.*}} from "func.return"
// CHECK: %[[B:.*]] = plan.copy %{{.*}} from "func.return"
// CHECK: return %[[Y]], %[[X]], %[[T]], %[[A]], %[[B]]
#m = #tv.mesh<tp = 2>
!x = tensor<2x4x6xf32, #tv.view<#m, [_, did(tp) * _, _]>>
!y = tensor<8x6xf32>
!t = tensor<4x2x6xf32>
func.func @main(%x: !x) -> (!y {tv.name = "y"}, tensor<2x24xf32>, !t, !y, !y) {
  %e = tv.exp %x : (!x) -> tensor<2x4x6xf32>
  %y = tv.reshape %e : (tensor<2x4x6xf32>) -> !y
  %xy = tv.reshape %x : (!x) -> tensor<2x24xf32>
  %s = tv.sqrt %x : (!x) -> tensor<2x4x6xf32>
  %t = tv.transpose %s perm [1, 0, 2] : (tensor<2x4x6xf32>) -> !t
  %l = tv.abs %x : (!x) -> tensor<2x4x6xf32>
  %a = tv.reshape %l : (tensor<2x4x6xf32>) -> !y
  return %y, %xy, %t, %a, %a : !y, tensor<2x24xf32>, !t, !y, !y
}
