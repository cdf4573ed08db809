// Variants of attention's gradient, as in attention.mlir. `flash` is one op of a kernel,
// `math` has the scores in memory.

// RUN: split-file %s %t
// DEFINE: %{flash} = --tessera="from=local to=kernels target=cuda:sm_90a attention=flash"
// DEFINE: %{all} = --tessera="from=local to=kernels target=cuda:sm_90a"
// RUN: tessera-opt %t/split.mlir %{flash} | FileCheck %s --check-prefix=SPLIT
// RUN: tessera-opt %t/split.mlir %{flash} --interpret=2 --interpret-sizes=b=2,s=5 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/split.mlir %{all} | FileCheck %s --check-prefix=ALL
// RUN: tessera-opt %t/split.mlir --tessera="from=local to=kernels target=cuda:sm_90a attention=math,flash" --interpret=2 --interpret-sizes=b=2,s=5 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/split.mlir --tessera="from=local to=kernels" | FileCheck %s --check-prefix=ON-CPU
// RUN: tessera-opt %t/plain.mlir %{flash} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// EQUAL: interpret: @main equals the source on

// ALL: %[[F:.*]]:6 = plan.launch @attention_grad_0(
// ALL: plan.choose "attention" of "flash"(%[[F]]#0, %[[F]]#1, %[[F]]#2), "math"({{.*}}) without {cudnn = "it has a gradient of the log-sum-exp"} from "tv.attention_grad" on "[?, 4, ?, 64] [?, 2, ?, 64] [?, 2, ?, 64] bf16 scale 0.125 causal score_mod mask_mod" :
// ON-CPU-NOT: plan.attention_grad
// ON-CPU: plan.choose "attention" of "math"() without {cudnn = "it is for cuda:sm_90a and cuda:sm_XY from sm_80 on", flash = "it is for cuda:sm_90a"} from "tv.attention_grad" on "{{[^"]*}}"{{$}}

// What does not fit has its reason.
// RUN: sed 's/x5x64x/x?x64x/; s/5, 64\]>, of .*64\]/_, 64]>, of [1, 2, t, 64]/; s/name = "[kv]"/&, tv.dims = ["t"]/; s/"dtable"})/& attributes {tv.sizes = {t = 64}}/' %t/captured.mlir | not tessera-opt %{flash} 2>&1 | FileCheck %s --check-prefix=DISTANCE
// RUN: sed '/^ *score_grad/,/^ *}/d' %t/captured.mlir | not tessera-opt %{flash} 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: sed 's/x64x/x32x/g; s/64\]/32]/g' %t/plain.mlir | not tessera-opt %{flash} 2>&1 | FileCheck %s --check-prefix=DEPTH
// RUN: sed 's/x64x/x192x/g; s/64\]/192]/g' %t/captured.mlir | not tessera-opt %{flash} 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: sed 's/bf16/f32/g' %t/plain.mlir | not tessera-opt %{flash} 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: sed '/^ *score_grad/,/^ *}/d' %t/split.mlir | not tessera-opt %{all} 2>&1 | FileCheck %s --check-prefix=MISSING
// DISTANCE: error: has no variant that is allowed; flash does not fit: the number of keys must be known for a gradient by distance; what would fit: math{{$}}
// DEPTH: error: has no variant that is allowed; flash does not fit: its head dimension must be 64, 96, 128, 192 or 256
// WIDE: error: has no variant that is allowed; flash does not fit: it has gradients of captured tensors, for which its head dimension must be 64, 96 or 128
// TYPE: error: has no variant that is allowed; flash does not fit: its elements must be bf16 or f16
// MISSING: error: 'tv.attention_grad' op has a score_mod, but no score_grad; run tv-differentiate first

//--- split.mlir
#m = #tv.mesh<tp = 2>
#q = #tv.view<#m, [_, did(tp) * 2, _, 64]>
#k = #tv.view<#m, [_, did(tp), _, 64]>
#l = #tv.view<#m, [_, did(tp) * 2, _]>
#bias = #tv.view<#m, [4]>
!q = tensor<?x2x?x64xbf16, #tv.local<#q, of [b, 4, s, 64]>>
!k = tensor<?x1x?x64xbf16, #tv.local<#k, of [b, 2, s, 64]>>
!l = tensor<?x2x?xf32, #tv.local<#l, of [b, 4, s]>>
!bias = tensor<4xf32, #tv.local<#bias, of [4]>>
func.func @main(%do: !q {tv.name = "do", tv.dims = ["b", "s"]},
                %q: !q {tv.name = "q", tv.dims = ["b", "s"]},
                %k: !k {tv.name = "k", tv.dims = ["b", "s"]},
                %v: !k {tv.name = "v", tv.dims = ["b", "s"]},
                %o: !q {tv.name = "o", tv.dims = ["b", "s"]},
                %lse: !l {tv.name = "lse", tv.dims = ["b", "s"]},
                %dlse: !l {tv.name = "dlse", tv.dims = ["b", "s"]},
                %bias: !bias {tv.name = "bias"})
    -> (!q {tv.name = "dq"}, !k {tv.name = "dk"}, !k {tv.name = "dv"})
    attributes {tv.sizes = {b = 64, s = 32}} {
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse dlse %dlse scale(0.125) causal
      : (!q, !q, !k, !k, !q, !l, !l) -> (!q, !k, !k)
    score_mod (%x: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = tv.load %bias[%h] : !bias -> f32
      %y = arith.mulf %x, %c : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %r = arith.cmpi ne, %qi, %h : index
      tv.yield %r : i1
    }
    score_grad (%x: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = tv.load %bias[%h] : !bias -> f32
      %y = arith.mulf %dy, %c : f32
      tv.yield %y : f32
    }
  return %dq, %dk, %dv : !q, !k, !k
}
// Regions see global heads: this device's first is a coordinate times 2. The kernel has
// memory of its own.
// SPLIT: func.func @attention_grad_0(
// SPLIT: %[[COORD:.*]] = arith.index_cast
// SPLIT: plan.attention_grad {{.*}} dlse {{.*}} scale(1.250000e-01) causal
// SPLIT-SAME: memref<?x2x?x71xf32
// SPLIT-SAME: score_mod (%{{[^:]*}}: f32, %{{[^:]*}}: index, %[[H:[^:]*]]: index,
// SPLIT: %[[FIRST:.*]] = arith.muli %[[COORD]]
// SPLIT: arith.addi %[[H]], %[[FIRST]]
// SPLIT: mask_mod
// SPLIT: score_grad (%{{[^:]*}}: f32, %[[DY:[^:]*]]: f32,
// SPLIT: %[[DS:.*]] = arith.mulf %[[DY]],
// SPLIT-NEXT: tv.yield %[[DS]]
// SPLIT: %[[F:.*]]:6 = plan.launch @attention_grad_0(
// SPLIT-NOT: plan.copy
// SPLIT: plan.choose "attention" of "flash"()
// SPLIT-NEXT: return %[[F]]#0, %[[F]]#1, %[[F]]#2

//--- plain.mlir
// More keys than queries, one key head for two.
#m = #tv.mesh<tp = 1>
!q = tensor<1x2x3x64xbf16, #tv.local<#tv.view<#m, [1, 2, 3, 64]>, of [1, 2, 3, 64]>>
!k = tensor<1x1x5x64xbf16, #tv.local<#tv.view<#m, [1, 1, 5, 64]>, of [1, 1, 5, 64]>>
!l = tensor<1x2x3xf32, #tv.local<#tv.view<#m, [1, 2, 3]>, of [1, 2, 3]>>
func.func @main(%do: !q {tv.name = "do"}, %q: !q {tv.name = "q"}, %k: !k {tv.name = "k"},
                %v: !k {tv.name = "v"}, %o: !q {tv.name = "o"}, %lse: !l {tv.name = "lse"})
    -> (!q {tv.name = "dq"}, !k {tv.name = "dk"}, !k {tv.name = "dv"}) {
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
      : (!q, !q, !k, !k, !q, !l) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}

//--- captured.mlir
// Gradients of captured tensors: the kernel sums what is added by what its index needs, and
// nothing is made of the tensors that stand for the sums.
// RUN: tessera-opt %t/captured.mlir %{flash} --interpret=1 -o %t/captured | FileCheck %s --check-prefix=EQUAL
// RUN: FileCheck %s --check-prefix=CAPTURED < %t/captured
// More sums by query or distance than a kernel has shared memory for: it runs again.
// RUN: sed 's/^ *tv.accumulate 0.*/&\n&\n&\n&\n&\n&\n&\n&/' %t/captured.mlir > %t/many.mlir
// RUN: tessera-opt %t/many.mlir %{flash} --interpret=1 -o %t/many | FileCheck %s --check-prefix=EQUAL
// RUN: FileCheck %s --check-prefix=MANY < %t/many
// MANY: plan.attention_grad {{.*}} ["query", "query", "query", "query", "query", "query", "query", "query", "key"]
// MANY: plan.attention_grad {{.*}} ["distance", "score"]
// MANY-NOT: plan.attention_grad
// CAPTURED-NOT: func.func @constant
// CAPTURED: func.func @attention_grad_0
// CAPTURED: plan.attention_grad {{.*}} sums %{{.*}} ["query", "key", "distance", "score"]
// CAPTURED: score_grad (%[[S:[^:]*]]: f32, %[[DY:[^:]*]]: f32,
// CAPTURED: %[[FACTOR:.*]] = arith.mulf %[[DY]], %[[S]]
// CAPTURED: tv.yield %[[DY]], %[[DY]], %[[FACTOR]], %[[DY]], %[[DY]]
// CAPTURED: plan.launch @attention_grad_0(
// CAPTURED-SAME: tensor<1x2x3xf32
// CAPTURED-SAME: tensor<1x2x5xf32
// CAPTURED-SAME: tensor<1x2x8xf32
// CAPTURED-SAME: tensor<1x2x3x5xf32
// CAPTURED-SAME: tensor<1x2x131x73xf32
#m = #tv.mesh<tp = 1>
!q = tensor<1x2x3x64xbf16, #tv.local<#tv.view<#m, [1, 2, 3, 64]>, of [1, 2, 3, 64]>>
!k = tensor<1x2x5x64xbf16, #tv.local<#tv.view<#m, [1, 2, 5, 64]>, of [1, 2, 5, 64]>>
!l = tensor<1x2x3xf32, #tv.local<#tv.view<#m, [1, 2, 3]>, of [1, 2, 3]>>
!s = tensor<2xf32, #tv.local<#tv.view<#m, [2]>, of [2]>>
!t = tensor<2x9xf32, #tv.local<#tv.view<#m, [2, 9]>, of [2, 9]>>
func.func @main(%do: !q {tv.name = "do"}, %q: !q {tv.name = "q"}, %k: !k {tv.name = "k"},
                %v: !k {tv.name = "v"}, %o: !q {tv.name = "o"}, %lse: !l {tv.name = "lse"},
                %head: !s {tv.name = "head"}, %key: !t {tv.name = "key"}, %far: !t {tv.name = "far"},
                %table: !t {tv.name = "table"})
    -> (!s {tv.name = "dhead"}, !t {tv.name = "dkey"}, !t {tv.name = "dfar"}, !t {tv.name = "dtable"}) {
  %dq, %dk, %dv, %dhead, %dkey, %dfar, %dtable = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125)
      captured %head, %key, %far, %table
      : (!q, !q, !k, !k, !q, !l, !s, !t, !t, !t) -> (!q, !k, !k, !s, !t, !t, !t)
    score_mod (%x: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = tv.load %head[%h] : !s -> f32
      %y = arith.addf %x, %c : f32
      tv.yield %y : f32
    }
    score_grad (%x: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %two = arith.constant 2 : index
      %near = arith.constant -1 : index
      tv.accumulate 0[%h], %dy : f32
      %factor = arith.mulf %dy, %x : f32
      %twice = arith.muli %ki, %two : index
      tv.accumulate 1[%h, %twice], %factor : f32
      %behind = arith.subi %ki, %qi : index
      %before = arith.cmpi sgt, %qi, %ki : index
      %d = arith.maxsi %behind, %near : index
      %e = arith.addi %d, %two : index
      %at = arith.select %before, %two, %e : index
      tv.accumulate 2[%h, %at], %dy : f32
      %sum = arith.addi %qi, %ki : index
      tv.accumulate 3[%h, %sum], %dy : f32
      tv.yield %dy : f32
    }
  return %dhead, %dkey, %dfar, %dtable : !s, !t, !t, !t
}
