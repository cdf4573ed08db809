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
