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
  // expected-error @+1 {{aux is what goes into an epilogue}}
  %c, %aux = plan.contract %a [0, 1], %b [2, 1] to [0, 2] from "tv.linear"
    : (tensor<4x6xf32>, tensor<8x6xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// -----

func.func @transposed(%a: tensor<4x6xf32>, %b: tensor<8x6xf32>) {
  // expected-error @+1 {{aux is what goes into an epilogue, of the result's shape and elements}}
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
// expected-error @+1 {{there is no target "cuda:sm_80"; there are cpu and cuda:sm_90a}}
module attributes {plan.target = "cuda:sm_80"} {}
