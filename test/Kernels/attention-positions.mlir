// Devices have parts of the queries, or of a gradient's keys: `flash` takes them as they
// lie. Its functions get the numbers that positions have on all devices. Where they are
// blocks of keys, a query sees those up to one that its number tells; else what `causal`
// says is a mask of numbers.

// RUN: split-file %s %t
// DEFINE: %{flash} = --tessera="to=kernels target=cuda:sm_90a attention=flash"
// DEFINE: %{any} = --tessera="to=kernels target=cuda:sm_90a"
// RUN: tessera-opt %t/queries.mlir %{flash} | FileCheck %s --check-prefix=QUERIES
// RUN: tessera-opt %t/queries.mlir %{flash} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: sed 's/did(tp) \* _/_ * did(tp) * 1/' %t/queries.mlir > %t/turns.mlir
// RUN: tessera-opt %t/turns.mlir %{flash} | FileCheck %s --check-prefix=TURNS
// RUN: tessera-opt %t/turns.mlir %{flash} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: sed 's/tp = 2/tp = 3/' %t/queries.mlir | tessera-opt %{flash} --interpret=3 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/keys.mlir %{flash} | FileCheck %s --check-prefix=KEYS
// RUN: tessera-opt %t/keys.mlir %{flash} --interpret=4 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: sed 's/x = 2, y = 2/x = 3, y = 2/' %t/keys.mlir | tessera-opt %{flash} --interpret=6 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// EQUAL: interpret: @main equals the source on

// What a query needs of all keys, one device has; cuDNN knows no numbers.
// RUN: tessera-opt %t/queries.mlir %{any} | FileCheck %s --check-prefix=ANY
// ANY: plan.choose "attention" of "flash"({{.*}}), "math"({{.*}}) without {cudnn = "it is causal, and positions are split"} from "tv.attention"
// RUN: sed 's/ causal//' %t/queries.mlir | tessera-opt %{any} | FileCheck %s --check-prefix=FULL
// FULL: plan.choose "attention" of "flash"({{.*}}), "cudnn"({{.*}}), "math"({{.*}}) from "tv.attention"
// RUN: sed 's/ causal/ causal dropout(0.1) seed(1) stream(2)/' %t/queries.mlir | tessera-opt %{flash} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: sed 's/ causal/ causal dropout(0.1) seed(1) stream(2)/' %t/turns.mlir | tessera-opt %{flash} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: sed 's/ causal/ causal dropout(0.1) seed(1) stream(2)/; s/did(y) \* _/_ * did(y) * 2/' %t/keys.mlir | not tessera-opt %{flash} 2>&1 | FileCheck %s --check-prefix=DROPOUT
// RUN: sed 's/x12x/x?x/; s/{tv.name = "q"}/{tv.name = "q", tv.dims = ["s"]}/; s/!l) {/!l) attributes {tv.sizes = {s = 12}} {/; s/x12x/x?x/g' %t/queries.mlir > %t/sizes.mlir
// RUN: tessera-opt %t/sizes.mlir %{flash} --interpret=2 --interpret-sizes=s=7 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/sizes.mlir %{flash} --interpret=2 --interpret-sizes=s=12 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: sed 's/%%h, %%ki/%%h, %%at/; s/%%x = tv.load/%%at = arith.subi %%ki, %%qi : index\n%%x = tv.load/' %t/keys.mlir > %t/distance.mlir
// RUN: tessera-opt %t/distance.mlir %{flash} --interpret=4 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: sed 's/x = 2, y = 2/x = 3, y = 2/' %t/distance.mlir | tessera-opt %{flash} --interpret=6 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: sed 's/x = 2, y = 2/x = 2, y = 3/' %t/distance.mlir | not tessera-opt %{flash} 2>&1 | FileCheck %s --check-prefix=DISTANCE
// DROPOUT: error: has no variant that is allowed; flash does not fit: with dropout a device must have keys by blocks of a multiple of 16; what would fit: math
// DISTANCE: error: has no variant that is allowed; flash does not fit: devices must have equal blocks of positions for a gradient by distance; what would fit: math

// QUERIES-LABEL: func.func @attention_0
// QUERIES: plan.attention {{.*}} causal : memref<1x2x6x64xbf16, {{.*}}memref<1x2x9x64xbf16
// QUERIES-SAME: causal_mod (%{{[^:]*}}: index, %{{[^:]*}}: index, %[[Q:[^:]*]]: index, %{{[^:]*}}: index) {
// QUERIES: %[[GLOBAL:.*]] = arith.addi %[[Q]], %{{.*}} : index
// QUERIES: %[[LAST:.*]] = arith.addi %[[GLOBAL]], %{{.*}} : index
// QUERIES: tv.yield %[[LAST]] : index

// TURNS-LABEL: func.func @attention_0
// TURNS: plan.attention {{.*}} causal :
// TURNS-SAME: causal_mod (%{{[^:]*}}: index, %{{[^:]*}}: index, %[[Q:[^:]*]]: index, %{{[^:]*}}: index) {
// TURNS: %[[TURN:.*]] = arith.muli %[[Q]], %{{.*}} : index
// TURNS: %[[GLOBAL:.*]] = arith.addi %{{.*}}, %[[TURN]] : index
// TURNS: %[[LAST:.*]] = arith.addi %[[GLOBAL]], %{{.*}} : index
// TURNS: tv.yield %[[LAST]] : index

// KEYS: plan.attention_grad {{.*}} causal {{.*}}memref<1x2x6x64xbf16, {{.*}}memref<1x2x4x64xbf16
// KEYS: causal_mod
// KEYS: %[[LAST:.*]] = arith.subi %{{.*}}, %{{.*}} : index
// KEYS: tv.yield %[[LAST]] : index

//--- queries.mlir
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x12x64xbf16, #tv.view<#m, [_, _, did(tp) * _, _]>>
!o = tensor<1x2x12x64xbf16>
!k = tensor<1x2x9x64xbf16>
!l = tensor<1x2x12xf32>
func.func @main(%q: !q {tv.name = "q"}, %k: !k, %v: !k) -> (!o, !l) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !k, !k) -> (!o, !l)
  return %o, %lse : !o, !l
}

//--- keys.mlir
#m = #tv.mesh<x = 2, y = 2>
!q = tensor<1x2x12x64xbf16, #tv.view<#m, [_, _, did(x) * _, _]>>
!k = tensor<1x2x8x64xbf16, #tv.view<#m, [_, _, did(y) * _, _]>>
!l = tensor<1x2x12xf32, #tv.view<#m, [_, _, did(x) * _]>>
!c = tensor<2x8xf32>
!r = tensor<12xf32>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k, %o: !q, %any: !l, %c: !c, %r: !r)
    -> (!q, !k, !k, !c, !r) {
  // Large enough that no weight is above 1.
  %lse = tv.map %any : (!l) -> !l
    (%x: f32) {
      %least = arith.constant 8.0 : f32
      %square = arith.mulf %x, %x : f32
      %y = arith.addf %square, %least : f32
      tv.yield %y : f32
    }
  %dq, %dk, %dv, %dc, %dr = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
      captured %c, %r : (!q, !q, !k, !k, !q, !l, !c, !r) -> (!q, !k, !k, !c, !r)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %c[%h, %ki] : !c -> f32
      %d = tv.load %r[%qi] : !r -> f32
      %e = arith.mulf %d, %s : f32
      %y = arith.addf %e, %x : f32
      tv.yield %y : f32
    }
  return %dq, %dk, %dv, %dc, %dr : !q, !k, !k, !c, !r
}
