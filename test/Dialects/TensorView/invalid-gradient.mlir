// What tv.gradient rejects.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics

func.func private @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>) {
  %0 = tv.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = tv.reduce sum %i dims [0] : (tensor<4xi32>) -> tensor<i32>
  return %0, %x, %1 : tensor<f32>, tensor<4xf32>, tensor<i32>
}
func.func @g(%x: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<f32>, %n: tensor<3xf32>) {
  // expected-error@+1 {{'tv.gradient' op 'nobody' is no function with a body here}}
  %0:4 = tv.gradient @nobody(%x, %i) of [0] to [0] : (tensor<4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>)
  return
}

// -----

func.func private @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>) {
  %0 = tv.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = tv.reduce sum %i dims [0] : (tensor<4xi32>) -> tensor<i32>
  return %0, %x, %1 : tensor<f32>, tensor<4xf32>, tensor<i32>
}
func.func @g(%x: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<f32>, %n: tensor<3xf32>) {
  // expected-error@+1 {{'f' takes ('tensor<4xf32>', 'tensor<4xi32>'), not ('tensor<4xf32>')}}
  %0:4 = tv.gradient @f(%x) of [0] to [0] : (tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>)
  return
}

// -----

func.func private @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>) {
  %0 = tv.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = tv.reduce sum %i dims [0] : (tensor<4xi32>) -> tensor<i32>
  return %0, %x, %1 : tensor<f32>, tensor<4xf32>, tensor<i32>
}
func.func @g(%x: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<f32>, %n: tensor<3xf32>) {
  // expected-error@+1 {{'of' names result #3 of 'f', which has 3}}
  %0:4 = tv.gradient @f(%x, %i) of [3] to [0] : (tensor<4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>)
  return
}

// -----

func.func private @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>) {
  %0 = tv.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = tv.reduce sum %i dims [0] : (tensor<4xi32>) -> tensor<i32>
  return %0, %x, %1 : tensor<f32>, tensor<4xf32>, tensor<i32>
}
func.func @g(%x: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<f32>, %n: tensor<3xf32>) {
  // expected-error@+1 {{'of' must name results}}
  %0:4 = tv.gradient @f(%x, %i) of [] to [0] : (tensor<4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>)
  return
}

// -----

func.func private @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>) {
  %0 = tv.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = tv.reduce sum %i dims [0] : (tensor<4xi32>) -> tensor<i32>
  return %0, %x, %1 : tensor<f32>, tensor<4xf32>, tensor<i32>
}
func.func @g(%x: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<f32>, %n: tensor<3xf32>) {
  // expected-error@+1 {{'to' names argument #-1 of 'f', which has 2}}
  %0:4 = tv.gradient @f(%x, %i) of [0] to [-1] : (tensor<4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>)
  return
}

// -----

func.func private @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>) {
  %0 = tv.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = tv.reduce sum %i dims [0] : (tensor<4xi32>) -> tensor<i32>
  return %0, %x, %1 : tensor<f32>, tensor<4xf32>, tensor<i32>
}
func.func @g(%x: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<f32>, %n: tensor<3xf32>) {
  // expected-error@+1 {{'to' names argument #0 twice}}
  %0:5 = tv.gradient @f(%x, %i) of [0] to [0, 0] : (tensor<4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func private @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>) {
  %0 = tv.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = tv.reduce sum %i dims [0] : (tensor<4xi32>) -> tensor<i32>
  return %0, %x, %1 : tensor<f32>, tensor<4xf32>, tensor<i32>
}
func.func @g(%x: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<f32>, %n: tensor<3xf32>) {
  // expected-error@+1 {{must have the results of 'f', ('tensor<f32>', 'tensor<4xf32>', 'tensor<i32>'), then one for each argument in 'to'}}
  %0:2 = tv.gradient @f(%x, %i) of [0] to [0] : (tensor<4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>)
  return
}

// -----

func.func private @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>) {
  %0 = tv.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = tv.reduce sum %i dims [0] : (tensor<4xi32>) -> tensor<i32>
  return %0, %x, %1 : tensor<f32>, tensor<4xf32>, tensor<i32>
}
func.func @g(%x: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<f32>, %n: tensor<3xf32>) {
  // expected-error@+1 {{has 1 gradients in 'with' and 2 results in 'of'; they must be as many}}
  %0:4 = tv.gradient @f(%x, %i) of [0, 1] with (%s) to [0] : (tensor<4xf32>, tensor<4xi32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>)
  return
}

// -----

func.func private @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>) {
  %0 = tv.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = tv.reduce sum %i dims [0] : (tensor<4xi32>) -> tensor<i32>
  return %0, %x, %1 : tensor<f32>, tensor<4xf32>, tensor<i32>
}
func.func @g(%x: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<f32>, %n: tensor<3xf32>) {
  // expected-error@+1 {{result #2 of 'f' has no gradient: it is not of floats, but 'tensor<i32>'}}
  %0:4 = tv.gradient @f(%x, %i) of [2] to [0] : (tensor<4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>)
  return
}

// -----

func.func private @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>) {
  %0 = tv.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = tv.reduce sum %i dims [0] : (tensor<4xi32>) -> tensor<i32>
  return %0, %x, %1 : tensor<f32>, tensor<4xf32>, tensor<i32>
}
func.func @g(%x: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<f32>, %n: tensor<3xf32>) {
  // expected-error@+1 {{result #1 of 'f' is no scalar; 'with' must give its gradient}}
  %0:4 = tv.gradient @f(%x, %i) of [0, 1] to [0] : (tensor<4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>)
  return
}

// -----

func.func private @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>) {
  %0 = tv.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = tv.reduce sum %i dims [0] : (tensor<4xi32>) -> tensor<i32>
  return %0, %x, %1 : tensor<f32>, tensor<4xf32>, tensor<i32>
}
func.func @g(%x: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<f32>, %n: tensor<3xf32>) {
  // expected-error@+1 {{result #1 of 'f' is 'tensor<4xf32>', but its gradient in 'with' is 'tensor<3xf32>'}}
  %0:4 = tv.gradient @f(%x, %i) of [1] with (%n) to [0] : (tensor<4xf32>, tensor<4xi32>, tensor<3xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>)
  return
}

// -----

func.func private @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>) {
  %0 = tv.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = tv.reduce sum %i dims [0] : (tensor<4xi32>) -> tensor<i32>
  return %0, %x, %1 : tensor<f32>, tensor<4xf32>, tensor<i32>
}
func.func @g(%x: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<f32>, %n: tensor<3xf32>) {
  // expected-error@+1 {{argument #1 of 'f' has no gradient: it is not of floats, but 'tensor<4xi32>'}}
  %0:4 = tv.gradient @f(%x, %i) of [0] to [1] : (tensor<4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>, tensor<4xi32>)
  return
}

// -----

func.func private @f(%x: tensor<4xf32>, %i: tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>) {
  %0 = tv.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  %1 = tv.reduce sum %i dims [0] : (tensor<4xi32>) -> tensor<i32>
  return %0, %x, %1 : tensor<f32>, tensor<4xf32>, tensor<i32>
}
func.func @g(%x: tensor<4xf32>, %i: tensor<4xi32>, %s: tensor<f32>, %n: tensor<3xf32>) {
  // expected-error@+1 {{the gradient by argument #0 is 'tensor<3xf32>'; it must be 'tensor<4xf32>'}}
  %0:4 = tv.gradient @f(%x, %i) of [0] to [0] : (tensor<4xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>, tensor<i32>, tensor<3xf32>)
  return
}

// -----

!l = tensor<2xf32, #tv.local<#tv.view<#tv.mesh<x = 2>, [did(x) * 2]>, of [4]>>
func.func private @f(%x: !l) -> !l {
  return %x : !l
}
func.func @g(%x: !l) {
  // expected-error@+1 {{'tv.gradient' op is of global tensors, not of #tv.local ones}}
  %0:2 = tv.gradient @f(%x) of [0] with (%x) to [0] : (!l, !l) -> (!l, !l)
  return
}
