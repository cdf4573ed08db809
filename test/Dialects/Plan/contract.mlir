// RUN: tessera-opt %s --split-input-file --verify-diagnostics -o /dev/null
// RUN: tessera-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK: plan.contract %{{.*}} [0, 1], %{{.*}} [2, 1] bias %{{.*}} to [0, 2] then gelu_tanh from "tv.linear"
!t = tensor<4x4xf32>
func.func @right(%a: !t, %b: !t, %bias: tensor<4xf32>) -> (!t, !t) {
  %c, %aux = plan.contract %a [0, 1], %b [2, 1] bias %bias to [0, 2] then gelu_tanh from "tv.linear"
    : (!t, !t, tensor<4xf32>) -> (!t, !t)
  return %c, %aux : !t, !t
}

// -----

// CHECK: %{{.*}}, %{{.*}} = plan.contract %{{.*}} [0, 1], %{{.*}} [2, 1] to [0, 2] then gelu_tanh_grad(%{{.*}}) sums result from "tv.linear" : (tensor<4x6xf32>, tensor<8x6xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
// CHECK: plan.contract %{{.*}} [0, 1], %{{.*}} [2, 1] to [0, 2] then gelu_tanh_grad(%{{.*}}) from
// CHECK: plan.contract %{{.*}} [0, 1], %{{.*}} [2, 1] to [0, 2] sums a from
// CHECK: plan.contract %{{.*}} [0, 1], %{{.*}} [2, 1] to [0, 2] sums b from
func.func @gradients(%a: tensor<4x6xf32>, %b: tensor<8x6xf32>, %x: tensor<4x8xf32>) {
  %0, %1 = plan.contract %a [0, 1], %b [2, 1] to [0, 2] then gelu_tanh_grad(%x) sums result from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x6xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  %2 = plan.contract %a [0, 1], %b [2, 1] to [0, 2] then gelu_tanh_grad(%x) from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x6xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3, %4 = plan.contract %a [0, 1], %b [2, 1] to [0, 2] sums a from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x6xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  %5, %6 = plan.contract %a [0, 1], %b [2, 1] to [0, 2] sums b from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x6xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  return
}

// -----

// All that means something; which of it a library does, the target says.
// CHECK: plan.contract %{{.*}} [0, 1], %{{.*}} [2, 1] bias %{{.*}} add %{{.*}} to [0, 2] then gelu_tanh_grad(%{{.*}}) sums result from
// CHECK: plan.contract %{{.*}} [0, 1], %{{.*}} [2, 1] to [0, 2] then gelu_tanh_grad(%{{.*}}) from
// CHECK: plan.contract %{{.*}} [3, 0, 1], %{{.*}} [3, 2, 1] to [3, 0, 2] then gelu_tanh sums a from
func.func @together(%a: tensor<4x6xf32>, %b: tensor<8x6xf32>, %bias: tensor<8xf32>, %x: tensor<4x8xf32>,
                    %as: tensor<2x4x6xf32>, %bs: tensor<2x8x6xf32>) {
  %0, %1 = plan.contract %a [0, 1], %b [2, 1] bias %bias add %x to [0, 2] then gelu_tanh_grad(%x) sums result from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x6xf32>, tensor<8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  %2, %aux = plan.contract %a [0, 1], %b [2, 1] to [0, 2] then gelu_tanh_grad(%x) from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x6xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %3, %4 = plan.contract %as [3, 0, 1], %bs [3, 2, 1] to [3, 0, 2] then gelu_tanh sums a from "tv.matmul"
    : (tensor<2x4x6xf32>, tensor<2x8x6xf32>) -> (tensor<2x4x8xf32>, tensor<4xf32>)
  return
}

// -----

func.func @no_slope(%a: tensor<4x6xf32>, %b: tensor<8x6xf32>) {
  // expected-error @+1 {{gelu_tanh_grad, and nothing else, needs what went into the gelu, of the result's shape and elements}}
  %c = plan.contract %a [0, 1], %b [2, 1] to [0, 2] then gelu_tanh_grad from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x6xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @slope_of_gelu(%a: tensor<4x6xf32>, %b: tensor<8x6xf32>, %x: tensor<4x8xf32>) {
  // expected-error @+1 {{gelu_tanh_grad, and nothing else, needs what went into the gelu}}
  %c = plan.contract %a [0, 1], %b [2, 1] to [0, 2] then gelu_tanh(%x) from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x6xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @other_slope(%a: tensor<4x6xf32>, %b: tensor<8x6xf32>, %x: tensor<8x4xf32>) {
  // expected-error @+1 {{needs what went into the gelu, of the result's shape and elements}}
  %c = plan.contract %a [0, 1], %b [2, 1] to [0, 2] then gelu_tanh_grad(%x) from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @sums_nowhere(%a: tensor<4x6xf32>, %b: tensor<8x6xf32>) {
  // expected-error @+1 {{has no result for its sums}}
  %c = plan.contract %a [0, 1], %b [2, 1] to [0, 2] sums a from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x6xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @number_of_sums(%a: tensor<4x6xf32>, %b: tensor<8x6xf32>) {
  // expected-error @+1 {{the sums 'tensor<4xf32>' must have one float of the result's type for each row or column, which must be one dimension}}
  %c, %s = plan.contract %a [0, 1], %b [2, 1] to [0, 2] sums b from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x6xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
  return
}

// -----

func.func @sums_of_rows(%a: tensor<2x4x6xf32>, %b: tensor<8x6xf32>) {
  // expected-error @+1 {{for each row or column, which must be one dimension}}
  %c, %s = plan.contract %a [3, 0, 1], %b [2, 1] to [3, 0, 2] sums a from "tv.linear"
    : (tensor<2x4x6xf32>, tensor<8x6xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>)
  return
}

// -----

func.func @length(%a: tensor<4x6xf32>, %b: tensor<8x6xf32>, %bias: tensor<4xf32>) {
  // expected-error @+1 {{the bias 'tensor<4xf32>' must have one element for each of the result's columns, which must be one dimension}}
  %c = plan.contract %a [0, 1], %b [2, 1] bias %bias to [0, 2] from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x6xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @columns(%a: tensor<4x6xf32>, %b: tensor<8x2x6xf32>, %bias: tensor<8xf32>) {
  // expected-error @+1 {{the result's columns, which must be one dimension}}
  %c = plan.contract %a [0, 1], %b [2, 3, 1] bias %bias to [0, 2, 3] from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x2x6xf32>, tensor<8xf32>) -> tensor<4x8x2xf32>
  return
}

// -----

func.func @element(%a: tensor<4x6xbf16>, %b: tensor<8x6xbf16>, %bias: tensor<8xf32>) {
  // expected-error @+1 {{the bias 'tensor<8xf32>' must have one element}}
  %c = plan.contract %a [0, 1], %b [2, 1] bias %bias to [0, 2] from "tv.linear"
    : (tensor<4x6xbf16>, tensor<8x6xbf16>, tensor<8xf32>) -> tensor<4x8xbf16>
  return
}

// -----

func.func @sums(%a: tensor<4x6xf32>, %b: tensor<8x6xf32>) {
  // expected-error @+1 {{aux is what goes into the epilogue}}
  %c, %aux = plan.contract %a [0, 1], %b [2, 1] to [0, 2] from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x6xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @transposed(%a: tensor<4x6xf32>, %b: tensor<8x6xf32>) {
  // expected-error @+1 {{aux is what goes into the epilogue, of the result's shape and elements}}
  %c, %aux = plan.contract %a [0, 1], %b [2, 1] to [0, 2] then gelu_tanh from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x6xf32>) -> (tensor<4x8xf32>, tensor<8x4xf32>)
  return
}

// -----

func.func @integers(%a: tensor<4x6xi32>, %b: tensor<8x6xi32>) {
  // expected-error @+1 {{has an epilogue, but its result is partial or of integers}}
  %c = plan.contract %a [0, 1], %b [2, 1] to [0, 2] then gelu_tanh from "tv.linear"
    : (tensor<4x6xi32>, tensor<8x6xi32>) -> tensor<4x8xi32>
  return
}

// -----

#m = #tv.mesh<tp = 2>
!a = tensor<4x6xf32, #tv.local<#tv.view<#m, [4, did(tp) * 6]>, of [4, 12]>>
!p = tensor<4x4xf32, #tv.local<#tv.view<#m, [4, 4], partial = [tp : sum]>, of [4, 4]>>
func.func @partial(%a: !a, %b: !a) {
  // expected-error @+1 {{has an epilogue, but its result is partial or of integers}}
  %c = plan.contract %a [0, 1], %b [2, 1] to [0, 2] then gelu_tanh from "tv.linear" : (!a, !a) -> !p
  return
}

// -----

#m = #tv.mesh<tp = 2>
!a = tensor<4x6xf32, #tv.local<#tv.view<#m, [4, did(tp) * 6]>, of [4, 12]>>
!b = tensor<4xf32, #tv.local<#tv.view<#m, [4]>, of [4]>>
!p = tensor<4x4xf32, #tv.local<#tv.view<#m, [4, 4], partial = [tp : sum]>, of [4, 4]>>
func.func @whole(%a: !a, %b: !a, %bias: !b) {
  // expected-error @+1 {{the bias must be partial as the result is}}
  %c = plan.contract %a [0, 1], %b [2, 1] bias %bias to [0, 2] from "tv.linear" : (!a, !a, !b) -> !p
  return
}

// -----

#m = #tv.mesh<tp = 2>
// expected-error @+1 {{plan.target is a #plan.target<...>, not "cuda:sm_90a"}}
module attributes {plan.target = "cuda:sm_90a"} {}

// -----

// expected-error @+1 {{there is no target 'cuda'; there are cpu, cuda:sm_90a and cuda:sm_XY from sm_80 on}}
module attributes {plan.target = #plan.target<"cuda">} {}

// -----

// CHECK: plan.contract %{{.*}} [0, 1], %{{.*}} [2, 1] add %{{.*}} to [0, 2] from "tv.contract"
func.func @addend(%a: tensor<4x6xbf16>, %b: tensor<8x6xbf16>, %c: tensor<4x8xf32>) {
  %0 = plan.contract %a [0, 1], %b [2, 1] add %c to [0, 2] from "tv.contract"
    : (tensor<4x6xbf16>, tensor<8x6xbf16>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @other_addend(%a: tensor<4x6xf32>, %b: tensor<8x6xf32>, %c: tensor<8x4xf32>) {
  // expected-error @+1 {{must have the result's shape, elements and partial state}}
  %0 = plan.contract %a [0, 1], %b [2, 1] add %c to [0, 2] from "tv.contract"
    : (tensor<4x6xf32>, tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<4x8xf32>
  return
}
