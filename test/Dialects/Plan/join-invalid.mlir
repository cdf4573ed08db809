// RUN: tessera-opt %s --split-input-file --verify-diagnostics

func.func @made(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x16xf32> {
  // expected-error @+1 {{'plan.join' op operand #0 must be what a launch or an attention writes, or a transpose or reshape of that, and be read by nothing else}}
  %r = plan.join %x, %y dim 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  return %r : tensor<4x16xf32>
}

// -----

func.func private @k(memref<8xf32>, memref<8xf32>) attributes {plan.kernel}
func.func @twice(%x: tensor<8xf32>) -> (tensor<16xf32>, tensor<8xf32>) {
  %a = plan.launch @k(%x) scalars [] from "tv.map" : (tensor<8xf32>) -> tensor<8xf32>
  %b = plan.launch @k(%x) scalars [] from "tv.map" : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error @+1 {{'plan.join' op operand #1 must be what a launch or an attention writes}}
  %r = plan.join %a, %b dim 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  return %r, %b : tensor<16xf32>, tensor<8xf32>
}

// -----

func.func private @k(memref<8xf32>, memref<8xf32>) attributes {plan.kernel}
func.func @sliced(%x: tensor<8xf32>) -> tensor<4xf32> {
  %a = plan.launch @k(%x) scalars [] from "tv.map" : (tensor<8xf32>) -> tensor<8xf32>
  %b = plan.alias slice %a at [0] : (tensor<8xf32>) -> tensor<4xf32>
  // expected-error @+1 {{'plan.join' op operand #0 must be what a launch or an attention writes}}
  %r = plan.join %b dim 0 : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// -----

func.func private @k(memref<8xf32>, memref<8xf32>) attributes {plan.kernel}
func.func @size(%x: tensor<8xf32>) -> tensor<17xf32> {
  %a = plan.launch @k(%x) scalars [] from "tv.map" : (tensor<8xf32>) -> tensor<8xf32>
  %b = plan.launch @k(%x) scalars [] from "tv.map" : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error @+1 {{'plan.join' op its operands have 16 elements along dimension 0, its result has 17}}
  %r = plan.join %a, %b dim 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<17xf32>
  return %r : tensor<17xf32>
}

// -----

func.func @part(%x: tensor<4x8xf32>) -> tensor<5x8xf32> {
  // expected-error @+1 {{'plan.join' op operand #0 is 'tensor<4x8xf32>', no part of its result along dimension 1}}
  %r = plan.join %x dim 1 : (tensor<4x8xf32>) -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}

// -----

func.func @none() -> tensor<5x8xf32> {
  // expected-error @+1 {{'plan.join' op needs operands, and a dimension of its result}}
  %r = plan.join dim 1 : () -> tensor<5x8xf32>
  return %r : tensor<5x8xf32>
}

// -----

func.func private @k(memref<8xf32>, memref<8xf32>) attributes {plan.kernel}
func.func @choices(%x: tensor<8xf32>) -> tensor<16xf32> {
  %a = plan.launch @k(%x) scalars [] from "tv.map" : (tensor<8xf32>) -> tensor<8xf32>
  %b = plan.launch @k(%x) scalars [] from "tv.map" : (tensor<8xf32>) -> tensor<8xf32>
  %c = plan.choose "k" of "a"(%a) from "tv.map" : tensor<8xf32>
  %d = plan.choose "k" of "a"(%b) from "tv.map" : tensor<8xf32>
  // expected-error @+1 {{'plan.join' op either all of its operands are of one choice, or none is of any}}
  %r = plan.join %c, %d dim 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  return %r : tensor<16xf32>
}

// -----

func.func private @k(memref<8xf32>, memref<8xf32>) attributes {plan.kernel}
func.func @choice(%x: tensor<8xf32>) -> tensor<16xf32> {
  %a = plan.launch @k(%x) scalars [] from "tv.map" : (tensor<8xf32>) -> tensor<8xf32>
  %b = plan.launch @k(%x) scalars [] from "tv.map" : (tensor<8xf32>) -> tensor<8xf32>
  %c = plan.choose "k" of "a"(%a) from "tv.map" : tensor<8xf32>
  // expected-error @+1 {{'plan.join' op either all of its operands are of one choice, or none is of any}}
  %r = plan.join %c, %b dim 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
  return %r : tensor<16xf32>
}
