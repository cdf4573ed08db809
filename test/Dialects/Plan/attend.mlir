// RUN: tessera-opt %s --split-input-file --verify-diagnostics -o /dev/null
// RUN: tessera-opt %s --split-input-file --verify-diagnostics | FileCheck %s

!q = tensor<2x4x?x16xbf16>
!k = tensor<2x2x7x16xbf16>
// CHECK: %{{.*}}, %{{.*}} = plan.attend %{{.*}}, %{{.*}}, %{{.*}} scale(2.500000e-01) causal from "tv.attention"
// CHECK: %{{.*}} = plan.attend %{{.*}}, %{{.*}}, %{{.*}} scale(1.000000e+00) from "tv.attention"
func.func @right(%q: !q, %k: !k, %v: !k) -> (!q, tensor<2x4x?xf32>, !q) {
  %o, %l = plan.attend %q, %k, %v scale(0.25) causal from "tv.attention" : (!q, !k, !k) -> (!q, tensor<2x4x?xf32>)
  %p = plan.attend %q, %k, %v scale(1.0) from "tv.attention" : (!q, !k, !k) -> !q
  return %o, %l, %p : !q, tensor<2x4x?xf32>, !q
}

// -----

!q = tensor<2x4x5x16xf32>
func.func @elements(%q: !q) {
  // expected-error @+1 {{query, key, value and result must have rank 4 and elements of bf16 or f16, all alike, not 'tensor<2x4x5x16xf32>'}}
  %o = plan.attend %q, %q, %q scale(1.0) from "tv.attention" : (!q, !q, !q) -> !q
  return
}

// -----

!q = tensor<2x4x5x16xf16>
!k = tensor<2x4x5x16xbf16>
func.func @mixed(%q: !q, %k: !k) {
  // expected-error @+1 {{all alike, not 'tensor<2x4x5x16xf16>' and 'tensor<2x4x5x16xbf16>'}}
  %o = plan.attend %q, %k, %k scale(1.0) from "tv.attention" : (!q, !k, !k) -> !q
  return
}

// -----

!q = tensor<4x5x16xf16>
func.func @rank(%q: !q) {
  // expected-error @+1 {{must have rank 4}}
  %o = plan.attend %q, %q, %q scale(1.0) from "tv.attention" : (!q, !q, !q) -> !q
  return
}

// -----

!q = tensor<2x4x5x16xf16>
!k = tensor<2x4x5x8xf16>
func.func @depth(%q: !q, %k: !k) {
  // expected-error @+1 {{query and key must have one batch and one head dimension, the value the key's shape and the result the query's}}
  %o = plan.attend %q, %k, %k scale(1.0) from "tv.attention" : (!q, !k, !k) -> !q
  return
}

// -----

!q = tensor<2x4x5x16xf16>
!k = tensor<2x4x7x16xf16>
func.func @value(%q: !q, %k: !k) {
  // expected-error @+1 {{the value the key's shape}}
  %o = plan.attend %q, %k, %q scale(1.0) from "tv.attention" : (!q, !k, !q) -> !q
  return
}

// -----

!q = tensor<2x4x5x16xf16>
func.func @lse(%q: !q) {
  // expected-error @+1 {{lse must have the query's shape without its last dimension and elements of f32, not 'tensor<2x4x5xf16>'}}
  %o, %l = plan.attend %q, %q, %q scale(1.0) from "tv.attention" : (!q, !q, !q) -> (!q, tensor<2x4x5xf16>)
  return
}

// -----

!q = tensor<2x4x5x16xf16>
!k = tensor<2x4x3x16xf16>
func.func @rows(%q: !q, %k: !k) {
  // expected-error @+1 {{is causal with more queries than keys}}
  %o = plan.attend %q, %k, %k scale(1.0) causal from "tv.attention" : (!q, !k, !k) -> !q
  return
}

// -----

!q = tensor<2x4x?x16xbf16>
!k = tensor<2x2x7x16xbf16>
!l = tensor<2x4x?xf32>
// CHECK: %{{.*}}, %{{.*}}, %{{.*}} = plan.attend_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale(2.500000e-01) causal from "tv.attention_grad"
func.func @gradients(%do: !q, %q: !q, %k: !k, %v: !k, %l: !l) -> (!q, !k, !k) {
  %dq, %dk, %dv = plan.attend_grad %do, %q, %k, %v, %q, %l scale(0.25) causal from "tv.attention_grad" : (!q, !q, !k, !k, !q, !l) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

// -----

!q = tensor<2x4x5x16xf16>
!k = tensor<2x2x5x16xf16>
func.func @key_grad(%q: !q, %k: !k, %l: tensor<2x4x5xf32>) {
  // expected-error @+1 {{query and key must have one batch and one head dimension, the value the key's shape and the result the query's}}
  %dq, %dk, %dv = plan.attend_grad %q, %q, %k, %k, %q, %l scale(0.25) from "tv.attention_grad" : (!q, !q, !k, !k, !q, tensor<2x4x5xf32>) -> (!q, !q, !k)
  return
}

// -----

!q = tensor<2x4x5x16xf16>
func.func @lse_of_gradients(%q: !q, %l: tensor<2x4xf32>) {
  // expected-error @+1 {{lse must have the query's shape without its last dimension and elements of f32, not 'tensor<2x4xf32>'}}
  %dq, %dk, %dv = plan.attend_grad %q, %q, %q, %q, %q, %l scale(0.25) from "tv.attention_grad" : (!q, !q, !q, !q, !q, tensor<2x4xf32>) -> (!q, !q, !q)
  return
}

// -----

!q = tensor<2x4x5x16xf16>
!b = tensor<2x4x5x16xbf16>
func.func @mixed_gradients(%q: !q, %do: !b, %l: tensor<2x4x5xf32>) {
  // expected-error @+1 {{all alike, not 'tensor<2x4x5x16xf16>' and 'tensor<2x4x5x16xbf16>'}}
  %dq, %dk, %dv = plan.attend_grad %do, %q, %q, %q, %q, %l scale(0.25) from "tv.attention_grad" : (!b, !q, !q, !q, !q, tensor<2x4x5xf32>) -> (!q, !q, !q)
  return
}
