// Variants of attention. `flash` is one op of a kernel, which computes what the
// source says; `math` has its scores in memory.

// RUN: split-file %s %t
// DEFINE: %{flash} = --tessera="from=local to=kernels target=cuda:sm_90a attention=flash"
// RUN: tessera-opt %t/split.mlir %{flash} | FileCheck %s --check-prefix=SPLIT
// RUN: tessera-opt %t/split.mlir %{flash} --interpret=2 --interpret-sizes=b=2,s=5 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/packed.mlir %{flash} | FileCheck %s --check-prefix=PACKED
// RUN: tessera-opt %t/packed.mlir %{flash} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: sed 's/72/68/g; s/1, 8\]/1, 4]/' %t/packed.mlir > %t/odd.mlir
// RUN: tessera-opt %t/odd.mlir %{flash} | FileCheck %s --check-prefix=ODD
// RUN: tessera-opt %t/odd.mlir %{flash} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL

// EQUAL: interpret: @main equals the source on

// All variants that fit are compiled in by default, each equal to the source; the
// interpreter takes the first. A CPU has `math` only.
// DEFINE: %{all} = --tessera="from=local to=kernels target=cuda:sm_90a"
// RUN: tessera-opt %t/split.mlir %{all} | FileCheck %s --check-prefix=ALL
// RUN: tessera-opt %t/packed.mlir %{all} | FileCheck %s --check-prefix=NO-LSE
// RUN: tessera-opt %t/split.mlir --tessera="from=local to=kernels target=cuda:sm_90a attention=math,flash" | FileCheck %s --check-prefix=MATH-FIRST
// RUN: tessera-opt %t/split.mlir %{all} --interpret=2 --interpret-sizes=b=2,s=5 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/split.mlir --tessera="from=local to=kernels target=cuda:sm_90a attention=math,flash" --interpret=2 --interpret-sizes=b=2,s=5 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/split.mlir --tessera="from=local to=kernels target=cuda:sm_90a attention=math" | FileCheck %s --check-prefix=MATH
// RUN: tessera-opt %t/split.mlir --tessera="from=local to=kernels" | FileCheck %s --check-prefix=ON-CPU
// ALL: %[[F:.*]]:2 = plan.launch @attention_0(%arg0, %arg1, %arg2, %arg3, %arg4)
// ALL: %[[W:.*]]:3 = plan.launch {{.*}} from "tv.map"
// ALL: %[[O:.*]] = plan.launch @{{.*}}(%{{.*}}, %[[W]]#1) {{.*}} from "tv.map"
// ALL-NOT: plan.copy
// ALL: %[[R:.*]]:2 = plan.choose "attention" of "flash"(%[[F]]#0, %[[F]]#1), "math"(%[[O]], %[[W]]#2) without {cudnn = "it has a score_mod or a mask_mod"} from "tv.attention"
// ALL-NEXT: return %[[R]]#0, %[[R]]#1
// NO-LSE: %[[R:.*]] = plan.choose "attention" of "flash"(%{{[0-9]+}}), "cudnn"(%{{[a-z0-9_]+}}), "math"(%{{[0-9]+}}) from "tv.attention"
// NO-LSE-NEXT: return %[[R]]
// MATH-FIRST: plan.choose "attention" of "math"({{.*}}), "flash"({{.*}}) without {cudnn = "it is not compiled in"} from
// MATH-NOT: plan.attention
// MATH: plan.contract
// MATH: plan.choose "attention" of "math"() without {cudnn = "it is not compiled in", flash = "it is not compiled in"} from "tv.attention" on "{{[^"]*}}"{{$}}
// ON-CPU-NOT: plan.attention
// ON-CPU: plan.choose "attention" of "math"() without {cudnn = "it is for cuda:sm_90a and cuda:sm_XY from sm_80 on", flash = "it is for cuda:sm_90a"} from "tv.attention" on "{{[^"]*}}"{{$}}

// What does not fit has its reason.
// RUN: not tessera-opt %t/split.mlir --tessera="from=local to=kernels attention=flash" 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: sed 's/bf16/f32/g' %t/split.mlir | not tessera-opt %{flash} 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: sed 's/bf16/f32/g' %t/split.mlir | tessera-opt %{all} | FileCheck %s --check-prefix=MATH-ALONE
// RUN: sed 's/64\]/32]/g; s/x64x/x32x/g' %t/split.mlir | not tessera-opt %{flash} 2>&1 | FileCheck %s --check-prefix=DEPTH
// RUN: not tessera-opt %t/positions.mlir %{flash} 2>&1 | FileCheck %s --check-prefix=POSITIONS
// RUN: not tessera-opt %t/split.mlir --tv-expand-composites=attention=fast 2>&1 | FileCheck %s --check-prefix=NAME
// CPU: split.mlir:{{[0-9]+}}:14: error: has no variant that is allowed; flash does not fit: it is for cuda:sm_90a
// MATH-ALONE: plan.choose "attention" of "math"() without {cudnn = "its elements must be bf16 or f16", flash = "its elements must be bf16 or f16"}
// TYPE: error: has no variant that is allowed; flash does not fit: its elements must be bf16 or f16; what would fit: math{{$}}
// DEPTH: error: has no variant that is allowed; flash does not fit: its head dimension must be 64, 96, 128, 192 or 256
// POSITIONS: error: has no variant that is allowed; flash does not fit: each device must have all keys
// NAME: error: 'fast' is no variant of attention; there are 'flash', 'cudnn' and 'math'

//--- split.mlir
#m = #tv.mesh<tp = 2>
#q = #tv.view<#m, [_, did(tp) * 2, _, 64]>
#k = #tv.view<#m, [_, did(tp), _, 64]>
#l = #tv.view<#m, [_, did(tp) * 2, _]>
#bias = #tv.view<#m, [4]>
#mask = #tv.view<#m, [_, _]>
!q = tensor<?x2x?x64xbf16, #tv.local<#q, of [b, 4, s, 64]>>
!k = tensor<?x1x?x64xbf16, #tv.local<#k, of [b, 2, s, 64]>>
!l = tensor<?x2x?xf32, #tv.local<#l, of [b, 4, s]>>
!bias = tensor<4xf32, #tv.local<#bias, of [4]>>
!mask = tensor<?x?xf32, #tv.local<#mask, of [b, s]>>
func.func @main(%q: !q {tv.name = "q", tv.dims = ["b", "s"]},
                %k: !k {tv.name = "k", tv.dims = ["b", "s"]},
                %v: !k {tv.name = "v", tv.dims = ["b", "s"]},
                %bias: !bias {tv.name = "bias"},
                %mask: !mask {tv.name = "mask", tv.dims = ["b", "s"]})
    -> (!q {tv.name = "o"}, !l {tv.name = "lse"})
    attributes {tv.sizes = {b = 64, s = 32}} {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal
      : (!q, !k, !k) -> (!q, !l)
    score_mod (%x: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = tv.load %bias[%h] : !bias -> f32
      %y = arith.addf %x, %c : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = tv.load %mask[%b, %ki] : !mask -> f32
      %t = arith.constant -5.0e-1 : f32
      %r = arith.cmpf ogt, %c, %t : f32
      tv.yield %r : i1
    }
  return %o, %lse : !q, !l
}
// Regions see global heads: this device's first is a coordinate times 2.
// SPLIT: func.func @attention_0(
// SPLIT: %[[COORD:.*]] = arith.index_cast
// SPLIT: plan.attention {{.*}} scale(1.250000e-01) causal
// SPLIT-SAME: score_mod (%[[S:.*]]: f32, %{{[^:]*}}: index, %[[H:[^:]*]]: index,
// SPLIT: %[[FIRST:.*]] = arith.muli %[[COORD]]
// SPLIT: %[[GLOBAL:.*]] = arith.addi %[[H]], %[[FIRST]]
// SPLIT: memref.load %{{.*}}[%[[GLOBAL]]]
// SPLIT: mask_mod
// SPLIT-NOT: arith.addi
// SPLIT: tv.yield %{{.*}} : i1
// SPLIT: plan.launch @attention_0(%arg0, %arg1, %arg2, %arg3, %arg4) scalars [#plan.coord<"tp">,

//--- packed.mlir
// Queries, keys and values are slices of one tensor, read where they are.
#m = #tv.mesh<tp = 1>
#y = #tv.view<#m, [_, 1, _, 64]>
#l = #tv.view<#m, [_, 1, _]>
!p = tensor<2x6x3x72xbf16, #tv.local<#tv.view<#m, [_, _, 3, 72]>, of [2, 6, 3, 72]>>
!x = tensor<2x6x1x64xbf16, #tv.local<#tv.view<#m, [_, _, 1, 64]>, of [2, 6, 1, 64]>>
!y = tensor<2x1x6x64xbf16, #tv.local<#y, of [2, 1, 6, 64]>>
!l = tensor<2x1x6xf32, #tv.local<#l, of [2, 1, 6]>>
func.func @main(%p: !p {tv.name = "p"}) -> (!y {tv.name = "o"}) {
  %k = tv.slice %p offsets [0, 0, 1, 8] : (!p) -> !x
  %t = tv.transpose %k perm [0, 2, 1, 3] : (!x) -> !y
  %o, %lse = tv.attention %t, %t, %t scale(0.125) : (!y, !y, !y) -> (!y, !l)
  return %o : !y
}
// PACKED: plan.alias transpose
// PACKED-NOT: plan.copy
// PACKED: plan.launch @attention_0

// Rows of 68 elements are no multiple of 16 bytes: a copy.
// ODD: plan.alias transpose
// ODD: plan.copy
// ODD: plan.launch @attention_0

//--- positions.mlir
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x8x64xbf16, #tv.local<#tv.view<#m, [1, 2, 8, 64]>, of [1, 2, 8, 64]>>
!k = tensor<1x2x4x64xbf16, #tv.local<#tv.view<#m, [1, 2, did(tp) * 4, 64]>, of [1, 2, 8, 64]>>
!l = tensor<1x2x8xf32, #tv.local<#tv.view<#m, [1, 2, 8]>, of [1, 2, 8]>>
func.func @main(%q: !q, %k: !k) -> !q {
  %o, %lse = tv.attention %q, %k, %k scale(0.125) : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}
