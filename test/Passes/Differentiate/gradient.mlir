// tv.gradient as ops. What each op's gradient is worth, test/Interpreter/gradients.mlir
// says; here is which ops come of it, and where.
// RUN: tessera-opt %s --tv-differentiate --split-input-file | FileCheck %s

// One operand that is two arguments; sums in reverse order of the uses.
// CHECK-LABEL: func.func @twice
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[DY:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[P:.*]] = tv.mul %[[X]], %[[X]]
// CHECK-NEXT: %[[Y:.*]] = tv.add %[[P]], %[[X]]
// CHECK-NEXT: %[[D:.*]]:2 = tv.map %[[X]], %[[X]], %[[DY]]
// CHECK: %[[DX:.*]] = tv.add %[[DY]], %[[D]]#0
// CHECK-NEXT: return %[[Y]], %[[DX]], %[[D]]#1
!x = tensor<4xf32>
func.func private @f(%a: !x, %b: !x) -> !x {
  %0 = tv.mul %a, %b : (!x, !x) -> !x
  %1 = tv.add %0, %a : (!x, !x) -> !x
  return %1 : !x
}
func.func @twice(%x: !x, %dy: !x) -> (!x, !x, !x) {
  %y, %da, %db = tv.gradient @f(%x, %x) of [0] with (%dy) to [0, 1] : (!x, !x, !x) -> (!x, !x, !x)
  return %y, %da, %db : !x, !x, !x
}

// -----

// Slices that tile a value are one concat, in the order of their offsets; others are
// padded and added.
// CHECK-LABEL: func.func @boxes
// CHECK: %[[DX:.*]] = tv.concat %{{.*}}, %{{.*}}, %{{.*}} dim 1 : (tensor<4x2xf32>, tensor<4x3xf32>, tensor<4x1xf32>) -> tensor<4x6xf32>
// CHECK: %[[A:.*]] = tv.pad %arg5 low [0, 2] high [0, 0]
// CHECK: %[[B:.*]] = tv.pad %arg4 low [1, 0] high [0, 3]
// CHECK: tv.add %[[A]], %[[B]]
func.func private @f(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>)
    -> (tensor<4x2xf32>, tensor<4x1xf32>, tensor<4x3xf32>, tensor<3x3xf32>, tensor<4x4xf32>) {
  %0 = tv.slice %x offsets [0, 0] : (tensor<4x6xf32>) -> tensor<4x2xf32>
  %1 = tv.slice %x offsets [0, 5] : (tensor<4x6xf32>) -> tensor<4x1xf32>
  %2 = tv.slice %x offsets [0, 2] : (tensor<4x6xf32>) -> tensor<4x3xf32>
  %3 = tv.slice %y offsets [1, 0] : (tensor<4x6xf32>) -> tensor<3x3xf32>
  %4 = tv.slice %y offsets [0, 2] : (tensor<4x6xf32>) -> tensor<4x4xf32>
  return %0, %1, %2, %3, %4 : tensor<4x2xf32>, tensor<4x1xf32>, tensor<4x3xf32>, tensor<3x3xf32>, tensor<4x4xf32>
}
func.func @boxes(%x: tensor<4x6xf32>, %a: tensor<4x2xf32>, %b: tensor<4x1xf32>, %c: tensor<4x3xf32>,
                 %d: tensor<3x3xf32>, %e: tensor<4x4xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %0:7 = tv.gradient @f(%x, %x) of [0, 1, 2, 3, 4] with (%a, %b, %c, %d, %e) to [0, 1]
      : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x2xf32>, tensor<4x1xf32>, tensor<4x3xf32>, tensor<3x3xf32>, tensor<4x4xf32>)
     -> (tensor<4x2xf32>, tensor<4x1xf32>, tensor<4x3xf32>, tensor<3x3xf32>, tensor<4x4xf32>, tensor<4x6xf32>, tensor<4x6xf32>)
  return %0#5, %0#6 : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// A gradient lies as its type says; else as the argument. What is moved moves back.
// CHECK-LABEL: func.func @views
// CHECK: tv.constrain %arg0 {{.*}} to #tv.view<#mesh, [_, _]>
// CHECK: %[[DW:.*]] = tv.contract {{.*}} -> tensor<4x6xf32>
// CHECK: %[[DB:.*]] = tv.reduce sum %{{.*}} -> tensor<4xf32, #tv.view<#mesh, [did(x) * _]>>
// CHECK: %[[BACK:.*]] = tv.constrain %[[DW]] : (tensor<4x6xf32>) -> tensor<4x6xf32> to #tv.view<#mesh, [did(x) * _, _]>
// CHECK: %[[AS:.*]] = tv.constrain %[[BACK]] : (tensor<4x6xf32>) -> tensor<4x6xf32> to #tv.view<#mesh, [did(x) * _, _]>
// CHECK: return %{{.*}}, %[[AS]], %[[DB]]
#m = #tv.mesh<x = 2>
!w = tensor<4x6xf32, #tv.view<#m, [did(x) * _, _]>>
!whole = tensor<4x6xf32>
!b = tensor<4xf32>
!split = tensor<4xf32, #tv.view<#m, [did(x) * _]>>
!x = tensor<8x6xf32>
!y = tensor<8x4xf32>
func.func private @f(%w: !w, %b: !b, %x: !x) -> !y {
  %0 = tv.constrain %w : (!w) -> !whole to #tv.view<#m, [_, _]>
  %1 = tv.linear %x, %0 bias %b : (!x, !whole, !b) -> !y
  return %1 : !y
}
func.func @views(%w: !w, %b: !b, %x: !x, %dy: !y) -> (!y, !whole, !split) {
  %y, %dw, %db = tv.gradient @f(%w, %b, %x) of [0] with (%dy) to [0, 1] : (!w, !b, !x, !y) -> (!y, !whole, !split)
  return %y, %dw, %db : !y, !whole, !split
}

// -----

// A gradient of a gradient: x exp(x), twice.
// CHECK-LABEL: func.func @second
// CHECK-NOT: tv.gradient
// CHECK: return
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = tv.exp %x : (tensor<f32>) -> tensor<f32>
  %1 = tv.mul %0, %x : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func private @df(%x: tensor<f32>) -> tensor<f32> {
  %0, %1 = tv.gradient @f(%x) of [0] to [0] : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %1 : tensor<f32>
}
func.func @second(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0, %1 = tv.gradient @df(%x) of [0] to [0] : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %0, %1 : tensor<f32>, tensor<f32>
}

// -----

// A cotangent that has a view, and an argument that is a result: nothing is built but
// for what says that the gradient has no view of its own.
// CHECK-LABEL: func.func @identity
// CHECK-NEXT: tv.constrain %arg1
// CHECK-NEXT: return
#m = #tv.mesh<x = 2>
!x = tensor<4xf32>
!dx = tensor<4xf32, #tv.view<#m, [did(x) * _]>>
func.func private @f(%x: !x) -> !x {
  return %x : !x
}
func.func @identity(%x: !x, %dy: !dx) -> (!x, !x) {
  %0, %1 = tv.gradient @f(%x) of [0] with (%dy) to [0] : (!x, !dx) -> (!x, !x)
  return %0, %1 : !x, !x
}

// -----

// The gradient of a transposed weight is a product, its factors in order.
// CHECK-LABEL: func.func @transposed
// CHECK: tv.contract %arg0 [0, 1], %arg2 [0, 2] to [1, 2]
// CHECK-NEXT: return
func.func private @f(%x: tensor<8x6xf32>, %w: tensor<6x4xf32>) -> tensor<8x4xf32> {
  %t = tv.transpose %w perm [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %y = tv.linear %x, %t : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}
func.func @transposed(%x: tensor<8x6xf32>, %w: tensor<6x4xf32>, %dy: tensor<8x4xf32>) -> tensor<6x4xf32> {
  %y, %dw = tv.gradient @f(%x, %w) of [0] with (%dy) to [1]
      : (tensor<8x6xf32>, tensor<6x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<6x4xf32>)
  return %dw : tensor<6x4xf32>
}
