// Why an op may not run on partial operands.
// RUN: tessera-opt %s --tv-print-rules="rules=false refused=true" -verify-diagnostics

func.func @f(%x: tensor<4xf32>, %i: tensor<4xi32>) {
  // expected-remark@+9 {{partial (sum, -): tv.map may not run on a partial (sum) operand: arith.addf needs both operands partial by sum: a whole one would be added once a device}}
  // expected-remark@+8 {{partial (-, sum): tv.map may not run on a partial (sum) operand: arith.addf needs both operands partial by sum: a whole one would be added once a device}}
  // expected-remark@+7 {{partial (sum, sum) -> (sum)}}
  // expected-remark@+6 {{partial (max, -) -> (max)}}
  // expected-remark@+5 {{partial (-, max) -> (max)}}
  // expected-remark@+4 {{partial (max, max): tv.map may not run on a partial (max) operand: arith.addf of max or min needs a whole float as the other operand}}
  // expected-remark@+3 {{partial (min, -) -> (min)}}
  // expected-remark@+2 {{partial (-, min) -> (min)}}
  // expected-remark@+1 {{partial (min, min): tv.map may not run on a partial (min) operand: arith.addf of max or min needs a whole float as the other operand}}
  %0 = tv.map %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> (%a: f32, %b: f32) {
    %r = arith.addf %a, %b : f32
    tv.yield %r : f32
  }
  // expected-remark@+3 {{partial (sum): tv.map may not run on a partial (sum) operand: math.exp is not linear}}
  // expected-remark@+2 {{partial (max) -> (max)}}
  // expected-remark@+1 {{partial (min) -> (min)}}
  %1 = tv.map %x : (tensor<4xf32>) -> tensor<4xf32> (%a: f32) {
    %r = math.exp %a : f32
    tv.yield %r : f32
  }
  // expected-remark@+3 {{partial (sum): tv.gelu may not run on a partial (sum) operand: math.erf is not linear}}
  // expected-remark@+2 {{partial (max): tv.gelu may not run on a partial (max) operand: arith.mulf of two partial values is not linear}}
  // expected-remark@+1 {{partial (min): tv.gelu may not run on a partial (min) operand: arith.mulf of two partial values is not linear}}
  %2 = tv.gelu %x : (tensor<4xf32>) -> tensor<4xf32>
  // expected-remark@+3 {{partial (sum) -> (sum)}}
  // expected-remark@+2 {{partial (max): tv.reduce may not run on a partial (max) operand: it combines by sum}}
  // expected-remark@+1 {{partial (min): tv.reduce may not run on a partial (min) operand: it combines by sum}}
  %3 = tv.reduce sum %x dims [0] : (tensor<4xf32>) -> tensor<f32>
  // expected-remark@+3 {{partial (sum): tv.softmax may not run on a partial (sum) operand: it is not linear}}
  // expected-remark@+2 {{partial (max): tv.softmax may not run on a partial (max) operand: it is not linear}}
  // expected-remark@+1 {{partial (min): tv.softmax may not run on a partial (min) operand: it is not linear}}
  %4 = tv.softmax %x dim 0 : (tensor<4xf32>) -> tensor<4xf32>
  // expected-remark@+3 {{partial (sum) -> (sum)}}
  // expected-remark@+2 {{partial (max): tv.cast may not run on a partial (max) operand: integers with and without a sign are not in one order}}
  // expected-remark@+1 {{partial (min): tv.cast may not run on a partial (min) operand: integers with and without a sign are not in one order}}
  %5 = tv.cast %i : (tensor<4xi32>) -> tensor<4xui32>
  return
}
