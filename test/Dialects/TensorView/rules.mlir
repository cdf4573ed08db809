// The rule of every op: a letter is a factor, and dimensions with the same letter
// are one loop.
// RUN: tessera-opt %s --tv-print-rules -verify-diagnostics

func.func @pointwise(%a: tensor<4x8xf32>, %b: tensor<4x8xi32>, %u: tensor<4xui8>) {
  // expected-remark@+1 {{(a, b) (a, b) -> (a, b) (a, b) | a parallel 4, b parallel 8}}
  %r:2 = tv.map %a, %b : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi1>)
    (%x: f32, %i: i32) {
      %f = arith.sitofp %i : i32 to f32
      %s = arith.addf %x, %f : f32
      %c = arith.cmpf olt, %x, %f : f32
      tv.yield %s, %c : f32, i1
    }
  // An unsigned element is a signless integer in the region.
  // expected-remark@+1 {{(a) -> (a) | a parallel 4}}
  %n = tv.map %u : (tensor<4xui8>) -> tensor<4xui8> (%x: i8) {
    %s = arith.maxui %x, %x : i8
    tv.yield %s : i8
  }
  // A captured table.
  // expected-remark@+1 {{(a, b) -> (a, b) | a parallel 4, b parallel 8}}
  %l = tv.map %b : (tensor<4x8xi32>) -> tensor<4x8xf32> (%i: i32) {
    %j = arith.index_cast %i : i32 to index
    %x = tv.load %a[%j, %j] : tensor<4x8xf32> -> f32
    tv.yield %x : f32
  }
  return
}

func.func @reductions(%a: tensor<2x3x4xf32>, %d: tensor<?x3xf32>, %v: tensor<3xf32>) {
  // expected-remark@+1 {{(a, b, c) -> (b) | a reduction sum 2, b parallel 3, c reduction sum 4}}
  %0 = tv.reduce sum %a dims [0, 2] : (tensor<2x3x4xf32>) -> tensor<3xf32>
  // expected-remark@+1 {{(a, b, c) -> (a, c) | a parallel 2, b reduction max 3, c parallel 4}}
  %1 = tv.reduce max %a dims [1] : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  // expected-remark@+1 {{(b) -> (a, b, c) | a parallel 2, b parallel 3, c parallel 4}}
  %2 = tv.broadcast %v dims [1] : (tensor<3xf32>) -> tensor<2x3x4xf32>
  // expected-remark@+1 {{(b) unread (-, -) -> (a, b) | a parallel ?, b parallel 3}}
  %3 = tv.broadcast %v dims [1] like %d : (tensor<3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  return
}

func.func @contractions(%x: tensor<2x3x8xf32>, %w: tensor<16x8xf32>, %b: tensor<16xf32>,
                        %r: tensor<2x8x5xf32>, %g: tensor<2x16x8xf32>, %c: tensor<2xi32>) {
  // expected-remark@+1 {{(a, b, d) (c, d) added (c) -> (a, b, c) | a parallel 2, b parallel 3, c parallel 16, d reduction sum 8}}
  %0 = tv.linear %x, %w bias %b : (tensor<2x3x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<2x3x16xf32>
  // expected-remark@+1 {{(a, b, d) (c, d) -> (a, b, c) | a parallel 2, b parallel 3, c parallel 16, d reduction sum 8}}
  %1 = tv.linear %x, %w : (tensor<2x3x8xf32>, tensor<16x8xf32>) -> tensor<2x3x16xf32>
  // expected-remark@+1 {{(a, b, d) (a, d, c) -> (a, b, c) | a parallel 2, b parallel 3, c parallel 5, d reduction sum 8}}
  %2 = tv.matmul %x, %r : (tensor<2x3x8xf32>, tensor<2x8x5xf32>) -> tensor<2x3x5xf32>
  // expected-remark@+1 {{(a, b, d) (a, c, d) (a) -> (a, b, c) | a parallel 2, b parallel 3, c parallel 16, d reduction sum 8}}
  %3 = tv.grouped_matmul %x, %g counts %c : (tensor<2x3x8xf32>, tensor<2x16x8xf32>, tensor<2xi32>) -> tensor<2x3x16xf32>
  return
}

func.func @attention(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf32>, %v: tensor<2x2x6x5xf32>, %bias: tensor<4x8xf32>) {
  // expected-remark@+1 {{(a, b*g, c, d) (a, b, e, d) (a, b, e, f) -> (a, b*g, c, f) (a, b*g, c) | a parallel 2, b parallel 2, c parallel 8, d sequential 16, e sequential 6, f parallel 5, g parallel 2}}
  %o, %l = tv.attention %q, %k, %v scale(0.125) causal
    : (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x5xf32>) -> (tensor<2x4x8x5xf32>, tensor<2x4x8xf32>)
  // expected-remark@+1 {{(a, b*g, c, d) (a, b, e, d) (a, b, e, f) -> (a, b*g, c, f) (a, b*g, c) | a parallel 2, b parallel 2, c parallel 8, d sequential 16, e sequential 6, f parallel 5, g parallel 2}}
  %p, %n = tv.attention %q, %k, %v scale(0.125)
    : (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x5xf32>) -> (tensor<2x4x8x5xf32>, tensor<2x4x8xf32>)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %bias[%h, %qi] : tensor<4x8xf32> -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi sle, %ki, %qi : index
      tv.yield %c : i1
    }
  return
}

func.func @indices(%x: tensor<?x128x384xf32>, %y: tensor<?x?x12xf32>, %t: tensor<4x8xf32>) {
  %0 = tv.reshape %x : (tensor<?x128x384xf32>) -> tensor<?x128x12x32xf32>
  %1 = tv.reshape %y : (tensor<?x?x12xf32>) -> tensor<?x3xf32>
  // expected-remark@+1 {{(b, c, a) -> (a, b, c) | a parallel 384, b parallel ?, c parallel 128}}
  %2 = tv.transpose %x perm [2, 0, 1] : (tensor<?x128x384xf32>) -> tensor<384x?x128xf32>
  // expected-remark@+1 {{(a, b, c) -> (a, b, c) | a parallel ?, b shifted 128, c parallel 384}}
  %3 = tv.slice %x offsets [0, 8, 0] : (tensor<?x128x384xf32>) -> tensor<?x16x384xf32>
  // expected-remark@+1 {{(a, b) (a, b) -> (a, b) | a parallel 4, b shifted 16}}
  %4 = tv.concat %t, %t dim 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  // expected-remark@+1 {{(a, b) -> (a, b) | a parallel 4, b shifted 11}}
  %5 = tv.pad %t low [0, 1] high [0, 2] value 0.0 : f32 : (tensor<4x8xf32>) -> tensor<4x11xf32>
  return
}

func.func @runtime_indices(%t: tensor<100x8xf32>, %i: tensor<2x5xi32>, %u: tensor<2x5x8xf32>,
                           %e: tensor<5x2xi32>, %x: tensor<5x8xf32>, %p: tensor<5x2xf32>) {
  // expected-remark@+1 {{(a, b) (c, d) -> (c, d, b) | a indexed 100, b parallel 8, c parallel 2, d parallel 5}}
  %0 = tv.gather %t, %i dim 0 : (tensor<100x8xf32>, tensor<2x5xi32>) -> tensor<2x5x8xf32>
  // expected-remark@+1 {{added (a, b) (c, d) (c, d, b) -> (a, b) | a indexed 100, b parallel 8, c reduction sum 2, d reduction sum 5}}
  %1 = tv.scatter sum %t, %i, %u dim 0 : (tensor<100x8xf32>, tensor<2x5xi32>, tensor<2x5x8xf32>) -> tensor<100x8xf32>
  // expected-remark@+1 {{(a, b) (c, d) (c, d, b) -> (a, b) | a indexed 100, b parallel 8, c sequential 2, d sequential 5}}
  %3 = tv.scatter set %t, %i, %u dim 0 : (tensor<100x8xf32>, tensor<2x5xi32>, tensor<2x5x8xf32>) -> tensor<100x8xf32>
  // expected-remark@+1 {{(a, b) -> (a, b) | a parallel 5, b sequential 8}}
  %4 = tv.cumsum %x dim 1 : (tensor<5x8xf32>) -> tensor<5x8xf32>
  // expected-remark@+1 {{(a, c) (a, b) -> (d, e, c) (d) (a, b) | a sequential 5, b sequential 2, c parallel 8, d indexed 3, e indexed 4}}
  %b, %c, %s = tv.dispatch %x, %e : (tensor<5x8xf32>, tensor<5x2xi32>) -> (tensor<3x4x8xf32>, tensor<3xi32>, tensor<5x2xi32>)
  // expected-remark@+1 {{(a, b, c) (d, e) (d, e) (d, e) -> (d, c) | a indexed 3, b indexed 4, c parallel 8, d parallel 5, e reduction sum 2}}
  %2 = tv.combine %b, %e, %s, %p : (tensor<3x4x8xf32>, tensor<5x2xi32>, tensor<5x2xi32>, tensor<5x2xf32>) -> tensor<5x8xf32>
  return
}

func.func @sources(%d: tensor<?x8xf32>) {
  // expected-remark@+1 {{-> (a, b) | a parallel 4, b parallel 8}}
  %0 = tv.constant dense<1.0> : tensor<4x8xf32> : () -> tensor<4x8xf32>
  // expected-remark@+1 {{unread (-, -) -> (a, b) | a parallel ?, b parallel 8}}
  %1 = tv.constant dense<0.0> : tensor<f32> like %d : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-remark@+1 {{unread (-, -) -> (a, b) | a parallel ?, b parallel 8}}
  %2 = tv.iota 1 like %d : (tensor<?x8xf32>) -> tensor<?x8xi32>
  // expected-remark@+1 {{-> (a) | a parallel 4}}
  %3 = tv.random seed(7) stream(3) : () -> tensor<4xf32>
  // expected-remark@+1 {{unread (-, -) -> ()}}
  %4 = tv.size %d dim 0 : (tensor<?x8xf32>) -> tensor<i64>
  // expected-remark@+1 {{() unread (-, -) -> (a, b) | a parallel ?, b parallel 8}}
  %5 = tv.random seed(7) stream(3) step %4 like %d : (tensor<i64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-remark@+1 {{(a, b) () -> (a, b) | a parallel ?, b parallel 8}}
  %6 = tv.dropout %5 rate(0.1) seed(7) stream(3) step %4 : (tensor<?x8xf32>, tensor<i64>) -> tensor<?x8xf32>
  return
}

func.func @composites(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %l: tensor<4xi32>) {
  // expected-remark@+1 {{(a, b) (a, b) -> (a, b) | a parallel 4, b parallel 8}}
  %0 = tv.add %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{(a, b) (a, b) -> (a, b) | a parallel 4, b parallel 8}}
  %1 = tv.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{(a, b) -> (a, b) | a parallel 4, b parallel 8}}
  %2 = tv.gelu tanh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{(a, b) -> (a, b) | a parallel 4, b parallel 8}}
  %3 = tv.gelu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{(a, b) (a, b) -> (a, b) | a parallel 4, b parallel 8}}
  %11 = tv.gelu_grad tanh %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{(a, b) -> (a, b) | a parallel 4, b parallel 8}}
  %4 = tv.silu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{(a, b) -> (a, b) | a parallel 4, b sequential 8}}
  %5 = tv.softmax %x dim 1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{(a, b) (b) (b) -> (a, b) | a parallel 4, b sequential 8}}
  %6 = tv.layer_norm %x, %w, %w epsilon(1.0e-5) : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{(a, b) (b) -> (a, b) | a parallel 4, b sequential 8}}
  %7 = tv.rms_norm %x, %w epsilon(1.0e-5) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{(a, b) -> (a, b) | a parallel 4, b sequential 8}}
  %8 = tv.rope %x base(10000.0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{(a, b) (a) -> (a, b) | a parallel 4, b sequential 8}}
  %14 = tv.rope %x at %l base(10000.0) : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{(a, b) -> (a, c) (a, c) | a parallel 4, b sequential 8, c sequential 3}}
  %15:2 = tv.top_k %x dim 1 : (tensor<4x8xf32>) -> (tensor<4x3xf32>, tensor<4x3xi32>)
  // expected-remark@+1 {{(a, b) (a) -> (a) | a parallel 4, b sequential 8}}
  %9 = tv.cross_entropy %x, %l : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4xf32>
  // expected-remark@+1 {{(a, b) -> (a, b) | a parallel 4, b parallel 8}}
  %10 = tv.dropout %x rate(0.1) seed(1) stream(2) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-remark@+1 {{-> ()}}
  %c = tv.constant dense<1.0> : tensor<f32> : () -> tensor<f32>
  // expected-remark@+1 {{-> ()}}
  %t = tv.constant dense<3> : tensor<i64> : () -> tensor<i64>
  // expected-remark@+1 {{(a, b) (a, b) (a, b) (a, b) () () () -> (a, b) (a, b) (a, b) | a parallel 4, b parallel 8}}
  %13:3 = tv.adamw %x, %x, %x, %x scale %c rate %c step %t betas(0.9, 0.95) epsilon(1.0e-8) decay(0.1)
    : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i64>)
      -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

// Each score adds to one row of dq, and to one of dk and dv: batch, heads, queries and
// keys are summed over in the results that they do not index.
func.func @attention_grad(%do: tensor<2x4x8x5xf32>, %q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf32>, %v: tensor<2x2x6x5xf32>, %l: tensor<2x4x8xf32>, %bias: tensor<4x9xf32>) {
  // expected-remark@+1 {{(a, b*g, c, f) (a, b*g, c, d) (a, b, e, d) (a, b, e, f) (a, b*g, c, f) (a, b*g, c) unread (h, i) -> (a, b*g, c, d) (a, b, e, d) (a, b, e, f) (h, i) | a reduction sum 2, b reduction sum 2, c reduction sum 8, d sequential 16, e reduction sum 6, f sequential 5, g reduction sum 2, h indexed 4, i indexed 9}}
  %dq, %dk, %dv, %db = tv.attention_grad %do, %q, %k, %v, %do, %l scale(0.125) captured %bias
    : (tensor<2x4x8x5xf32>, tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x5xf32>, tensor<2x4x8x5xf32>, tensor<2x4x8xf32>, tensor<4x9xf32>)
    -> (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x5xf32>, tensor<4x9xf32>)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %bias[%h, %qi] : tensor<4x9xf32> -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
  return
}
