// What the target's library does not do in one step of a product is an error when that
// becomes a step of a module.
// RUN: split-file %s %t
// DEFINE: %{plan} = tessera-compile --compile-from=scheduled --compile-to=plan -o -
// RUN: sed 's/attributes {.*} {/{/' %t/bias.mlir > %t/cpu.mlir && not %{plan} %t/cpu.mlir 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: sed 's/attributes {.*} {/{/' %t/sums.mlir > %t/cpu.mlir && not %{plan} %t/cpu.mlir 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: %{plan} %t/bias.mlir --target=cuda:sm_90a | FileCheck %s --check-prefix=BIAS
// RUN: not %{plan} %t/add.mlir --target=cuda:sm_90a 2>&1 | FileCheck %s --check-prefix=ADD
// RUN: not %{plan} %t/slope.mlir --target=cuda:sm_90a 2>&1 | FileCheck %s --check-prefix=SLOPE
// RUN: not %{plan} %t/aux.mlir --target=cuda:sm_90a 2>&1 | FileCheck %s --check-prefix=SLOPE
// RUN: not %{plan} %t/sums.mlir --target=cuda:sm_90a 2>&1 | FileCheck %s --check-prefix=SUMS
// RUN: not %{plan} %t/gelu.mlir --target=cuda:sm_90a 2>&1 | FileCheck %s --check-prefix=SUMS
// RUN: not %{plan} %t/batch.mlir --target=cuda:sm_90a 2>&1 | FileCheck %s --check-prefix=MATRIX

// CPU: .mlir:6:{{.*}}: error: the cpu has no product with a bias, an epilogue or sums
// BIAS: contract %0 [0, 1], %0 [2, 1] bias %1 to %2 [0, 2]
// ADD: add.mlir:6:{{.*}}: error: cuBLASLt adds to a product that has neither bias, nor epilogue, nor sums
// SLOPE: .mlir:6:{{.*}}: error: cuBLASLt multiplies by the slope of a gelu without a bias before it, and does not store what it multiplies
// SUMS: .mlir:6:{{.*}}: error: cuBLASLt sums what it multiplies by the slope of a gelu, and a or b without bias and epilogue
// MATRIX: batch.mlir:6:{{.*}}: error: cuBLASLt sums rows or columns of one matrix

//--- bias.mlir
#m = #tv.mesh<tp = 1>
!t = tensor<4x4xf32, #tv.local<#tv.view<#m, [4, 4]>, of [4, 4]>>
!b = tensor<4xf32, #tv.local<#tv.view<#m, [4]>, of [4]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
func.func @main(%a: !t {tv.name = "a"}, %b: !b {tv.name = "b"}) -> (!t {tv.name = "c"}) {
  %c = plan.contract %a [0, 1], %a [2, 1] bias %b to [0, 2] from "tv.linear" : (!t, !t, !b) -> !t
  return %c : !t
}
}

//--- add.mlir
#m = #tv.mesh<tp = 1>
!t = tensor<4x4xf32, #tv.local<#tv.view<#m, [4, 4]>, of [4, 4]>>
!b = tensor<4xf32, #tv.local<#tv.view<#m, [4]>, of [4]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
func.func @main(%a: !t {tv.name = "a"}, %b: !b {tv.name = "b"}) -> (!t {tv.name = "c"}) {
  %c = plan.contract %a [0, 1], %a [2, 1] bias %b add %a to [0, 2] from "tv.linear" : (!t, !t, !b, !t) -> !t
  return %c : !t
}
}

//--- slope.mlir
#m = #tv.mesh<tp = 1>
!t = tensor<4x4xf32, #tv.local<#tv.view<#m, [4, 4]>, of [4, 4]>>
!b = tensor<4xf32, #tv.local<#tv.view<#m, [4]>, of [4]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
func.func @main(%a: !t {tv.name = "a"}, %b: !b {tv.name = "b"}) -> (!t {tv.name = "c"}) {
  %c = plan.contract %a [0, 1], %a [2, 1] bias %b to [0, 2] then gelu_tanh_grad(%a) from "tv.linear" : (!t, !t, !b, !t) -> !t
  return %c : !t
}
}

//--- aux.mlir
#m = #tv.mesh<tp = 1>
!t = tensor<4x4xf32, #tv.local<#tv.view<#m, [4, 4]>, of [4, 4]>>

module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
func.func @main(%a: !t {tv.name = "a"}) -> (!t {tv.name = "c"}, !t {tv.name = "d"}) {
  %c, %d = plan.contract %a [0, 1], %a [2, 1] to [0, 2] then gelu_tanh_grad(%a) from "tv.linear" : (!t, !t, !t) -> (!t, !t)
  return %c, %d : !t, !t
}
}

//--- sums.mlir
#m = #tv.mesh<tp = 1>
!t = tensor<4x4xf32, #tv.local<#tv.view<#m, [4, 4]>, of [4, 4]>>
!b = tensor<4xf32, #tv.local<#tv.view<#m, [4]>, of [4]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
func.func @main(%a: !t {tv.name = "a"}) -> (!t {tv.name = "c"}, !b {tv.name = "d"}) {
  %c, %d = plan.contract %a [0, 1], %a [2, 1] to [0, 2] sums result from "tv.linear" : (!t, !t) -> (!t, !b)
  return %c, %d : !t, !b
}
}

//--- gelu.mlir
#m = #tv.mesh<tp = 1>
!t = tensor<4x4xf32, #tv.local<#tv.view<#m, [4, 4]>, of [4, 4]>>
!b = tensor<4xf32, #tv.local<#tv.view<#m, [4]>, of [4]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
func.func @main(%a: !t {tv.name = "a"}) -> (!t {tv.name = "c"}, !b {tv.name = "d"}) {
  %c, %d = plan.contract %a [0, 1], %a [2, 1] to [0, 2] then gelu_tanh sums a from "tv.linear" : (!t, !t) -> (!t, !b)
  return %c, %d : !t, !b
}
}

//--- batch.mlir
#m = #tv.mesh<tp = 1>
!t = tensor<2x4x4xf32, #tv.local<#tv.view<#m, [2, 4, 4]>, of [2, 4, 4]>>
!b = tensor<4xf32, #tv.local<#tv.view<#m, [4]>, of [4]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
func.func @main(%a: !t {tv.name = "a"}) -> (!t {tv.name = "c"}, !b {tv.name = "d"}) {
  %c, %d = plan.contract %a [3, 0, 1], %a [3, 2, 1] to [3, 0, 2] sums a from "tv.matmul" : (!t, !t) -> (!t, !b)
  return %c, %d : !t, !b
}
}
