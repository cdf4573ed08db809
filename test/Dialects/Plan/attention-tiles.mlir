// Packed sequences of attention in a kernel, and lists that are of others.
// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: sed 's/1x336xi32/1x338xi32/' %s | not tessera-opt 2>&1 | FileCheck %s --check-prefix=WORDS
// RUN: sed 's/1x336xi32/1x336xi64/' %s | not tessera-opt 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: sed 's/1x336xi32/2x336xi32/' %s | not tessera-opt 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: sed 's/!k = memref<1x2x300/!k = memref<1x2x200/' %s | not tessera-opt 2>&1 | FileCheck %s --check-prefix=KEYS

// CHECK: plan.attention {{.*}} causal tiles %{{.*}} : {{.*}} to memref<1x2x300x64xbf16>, memref<1x2x300xf32> tiles memref<1x336xi32>
// CHECK: plan.attention {{.*}} tiles %{{.*}} : {{.*}} to memref<1x2x300x64xbf16> tiles memref<1x336xi32>
// CHECK: plan.attention_grad {{.*}} causal tiles %{{.*}} :
// WORDS: error: 'plan.attention' op tiles of 300 positions have 304 words and 8 for each sequence, not 338
// TYPE: error: 'plan.attention' op tiles must be [1, words], static, of i32, not 'memref<{{.*}}>'
// KEYS: error: 'plan.attention' op with tiles is of one batch with as many queries as keys, a static number
!q = memref<1x2x300x64xbf16>
!k = memref<1x2x300x64xbf16>
!l = memref<1x2x300xf32>
!s = memref<1x2x1428x67xf32>
!t = memref<1x336xi32>
func.func @attend(%q: !q, %k: !k, %o: !q, %l: !l, %t: !t) {
  plan.attention %q, %k, %k to %o, %l scale(0.125) causal tiles %t : !q, !k, !k to !q, !l tiles !t
  plan.attention %q, %k, %k to %o scale(0.125) tiles %t : !q, !k, !k to !q tiles !t
  return
}
func.func @gradient(%do: !q, %q: !q, %k: !k, %l: !l, %dq: !q, %dk: !k, %s: !s, %t: !t) {
  plan.attention_grad %do, %q, %k, %k, %q, %l to %dq, %dk, %dk by %s scale(0.125) causal tiles %t
    : !q, !q, !k, !k, !q, !l, !q, !k, !k, !s, !t
  return
}
