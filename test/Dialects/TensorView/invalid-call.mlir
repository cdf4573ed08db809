// RUN: tessera-opt %s -split-input-file -verify-diagnostics

func.func private @f(%x: index) -> index {
  return %x : index
}
func.func @g(%x: index) {
  // expected-error@+1 {{'tv.call' op operand #0 must be variadic of ranked tensor of any type values, but got 'index'}}
  %0 = tv.call @f(%x) : (index) -> index
  return
}

// -----

!l = tensor<2xf32, #tv.local<#tv.view<#tv.mesh<x = 2>, [did(x) * 2]>, of [4]>>
func.func private @f(%x: !l) -> !l {
  return %x : !l
}
func.func @g(%x: !l) {
  // expected-error@+1 {{'tv.call' op is of global tensors, not of #tv.local ones}}
  %0 = tv.call @f(%x) : (!l) -> !l
  return
}

// -----

func.func @g(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tv.call' op 'f' is no function with a body here}}
  %0 = tv.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  return %x : tensor<?x4xf32>
}
func.func @g(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'tv.call' op 'f' takes 1 arguments, not 2}}
  %0 = tv.call @f(%x, %x) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func private @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  return %x : tensor<?x4xf32>
}
func.func @g(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'tv.call' op 'f' takes 'tensor<?x4xf32>' as argument #0, which 'tensor<2x3xf32>' is not}}
  %0 = tv.call @f(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

// An extent that is not known is not 4.

func.func private @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  return %x : tensor<?x4xf32>
}
func.func @g(%x: tensor<2x?xf32>) {
  // expected-error@+1 {{'tv.call' op 'f' takes 'tensor<?x4xf32>' as argument #0, which 'tensor<2x?xf32>' is not}}
  %0 = tv.call @f(%x) : (tensor<2x?xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func private @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  return %x : tensor<?x4xf32>
}
func.func @g(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{'tv.call' op 'f' gives 'tensor<?x4xf32>' as result #0, which 'tensor<2x4xf64>' is not}}
  %0 = tv.call @f(%x) : (tensor<2x4xf32>) -> tensor<2x4xf64>
  return
}

// -----

#m = #tv.mesh<x = 2>
func.func private @f(%x: tensor<?x4xf32, #tv.view<#m, [did(x) * _, _]>>) -> tensor<?x4xf32> {
  %0 = tv.exp %x : (tensor<?x4xf32, #tv.view<#m, [did(x) * _, _]>>) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
func.func @g(%x: tensor<2x4xf32>) {
  // expected-error-re@+1 {{'tv.call' op 'f' takes 'tensor<?x4xf32, {{.*}}>' as argument #0, which 'tensor<2x4xf32>' is not}}
  %0 = tv.call @f(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

// The nearest name, but for its own.
func.func private @block(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @blok(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tv.call' op 'blokc' is no function with a body here; did you mean 'block'?}}
  %0 = tv.call @blokc(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @block(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @blok(%x: tensor<4xf32>) {
  // expected-error@+1 {{'func.call' op 'blokc' is no function here; did you mean 'block'?}}
  %0 = call @blokc(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return
}
