// The gradient of a score_mod as text: tv-differentiate writes it where there is none.
// RUN: tessera-opt %s --tv-differentiate --split-input-file -verify-diagnostics | FileCheck %s

// What was written stays; what has no score_mod gets none.
// CHECK-LABEL: func.func @written
// CHECK: score_grad
// CHECK-NEXT: %[[T:.*]] = arith.addf
// CHECK-NEXT: tv.yield %[[T]]
// CHECK: tv.attention_grad
// CHECK-NOT: score_grad
// CHECK: return
!x = tensor<2x4x8x16xf32>
!l = tensor<2x4x8xf32>
func.func @written(%x: !x, %l: !l) {
  %0, %1, %2 = tv.attention_grad %x, %x, %x, %x, %x, %l scale(0.25)
      : (!x, !x, !x, !x, !x, !l) -> (!x, !x, !x)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %y = arith.addf %s, %s : f32
      tv.yield %y : f32
    }
    score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %t = arith.addf %dy, %dy : f32
      tv.yield %t : f32
    }
  %3, %4, %5 = tv.attention_grad %x, %x, %x, %x, %x, %l scale(0.25)
      : (!x, !x, !x, !x, !x, !l) -> (!x, !x, !x)
  return
}

// -----

// A soft cap needs what its forward made; the last op is first.
// CHECK-LABEL: func.func @soft_cap
// CHECK: score_grad (%[[S:.*]]: f32, %[[DY:.*]]: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index) {
// CHECK-NEXT: %[[CAP:.*]] = arith.constant 3.000000e+01 : f32
// CHECK-NEXT: %[[U:.*]] = arith.divf %[[S]], %[[CAP]]
// CHECK-NEXT: %[[T:.*]] = math.tanh %[[U]]
// CHECK-NEXT: %[[A:.*]] = arith.mulf %[[DY]], %[[CAP]]
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1.0
// CHECK-NEXT: %[[SQUARE:.*]] = arith.mulf %[[T]], %[[T]]
// CHECK-NEXT: %[[SLOPE:.*]] = arith.subf %[[ONE]], %[[SQUARE]]
// CHECK-NEXT: %[[B:.*]] = arith.mulf %[[A]], %[[SLOPE]]
// CHECK-NEXT: %[[DS:.*]] = arith.divf %[[B]], %[[CAP]]
// CHECK-NEXT: tv.yield %[[DS]] : f32
!x = tensor<2x4x8x16xf32>
!l = tensor<2x4x8xf32>
func.func @soft_cap(%x: !x, %l: !l) {
  %0, %1, %2 = tv.attention_grad %x, %x, %x, %x, %x, %l scale(0.25)
      : (!x, !x, !x, !x, !x, !l) -> (!x, !x, !x)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %cap = arith.constant 30.0 : f32
      %u = arith.divf %s, %cap : f32
      %t = math.tanh %u : f32
      %y = arith.mulf %t, %cap : f32
      tv.yield %y : f32
    }
  return
}

// -----

// The branch that is not taken: its gradient is chosen away once, where it leaves, and
// not before it is multiplied by an infinite slope.
// CHECK-LABEL: func.func @guarded
// CHECK: score_grad (%[[S:.*]]: f32, %[[DY:.*]]: f32,
// CHECK: %[[C:.*]] = arith.cmpf ogt, %[[S]]
// CHECK: %[[R:.*]] = math.sqrt %[[S]]
// CHECK-NOT: arith.select
// CHECK: %[[HALF:.*]] = arith.mulf %[[DY]],
// CHECK: %[[D:.*]] = arith.divf %[[HALF]], %[[R]]
// CHECK: %[[DS:.*]] = arith.select %[[C]], %[[D]], %{{.*}} : f32
// CHECK-NEXT: tv.yield %[[DS]] : f32
!x = tensor<2x4x8x16xf32>
!l = tensor<2x4x8xf32>
func.func @guarded(%x: !x, %l: !l) {
  %0, %1, %2 = tv.attention_grad %x, %x, %x, %x, %x, %l scale(0.25)
      : (!x, !x, !x, !x, !x, !l) -> (!x, !x, !x)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %zero = arith.constant 0.0 : f32
      %c = arith.cmpf ogt, %s, %zero : f32
      %r = math.sqrt %s : f32
      %y = arith.select %c, %r, %zero : f32
      tv.yield %y : f32
    }
  return
}

// -----

// Captured tensors: narrow ones add in f32, indices may be loaded, and what nobody asks
// for adds nothing. A score that does not reach the result has the gradient 0.
// CHECK-LABEL: func.func @captured
// CHECK: score_grad (%{{.*}}: f32, %[[DY:.*]]: f32, %{{.*}}: index, %[[H:.*]]: index, %[[Q:.*]]: index, %[[K:.*]]: index) {
// CHECK: %[[I:.*]] = tv.load %{{.*}}[%[[Q]]] : tensor<8xi32> -> i32
// CHECK: %[[AT:.*]] = arith.index_cast %[[I]]
// CHECK-DAG: tv.accumulate 1[%[[AT]]], %[[DY]] : f32
// CHECK-DAG: tv.accumulate 0[%[[H]], %[[K]]], %[[DY]] : f32
// CHECK: %[[ZERO:.*]] = arith.constant 0.0
// CHECK-NEXT: tv.yield %[[ZERO]]
!x = tensor<2x4x8x16xf32>
!l = tensor<2x4x8xf32>
func.func @captured(%x: !x, %l: !l, %a: tensor<4x8xbf16>, %t: tensor<5xf32>, %ids: tensor<8xi32>,
                    %other: tensor<4xf32>) {
  %0, %1, %2, %3, %4 = tv.attention_grad %x, %x, %x, %x, %x, %l scale(0.25) captured %a, %t
      : (!x, !x, !x, !x, !x, !l, tensor<4x8xbf16>, tensor<5xf32>)
      -> (!x, !x, !x, tensor<4x8xbf16>, tensor<5xf32>)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %u = tv.load %a[%h, %ki] : tensor<4x8xbf16> -> bf16
      %v = arith.extf %u : bf16 to f32
      %i = tv.load %ids[%qi] : tensor<8xi32> -> i32
      %at = arith.index_cast %i : i32 to index
      %w = tv.load %t[%at] : tensor<5xf32> -> f32
      %o = tv.load %other[%h] : tensor<4xf32> -> f32
      %x0 = arith.addf %v, %w : f32
      %y = arith.addf %x0, %o : f32
      tv.yield %y : f32
    }
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!l = tensor<2x4x8xf32>
func.func @bits(%x: !x, %l: !l) {
  %0, %1, %2 = tv.attention_grad %x, %x, %x, %x, %x, %l scale(0.25)
      : (!x, !x, !x, !x, !x, !l) -> (!x, !x, !x)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      // expected-error@+1 {{'arith.bitcast' op has no gradient, and one is asked for}}
      %i = arith.bitcast %s : f32 to i32
      %y = arith.bitcast %i : i32 to f32
      tv.yield %y : f32
    }
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!l = tensor<2x4x8xf32>
func.func @unused(%x: !x, %l: !l, %bias: tensor<4xf32>) {
  // expected-error@+1 {{'tv.attention_grad' op score_mod loads nothing from captured tensor #0}}
  %0, %1, %2, %3 = tv.attention_grad %x, %x, %x, %x, %x, %l scale(0.25) captured %bias
      : (!x, !x, !x, !x, !x, !l, tensor<4xf32>) -> (!x, !x, !x, tensor<4xf32>)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %y = math.absf %s : f32
      tv.yield %y : f32
    }
  return
}
