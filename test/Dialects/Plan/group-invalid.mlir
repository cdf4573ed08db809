// RUN: tessera-opt %s --split-input-file --verify-diagnostics

func.func @plan(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = plan.group {
    // expected-error @+1 {{'plan.copy' op is no op of a group: those are functions of local tensors}}
    %1 = plan.copy %x from "tv.some" : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %1 : tensor<4xf32>
  } : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @moves(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = plan.group {
    // expected-error @+1 {{'tv.reshard' op is no op of a group}}
    %1 = tv.reshard %x : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %1 : tensor<4xf32>
  } : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @two(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = plan.group {
    %1 = tv.linear %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    // expected-error @+1 {{'tv.linear' op is a second matrix product of its group}}
    %2 = tv.linear %1, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    plan.yield %2 : tensor<4x4xf32>
  } : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @variants(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'plan.group' op says what there is of a matrix product, and has none}}
  %0 = plan.group of ["own"] {
    %1 = tv.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %1 : tensor<4xf32>
  } : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @none(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{'plan.group' op needs a variant that there is}}
  %0 = plan.group of [] {
    %1 = tv.linear %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    plan.yield %1 : tensor<4x4xf32>
  } : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @epilogue(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{'plan.group' op has no op that is the epilogue of its product}}
  %0 = plan.group then gelu_tanh {
    %1 = tv.linear %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    plan.yield %1 : tensor<4x4xf32>
  } : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @sums(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{'plan.group' op has no op that is the sums of its product}}
  %0 = plan.group sums b {
    %1 = tv.linear %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    plan.yield %1 : tensor<4x4xf32>
  } : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @types(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'plan.group' op yields other types than its results have}}
  %0 = plan.group {
    %1 = tv.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %1 : tensor<4xf32>
  } : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @outside(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'plan.group' op yields what it does not make, or twice}}
  %0 = plan.group {
    %1 = tv.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %x : tensor<4xf32>
  } : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @inside(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = plan.group {
    %1 = tv.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    plan.yield %1 : tensor<4xf32>
  } : tensor<4xf32>
  // expected-error @+1 {{use of undeclared SSA value name}}
  %2 = "tv.exp"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

func.func @end(%x: tensor<4xf32>) {
  // expected-error @+1 {{'plan.yield' op expects parent op 'plan.group'}}
  plan.yield %x : tensor<4xf32>
}
