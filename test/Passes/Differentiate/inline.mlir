// RUN: tessera-opt --tv-inline --split-input-file --verify-diagnostics %s | FileCheck %s
// RUN: %python %S/Inputs/doubling.py 40 | not tessera-opt --tv-inline 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: 'f39' inlines here to 549755813888 ops, and 'f40' becomes 1099511627776; a program may have 262144

// Calls are inlined, and functions that only they used are gone.

// CHECK-NOT: @twice
// CHECK-LABEL: @inlines_calls
// CHECK-COUNT-2: tv.add
// CHECK-NOT: call
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tv.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @inlines_calls(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @twice(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// However deep, and into a function whose gradient is asked for, which stays.

// CHECK-NOT: @nobody
// CHECK-NOT: @inner
// CHECK-LABEL: func.func private @outer
// CHECK-COUNT-2: tv.exp
// CHECK-LABEL: func.func @gradient
// CHECK: tv.gradient @outer
func.func private @nobody(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func private @inner(%x: tensor<f32>) -> tensor<f32> {
  %0 = tv.exp %x : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @middle(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @inner(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @outer(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @middle(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @middle(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}
func.func @gradient(%x: tensor<f32>) -> tensor<f32> {
  %0, %1 = tv.gradient @outer(%x) of [0] to [0] : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %1 : tensor<f32>
}

// -----

// Of a function for any size each call has its own extents; what is not known stays so.
// The view of a call's result is that of the value.

// CHECK-NOT: @halves
// CHECK-LABEL: @sizes
// CHECK-NEXT: %[[A:.*]] = tv.reshape %arg0 : (tensor<2x6x4xf32>) -> tensor<2x6x2x2xf32>
// CHECK-NEXT: %[[B:.*]] = tv.exp %[[A]] : (tensor<2x6x2x2xf32>) -> tensor<2x6x2x2xf32, #tv.view
// CHECK-NEXT: %[[C:.*]] = tv.reshape %arg1 : (tensor<3x?x4xf32>) -> tensor<3x?x2x2xf32>
// CHECK-NEXT: %[[D:.*]] = tv.exp %[[C]] : (tensor<3x?x2x2xf32>) -> tensor<3x?x2x2xf32>
// CHECK-NEXT: return %[[B]], %[[D]], %arg0
// CHECK-NOT: @halves
#view = #tv.view<#tv.mesh<x = 2>, [did(x) * _, _, _, _]>
func.func private @same(%x: tensor<?x?x?xf32>) -> tensor<?x?x?xf32> {
  return %x : tensor<?x?x?xf32>
}
func.func private @halves(%x: tensor<?x?x4xf32>) -> tensor<?x?x2x2xf32> {
  %0 = tv.reshape %x : (tensor<?x?x4xf32>) -> tensor<?x?x2x2xf32>
  %1 = tv.exp %0 : (tensor<?x?x2x2xf32>) -> tensor<?x?x2x2xf32>
  return %1 : tensor<?x?x2x2xf32>
}
func.func @sizes(%x: tensor<2x6x4xf32>, %y: tensor<3x?x4xf32> {tv.dims = ["s"]})
    -> (tensor<2x6x2x2xf32, #view>, tensor<3x?x2x2xf32>, tensor<2x6x4xf32>) attributes {tv.sizes = {s = 8 : i64}} {
  %0 = tv.call @halves(%x) : (tensor<2x6x4xf32>) -> tensor<2x6x2x2xf32, #view>
  %1 = tv.call @halves(%y) : (tensor<3x?x4xf32>) -> tensor<3x?x2x2xf32>
  %2 = tv.call @same(%x) : (tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  return %0, %1, %2 : tensor<2x6x2x2xf32, #view>, tensor<3x?x2x2xf32>, tensor<2x6x4xf32>
}

// -----

func.func private @halves(%x: tensor<?x4xf32>) -> tensor<?x2x2xf32> {
  %0 = tv.reshape %x : (tensor<?x4xf32>) -> tensor<?x2x2xf32>
  return %0 : tensor<?x2x2xf32>
}
func.func @other_size(%x: tensor<6x4xf32>) -> tensor<3x2x2xf32> {
  // expected-error @+1 {{'halves' gives 'tensor<6x2x2xf32>' as result #0 of this call, not 'tensor<3x2x2xf32>'}}
  %0 = tv.call @halves(%x) : (tensor<6x4xf32>) -> tensor<3x2x2xf32>
  return %0 : tensor<3x2x2xf32>
}

// -----

// What a function gives as it was given lies as that.

#view = #tv.view<#tv.mesh<x = 2>, [did(x) * _, _]>
func.func private @same(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  return %x : tensor<?x?xf32>
}
func.func @other_view(%x: tensor<6x4xf32>) -> tensor<6x4xf32, #view> {
  // expected-error-re @+1 {{'same' gives 'tensor<6x4xf32>' as result #0 of this call, not 'tensor<6x4xf32, {{.*}}>'; it is used elsewhere: write its view in tv.constrain}}
  %0 = tv.call @same(%x) : (tensor<6x4xf32>) -> tensor<6x4xf32, #view>
  return %0 : tensor<6x4xf32, #view>
}

// -----

// So does what is given twice.

#view = #tv.view<#tv.mesh<x = 2>, [did(x) * _, _]>
func.func private @twice(%x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %0 = tv.exp %x : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0, %0 : tensor<?x?xf32>, tensor<?x?xf32>
}
func.func @two_views(%x: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32, #view>) {
  // expected-error-re @+1 {{'twice' gives 'tensor<6x4xf32>' as result #1 of this call, not 'tensor<6x4xf32, {{.*}}>'; it is used elsewhere: write its view in tv.constrain}}
  %0:2 = tv.call @twice(%x) : (tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32, #view>)
  return %0#0, %0#1 : tensor<6x4xf32>, tensor<6x4xf32, #view>
}

// -----

// A gradient beside a call; inside of what is called it has its extents.

// CHECK-LABEL: @step
// CHECK: %[[X:.*]] = tv.exp %arg0 : (tensor<?x4xf32, #tv.view<{{.*}}>>) -> tensor<?x4xf32>
// CHECK: tv.gradient @loss(%[[X]], %arg1)
// CHECK: tv.gradient @loss4(%arg1) {{.*}} (tensor<4xf32, #tv.view
#rows = #tv.view<#tv.mesh<x = 2>, [did(x) * _, _]>
#whole = #tv.view<#tv.mesh<x = 2>, [_]>
!x = tensor<?x4xf32>
!w = tensor<4xf32, #whole>
func.func private @any(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %0 = tv.exp %x : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}
func.func private @loss(%x: !x, %w: !w) -> tensor<f32> {
  %0 = tv.reduce sum %x dims [0] : (!x) -> tensor<4xf32>
  %1 = tv.mul %0, %w : (tensor<4xf32>, !w) -> tensor<4xf32>
  %2 = tv.reduce sum %1 dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %2 : tensor<f32>
}
func.func private @loss4(%w: tensor<4xf32>) -> tensor<f32> {
  %0 = tv.reduce sum %w dims [0] : (tensor<4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @grad4(%w: tensor<4xf32>) -> tensor<4xf32> {
  %l, %dw = tv.gradient @loss4(%w) of [0] to [0] : (tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %dw : tensor<4xf32>
}
func.func @step(%x: tensor<?x4xf32, #rows> {tv.dims = ["s"]}, %w: !w) -> (tensor<f32>, !x, tensor<4xf32>) attributes {tv.sizes = {s = 8 : i64}} {
  %x2 = tv.call @any(%x) : (tensor<?x4xf32, #rows>) -> !x
  %l, %dx = tv.gradient @loss(%x2, %w) of [0] to [0] : (!x, !w) -> (tensor<f32>, !x)
  %dw = tv.call @grad4(%w) : (!w) -> tensor<4xf32>
  return %l, %dx, %dw : tensor<f32>, !x, tensor<4xf32>
}

// -----

func.func private @loss(%x: tensor<?xf32>) -> tensor<f32> {
  %0 = tv.reduce sum %x dims [0] : (tensor<?xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @grad(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{a gradient in a function for any size: write its extents, or ask for the gradient of what calls the function}}
  %l, %dx = tv.gradient @loss(%x) of [0] to [0] : (tensor<?xf32>) -> (tensor<f32>, tensor<?xf32>)
  return %dx : tensor<?xf32>
}
func.func @gradient_of_any_size(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tv.call @grad(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// The ops of the function say where its extents do not fit.

func.func private @sum(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{'tv.add' op operand #1's dimension 0 has extent 3; it must be 2, as operand #0's dimension 0 has}}
  %0 = tv.add %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @differ(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<2xf32> {
  %0 = tv.call @sum(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func private @again(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @+1 {{'again' calls itself; recursion does not inline}}
  %0 = tv.call @again(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
func.func @any_recursion(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tv.call @again(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @again(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'again' calls itself; recursion does not inline}}
  %0 = call @again(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @recursion(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @again(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func private @elsewhere(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @opaque_call(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{calls 'elsewhere', which has no body here}}
  %0 = call @elsewhere(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Each function calls the one below twice.

func.func private @f0(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = tv.gelu tanh %x : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @f1(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f0(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f0(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f2(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f1(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f1(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f3(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f2(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f2(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f4(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f3(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f3(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f5(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f4(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f4(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f6(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f5(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f5(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f7(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f6(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f6(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f8(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f7(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f7(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f9(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f8(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f8(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f10(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f9(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f9(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f11(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f10(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f10(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f12(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f11(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f11(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f13(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f12(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f12(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f14(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f13(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f13(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f15(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f14(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f14(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f16(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f15(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f15(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f17(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f16(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f16(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f18(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f17(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f17(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f19(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @f18(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = call @f18(%0) : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func @doubles(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{'f19' inlines here to 524288 ops, and 'doubles' becomes 524288; a program may have 262144}}
  %0 = call @f19(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func private @checked(%x: tensor<2xi32>) -> (tensor<2xi32> {tv.check = "x is not 0"}) {
  return %x : tensor<2xi32>
}
func.func @caller(%x: tensor<2xi32>) -> tensor<2xi32> {
  // expected-error @+1 {{'checked' checks result #0; 'tv.check' is of the results of the function that runs}}
  %0 = call @checked(%x) : (tensor<2xi32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
