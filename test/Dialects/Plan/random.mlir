// RUN: tessera-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK: plan.random %{{.*}} seed %{{.*}} stream %{{.*}}
func.func @right(%n: index, %seed: i64, %stream: i64) -> f32 {
  %0 = plan.random %n seed %seed stream %stream
  return %0 : f32
}

// CHECK: plan.random %{{.*}} seed %{{.*}} stream %{{.*}} bits(16)
func.func @halves(%n: index, %seed: i64, %stream: i64) -> f32 {
  %0 = plan.random %n seed %seed stream %stream bits(16)
  return %0 : f32
}

// -----

func.func @number(%n: i64) -> f32 {
  // expected-error @below {{'plan.random' op operand #0 must be index, but got 'i64'}}
  %0 = "plan.random"(%n, %n, %n) : (i64, i64, i64) -> f32
  return %0 : f32
}

// -----

func.func @bits(%n: index, %seed: i64) -> f32 {
  // expected-error @below {{'plan.random' op bits is 8; it must be 16 or 24}}
  %0 = plan.random %n seed %seed stream %seed bits(8)
  return %0 : f32
}
