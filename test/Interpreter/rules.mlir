// Every op's rule against every split of its factors on meshes of 2, 3, 4, 2x2
// and 3x2, blocks and cyclic, even and uneven, some devices with nothing; every
// partial state that it lets through; and windows where a split whole places them.
// RUN: tessera-opt %s --test-sharding-rules -o /dev/null | FileCheck %s

// CHECK: tv.map: {{[1-9][0-9]+}} cases agree
// CHECK: tv.map: {{[1-9][0-9]+}} cases agree
// CHECK: tv.map: {{[1-9][0-9]+}} cases agree
func.func @pointwise(%a: tensor<4x7xf32>, %b: tensor<4x7xf32>, %t: tensor<7xf32>) {
  // Keeps sums.
  %r:2 = tv.map %a, %b : (tensor<4x7xf32>, tensor<4x7xf32>)
      -> (tensor<4x7xf32>, tensor<4x7xf32>)
    (%x: f32, %y: f32) {
      %s = arith.addf %x, %y : f32
      %d = arith.subf %x, %y : f32
      tv.yield %s, %d : f32, f32
    }
  // Keeps a maximum, and turns it.
  %m:2 = tv.map %a : (tensor<4x7xf32>) -> (tensor<4x7xf32>, tensor<4x7xf32>)
    (%x: f32) {
      %n = arith.negf %x : f32
      %e = math.exp %x : f32
      tv.yield %n, %e : f32, f32
    }
  // Not linear, and with a captured tensor.
  %q = tv.map %a : (tensor<4x7xf32>) -> tensor<4x7xf32>
    (%x: f32) {
      %i = arith.constant 3 : index
      %c = tv.load %t[%i] : tensor<7xf32> -> f32
      %s = arith.mulf %x, %x : f32
      %u = arith.addf %s, %c : f32
      tv.yield %u : f32
    }
  return
}

// CHECK: tv.reduce: {{[1-9][0-9]+}} cases agree
// CHECK: tv.reduce: {{[1-9][0-9]+}} cases agree
// CHECK: tv.broadcast: {{[1-9][0-9]+}} cases agree
// CHECK: tv.broadcast: {{[1-9][0-9]+}} cases agree
func.func @reductions(%a: tensor<4x7x5xf32>, %b: tensor<7xf32>) {
  %s = tv.reduce sum %a dims [1] : (tensor<4x7x5xf32>) -> tensor<4x5xf32>
  %m = tv.reduce max %a dims [0, 2] : (tensor<4x7x5xf32>) -> tensor<7xf32>
  %c = tv.broadcast %b dims [1] : (tensor<7xf32>) -> tensor<2x7x3xf32>
  %d = tv.broadcast %b dims [1] like %a
     : (tensor<7xf32>, tensor<4x7x5xf32>) -> tensor<4x7x5xf32>
  return
}

// CHECK: tv.linear: {{[1-9][0-9]+}} cases agree
// CHECK: tv.linear: {{[1-9][0-9]+}} cases agree
// CHECK: tv.matmul: {{[1-9][0-9]+}} cases agree
// CHECK: tv.grouped_matmul: {{[1-9][0-9]+}} cases agree
// CHECK: tv.contract: {{[1-9][0-9]+}} cases agree
// CHECK: tv.contract: {{[1-9][0-9]+}} cases agree
// CHECK: tv.contract: {{[1-9][0-9]+}} cases agree
// CHECK: tv.contract: {{[1-9][0-9]+}} cases agree
func.func @contractions(%x: tensor<2x3x7xf32>, %w: tensor<5x7xf32>,
                        %b: tensor<5xf32>, %k: tensor<2x7x4xf32>,
                        %g: tensor<3x4x6xf32>, %u: tensor<3x5x6xf32>,
                        %n: tensor<3xi32>, %t: tensor<3xf32>) {
  %y = tv.linear %x, %w : (tensor<2x3x7xf32>, tensor<5x7xf32>) -> tensor<2x3x5xf32>
  %z = tv.linear %x, %w bias %b
     : (tensor<2x3x7xf32>, tensor<5x7xf32>, tensor<5xf32>) -> tensor<2x3x5xf32>
  %m = tv.matmul %x, %k : (tensor<2x3x7xf32>, tensor<2x7x4xf32>) -> tensor<2x3x4xf32>
  %e = tv.grouped_matmul %g, %u counts %n
     : (tensor<3x4x6xf32>, tensor<3x5x6xf32>, tensor<3xi32>) -> tensor<3x4x5xf32>
  // A batch, with a bias; two sums.
  %c = tv.contract %k [0, 1, 2], %x [0, 3, 1] bias %t to [2, 0, 3]
     : (tensor<2x7x4xf32>, tensor<2x3x7xf32>, tensor<3xf32>) -> tensor<4x2x3xf32>
  %d = tv.contract %x [0, 1, 2], %y [0, 1, 3] to [3, 2]
     : (tensor<2x3x7xf32>, tensor<2x3x5xf32>) -> tensor<5x7xf32>
  // An addend, which joins the sum once; with a bias too.
  %f = tv.contract %x [0, 1, 2], %y [0, 1, 3] add %w to [3, 2]
     : (tensor<2x3x7xf32>, tensor<2x3x5xf32>, tensor<5x7xf32>) -> tensor<5x7xf32>
  %h = tv.contract %k [0, 1, 2], %x [0, 3, 1] bias %t add %c to [2, 0, 3]
     : (tensor<2x7x4xf32>, tensor<2x3x7xf32>, tensor<3xf32>, tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
  return
}

// CHECK: tv.attention: {{[1-9][0-9]+}} cases agree
// CHECK: tv.attention: {{[1-9][0-9]+}} cases agree
func.func @attention(%q: tensor<2x6x5x3xf32>, %k: tensor<2x3x7x3xf32>,
                     %v: tensor<2x3x7x4xf32>, %bias: tensor<6x5xf32>,
                     %k1: tensor<2x6x7x3xf32>, %v1: tensor<2x6x7x4xf32>) {
  // Two query heads a key head; global indices in both regions.
  %o, %l = tv.attention %q, %k, %v scale(0.5)
      : (tensor<2x6x5x3xf32>, tensor<2x3x7x3xf32>, tensor<2x3x7x4xf32>)
     -> (tensor<2x6x5x4xf32>, tensor<2x6x5xf32>)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %bias[%h, %qi] : tensor<6x5xf32> -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %m = arith.cmpi sle, %ki, %qi : index
      tv.yield %m : i1
    }
  %p, %r = tv.attention %q, %k1, %v1 scale(0.5) causal
      : (tensor<2x6x5x3xf32>, tensor<2x6x7x3xf32>, tensor<2x6x7x4xf32>)
     -> (tensor<2x6x5x4xf32>, tensor<2x6x5xf32>)
  return
}

// CHECK: tv.reshape: {{[1-9][0-9]+}} cases agree
// CHECK: tv.reshape: {{[1-9][0-9]+}} cases agree
// CHECK: tv.transpose: {{[1-9][0-9]+}} cases agree
// CHECK: tv.slice: {{[1-9][0-9]+}} cases agree
// CHECK: tv.concat: {{[1-9][0-9]+}} cases agree
// CHECK: tv.pad: {{[1-9][0-9]+}} cases agree
func.func @indexing(%a: tensor<4x7x6xf32>, %b: tensor<4x3x6xf32>) {
  %r = tv.reshape %a : (tensor<4x7x6xf32>) -> tensor<28x6xf32>
  %s = tv.reshape %a : (tensor<4x7x6xf32>) -> tensor<2x14x3x2xf32>
  %t = tv.transpose %a perm [2, 0, 1] : (tensor<4x7x6xf32>) -> tensor<6x4x7xf32>
  %u = tv.slice %a offsets [0, 2, 3] : (tensor<4x7x6xf32>) -> tensor<4x3x3xf32>
  %c = tv.concat %a, %b, %a dim 1
     : (tensor<4x7x6xf32>, tensor<4x3x6xf32>, tensor<4x7x6xf32>) -> tensor<4x17x6xf32>
  %p = tv.pad %b low [0, 1, 0] high [0, 2, 0] value 0.0 : f32
     : (tensor<4x3x6xf32>) -> tensor<4x6x6xf32>
  return
}

// CHECK: tv.attention: {{[1-9][0-9]+}} cases agree
// CHECK: tv.attention_grad: {{[1-9][0-9]+}} cases agree
// CHECK: tv.attention_grad: {{[1-9][0-9]+}} cases agree
func.func @attention_gradients(%do: tensor<2x4x5x3xf32>, %dlse: tensor<2x4x5xf32>,
                               %q: tensor<2x4x5x2xf32>, %k: tensor<2x2x7x2xf32>,
                               %v: tensor<2x2x7x3xf32>, %rel: tensor<4x12xf32>,
                               %bias: tensor<7xf32>) {
  %o, %lse = tv.attention %q, %k, %v scale(0.5)
      : (tensor<2x4x5x2xf32>, tensor<2x2x7x2xf32>, tensor<2x2x7x3xf32>)
      -> (tensor<2x4x5x3xf32>, tensor<2x4x5xf32>)
  // Both gradients that come in are addends, or none.
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse dlse %dlse scale(0.5) causal
      : (tensor<2x4x5x3xf32>, tensor<2x4x5x2xf32>, tensor<2x2x7x2xf32>, tensor<2x2x7x3xf32>,
         tensor<2x4x5x3xf32>, tensor<2x4x5xf32>, tensor<2x4x5xf32>)
      -> (tensor<2x4x5x2xf32>, tensor<2x2x7x2xf32>, tensor<2x2x7x3xf32>)
  // A written score_grad that keeps sums; captured tensors' gradients in parts.
  %dq1, %dk1, %dv1, %drel, %dbias = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.5)
      captured %rel, %bias
      : (tensor<2x4x5x3xf32>, tensor<2x4x5x2xf32>, tensor<2x2x7x2xf32>, tensor<2x2x7x3xf32>,
         tensor<2x4x5x3xf32>, tensor<2x4x5xf32>, tensor<4x12xf32>, tensor<7xf32>)
      -> (tensor<2x4x5x2xf32>, tensor<2x2x7x2xf32>, tensor<2x2x7x3xf32>,
          tensor<4x12xf32>, tensor<7xf32>)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %five = arith.constant 5 : index
      %d = arith.subi %ki, %qi : index
      %at = arith.addi %d, %five : index
      %r = tv.load %rel[%h, %at] : tensor<4x12xf32> -> f32
      %c = tv.load %bias[%ki] : tensor<7xf32> -> f32
      %t = arith.mulf %s, %r : f32
      %y = arith.addf %t, %c : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %m = arith.cmpi ne, %ki, %qi : index
      tv.yield %m : i1
    }
    score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %five = arith.constant 5 : index
      %d = arith.subi %ki, %qi : index
      %at = arith.addi %d, %five : index
      %r = tv.load %rel[%h, %at] : tensor<4x12xf32> -> f32
      tv.accumulate 1[%ki], %dy : f32
      %dr = arith.mulf %dy, %s : f32
      tv.accumulate 0[%h, %at], %dr : f32
      %zero = arith.constant 0.0 : f32
      %p = arith.cmpf ogt, %s, %zero : f32
      %ds = arith.mulf %dy, %r : f32
      %some = arith.select %p, %ds, %zero : f32
      %n = arith.select %p, %zero, %ds : f32
      %all = arith.addf %some, %n : f32
      tv.yield %all : f32
    }
  return
}

// CHECK: tv.gather: {{[1-9][0-9]+}} cases agree
// CHECK: tv.scatter: {{[1-9][0-9]+}} cases agree
// CHECK: tv.scatter: {{[1-9][0-9]+}} cases agree
// CHECK: tv.scatter: {{[1-9][0-9]+}} cases agree
// CHECK: tv.cumsum: {{[1-9][0-9]+}} cases agree
// CHECK: tv.cumsum: {{[1-9][0-9]+}} cases agree
// CHECK: tv.dispatch: {{[1-9][0-9]+}} cases agree
// CHECK: tv.combine: {{[1-9][0-9]+}} cases agree
func.func @runtime_indexing(%table: tensor<5x6xf32>,
                            %ids: tensor<2x7xi32> {tv.range = [-1, 6]},
                            %updates: tensor<2x7x6xf32>, %tokens: tensor<9x6xf32>,
                            %experts: tensor<9x2xi32> {tv.range = [0, 3]},
                            %weights: tensor<9x2xf32>) {
  %g = tv.gather %table, %ids dim 0
     : (tensor<5x6xf32>, tensor<2x7xi32>) -> tensor<2x7x6xf32>
  %s = tv.scatter sum %table, %ids, %updates dim 0
     : (tensor<5x6xf32>, tensor<2x7xi32>, tensor<2x7x6xf32>) -> tensor<5x6xf32>
  %m = tv.scatter max %table, %ids, %updates dim 0
     : (tensor<5x6xf32>, tensor<2x7xi32>, tensor<2x7x6xf32>) -> tensor<5x6xf32>
  %set = tv.scatter set %table, %ids, %updates dim 0
     : (tensor<5x6xf32>, tensor<2x7xi32>, tensor<2x7x6xf32>) -> tensor<5x6xf32>
  %sums = tv.cumsum %updates dim 1 : (tensor<2x7x6xf32>) -> tensor<2x7x6xf32>
  %back = tv.cumsum reverse %ids dim 0 : (tensor<2x7xi32>) -> tensor<2x7xi32>
  %b, %n, %slots = tv.dispatch %tokens, %experts
     : (tensor<9x6xf32>, tensor<9x2xi32>) -> (tensor<4x3x6xf32>, tensor<4xi32>, tensor<9x2xi32>)
  %c = tv.combine %b, %experts, %slots, %weights
     : (tensor<4x3x6xf32>, tensor<9x2xi32>, tensor<9x2xi32>, tensor<9x2xf32>) -> tensor<9x6xf32>
  return
}

// CHECK: tv.constant: {{[1-9][0-9]+}} cases agree
// CHECK: tv.iota: {{[1-9][0-9]+}} cases agree
// CHECK: tv.random: {{[1-9][0-9]+}} cases agree
// CHECK: tv.random: {{[1-9][0-9]+}} cases agree
// CHECK: tv.dropout: {{[1-9][0-9]+}} cases agree
// CHECK: tv.size: {{[1-9][0-9]*}} cases agree
func.func @sources(%a: tensor<4x7xf32>) {
  %c = tv.constant dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi32> : () -> tensor<2x3xi32>
  %i = tv.iota 1 : () -> tensor<4x7xi32>
  %r = tv.random seed(3) stream(5) : () -> tensor<4x7xf32>
  %t = tv.constant dense<3> : tensor<i64> : () -> tensor<i64>
  %rt = tv.random seed(3) stream(5) step %t : (tensor<i64>) -> tensor<4x7xf32>
  %dt = tv.dropout %a rate(0.3) seed(3) stream(5) step %t : (tensor<4x7xf32>, tensor<i64>) -> tensor<4x7xf32>
  %s = tv.size %a dim 1 : (tensor<4x7xf32>) -> tensor<i32>
  return
}

// CHECK: tv.add: {{[1-9][0-9]+}} cases agree
// CHECK: tv.mul: {{[1-9][0-9]+}} cases agree
// CHECK: tv.gelu: {{[1-9][0-9]+}} cases agree
// CHECK: tv.gelu_grad: {{[1-9][0-9]+}} cases agree
// CHECK: tv.silu: {{[1-9][0-9]+}} cases agree
// CHECK: tv.softmax: {{[1-9][0-9]+}} cases agree
// CHECK: tv.layer_norm: {{[1-9][0-9]+}} cases agree
// CHECK: tv.rms_norm: {{[1-9][0-9]+}} cases agree
// CHECK: tv.rope: {{[1-9][0-9]+}} cases agree
// CHECK: tv.cross_entropy: {{[1-9][0-9]+}} cases agree
// CHECK: tv.cross_entropy: {{[1-9][0-9]+}} cases agree
// CHECK: tv.dropout: {{[1-9][0-9]+}} cases agree
// CHECK: tv.adamw: {{[1-9][0-9]+}} cases agree
// CHECK: tv.rope: {{[1-9][0-9]+}} cases agree
// CHECK: tv.rope: {{[1-9][0-9]+}} cases agree
// CHECK: tv.top_k: {{[1-9][0-9]+}} cases agree
func.func @composites(%a: tensor<4x7x6xf32>, %b: tensor<4x7x6xf32>,
                      %w: tensor<6xf32>, %v: tensor<6xf32>,
                      %labels: tensor<4x7xi32>) {
  %add = tv.add %a, %b : (tensor<4x7x6xf32>, tensor<4x7x6xf32>) -> tensor<4x7x6xf32>
  %mul = tv.mul %a, %b : (tensor<4x7x6xf32>, tensor<4x7x6xf32>) -> tensor<4x7x6xf32>
  %gelu = tv.gelu tanh %a : (tensor<4x7x6xf32>) -> tensor<4x7x6xf32>
  %grad = tv.gelu_grad tanh %a, %b : (tensor<4x7x6xf32>, tensor<4x7x6xf32>) -> tensor<4x7x6xf32>
  %silu = tv.silu %a : (tensor<4x7x6xf32>) -> tensor<4x7x6xf32>
  %soft = tv.softmax %a dim 1 : (tensor<4x7x6xf32>) -> tensor<4x7x6xf32>
  %ln = tv.layer_norm %a, %w, %v epsilon(1.0e-5)
     : (tensor<4x7x6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<4x7x6xf32>
  %rms = tv.rms_norm %a, %w epsilon(1.0e-5)
     : (tensor<4x7x6xf32>, tensor<6xf32>) -> tensor<4x7x6xf32>
  %rope = tv.rope %a base(1.0e4) : (tensor<4x7x6xf32>) -> tensor<4x7x6xf32>
  %ce = tv.cross_entropy %a, %labels : (tensor<4x7x6xf32>, tensor<4x7xi32>) -> tensor<4x7xf32>
  %ce2, %lse = tv.cross_entropy %a, %labels : (tensor<4x7x6xf32>, tensor<4x7xi32>) -> (tensor<4x7xf32>, tensor<4x7xf32>)
  %drop = tv.dropout %a rate(0.3) seed(1) stream(2) : (tensor<4x7x6xf32>) -> tensor<4x7x6xf32>
  %c = tv.constant dense<0.5> : tensor<f32> : () -> tensor<f32>
  %t = tv.constant dense<3> : tensor<i32> : () -> tensor<i32>
  %square = tv.mul %v, %v : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %adamw:3 = tv.adamw %w, %v, %square, %w scale %c rate %c step %t betas(0.9, 0.95) epsilon(1.0e-8) decay(0.1)
     : (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>, tensor<i32>)
       -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
  %rope1 = tv.rope %a at %labels base(1.0e4) : (tensor<4x7x6xf32>, tensor<4x7xi32>) -> tensor<4x7x6xf32>
  %i = tv.iota 0 : () -> tensor<7xi32>
  %rope2 = tv.rope %a at %i base(1.0e4) : (tensor<4x7x6xf32>, tensor<7xi32>) -> tensor<4x7x6xf32>
  %top:2 = tv.top_k %a dim 1 : (tensor<4x7x6xf32>) -> (tensor<4x3x6xf32>, tensor<4x3x6xi32>)
  return
}

// Named pointwise ops, also of integers without a sign.
// CHECK-COUNT-17: {{tv.(sub|div|max|min|neg|abs|exp|log|sqrt|rsqrt|tanh|sigmoid|pow|compare|where|cast)}}: {{[1-9][0-9]+}} cases agree
// CHECK-COUNT-9: {{tv.(sub|div|max|min|neg|cast|compare|where)}}: {{[1-9][0-9]+}} cases agree
func.func @named(%a: tensor<4x7xf32>, %b: tensor<4x7xf32>,
                 %i: tensor<4x7xi32> {tv.range = [-9, 9]}, %u: tensor<4x7xui8>) {
  %sub = tv.sub %a, %b : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %div = tv.div %a, %b : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %max = tv.max %a, %b : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %min = tv.min %a, %b : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %neg = tv.neg %a : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %abs = tv.abs %a : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %exp = tv.exp %a : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %log = tv.log %exp : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %sqrt = tv.sqrt %exp : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %rsqrt = tv.rsqrt %exp : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %tanh = tv.tanh %a : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %sigmoid = tv.sigmoid %a : (tensor<4x7xf32>) -> tensor<4x7xf32>
  %pow = tv.pow %exp, %b : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %lt = tv.compare lt %a, %b : (tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xi1>
  %where = tv.where %lt, %a, %b
     : (tensor<4x7xi1>, tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  %half = tv.cast %a : (tensor<4x7xf32>) -> tensor<4x7xf64>
  %int = tv.cast %a : (tensor<4x7xf32>) -> tensor<4x7xi8>
  %subi = tv.sub %i, %i : (tensor<4x7xi32>, tensor<4x7xi32>) -> tensor<4x7xi32>
  %divi = tv.div %i, %subi : (tensor<4x7xi32>, tensor<4x7xi32>) -> tensor<4x7xi32>
  %maxu = tv.max %u, %u : (tensor<4x7xui8>, tensor<4x7xui8>) -> tensor<4x7xui8>
  %minu = tv.min %u, %maxu : (tensor<4x7xui8>, tensor<4x7xui8>) -> tensor<4x7xui8>
  %negi = tv.neg %i : (tensor<4x7xi32>) -> tensor<4x7xi32>
  %sign = tv.cast %u : (tensor<4x7xui8>) -> tensor<4x7xi8>
  %float = tv.cast %i : (tensor<4x7xi32>) -> tensor<4x7xf32>
  %gt = tv.compare gt %u, %maxu : (tensor<4x7xui8>, tensor<4x7xui8>) -> tensor<4x7xi1>
  %pick = tv.where %gt, %i, %negi
     : (tensor<4x7xi1>, tensor<4x7xi32>, tensor<4x7xi32>) -> tensor<4x7xi32>
  return
}
