// Dropout of attention's weights that there is not.
// RUN: tessera-opt %s --split-input-file --verify-diagnostics

!q = tensor<2x4x8x16xf32>
!l = tensor<2x4x8xf32>
func.func @rate(%q: !q) {
  // expected-error@+1 {{'tv.attention' op dropout must be in [0, 1)}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) dropout(1.0) seed(1) stream(2) : (!q, !q, !q) -> (!q, !l)
  return
}

// -----

!q = tensor<2x4x8x16xf32>
!l = tensor<2x4x8xf32>
func.func @none(%q: !q, %step: tensor<i64>) {
  // expected-error@+1 {{'tv.attention' op has a step, but no dropout}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) step %step : (!q, !q, !q, tensor<i64>) -> (!q, !l)
  return
}

// -----

!q = tensor<2x4x8x16xf32>
!l = tensor<2x4x8xf32>
func.func @half(%q: !q, %l: !l) {
  // expected-error@+1 {{'tv.attention_grad' op must have dropout, seed and stream, or none}}
  %g:3 = tv.attention_grad %q, %q, %q, %q, %q, %l scale(1.0) {seed = 1 : i64} : (!q, !q, !q, !q, !q, !l) -> (!q, !q, !q)
  return
}

// -----

!q = tensor<2x4x8x16xf32>
!l = tensor<2x4x8xf32>
func.func @step(%q: !q, %l: !l, %step: tensor<1xi64>) {
  // expected-error@+1 {{'tv.attention_grad' op step is 'tensor<1xi64>'; it must be a tensor<i64>}}
  %g:3 = tv.attention_grad %q, %q, %q, %q, %q, %l scale(1.0) dropout(0.5) seed(1) stream(2) step %step : (!q, !q, !q, !q, !q, !l, tensor<1xi64>) -> (!q, !q, !q)
  return
}
