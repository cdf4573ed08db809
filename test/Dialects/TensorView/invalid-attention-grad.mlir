// Gradients of attention that are not legal.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %hb: tensor<2x4x8x16xbf16>) {
  // expected-error@+1 {{'tv.attention_grad' op element type 'bf16' must be 'f32', as the others}}
  %r0, %r1, %r2 = tv.attention_grad %x, %x, %k, %k, %hb, %l scale(0.125) : (!x, !x, !k, !k, tensor<2x4x8x16xbf16>, !l) -> (!x, !k, !k)
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  // expected-error@+1 {{'tv.attention_grad' op result #0's dimension 2 has extent 9; it must be 8, as operand #0's dimension 2 has}}
  %r0, %r1, %r2 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) : (!x, !x, !k, !k, !x, !l) -> (tensor<2x4x9x16xf32>, !k, !k)
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  // expected-error@+1 {{'tv.attention_grad' op result #1's dimension 1 has extent 4; it must be 2, as operand #2's dimension 1 has}}
  %r0, %r1, %r2 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) : (!x, !x, !k, !k, !x, !l) -> (!x, tensor<2x4x6x16xf32>, !k)
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  // expected-error@+1 {{'tv.attention_grad' op lse has rank 4; it must be 3}}
  %r0, %r1, %r2 = tv.attention_grad %x, %x, %k, %k, %x, %x scale(0.125) : (!x, !x, !k, !k, !x, !x) -> (!x, !k, !k)
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  // expected-error@+1 {{'tv.attention_grad' op has 1 captured tensors and 0 gradients of them}}
  %r0, %r1, %r2 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) captured %bias : (!x, !x, !k, !k, !x, !l, !bias) -> (!x, !k, !k)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x0 = tv.load %bias[%h, %qi] : !bias -> f32
      %y = arith.addf %s, %x0 : f32
      tv.yield %y : f32
    }
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  // expected-error@+1 {{'tv.attention_grad' op has captured tensors, but no score_mod that could load from them}}
  %r0, %r1, %r2, %r3 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) captured %bias : (!x, !x, !k, !k, !x, !l, !bias) -> (!x, !k, !k, !bias)
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  // expected-error@+1 {{'tv.attention_grad' op captured tensor #0 has element type 'i32'; only floats have a gradient}}
  %r0, %r1, %r2, %r3 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) captured %ids : (!x, !x, !k, !k, !x, !l, tensor<8xi32>) -> (!x, !k, !k, tensor<8xi32>)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x0 = tv.load %bias[%h, %qi] : !bias -> f32
      %y = arith.addf %s, %x0 : f32
      tv.yield %y : f32
    }
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  // expected-error@+1 {{'tv.attention_grad' op the gradient of captured tensor #0 has element type 'bf16'; it must be 'f32'}}
  %r0, %r1, %r2, %r3 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) captured %bias : (!x, !x, !k, !k, !x, !l, !bias) -> (!x, !k, !k, tensor<4x8xbf16>)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x0 = tv.load %bias[%h, %qi] : !bias -> f32
      %y = arith.addf %s, %x0 : f32
      tv.yield %y : f32
    }
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  // expected-error@+1 {{'tv.attention_grad' op the gradient of captured tensor #0 has rank 1; it must be 2}}
  %r0, %r1, %r2, %r3 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) captured %bias : (!x, !x, !k, !k, !x, !l, !bias) -> (!x, !k, !k, tensor<4xf32>)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x0 = tv.load %bias[%h, %qi] : !bias -> f32
      %y = arith.addf %s, %x0 : f32
      tv.yield %y : f32
    }
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  // expected-error@+1 {{'tv.attention_grad' op result #3's dimension 1 has extent 9; it must be 8, as operand #6's dimension 1 has}}
  %r0, %r1, %r2, %r3 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) captured %bias : (!x, !x, !k, !k, !x, !l, !bias) -> (!x, !k, !k, tensor<4x9xf32>)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x0 = tv.load %bias[%h, %qi] : !bias -> f32
      %y = arith.addf %s, %x0 : f32
      tv.yield %y : f32
    }
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  // expected-error@+1 {{'tv.attention_grad' op has a score_grad, but no score_mod}}
  %r0, %r1, %r2 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) : (!x, !x, !k, !k, !x, !l) -> (!x, !k, !k)
    score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      tv.yield %dy : f32
    }
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  %r0, %r1, %r2, %r3 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) captured %bias : (!x, !x, !k, !k, !x, !l, !bias) -> (!x, !k, !k, !bias)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x0 = tv.load %bias[%h, %qi] : !bias -> f32
      %y = arith.addf %s, %x0 : f32
      tv.yield %y : f32
    }
    score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      // expected-error@+1 {{'tv.accumulate' op adds to the gradient of captured tensor #1; there are 1}}
      tv.accumulate 1[%h, %qi], %dy : f32
      tv.yield %dy : f32
    }
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  %r0, %r1, %r2, %r3 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) captured %bias : (!x, !x, !k, !k, !x, !l, !bias) -> (!x, !k, !k, !bias)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x0 = tv.load %bias[%h, %qi] : !bias -> f32
      %y = arith.addf %s, %x0 : f32
      tv.yield %y : f32
    }
    score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      // expected-error@+1 {{'tv.accumulate' op has 1 indices; the tensor has rank 2}}
      tv.accumulate 0[%h], %dy : f32
      tv.yield %dy : f32
    }
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  %r0, %r1, %r2, %r3 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) captured %bias : (!x, !x, !k, !k, !x, !l, !bias) -> (!x, !k, !k, !bias)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x0 = tv.load %bias[%h, %qi] : !bias -> f32
      %y = arith.addf %s, %x0 : f32
      tv.yield %y : f32
    }
    score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %t = arith.truncf %dy : f32 to bf16
      // expected-error@+1 {{'tv.accumulate' op adds a 'bf16'; it must be 'f32'}}
      tv.accumulate 0[%h, %qi], %t : bf16
      tv.yield %dy : f32
    }
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  %r0, %r1, %r2, %r3 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) captured %bias : (!x, !x, !k, !k, !x, !l, !bias) -> (!x, !k, !k, !bias)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x0 = tv.load %bias[%h, %qi] : !bias -> f32
      %y = arith.addf %s, %x0 : f32
      // expected-error@+1 {{'tv.accumulate' op belongs in the score_grad of a tv.attention_grad}}
      tv.accumulate 0[%h, %qi], %y : f32
      tv.yield %y : f32
    }
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  %c = arith.constant 1.0 : f32
  %r0, %r1, %r2, %r3 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) captured %bias : (!x, !x, !k, !k, !x, !l, !bias) -> (!x, !k, !k, !bias)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x0 = tv.load %bias[%h, %qi] : !bias -> f32
      %y = arith.addf %s, %x0 : f32
      tv.yield %y : f32
    }
    score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      // expected-error@+1 {{'arith.addf' op uses a value from outside of the scalar region; only tv.load may, to read a tensor}}
      %t = arith.addf %dy, %c : f32
      tv.yield %t : f32
    }
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  %r0, %r1, %r2, %r3 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) captured %bias : (!x, !x, !k, !k, !x, !l, !bias) -> (!x, !k, !k, !bias)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x0 = tv.load %bias[%h, %qi] : !bias -> f32
      %y = arith.addf %s, %x0 : f32
      tv.yield %y : f32
    }
    score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      // expected-error@+1 {{'memref.alloc' op is not allowed in a scalar region of tv.attention_grad, which holds scalar arith and math ops, tv.load and tv.yield}}
      %m = memref.alloc() : memref<4xf32>
      tv.yield %dy : f32
    }
  return
}

// -----

!x = tensor<2x4x8x16xf32>
!k = tensor<2x2x6x16xf32>
!l = tensor<2x4x8xf32>
!bias = tensor<4x8xf32>
func.func @f(%x: !x, %k: !k, %l: !l, %bias: !bias, %ids: tensor<8xi32>, %half: tensor<4x8xbf16>) {
  %r0, %r1, %r2, %r3 = tv.attention_grad %x, %x, %k, %k, %x, %l scale(0.125) captured %bias : (!x, !x, !k, !k, !x, !l, !bias) -> (!x, !k, !k, !bias)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x0 = tv.load %bias[%h, %qi] : !bias -> f32
      %y = arith.addf %s, %x0 : f32
      tv.yield %y : f32
    }
    score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      // expected-error@+1 {{'tv.yield' op must yield ('f32'), not ('f32', 'f32')}}
      tv.yield %dy, %s : f32, f32
    }
  return
}

// -----

!q = tensor<1x2x4x8xf32>
func.func @scale_is_no_number(%q: !q) -> !q {
  // expected-error@+1 {{'tv.attention' op has a scale that is no number in 'f32'}}
  %y, %lse = tv.attention %q, %q, %q scale(0x7FF8000000000000) : (!q, !q, !q) -> (!q, tensor<1x2x4xf32>)
  return %y : !q
}

// -----

!q = tensor<1x2x4x8xbf16>
func.func @scale_beyond_f32(%q: !q, %l: tensor<1x2x4xf32>) -> !q {
  // expected-error@+1 {{'tv.attention_grad' op has a scale that is no number in 'f32'}}
  %0, %1, %2 = tv.attention_grad %q, %q, %q, %q, %q, %l scale(1.0e39) : (!q, !q, !q, !q, !q, tensor<1x2x4xf32>) -> (!q, !q, !q)
  return %0 : !q
}

// -----

!q = tensor<1x2x4x8xf64>
func.func @scale_of_f64(%q: !q) -> !q {
  %y, %lse = tv.attention %q, %q, %q scale(1.0e39) : (!q, !q, !q) -> (!q, tensor<1x2x4xf64>)
  return %y : !q
}
