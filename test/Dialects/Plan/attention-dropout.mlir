// Dropout of attention in a kernel, and what does not go together.
// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: sed 's/dropout(0.25)/dropout(1.0)/' %s | not tessera-opt 2>&1 | FileCheck %s --check-prefix=RATE
// RUN: sed 's/dropout(0.25) seed [^ ]* stream [^ ]* step/step/' %s | not tessera-opt 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/!m = memref<i64>/!m = memref<1xi64>/' %s | not tessera-opt 2>&1 | FileCheck %s --check-prefix=STEP
// RUN: sed 's/yield .ki : index/yield %no : i1/; s/.yes =/%no =/' %s | not tessera-opt 2>&1 | FileCheck %s --check-prefix=NUMBER

// CHECK: plan.attention {{.*}} causal dropout(2.500000e-01) seed %{{.*}} stream %{{.*}} step %{{.*}} : {{.*}} step memref<i64> number_mod
// CHECK: plan.attention_grad {{.*}} dropout(2.500000e-01) seed %{{.*}} stream %{{.*}} : {{.*}} number_mod
// RATE: error: 'plan.attention' op dropout must be in [0, 1)
// NONE: error: 'plan.attention' op needs seed, stream and a number_mod for dropout, and for nothing else
// STEP: error: 'plan.attention' op step must be a memref<i64>, not 'memref<1xi64>'
// NUMBER: error: 'plan.attention' op number_mod must have arguments ('index', 'index', 'index', 'index') and tv.yield 'index'
!q = memref<1x2x300x64xbf16>
!l = memref<1x2x300xf32>
!s = memref<1x2x428x67xf32>
!m = memref<i64>
func.func @attend(%q: !q, %o: !q, %s: i64, %t: i64, %m: !m) {
  %yes = arith.constant true
  plan.attention %q, %q, %q to %o scale(0.125) causal dropout(0.25) seed %s stream %t step %m : !q, !q, !q to !q step !m
    number_mod (%b: index, %h: index, %qi: index, %ki: index) {
      tv.yield %ki : index
    }
  return
}
func.func @gradient(%do: !q, %q: !q, %l: !l, %dq: !q, %w: !s, %s: i64, %t: i64) {
  %yes = arith.constant true
  plan.attention_grad %do, %q, %q, %q, %q, %l to %dq, %dq, %dq by %w scale(0.125) dropout(0.25) seed %s stream %t
    : !q, !q, !q, !q, !q, !l, !q, !q, !q, !s, i64, i64
    number_mod (%b: index, %h: index, %qi: index, %ki: index) {
      tv.yield %ki : index
    }
  return
}
