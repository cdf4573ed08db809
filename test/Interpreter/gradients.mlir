// Every op's gradient against differences: see test/lib/GradientTest.cpp.
// RUN: tessera-opt %s --test-gradients -o /dev/null | FileCheck %s

// CHECK: tv.map: 56 elements of gradients agree
// CHECK: tv.map: 28 elements of gradients agree
// CHECK: tv.map: 28 elements of gradients agree
// CHECK: tv.map: 91 elements of gradients agree
// CHECK: tv.map: 28 elements of gradients agree
func.func @maps(%a: tensor<4x7xf32>, %b: tensor<4x7xf32>, %t: tensor<7xf32>, %u: tensor<4x7xf32>) {
  // Several results, of several types.
  %r:3 = tv.map %a, %b : (tensor<4x7xf32>, tensor<4x7xf32>)
      -> (tensor<4x7xf32>, tensor<4x7xf64>, tensor<4x7xi1>)
    (%x: f32, %y: f32) {
      %s = arith.mulf %x, %y : f32
      %w = arith.extf %s : f32 to f64
      %e = math.exp %w : f64
      %c = arith.cmpf olt, %x, %y : f32
      tv.yield %s, %e, %c : f32, f64, i1
    }
  // One result of f64 on which nothing depends.
  %e:2 = tv.map %a : (tensor<4x7xf32>) -> (tensor<4x7xf32>, tensor<4x7xf64>) (%x: f32) {
      %s = math.sin %x : f32
      %i = arith.fptosi %x : f32 to i32
      %w = arith.sitofp %i : i32 to f64
      tv.yield %s, %w : f32, f64
    }
  // One operand twice.
  %d = tv.map %a, %a : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
    (%x: f32, %y: f32) {
      %s = math.sin %x : f32
      %p = arith.mulf %s, %y : f32
      tv.yield %p : f32
    }
  // Two captured tensors; elements that several indices read, and outside of them.
  %q = tv.map %a, %b : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
    (%x: f32, %y: f32) {
      %three = arith.constant 3.0 : f32
      %m = arith.mulf %x, %three : f32
      %i = arith.fptosi %m : f32 to i32
      %j = arith.index_cast %i : i32 to index
      %one = arith.constant 1 : index
      %c = tv.load %t[%j] : tensor<7xf32> -> f32
      %v = tv.load %u[%one, %j] : tensor<4x7xf32> -> f32
      %p = arith.mulf %c, %v : f32
      %z = arith.mulf %p, %y : f32
      tv.yield %z : f32
    }
  // Behind a select whose other side is infinite.
  %g = tv.map %a : (tensor<4x7xf32>) -> tensor<4x7xf32> (%x: f32) {
      %zero = arith.constant 0.0 : f32
      %none = arith.mulf %x, %zero : f32
      %root = math.sqrt %none : f32
      %n = arith.cmpf one, %none, %zero : f32
      %w = arith.select %n, %root, %x : f32
      tv.yield %w : f32
    }
  return
}

// CHECK: tv.add: 56
// CHECK: tv.mul: 56
// CHECK: tv.mul: 28
// CHECK: tv.sub: 56
// CHECK: tv.exp: 28
// CHECK: tv.div: 56
// CHECK: tv.max: 56
// CHECK: tv.min: 56
// CHECK: tv.neg: 28
// CHECK: tv.abs: 28
// CHECK: tv.exp: 28
// CHECK: tv.log: 28
// CHECK: tv.sqrt: 28
// CHECK: tv.rsqrt: 28
// CHECK: tv.tanh: 28
// CHECK: tv.sigmoid: 28
// CHECK: tv.pow: 56
// CHECK: tv.silu: 28
// CHECK: tv.gelu: 28
// CHECK: tv.gelu: 28
// CHECK: tv.cast: 28
// CHECK: tv.gelu_grad: 28
// CHECK: tv.gelu_grad: 28
// CHECK: tv.where: 56
// CHECK: tv.cast: 28
// CHECK: tv.dropout: 28
func.func @named(%a: tensor<4x7xf32>, %b: tensor<4x7xf32>) {
  %add = tv.add %a, %b : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %mul = tv.mul %a, %b : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %square = tv.mul %a, %a : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %sub = tv.sub %a, %b : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %exp = tv.exp %a : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %div = tv.div %b, %exp : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %max = tv.max %a, %b : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %min = tv.min %a, %b : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %neg = tv.neg %a : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %abs = tv.abs %a : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %exp1 = tv.exp %b : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %log = tv.log %exp : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %sqrt = tv.sqrt %exp : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %rsqrt = tv.rsqrt %exp : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %tanh = tv.tanh %a : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %sigmoid = tv.sigmoid %a : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %pow = tv.pow %exp, %b : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %silu = tv.silu %a : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %gelu = tv.gelu %a : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %tgelu = tv.gelu tanh %a : (tensor<4x7xf32>) -> tensor<4x7xf32>
  // Whose constants f32 would round.
  %x = tv.cast %a : (tensor<4x7xf32>) -> tensor<4x7xf64>
  %grad = tv.gelu_grad %x, %x : (tensor<4x7xf64>, tensor<4x7xf64>) -> tensor<4x7xf64>
  %tgrad = tv.gelu_grad tanh %x, %x : (tensor<4x7xf64>, tensor<4x7xf64>) -> tensor<4x7xf64>
  %lt = tv.compare lt %a, %b : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xi1>
  %where = tv.where %lt, %a, %b
     : (tensor<4x7xi1>, tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %cast = tv.cast %a : (tensor<4x7xf32>) -> tensor<4x7xbf16>
  %drop = tv.dropout %a rate(0.3) seed(1) stream(2) : (tensor<4x7xf32>) -> tensor<4x7xf32>
  return
}

// CHECK: tv.reduce: 140
// CHECK: tv.reduce: 140
// CHECK: tv.reduce: 140
// CHECK: tv.reduce: 28
// CHECK: tv.broadcast: 7
// CHECK: tv.broadcast: 147
// CHECK: tv.softmax: 140
// CHECK: tv.layer_norm: 150
// CHECK: tv.rms_norm: 145
// CHECK: tv.reshape: 140
// CHECK: tv.rope: 140
// CHECK: tv.rope: 140
// CHECK: tv.top_k: 140
// CHECK: tv.cross_entropy: 140
// CHECK: tv.cross_entropy: 140
func.func @reductions(%a: tensor<4x7x5xf32>, %h: tensor<4x7xbf16>, %b: tensor<7xf32>,
                      %w: tensor<5xf32>, %v: tensor<5xf32>, %e: tensor<4x5x7x4xf32>,
                      %labels: tensor<4x7xi32> {tv.range = [-1, 6]}) {
  %s = tv.reduce sum %a dims [1] : (tensor<4x7x5xf32>) -> tensor<4x5xf32>
  %m = tv.reduce max %a dims [0, 2] : (tensor<4x7x5xf32>) -> tensor<7xf32>
  %n = tv.reduce min %a dims [0, 1, 2] : (tensor<4x7x5xf32>) -> tensor<f32>
  %k = tv.reduce max %h dims [1] : (tensor<4x7xbf16>) -> tensor<4xbf16>
  %c = tv.broadcast %b dims [1] : (tensor<7xf32>) -> tensor<2x7x3xf32>
  // The other lends its extents.
  %d = tv.broadcast %b dims [1] like %a
     : (tensor<7xf32>, tensor<4x7x5xf32>) -> tensor<4x7x5xf32>
  %soft = tv.softmax %a dim 1 : (tensor<4x7x5xf32>) -> tensor<4x7x5xf32>
  %ln = tv.layer_norm %a, %w, %v epsilon(1.0e-5)
     : (tensor<4x7x5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<4x7x5xf32>
  %rms = tv.rms_norm %a, %w epsilon(1.0e-5)
     : (tensor<4x7x5xf32>, tensor<5xf32>) -> tensor<4x7x5xf32>
  %r = tv.reshape %a : (tensor<4x7x5xf32>) -> tensor<5x7x4xf32>
  %rope = tv.rope %r base(1.0e4) : (tensor<5x7x4xf32>) -> tensor<5x7x4xf32>
  %positions = tv.iota 0 : () -> tensor<7xi32>
  %rope2 = tv.rope %r at %positions base(1.0e4) : (tensor<5x7x4xf32>, tensor<7xi32>) -> tensor<5x7x4xf32>
  %top, %at = tv.top_k %a dim 1 : (tensor<4x7x5xf32>) -> (tensor<4x3x5xf32>, tensor<4x3x5xi32>)
  // Some labels are no class.
  %ce = tv.cross_entropy %a, %labels : (tensor<4x7x5xf32>, tensor<4x7xi32>) -> tensor<4x7xf32>
  // Of both results.
  %ce2, %lse = tv.cross_entropy %a, %labels : (tensor<4x7x5xf32>, tensor<4x7xi32>) -> (tensor<4x7xf32>, tensor<4x7xf32>)
  return
}

// CHECK: tv.linear: 77
// CHECK: tv.linear: 82
// CHECK: tv.matmul: 98
// CHECK: tv.grouped_matmul: 162
// CHECK: tv.contract: 101
// CHECK: tv.contract: 72
// CHECK: tv.contract: 107
// CHECK: tv.contract: 72
func.func @contractions(%x: tensor<2x3x7xf32>, %w: tensor<5x7xf32>,
                        %b: tensor<5xf32>, %k: tensor<2x7x4xf32>,
                        %g: tensor<3x4x6xf32>, %u: tensor<3x5x6xf32>,
                        %n: tensor<3xi32>, %t: tensor<3xf32>,
                        %p: tensor<2x3x7xbf16>, %q: tensor<2x3x5xbf16>) {
  %y = tv.linear %x, %w : (tensor<2x3x7xf32>, tensor<5x7xf32>) -> tensor<2x3x5xf32>
  %z = tv.linear %x, %w bias %b
     : (tensor<2x3x7xf32>, tensor<5x7xf32>, tensor<5xf32>) -> tensor<2x3x5xf32>
  %m = tv.matmul %x, %k : (tensor<2x3x7xf32>, tensor<2x7x4xf32>) -> tensor<2x3x4xf32>
  // Some rows are beyond the count.
  %e = tv.grouped_matmul %g, %u counts %n
     : (tensor<3x4x6xf32>, tensor<3x5x6xf32>, tensor<3xi32>) -> tensor<3x4x5xf32>
  %c = tv.contract %k [0, 1, 2], %x [0, 3, 1] bias %t to [2, 0, 3]
     : (tensor<2x7x4xf32>, tensor<2x3x7xf32>, tensor<3xf32>) -> tensor<4x2x3xf32>
  %d = tv.contract %x [0, 1, 2], %y [0, 1, 3] to [3, 2]
     : (tensor<2x3x7xf32>, tensor<2x3x5xf32>) -> tensor<5x7xf32>
  // An addend; a result wider than its factors.
  %f = tv.contract %x [0, 1, 2], %y [0, 1, 3] add %w to [3, 2]
     : (tensor<2x3x7xf32>, tensor<2x3x5xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %h = tv.contract %p [0, 1, 2], %q [0, 1, 3] to [3, 2]
     : (tensor<2x3x7xbf16>, tensor<2x3x5xbf16>) -> tensor<5x7xf32>
  return
}

// CHECK: tv.attention: 176
// CHECK: tv.attention: 164
func.func @attention(%q: tensor<2x4x5x2xf32>, %k: tensor<2x2x7x2xf32>, %v: tensor<2x2x7x1xf32>,
                     %bias: tensor<4x3xf32>, %which: tensor<2xi32>) {
  // Two query heads a key head, a captured tensor and one of integers; a row without keys.
  %o, %l = tv.attention %q, %k, %v scale(0.5)
      : (tensor<2x4x5x2xf32>, tensor<2x2x7x2xf32>, tensor<2x2x7x1xf32>)
     -> (tensor<2x4x5x1xf32>, tensor<2x4x5xf32>)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %which[%b] : tensor<2xi32> -> i32
      %j = arith.index_cast %i : i32 to index
      %x = tv.load %bias[%h, %j] : tensor<4x3xf32> -> f32
      %y = arith.mulf %s, %x : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %m = arith.cmpi slt, %ki, %qi : index
      tv.yield %m : i1
    }
  %p, %r = tv.attention %q, %k, %v scale(0.5) causal
      : (tensor<2x4x5x2xf32>, tensor<2x2x7x2xf32>, tensor<2x2x7x1xf32>)
     -> (tensor<2x4x5x1xf32>, tensor<2x4x5xf32>)
  return
}

// CHECK: tv.reshape: 168
// CHECK: tv.transpose: 168
// CHECK: tv.slice: 168
// CHECK: tv.concat: 240
// CHECK: tv.pad: 72
func.func @indexing(%a: tensor<4x7x6xf32>, %b: tensor<4x3x6xf32>) {
  %r = tv.reshape %a : (tensor<4x7x6xf32>) -> tensor<28x6xf32>
  %t = tv.transpose %a perm [2, 0, 1] : (tensor<4x7x6xf32>) -> tensor<6x4x7xf32>
  %u = tv.slice %a offsets [0, 2, 3] : (tensor<4x7x6xf32>) -> tensor<4x3x3xf32>
  %c = tv.concat %a, %b, %a dim 1
     : (tensor<4x7x6xf32>, tensor<4x3x6xf32>, tensor<4x7x6xf32>) -> tensor<4x17x6xf32>
  %p = tv.pad %b low [0, 1, 0] high [0, 2, 0] value 1.0 : f32
     : (tensor<4x3x6xf32>) -> tensor<4x6x6xf32>
  return
}

// CHECK: tv.gather: 30
// CHECK: tv.gather: 30
// CHECK: tv.scatter: 114
// CHECK: tv.scatter: 114
// CHECK: tv.scatter: 114
// CHECK: tv.scatter: 114
// CHECK: tv.cumsum: 84
// CHECK: tv.cumsum: 84
// CHECK: tv.dispatch: 54
// CHECK: tv.combine: 90
func.func @runtime_indexing(%table: tensor<5x6xf32>,
                            %ids: tensor<2x7xi32> {tv.range = [-1, 6]},
                            %updates: tensor<2x7x6xf32>, %tokens: tensor<9x6xf32>,
                            %experts: tensor<9x2xi32> {tv.range = [0, 3]},
                            %weights: tensor<9x2xf32>) {
  %g = tv.gather %table, %ids dim 0
     : (tensor<5x6xf32>, tensor<2x7xi32>) -> tensor<2x7x6xf32>
  %h = tv.gather %table, %ids dim 1
     : (tensor<5x6xf32>, tensor<2x7xi32>) -> tensor<5x2x7xf32>
  %s = tv.scatter sum %table, %ids, %updates dim 0
     : (tensor<5x6xf32>, tensor<2x7xi32>, tensor<2x7x6xf32>) -> tensor<5x6xf32>
  %m = tv.scatter max %table, %ids, %updates dim 0
     : (tensor<5x6xf32>, tensor<2x7xi32>, tensor<2x7x6xf32>) -> tensor<5x6xf32>
  %l = tv.scatter min %table, %ids, %updates dim 0
     : (tensor<5x6xf32>, tensor<2x7xi32>, tensor<2x7x6xf32>) -> tensor<5x6xf32>
  // Rows that are set twice, and some that are not.
  %set = tv.scatter set %table, %ids, %updates dim 0
     : (tensor<5x6xf32>, tensor<2x7xi32>, tensor<2x7x6xf32>) -> tensor<5x6xf32>
  %sums = tv.cumsum %updates dim 1 : (tensor<2x7x6xf32>) -> tensor<2x7x6xf32>
  %back = tv.cumsum reverse %updates dim 0 : (tensor<2x7x6xf32>) -> tensor<2x7x6xf32>
  // Some choices get no row.
  %b, %n, %slots = tv.dispatch %tokens, %experts
     : (tensor<9x6xf32>, tensor<9x2xi32>) -> (tensor<4x3x6xf32>, tensor<4xi32>, tensor<9x2xi32>)
  %c = tv.combine %b, %experts, %slots, %weights
     : (tensor<4x3x6xf32>, tensor<9x2xi32>, tensor<9x2xi32>, tensor<9x2xf32>) -> tensor<9x6xf32>
  return
}

// CHECK: tv.softmax: 12
// CHECK: tv.mul: 24
// CHECK: tv.reduce: 12
// CHECK: tv.broadcast: 6
// CHECK: tv.slice: 12
// CHECK: tv.pad: 12
// CHECK: tv.concat: 12
// CHECK: tv.reshape: 12
// CHECK: tv.gather: 12
// CHECK: tv.cross_entropy: 12
func.func @dynamic(%x: tensor<?x2xf64> {tv.dims = ["b"]}, %v: tensor<?xf64> {tv.dims = ["b"]},
                   %i: tensor<?xi32> {tv.dims = ["b"], tv.range = [0, 1]})
    attributes {tv.sizes = {b = 8}} {
  %0 = tv.softmax %x dim 1 : (tensor<?x2xf64>) -> tensor<?x2xf64>
  %m = tv.mul %x, %0 : (tensor<?x2xf64>, tensor<?x2xf64>) -> tensor<?x2xf64>
  %s = tv.reduce sum %x dims [0, 1] : (tensor<?x2xf64>) -> tensor<f64>
  %b = tv.broadcast %v dims [0] : (tensor<?xf64>) -> tensor<?x2xf64>
  %l = tv.slice %x offsets [0, 1] : (tensor<?x2xf64>) -> tensor<?x1xf64>
  %p = tv.pad %x low [0, 1] high [0, 0] value 1.0 : f64 : (tensor<?x2xf64>) -> tensor<?x3xf64>
  %c = tv.concat %x, %x dim 1 : (tensor<?x2xf64>, tensor<?x2xf64>) -> tensor<?x4xf64>
  %r = tv.reshape %x : (tensor<?x2xf64>) -> tensor<?xf64>
  %g = tv.gather %x, %i dim 1 : (tensor<?x2xf64>, tensor<?xi32>) -> tensor<?x?xf64>
  %e = tv.cross_entropy %x, %i : (tensor<?x2xf64>, tensor<?xi32>) -> tensor<?xf64>
  return
}

// CHECK: tv.conv: 96
// CHECK: tv.conv: 210
// CHECK: tv.pool: 60
// CHECK: tv.pool: 60
func.func @windows(%x: tensor<2x2x3x5xf32>, %w: tensor<3x2x2x3xf32>, %b: tensor<10xf32>,
                   %v: tensor<10x2x6xf32>, %s: tensor<2x4x10xf32>) {
  %y = tv.conv %x, %w strides [2, 1] low [1, 0] high [0, 2] : (tensor<2x2x3x5xf32>, tensor<3x2x2x3xf32>) -> tensor<2x3x2x5xf32>
  %z = tv.conv %s, %v bias %b groups(2) high [1] dilations [2] : (tensor<2x4x10xf32>, tensor<10x2x6xf32>, tensor<10xf32>) -> tensor<2x10x1xf32>
  %p = tv.pool max %x sizes [2, 2] low [0, 1] high [1, 0] : (tensor<2x2x3x5xf32>) -> tensor<2x2x3x5xf32>
  %q = tv.pool mean %x sizes [3, 2] strides [1, 2] high [1, 0] : (tensor<2x2x3x5xf32>) -> tensor<2x2x2x2xf32>
  return
}
