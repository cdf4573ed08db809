// RUN: tessera-opt %s --split-input-file --verify-diagnostics

func.func @kind(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'plan.choose' op needs a kind and a variant that there is}}
  %a = plan.choose "" of "a"(%x) from "tv.map" : tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

func.func @none(%x: tensor<4xf32>) {
  // expected-error @+1 {{'plan.choose' op needs a kind and a variant that there is}}
  "plan.choose"() {kind = "a", variants = [], source = "tv.map"} : () -> ()
  return
}

// -----

func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'plan.choose' op has two variants "a", or one without a name}}
  %a = plan.choose "k" of "a"(%x), "a"(%x) from "tv.map" : tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

func.func @both(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'plan.choose' op variant "a" is there, or is missing without a reason}}
  %a = plan.choose "k" of "a"(%x) without {a = "it does not fit"} from "tv.map" : tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

func.func @reason(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'plan.choose' op variant "b" is there, or is missing without a reason}}
  %a = plan.choose "k" of "a"(%x) without {b = 3} from "tv.map" : tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

func.func @values(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'plan.choose' op each variant needs a value for each result}}
  %a = "plan.choose"(%x) {kind = "k", variants = ["a", "b"], source = "tv.map"} : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

func.func @count(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{number of operands and types do not match: got 2 operands and 1 types}}
  %a = plan.choose "k" of "a"(%x), "b"(%x, %x) from "tv.map" : tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

func.func @nothing_to_choose() {
  // expected-error @+1 {{'plan.choose' op several variants need values to choose from}}
  plan.choose "k" of "a"(), "b"() from "tv.map"
  return
}

// -----

func.func @types(%x: tensor<4xf32>, %y: tensor<4xf16>) -> tensor<4xf32> {
  // expected-error @+1 {{'plan.choose' op the values of variant "b" must have the results' types}}
  %a = "plan.choose"(%x, %y) {kind = "k", variants = ["a", "b"], source = "tv.map"} : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}
