// Which operands may be partial, by which combiner, and what the results are then.
// RUN: tessera-opt %s --tv-print-rules="rules=false partial=true" -verify-diagnostics

func.func @scalars(%x: tensor<4xf32>, %i: tensor<4xi32>, %h: tensor<4xbf16>) {
  // Two sums, but no sum with a whole addend; a maximum with a whole float.
  // expected-remark@+5 {{partial (sum, sum) -> (sum)}}
  // expected-remark@+4 {{partial (max, -) -> (max)}}
  // expected-remark@+3 {{partial (-, max) -> (max)}}
  // expected-remark@+2 {{partial (min, -) -> (min)}}
  // expected-remark@+1 {{partial (-, min) -> (min)}}
  %add = tv.map %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> (%a: f32, %b: f32) {
    %r = arith.addf %a, %b : f32
    tv.yield %r : f32
  }
  // expected-remark@+5 {{partial (sum, sum) -> (sum)}}
  // expected-remark@+4 {{partial (max, -) -> (max)}}
  // expected-remark@+3 {{partial (-, max) -> (min)}}
  // expected-remark@+2 {{partial (min, -) -> (min)}}
  // expected-remark@+1 {{partial (-, min) -> (max)}}
  %sub = tv.map %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> (%a: f32, %b: f32) {
    %r = arith.subf %a, %b : f32
    tv.yield %r : f32
  }
  // Integers wrap, which is not monotone.
  // expected-remark@+1 {{partial (sum, sum) -> (sum)}}
  %addi = tv.map %i, %i : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32> (%a: i32, %b: i32) {
    %r = arith.addi %a, %b : i32
    tv.yield %r : i32
  }
  // One sum and whole values.
  // expected-remark@+2 {{partial (sum, -) -> (sum)}}
  // expected-remark@+1 {{partial (-, sum) -> (sum)}}
  %mul = tv.map %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> (%a: f32, %b: f32) {
    %r = arith.mulf %a, %b : f32
    tv.yield %r : f32
  }
  // expected-remark@+1 {{partial (sum, -) -> (sum)}}
  %div = tv.map %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> (%a: f32, %b: f32) {
    %r = arith.divf %a, %b : f32
    tv.yield %r : f32
  }
  // A constant is never partial.
  // expected-remark@+2 {{partial (max) -> (max)}}
  // expected-remark@+1 {{partial (min) -> (min)}}
  %plus1 = tv.map %x : (tensor<4xf32>) -> tensor<4xf32> (%a: f32) {
    %c = arith.constant 1.0 : f32
    %r = arith.addf %a, %c : f32
    tv.yield %r : f32
  }
  // expected-remark@+3 {{partial (sum) -> (sum)}}
  // expected-remark@+2 {{partial (max) -> (max)}}
  // expected-remark@+1 {{partial (min) -> (min)}}
  %times2 = tv.map %x : (tensor<4xf32>) -> tensor<4xf32> (%a: f32) {
    %c = arith.constant 2.0 : f32
    %r = arith.mulf %a, %c : f32
    tv.yield %r : f32
  }
  // A negative factor turns the order.
  // expected-remark@+1 {{partial (sum) -> (sum)}}
  %timesm2 = tv.map %x : (tensor<4xf32>) -> tensor<4xf32> (%a: f32) {
    %c = arith.constant -2.0 : f32
    %r = arith.mulf %a, %c : f32
    tv.yield %r : f32
  }
  // expected-remark@+3 {{partial (sum) -> (sum)}}
  // expected-remark@+2 {{partial (max) -> (min)}}
  // expected-remark@+1 {{partial (min) -> (max)}}
  %neg = tv.map %x : (tensor<4xf32>) -> tensor<4xf32> (%a: f32) {
    %r = arith.negf %a : f32
    tv.yield %r : f32
  }
  // expected-remark@+2 {{partial (max) -> (max)}}
  // expected-remark@+1 {{partial (min) -> (min)}}
  %exp = tv.map %x : (tensor<4xf32>) -> tensor<4xf32> (%a: f32) {
    %r = math.exp %a : f32
    tv.yield %r : f32
  }
  // Of a negative addend this is NaN.
  %sqrt = tv.map %x : (tensor<4xf32>) -> tensor<4xf32> (%a: f32) {
    %r = math.sqrt %a : f32
    tv.yield %r : f32
  }
  // Widening is exact, rounding only keeps order.
  // expected-remark@+3 {{partial (sum) -> (sum)}}
  // expected-remark@+2 {{partial (max) -> (max)}}
  // expected-remark@+1 {{partial (min) -> (min)}}
  %ext = tv.map %h : (tensor<4xbf16>) -> tensor<4xf32> (%a: bf16) {
    %r = arith.extf %a : bf16 to f32
    tv.yield %r : f32
  }
  // expected-remark@+2 {{partial (max) -> (max)}}
  // expected-remark@+1 {{partial (min) -> (min)}}
  %trunc = tv.map %x : (tensor<4xf32>) -> tensor<4xbf16> (%a: f32) {
    %r = arith.truncf %a : f32 to bf16
    tv.yield %r : bf16
  }
  // expected-remark@+3 {{partial (max, -) -> (max)}}
  // expected-remark@+2 {{partial (-, max) -> (max)}}
  // expected-remark@+1 {{partial (max, max) -> (max)}}
  %max = tv.map %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> (%a: f32, %b: f32) {
    %r = arith.maximumf %a, %b : f32
    tv.yield %r : f32
  }
  // Each result has its own state.
  // expected-remark@+9 {{partial (sum, -) -> (sum, -)}}
  // expected-remark@+8 {{partial (-, sum) -> (-, sum)}}
  // expected-remark@+7 {{partial (sum, sum) -> (sum, sum)}}
  // expected-remark@+6 {{partial (max, -) -> (min, -)}}
  // expected-remark@+5 {{partial (-, max) -> (-, max)}}
  // expected-remark@+4 {{partial (max, max) -> (min, max)}}
  // expected-remark@+3 {{partial (min, -) -> (max, -)}}
  // expected-remark@+2 {{partial (-, min) -> (-, min)}}
  // expected-remark@+1 {{partial (min, min) -> (max, min)}}
  %two:2 = tv.map %x, %x : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) (%a: f32, %b: f32) {
    %r = arith.negf %a : f32
    tv.yield %r, %b : f32, f32
  }
  return
}

func.func @ops(%x: tensor<4x8xf32>, %w: tensor<2x8xf32>, %b: tensor<2xf32>, %i: tensor<3xi32>, %u: tensor<3x8xf32>, %t: tensor<8x5xf32>, %k: tensor<3x2xf32>) {
  // expected-remark@+1 {{partial (sum) -> (sum)}}
  %0 = tv.reduce sum %x dims [0] : (tensor<4x8xf32>) -> tensor<8xf32>
  // expected-remark@+1 {{partial (max) -> (max)}}
  %1 = tv.reduce max %x dims [0] : (tensor<4x8xf32>) -> tensor<8xf32>
  // What is not read may be partial, too.
  // expected-remark@+9 {{partial (sum, -) -> (sum)}}
  // expected-remark@+8 {{partial (-, sum) -> (-)}}
  // expected-remark@+7 {{partial (sum, sum) -> (sum)}}
  // expected-remark@+6 {{partial (max, -) -> (max)}}
  // expected-remark@+5 {{partial (-, max) -> (-)}}
  // expected-remark@+4 {{partial (max, max) -> (max)}}
  // expected-remark@+3 {{partial (min, -) -> (min)}}
  // expected-remark@+2 {{partial (-, min) -> (-)}}
  // expected-remark@+1 {{partial (min, min) -> (min)}}
  %2 = tv.broadcast %b dims [1] like %k : (tensor<2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  // expected-remark@+3 {{partial (sum) -> (sum)}}
  // expected-remark@+2 {{partial (max) -> (max)}}
  // expected-remark@+1 {{partial (min) -> (min)}}
  %3 = tv.transpose %x perm [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  // expected-remark@+3 {{partial (sum) -> (sum)}}
  // expected-remark@+2 {{partial (max) -> (max)}}
  // expected-remark@+1 {{partial (min) -> (min)}}
  %4 = tv.slice %x offsets [0, 4] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  // expected-remark@+3 {{partial (sum, sum) -> (sum)}}
  // expected-remark@+2 {{partial (max, max) -> (max)}}
  // expected-remark@+1 {{partial (min, min) -> (min)}}
  %5 = tv.concat %x, %x dim 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  // expected-remark@+3 {{partial (sum) -> (sum)}}
  // expected-remark@+2 {{partial (max) -> (max)}}
  // expected-remark@+1 {{partial (min) -> (min)}}
  %6 = tv.pad %b low [1] high [0] value 0.0 : f32 : (tensor<2xf32>) -> tensor<3xf32>
  // expected-remark@+2 {{partial (max) -> (max)}}
  // expected-remark@+1 {{partial (min) -> (min)}}
  %7 = tv.pad %b low [1] high [0] value 1.0 : f32 : (tensor<2xf32>) -> tensor<3xf32>
  // expected-remark@+2 {{partial (sum, -) -> (sum)}}
  // expected-remark@+1 {{partial (-, sum) -> (sum)}}
  %8 = tv.linear %x, %w : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<4x2xf32>
  // The bias joins a sum once: it is partial when the product is.
  // expected-remark@+2 {{partial (sum, -, sum) -> (sum)}}
  // expected-remark@+1 {{partial (-, sum, sum) -> (sum)}}
  %9 = tv.linear %x, %w bias %b : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  // expected-remark@+2 {{partial (sum, -) -> (sum)}}
  // expected-remark@+1 {{partial (-, sum) -> (sum)}}
  %10 = tv.matmul %x, %t : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  // expected-remark@+1 {{partial (sum, -) -> (sum)}}
  %11 = tv.gather %x, %i dim 0 : (tensor<4x8xf32>, tensor<3xi32>) -> tensor<3x8xf32>
  // expected-remark@+1 {{partial (sum, -, sum) -> (sum)}}
  %12 = tv.scatter sum %x, %i, %u dim 0 : (tensor<4x8xf32>, tensor<3xi32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{partial (max, -, max) -> (max)}}
  %13 = tv.scatter max %x, %i, %u dim 0 : (tensor<4x8xf32>, tensor<3xi32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+3 {{partial (sum, -, sum) -> (sum)}}
  // expected-remark@+2 {{partial (max, -, max) -> (max)}}
  // expected-remark@+1 {{partial (min, -, min) -> (min)}}
  %21 = tv.scatter set %x, %i, %u dim 0 : (tensor<4x8xf32>, tensor<3xi32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{partial (sum) -> (sum)}}
  %22 = tv.cumsum %x dim 0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %23:2 = tv.top_k %x dim 0 : (tensor<4x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xi32>)
  // expected-remark@+3 {{partial (sum) -> (-)}}
  // expected-remark@+2 {{partial (max) -> (-)}}
  // expected-remark@+1 {{partial (min) -> (-)}}
  %14 = tv.iota 0 like %x : (tensor<4x8xf32>) -> tensor<4x8xi32>
  // expected-remark@+5 {{partial (sum, sum) -> (sum)}}
  // expected-remark@+4 {{partial (max, -) -> (max)}}
  // expected-remark@+3 {{partial (-, max) -> (max)}}
  // expected-remark@+2 {{partial (min, -) -> (min)}}
  // expected-remark@+1 {{partial (-, min) -> (min)}}
  %15 = tv.add %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+2 {{partial (sum, -) -> (sum)}}
  // expected-remark@+1 {{partial (-, sum) -> (sum)}}
  %16 = tv.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %17 = tv.gelu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{partial (sum, -) -> (sum)}}
  %20 = tv.gelu_grad tanh %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %18 = tv.softmax %x dim 0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{partial (sum) -> (sum)}}
  %19 = tv.rope %x base(10000.0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}
