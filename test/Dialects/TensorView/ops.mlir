// Every op, through text and bytecode.
// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: tessera-opt %s --emit-bytecode | tessera-opt | FileCheck %s
// RUN: tessera-opt %s --mlir-print-op-generic | tessera-opt | FileCheck %s

#m = #tv.mesh<dp = 2, tp = 2>
#rows = #tv.view<#m, [did(tp) * _, _]>
#whole = #tv.view<#m, [_, _]>
#partial = #tv.view<#m, [_, _], partial = [tp : sum]>

// CHECK-LABEL: func.func @pointwise
func.func @pointwise(%a: tensor<4x8xf32>, %b: tensor<4x8xi32>, %u: tensor<4xui8>) {
  // CHECK: tv.map %{{.*}}, %{{.*}} : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi1>) (%[[X:.*]]: f32, %[[I:.*]]: i32) {
  // CHECK-NEXT: arith.sitofp %[[I]] : i32 to f32
  // CHECK: tv.yield %{{.*}}, %{{.*}} : f32, i1
  %r:2 = tv.map %a, %b : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi1>)
    (%x: f32, %i: i32) {
      %f = arith.sitofp %i : i32 to f32
      %s = arith.addf %x, %f : f32
      %c = arith.cmpf olt, %x, %f : f32
      tv.yield %s, %c : f32, i1
    }
  // An unsigned element is a signless integer in the region.
  // CHECK: tv.map %{{.*}} : (tensor<4xui8>) -> tensor<4xui8> (%{{.*}}: i8)
  %n = tv.map %u : (tensor<4xui8>) -> tensor<4xui8> (%x: i8) {
    %s = arith.maxui %x, %x : i8
    tv.yield %s : i8
  }
  // A captured table.
  // CHECK: tv.load %{{.*}}[%{{.*}}, %{{.*}}] : tensor<4x8xf32> -> f32
  %l = tv.map %b : (tensor<4x8xi32>) -> tensor<4x8xf32> (%i: i32) {
    %j = arith.index_cast %i : i32 to index
    %x = tv.load %a[%j, %j] : tensor<4x8xf32> -> f32
    tv.yield %x : f32
  }
  return
}

// CHECK-LABEL: func.func @reductions
func.func @reductions(%a: tensor<2x3x4xf32>, %d: tensor<?x3xf32>, %v: tensor<3xf32>) {
  // CHECK: tv.reduce sum %{{.*}} dims [0, 2] : (tensor<2x3x4xf32>) -> tensor<3xf32>
  %0 = tv.reduce sum %a dims [0, 2] : (tensor<2x3x4xf32>) -> tensor<3xf32>
  // CHECK: tv.reduce max
  %1 = tv.reduce max %a dims [1] : (tensor<2x3x4xf32>) -> tensor<2x4xf32>
  // CHECK: tv.broadcast %{{.*}} dims [1] : (tensor<3xf32>) -> tensor<2x3x4xf32>
  %2 = tv.broadcast %v dims [1] : (tensor<3xf32>) -> tensor<2x3x4xf32>
  // CHECK: tv.broadcast %{{.*}} dims [1] like %{{.*}} : (tensor<3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  %3 = tv.broadcast %v dims [1] like %d : (tensor<3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  return
}

// CHECK-LABEL: func.func @contractions
func.func @contractions(%x: tensor<2x3x8xf32>, %w: tensor<16x8xf32>, %b: tensor<16xf32>,
                        %r: tensor<2x8x5xf32>, %g: tensor<2x16x8xf32>, %c: tensor<2xi32>) {
  // CHECK: tv.linear %{{.*}}, %{{.*}} bias %{{.*}} :
  %0 = tv.linear %x, %w bias %b : (tensor<2x3x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<2x3x16xf32>
  // CHECK: tv.linear %{{.*}}, %{{.*}} : (tensor<2x3x8xf32>, tensor<16x8xf32>)
  %1 = tv.linear %x, %w : (tensor<2x3x8xf32>, tensor<16x8xf32>) -> tensor<2x3x16xf32>
  // CHECK: tv.matmul
  %2 = tv.matmul %x, %r : (tensor<2x3x8xf32>, tensor<2x8x5xf32>) -> tensor<2x3x5xf32>
  // CHECK: tv.grouped_matmul %{{.*}}, %{{.*}} counts %{{.*}} :
  %3 = tv.grouped_matmul %x, %g counts %c : (tensor<2x3x8xf32>, tensor<2x16x8xf32>, tensor<2xi32>) -> tensor<2x3x16xf32>
  // CHECK: tv.contract %{{.*}} [0, 1, 3], %{{.*}} [2, 3] bias %{{.*}} to [1, 0, 2] :
  %4 = tv.contract %x [0, 1, 3], %w [2, 3] bias %b to [1, 0, 2]
     : (tensor<2x3x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<3x2x16xf32>
  // CHECK: tv.contract %{{.*}} [0, 1, 2], %{{.*}} [0, 1, 2] to [] :
  %5 = tv.contract %x [0, 1, 2], %x [0, 1, 2] to []
     : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<f32>
  // CHECK: tv.contract %{{.*}} [0, 1, 3], %{{.*}} [2, 3] bias %{{.*}} add %{{.*}} to [1, 0, 2] :
  %6 = tv.contract %x [0, 1, 3], %w [2, 3] bias %b add %4 to [1, 0, 2]
     : (tensor<2x3x8xf32>, tensor<16x8xf32>, tensor<16xf32>, tensor<3x2x16xf32>) -> tensor<3x2x16xf32>
  return
}

// CHECK-LABEL: func.func @attention
func.func @attention(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf32>, %v: tensor<2x2x6x5xf32>, %bias: tensor<4x8xf32>) {
  // CHECK: tv.attention %{{.*}}, %{{.*}}, %{{.*}} scale(1.250000e-01) causal :
  %o, %l = tv.attention %q, %k, %v scale(0.125) causal
    : (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x5xf32>) -> (tensor<2x4x8x5xf32>, tensor<2x4x8xf32>)
  // CHECK: tv.attention %{{.*}} scale(1.250000e-01) : {{.*}} score_mod (%{{.*}}: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index) {
  // CHECK: tv.load
  // CHECK: mask_mod (%{{.*}}: index, %{{.*}}: index, %[[Q:.*]]: index, %[[K:.*]]: index) {
  // CHECK: arith.cmpi sle, %[[K]], %[[Q]] : index
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

// CHECK-LABEL: func.func @block_mask
func.func @block_mask(%q: tensor<2x4x130x16xf32>, %k: tensor<2x2x70x16xf32>, %l: tensor<2x4x130xf32>) {
  // CHECK: %[[BM:.*]] = tv.block_mask of [130, 70] blocks [64, 128] : () -> tensor<1x4x3x1xi8> mask_mod (%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index) {
  %bm = tv.block_mask of [130, 70] blocks [64, 128] : () -> tensor<1x4x3x1xi8>
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi sle, %ki, %qi : index
      tv.yield %c : i1
    }
  // CHECK: tv.attention %{{.*}} scale(1.250000e-01) causal block_mask(%[[BM]]) blocks [64, 128] :
  %o, %n = tv.attention %q, %k, %k scale(0.125) causal block_mask(%bm) blocks [64, 128]
    : (tensor<2x4x130x16xf32>, tensor<2x2x70x16xf32>, tensor<2x2x70x16xf32>, tensor<1x4x3x1xi8>) -> (tensor<2x4x130x16xf32>, tensor<2x4x130xf32>)
  // CHECK: tv.attention_grad {{.*}} scale(1.250000e-01) block_mask(%[[BM]]) blocks [64, 128] :
  %dq, %dk, %dv = tv.attention_grad %q, %q, %k, %k, %q, %l scale(0.125) block_mask(%bm) blocks [64, 128]
    : (tensor<2x4x130x16xf32>, tensor<2x4x130x16xf32>, tensor<2x2x70x16xf32>, tensor<2x2x70x16xf32>, tensor<2x4x130x16xf32>, tensor<2x4x130xf32>, tensor<1x4x3x1xi8>)
    -> (tensor<2x4x130x16xf32>, tensor<2x2x70x16xf32>, tensor<2x2x70x16xf32>)
  return
}

// CHECK-LABEL: func.func @data_errors
func.func @data_errors(%begins: tensor<2x5xi32>, %used: tensor<2x4xi32>, %table: tensor<?x3xi32>, %lengths: tensor<?xi32>) {
  // CHECK: tv.sequence_errors %{{.*}} tokens(300) : (tensor<2x5xi32>) -> tensor<2x5xi32>
  %0 = tv.sequence_errors %begins tokens(300) : (tensor<2x5xi32>) -> tensor<2x5xi32>
  // CHECK: tv.sequence_errors %{{.*}} used(%{{.*}}) tokens(0) : (tensor<2x5xi32>, tensor<2x4xi32>) -> tensor<2x5xi32>
  %1 = tv.sequence_errors %begins used(%used) tokens(0) : (tensor<2x5xi32>, tensor<2x4xi32>) -> tensor<2x5xi32>
  // CHECK: tv.page_errors %{{.*}} lengths(%{{.*}}) page(4) pages(16) : (tensor<?x3xi32>, tensor<?xi32>) -> tensor<?xi32>
  %2 = tv.page_errors %table lengths(%lengths) page(4) pages(16) : (tensor<?x3xi32>, tensor<?xi32>) -> tensor<?xi32>
  return
}

// CHECK-LABEL: func.func @documents
func.func @documents(%ids: tensor<2x130xi32>) {
  // CHECK: tv.block_mask of [130, 130] blocks [64, 64] : () -> tensor<2x1x3x3xi8> mask_mod
  // CHECK: tv.load %arg0[%{{.*}}, %{{.*}}] : tensor<2x130xi32> -> i32
  %bm = tv.block_mask of [130, 130] blocks [64, 64] : () -> tensor<2x1x3x3xi8>
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %ids[%b, %qi] : tensor<2x130xi32> -> i32
      %j = tv.load %ids[%b, %ki] : tensor<2x130xi32> -> i32
      %c = arith.cmpi eq, %i, %j : i32
      tv.yield %c : i1
    }
  return
}

// CHECK-LABEL: func.func @indices
func.func @indices(%x: tensor<?x128x384xf32>, %y: tensor<?x?x12xf32>, %t: tensor<4x8xf32>) {
  // CHECK: tv.reshape %{{.*}} : (tensor<?x128x384xf32>) -> tensor<?x128x12x32xf32>
  %0 = tv.reshape %x : (tensor<?x128x384xf32>) -> tensor<?x128x12x32xf32>
  // CHECK: tv.reshape %{{.*}} : (tensor<?x?x12xf32>) -> tensor<?x3xf32>
  %1 = tv.reshape %y : (tensor<?x?x12xf32>) -> tensor<?x3xf32>
  // CHECK: tv.transpose %{{.*}} perm [2, 0, 1]
  %2 = tv.transpose %x perm [2, 0, 1] : (tensor<?x128x384xf32>) -> tensor<384x?x128xf32>
  // CHECK: tv.slice %{{.*}} offsets [0, 8, 0]
  %3 = tv.slice %x offsets [0, 8, 0] : (tensor<?x128x384xf32>) -> tensor<?x16x384xf32>
  // CHECK: tv.concat %{{.*}}, %{{.*}} dim 1
  %4 = tv.concat %t, %t dim 1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x16xf32>
  // CHECK: tv.pad %{{.*}} low [0, 1] high [0, 2] value 0.000000e+00 : f32
  %5 = tv.pad %t low [0, 1] high [0, 2] value 0.0 : f32 : (tensor<4x8xf32>) -> tensor<4x11xf32>
  return
}

// CHECK-LABEL: func.func @runtime_indices
func.func @runtime_indices(%t: tensor<100x8xf32>, %i: tensor<2x5xi32>, %u: tensor<2x5x8xf32>,
                           %e: tensor<5x2xi32>, %x: tensor<5x8xf32>, %p: tensor<5x2xf32>) {
  // CHECK: tv.gather %{{.*}}, %{{.*}} dim 0
  %0 = tv.gather %t, %i dim 0 : (tensor<100x8xf32>, tensor<2x5xi32>) -> tensor<2x5x8xf32>
  // CHECK: tv.scatter sum %{{.*}}, %{{.*}}, %{{.*}} dim 0
  %1 = tv.scatter sum %t, %i, %u dim 0 : (tensor<100x8xf32>, tensor<2x5xi32>, tensor<2x5x8xf32>) -> tensor<100x8xf32>
  // CHECK: tv.scatter set %{{.*}}, %{{.*}}, %{{.*}} dim 0
  %3 = tv.scatter set %t, %i, %u dim 0 : (tensor<100x8xf32>, tensor<2x5xi32>, tensor<2x5x8xf32>) -> tensor<100x8xf32>
  // CHECK: tv.cumsum %{{.*}} dim 1
  %4 = tv.cumsum %x dim 1 : (tensor<5x8xf32>) -> tensor<5x8xf32>
  // CHECK: tv.cumsum reverse %{{.*}} dim 0
  %5 = tv.cumsum reverse %e dim 0 : (tensor<5x2xi32>) -> tensor<5x2xi32>
  // CHECK: tv.dispatch
  %b, %c, %s = tv.dispatch %x, %e : (tensor<5x8xf32>, tensor<5x2xi32>) -> (tensor<3x4x8xf32>, tensor<3xi32>, tensor<5x2xi32>)
  // CHECK: tv.combine
  %2 = tv.combine %b, %e, %s, %p : (tensor<3x4x8xf32>, tensor<5x2xi32>, tensor<5x2xi32>, tensor<5x2xf32>) -> tensor<5x8xf32>
  return
}

// CHECK-LABEL: func.func @sources
func.func @sources(%d: tensor<?x8xf32>) {
  // CHECK: tv.constant dense<1.000000e+00> : tensor<4x8xf32> : () -> tensor<4x8xf32>
  %0 = tv.constant dense<1.0> : tensor<4x8xf32> : () -> tensor<4x8xf32>
  // CHECK: tv.constant dense<0.000000e+00> : tensor<f32> like %{{.*}} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = tv.constant dense<0.0> : tensor<f32> like %d : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: tv.iota 1 like %{{.*}} : (tensor<?x8xf32>) -> tensor<?x8xi32>
  %2 = tv.iota 1 like %d : (tensor<?x8xf32>) -> tensor<?x8xi32>
  // CHECK: tv.random seed(7) stream(3) : () -> tensor<4xf32>
  %3 = tv.random seed(7) stream(3) : () -> tensor<4xf32>
  // CHECK: tv.random seed(7) stream(3) bits(16) : () -> tensor<4xf32>
  %h = tv.random seed(7) stream(3) bits(16) : () -> tensor<4xf32>
  // CHECK: tv.size %{{.*}} dim 0
  %4 = tv.size %d dim 0 : (tensor<?x8xf32>) -> tensor<i64>
  // CHECK: tv.random seed(7) stream(3) step %{{.*}} : (tensor<i64>) -> tensor<4xf32>
  %5 = tv.random seed(7) stream(3) step %4 : (tensor<i64>) -> tensor<4xf32>
  // CHECK: tv.random seed(7) stream(3) step %{{.*}} like %{{.*}} : (tensor<i64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %6 = tv.random seed(7) stream(3) step %4 like %d : (tensor<i64>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK: tv.dropout %{{.*}} rate(1.000000e-01) seed(7) stream(3) step %{{.*}} : (tensor<?x8xf32>, tensor<i64>) -> tensor<?x8xf32>
  %7 = tv.dropout %6 rate(0.1) seed(7) stream(3) step %4 : (tensor<?x8xf32>, tensor<i64>) -> tensor<?x8xf32>
  return
}

// CHECK-LABEL: func.func @views
func.func @views(%x: tensor<8x4xf32, #rows>, %p: tensor<8x4xf32, #partial>) {
  // CHECK: tv.reshard %{{.*}} : (tensor<8x4xf32, #{{.*}}>) -> tensor<8x4xf32, #{{.*}}>
  %0 = tv.reshard %x : (tensor<8x4xf32, #rows>) -> tensor<8x4xf32, #whole>
  // CHECK: tv.reshard %{{.*}}, %{{.*}} plan <all_reduce over #{{.*}} [tp], loser = "x">
  %1, %2 = tv.reshard %p, %p plan <all_reduce over #m [tp], loser = "x"> : (tensor<8x4xf32, #partial>, tensor<8x4xf32, #partial>) -> (tensor<8x4xf32, #whole>, tensor<8x4xf32, #whole>)
  // CHECK: tv.constrain %{{.*}} : {{.*}} to #tv.view<
  %3 = tv.constrain %0 : (tensor<8x4xf32, #whole>) -> tensor<8x4xf32> to #rows
  // CHECK: tv.same_view %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<8x4xf32, #{{.*}}>) -> (tensor<8x4xf32>, tensor<8x4xf32, #{{.*}}>)
  %4, %5 = tv.same_view %3, %x : (tensor<8x4xf32>, tensor<8x4xf32, #rows>) -> (tensor<8x4xf32>, tensor<8x4xf32, #whole>)
  // CHECK: tv.barrier none %{{.*}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = tv.barrier none %4 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: tv.barrier forward
  %7 = tv.barrier forward %4 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: tv.barrier backward
  %8 = tv.barrier backward %4 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// CHECK-LABEL: func.func @composites
func.func @composites(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %l: tensor<4xi32>) {
  // CHECK: tv.add
  %0 = tv.add %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: tv.mul
  %1 = tv.mul %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: tv.gelu tanh %
  %2 = tv.gelu tanh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: tv.gelu %
  %3 = tv.gelu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: tv.silu
  %4 = tv.silu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: tv.softmax %{{.*}} dim 1
  %5 = tv.softmax %x dim 1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: tv.layer_norm %{{.*}}, %{{.*}}, %{{.*}} epsilon(1.000000e-05)
  %6 = tv.layer_norm %x, %w, %w epsilon(1.0e-5) : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: tv.rms_norm %{{.*}}, %{{.*}} epsilon
  %7 = tv.rms_norm %x, %w epsilon(1.0e-5) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: tv.rope %{{.*}} base(1.000000e+04)
  %8 = tv.rope %x base(10000.0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: tv.rope %{{.*}} at %{{.*}} base(1.000000e+04)
  %14 = tv.rope %x at %l base(10000.0) : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>
  // CHECK: tv.top_k %{{.*}} dim 1
  %15:2 = tv.top_k %x dim 1 : (tensor<4x8xf32>) -> (tensor<4x3xf32>, tensor<4x3xi32>)
  // CHECK: tv.cross_entropy
  %9 = tv.cross_entropy %x, %l : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4xf32>
  // CHECK: tv.gelu_grad tanh %{{.*}}, %{{.*}} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %11 = tv.gelu_grad tanh %x, %8 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: tv.gelu_grad %{{.*}}, %{{.*}} :
  %12 = tv.gelu_grad %x, %8 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %c = tv.constant dense<1.0> : tensor<f32> : () -> tensor<f32>
  %t = tv.constant dense<3> : tensor<i64> : () -> tensor<i64>
  // CHECK: tv.adamw %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale %{{.*}} rate %{{.*}} step %{{.*}} betas(9.000000e-01, {{.*}}) epsilon(1.000000e-08) decay(1.000000e-01) :
  %13:3 = tv.adamw %x, %x, %x, %x scale %c rate %c step %t betas(0.9, 0.95) epsilon(1.0e-8) decay(0.1)
    : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<f32>, tensor<f32>, tensor<i64>)
      -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>)
  // CHECK: tv.dropout %{{.*}} rate(1.000000e-01) seed(1) stream(2)
  %10 = tv.dropout %x rate(0.1) seed(1) stream(2) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: func.func @attention_grad
func.func @attention_grad(%do: tensor<2x4x8x5xf32>, %q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf32>, %v: tensor<2x2x6x5xf32>, %l: tensor<2x4x8xf32>, %bias: tensor<4x8xf32>) {
  // CHECK: tv.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} dlse %{{.*}} scale(1.250000e-01) causal :
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %do, %l dlse %l scale(0.125) causal
    : (tensor<2x4x8x5xf32>, tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x5xf32>, tensor<2x4x8x5xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>)
    -> (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x5xf32>)
  // CHECK: tv.attention_grad {{.*}} scale(1.250000e-01) captured %{{.*}} : {{.*}} score_mod (
  // CHECK: score_grad (%{{.*}}: f32, %[[DY:.*]]: f32, %{{.*}}: index, %[[H:.*]]: index, %[[Q:.*]]: index, %{{.*}}: index) {
  // CHECK: tv.accumulate 0[%[[H]], %[[Q]]], %[[DY]] : f32
  %dq1, %dk1, %dv1, %db = tv.attention_grad %do, %q, %k, %v, %do, %l scale(0.125) captured %bias
    : (tensor<2x4x8x5xf32>, tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x5xf32>, tensor<2x4x8x5xf32>, tensor<2x4x8xf32>, tensor<4x8xf32>)
    -> (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x5xf32>, tensor<4x8xf32>)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %bias[%h, %qi] : tensor<4x8xf32> -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
    score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      tv.accumulate 0[%h, %qi], %dy : f32
      tv.yield %dy : f32
    }
  return
}
