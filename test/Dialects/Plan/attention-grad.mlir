// What a kernel's gradient of attention may sum for captured tensors.
// RUN: split-file %s %t
// RUN: tessera-opt %t/sums.mlir | tessera-opt | FileCheck %s
// RUN: sed 's/\["query", "score"\]/["query"]/' %t/sums.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: sed 's/"score"/"heads"/' %t/sums.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: sed 's/"query"/"score"/' %t/sums.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: sed 's/%ds, %dy, %dy : f32, f32, f32/%ds, %dy : f32, f32/' %t/sums.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=YIELDS
// RUN: sed 's/^  return/    causal_mod (%%b: index, %%h: index, %%qi: index, %%ki: index) {\n      tv.yield %%qi : index\n    }\n  return/' %t/sums.mlir > %t/causal.mlir
// RUN: not tessera-opt %t/causal.mlir 2>&1 | FileCheck %s --check-prefix=NOT-CAUSAL
// RUN: sed 's/scale(0.125)/& causal/; s/yield %%qi : index/yield %%b, %%h : index, index/' %t/causal.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=LAST
// RUN: sed 's/scale(0.125)/& causal/' %t/causal.mlir | tessera-opt | tessera-opt | FileCheck %s

// RUN: tessera-opt %t/shared.mlir | tessera-opt | FileCheck %s --check-prefix=SHARED
// RUN: sed 's/ heads %hk, %hv//; s/, !h, !h$//' %t/shared.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=NO-HEADS
// RUN: sed 's/!h = memref<1x4x3x64xbf16>/!h = memref<1x4x5x64xbf16>/' %t/shared.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=HEADS

// SHARED: plan.attention_grad {{.*}} by %{{.*}} heads %{{.*}}, %{{.*}} scale(1.250000e-01)
// NO-HEADS: error: 'plan.attention_grad' op needs memory for the gradients of each query head, 'heads', as these share keys: 'memref<1x4x3x64xbf16>' and 'memref<1x2x3x64xbf16>'
// HEADS: error: 'plan.attention_grad' op has gradients of heads in 'memref<1x4x5x64xbf16>' for 'memref<1x4x3x64xbf16>' and 'memref<1x2x3x64xbf16>'
// CHECK: plan.attention_grad {{.*}} by %{{.*}} sums %{{.*}}, %{{.*}} ["query", "score"] scale(1.250000e-01)
// CHECK: tv.yield %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, f32
// COUNT: error: 'plan.attention_grad' op needs a name of each sum, and a score_grad for it
// NAME: error: 'plan.attention_grad' op sums f32 by "query", "key", "distance" into rank 3, or by "score" into rank 4, not by "heads" into 'memref<1x2x3x3xf32>'
// RANK: error: 'plan.attention_grad' op sums f32 by "query", "key", "distance" into rank 3, or by "score" into rank 4, not by "score" into 'memref<1x2x3xf32>'
// NOT-CAUSAL: error: 'plan.attention_grad' op has a causal_mod, and is not causal or has tiles or blocks
// LAST: error: 'plan.attention_grad' op causal_mod must have arguments ({{.*}}) and tv.yield 'index'
// YIELDS: error: 'plan.attention_grad' op score_grad must have arguments ({{.*}}) and tv.yield 'f32', 'f32', 'f32'

//--- sums.mlir
!x = memref<1x2x3x64xbf16>
!l = memref<1x2x3xf32>
!s = memref<1x2x3x3xf32>
!w = memref<1x2x131x71xf32>
func.func @kernel(%do: !x, %q: !x, %k: !x, %v: !x, %o: !x, %lse: !l, %dq: !x, %dk: !x,
                  %dv: !x, %w: !w, %rows: !l, %scores: !s) {
  plan.attention_grad %do, %q, %k, %v, %o, %lse to %dq, %dk, %dv by %w
      sums %rows, %scores ["query", "score"] scale(0.125)
      : !x, !x, !x, !x, !x, !l, !x, !x, !x, !w, !l, !s
    score_mod (%x: f32, %b: index, %h: index, %qi: index, %ki: index) {
      tv.yield %x : f32
    }
    score_grad (%x: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %ds = arith.mulf %dy, %x : f32
      tv.yield %ds, %dy, %dy : f32, f32, f32
    }
  return
}

//--- shared.mlir
!x = memref<1x4x3x64xbf16>
!k = memref<1x2x3x64xbf16>
!l = memref<1x4x3xf32>
!w = memref<1x4x131x71xf32>
!h = memref<1x4x3x64xbf16>
func.func @kernel(%do: !x, %q: !x, %k: !k, %v: !k, %o: !x, %lse: !l, %dq: !x, %dk: !k,
                  %dv: !k, %w: !w, %hk: !h, %hv: !h) {
  plan.attention_grad %do, %q, %k, %v, %o, %lse to %dq, %dk, %dv by %w heads %hk, %hv scale(0.125)
      : !x, !x, !k, !k, !x, !l, !x, !k, !k, !w, !h, !h
  return
}
