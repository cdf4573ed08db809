// Groups print as they are written.
// RUN: tessera-opt %s | tessera-opt | FileCheck %s

// CHECK: %[[P:.*]]:2 = plan.group of ["own", "cublaslt"] without {other = "it does not fit"} then gelu_tanh {
// CHECK-NEXT: %[[S:.*]] = tv.linear
// CHECK-NEXT: %[[G:.*]] = tv.gelu tanh %[[S]]
// CHECK-NEXT: plan.yield %[[G]], %[[S]] : tensor<4x3xf32>, tensor<4x3xf32>
// CHECK-NEXT: } : tensor<4x3xf32>, tensor<4x3xf32>
// CHECK-NEXT: %[[T:.*]]:2 = plan.group sums a {
func.func @main(%x: tensor<4x8xf32>, %w: tensor<3x8xf32>) -> tensor<4xf32> {
  %p:2 = plan.group of ["own", "cublaslt"] without {other = "it does not fit"} then gelu_tanh {
    %s = tv.linear %x, %w : (tensor<4x8xf32>, tensor<3x8xf32>) -> tensor<4x3xf32>
    %g = tv.gelu tanh %s : (tensor<4x3xf32>) -> tensor<4x3xf32>
    plan.yield %g, %s : tensor<4x3xf32>, tensor<4x3xf32>
  } : tensor<4x3xf32>, tensor<4x3xf32>
  %t:2 = plan.group sums a {
    %s = tv.linear %x, %w : (tensor<4x8xf32>, tensor<3x8xf32>) -> tensor<4x3xf32>
    %n = tv.reduce sum %x dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
    plan.yield %s, %n : tensor<4x3xf32>, tensor<4xf32>
  } : tensor<4x3xf32>, tensor<4xf32>
  return %t#1 : tensor<4xf32>
}
