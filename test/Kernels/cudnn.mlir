// The variant of attention that cuDNN computes: a plan.attend.

// RUN: split-file %s %t
// DEFINE: %{cudnn} = --tessera="from=local to=kernels target=cuda:sm_90a attention=cudnn"
// RUN: tessera-opt %t/split.mlir %{cudnn} | FileCheck %s --check-prefix=SPLIT
// RUN: tessera-opt %t/split.mlir %{cudnn} --interpret=2 --interpret-sizes=b=2,s=5 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/packed.mlir %{cudnn} | FileCheck %s --check-prefix=PACKED
// RUN: tessera-opt %t/packed.mlir %{cudnn} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: sed 's/72/68/g; s/1, 8\]/1, 4]/' %t/packed.mlir > %t/odd.mlir
// RUN: tessera-opt %t/odd.mlir %{cudnn} | FileCheck %s --check-prefix=ODD
// RUN: tessera-opt %t/odd.mlir %{cudnn} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// EQUAL: interpret: @main equals the source on

// By default all three are there, flash first; a list has its own order.
// DEFINE: %{all} = --tessera="from=local to=kernels target=cuda:sm_90a"
// RUN: tessera-opt %t/split.mlir %{all} | FileCheck %s --check-prefix=ALL
// RUN: tessera-opt %t/split.mlir --tessera="from=local to=kernels target=cuda:sm_90a attention=cudnn,flash" | FileCheck %s --check-prefix=FIRST
// RUN: tessera-opt %t/split.mlir --tessera="from=local to=kernels" | FileCheck %s --check-prefix=ON-CPU
// ALL: plan.attend
// ALL: plan.choose "attention" of "flash"({{.*}}), "cudnn"({{.*}}), "math"({{.*}}) from "tv.attention"
// FIRST: plan.choose "attention" of "cudnn"({{.*}}), "flash"({{.*}}) without {math = "it is not compiled in"} from
// ON-CPU-NOT: plan.attend
// ON-CPU: plan.choose "attention" of "math"() without {cudnn = "it is for cuda:sm_90a and cuda:sm_XY from sm_80 on", flash = "it is for cuda:sm_90a"}

// What does not fit has its reason. (A head dimension of 24 fits.)
// RUN: sed 's/64\]/24]/g; s/x64x/x24x/g' %t/split.mlir | tessera-opt %{all} | FileCheck %s --check-prefix=NARROW
// RUN: sed 's/64\]/20]/g; s/x64x/x20x/g' %t/split.mlir | not tessera-opt %{cudnn} 2>&1 | FileCheck %s --check-prefix=DEPTH
// RUN: sed 's/64\]/136]/g; s/x64x/x136x/g' %t/split.mlir | not tessera-opt %{cudnn} 2>&1 | FileCheck %s --check-prefix=DEPTH
// RUN: sed 's/bf16/f32/g' %t/split.mlir | not tessera-opt %{cudnn} 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: sed 's/scale(0/scale(-0/' %t/split.mlir | not tessera-opt %{cudnn} 2>&1 | FileCheck %s --check-prefix=SCALE
// RUN: not tessera-opt %t/mods.mlir %{cudnn} 2>&1 | FileCheck %s --check-prefix=MODS
// RUN: not tessera-opt %t/lengths.mlir %{cudnn} 2>&1 | FileCheck %s --check-prefix=LENGTHS
// RUN: sed 's/ causal//' %t/lengths.mlir | tessera-opt %{cudnn} | FileCheck %s --check-prefix=FULL
// RUN: sed 's/12/3/g' %t/fewer.mlir | not tessera-opt %{cudnn} 2>&1 | FileCheck %s --check-prefix=LENGTHS
// RUN: tessera-opt %t/fewer.mlir %{cudnn} | FileCheck %s --check-prefix=FEWER
// RUN: tessera-opt %t/fewer.mlir %{cudnn} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: not tessera-opt %t/positions.mlir %{cudnn} 2>&1 | FileCheck %s --check-prefix=POSITIONS
// RUN: not tessera-opt %t/split.mlir --tessera="from=local to=kernels attention=cudnn" 2>&1 | FileCheck %s --check-prefix=CPU
// NARROW: plan.choose "attention" of "cudnn"({{.*}}), "math"({{.*}}) without {flash = "its head dimension must be 64, 96, 128, 192 or 256"}
// DEPTH: error: has no variant that is allowed; cudnn does not fit: its head dimension must be a multiple of 8, at most 128
// TYPE: error: has no variant that is allowed; cudnn does not fit: its elements must be bf16 or f16
// SCALE: error: has no variant that is allowed; cudnn does not fit: its scale must be positive
// MODS: error: has no variant that is allowed; cudnn does not fit: it has a score_mod or a mask_mod
// LENGTHS: error: has no variant that is allowed; cudnn does not fit: it is causal, and there may be more queries than keys
// FULL: plan.attend {{.*}} scale(1.250000e-01) from
// FEWER: plan.attend {{.*}} scale(1.250000e-01) causal from
// POSITIONS: error: has no variant that is allowed; cudnn does not fit: each device must have all keys
// CPU: split.mlir:{{[0-9]+}}:14: error: has no variant that is allowed; cudnn does not fit: it is for cuda:sm_90a and cuda:sm_XY from sm_80 on

// In a module it is a step of its own.
// RUN: tessera-compile %t/module.mlir --target=cuda:sm_90a --compile-to=plan | FileCheck %s --check-prefix=PLAN
// PLAN: for cuda:sm_90a
// PLAN: output 'result0' %[[O:[0-9]+]]
// PLAN: alternative 0: attention flash, cudnn, math // tv.attention at
// PLAN: if 0 is flash: launch attention_{{[0-9]+}} %0, %1, %2, %[[O]], %[[L:[0-9]+]] //
// PLAN: if 0 is cudnn: attend %0, %1, %2 to %[[O]] lse %[[L]] scale 1.250000e-01 causal // tv.attention at
// PLAN: if 0 is math: contract
// RUN: tessera-compile %t/module.mlir --target=cuda:sm_90a --attention=cudnn --compile-to=plan | FileCheck %s --check-prefix=ALONE
// ALONE: for cuda:sm_90a
// ALONE: alternative 0: attention cudnn, flash (not there: it is not compiled in), math (not there: it is not compiled in) //
// ALONE-NEXT: attend %0, %1, %2 to %{{[0-9]+}} lse %{{[0-9]+}} scale 1.250000e-01 causal //
// ALONE-NOT: {{launch|contract|copy}}

//--- split.mlir
#m = #tv.mesh<tp = 2>
#q = #tv.view<#m, [_, did(tp) * 2, _, 64]>
#k = #tv.view<#m, [_, did(tp), _, 64]>
#l = #tv.view<#m, [_, did(tp) * 2, _]>
!q = tensor<?x2x?x64xbf16, #tv.local<#q, of [b, 4, s, 64]>>
!k = tensor<?x1x?x64xbf16, #tv.local<#k, of [b, 2, s, 64]>>
!l = tensor<?x2x?xf32, #tv.local<#l, of [b, 4, s]>>
func.func @main(%q: !q {tv.name = "q", tv.dims = ["b", "s"]},
                %k: !k {tv.name = "k", tv.dims = ["b", "s"]},
                %v: !k {tv.name = "v", tv.dims = ["b", "s"]})
    -> (!q {tv.name = "o"}, !l {tv.name = "lse"})
    attributes {tv.sizes = {b = 64, s = 32}} {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal
      : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}
// SPLIT-NOT: plan.copy
// SPLIT: %[[R:.*]], %[[L:.*]] = plan.attend %arg0, %arg1, %arg2 scale(1.250000e-01) causal from "tv.attention"
// SPLIT-NEXT: plan.choose "attention" of "cudnn"() without {flash = "it is not compiled in", math = "it is not compiled in"}
// SPLIT-NEXT: return %[[R]], %[[L]]

//--- packed.mlir
// Queries, keys and values are slices of one tensor, read where they are. Nobody
// wants the log-sum-exp.
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
// PACKED: %[[T:.*]] = plan.alias transpose
// PACKED-NOT: plan.copy
// PACKED: %[[R:.*]] = plan.attend %[[T]], %[[T]], %[[T]] scale(1.250000e-01) from
// PACKED: return %[[R]]

// Rows of 68 elements are no multiple of 16 bytes: one copy.
// ODD: %[[T:.*]] = plan.alias transpose
// ODD: %[[C:.*]] = plan.copy %[[T]]
// ODD-NOT: plan.copy
// ODD: plan.attend %[[C]], %[[C]], %[[C]]

//--- mods.mlir
#m = #tv.mesh<tp = 1>
!q = tensor<1x2x4x64xbf16, #tv.local<#tv.view<#m, [1, 2, 4, 64]>, of [1, 2, 4, 64]>>
!l = tensor<1x2x4xf32, #tv.local<#tv.view<#m, [1, 2, 4]>, of [1, 2, 4]>>
func.func @main(%q: !q) -> !q {
  %o, %lse = tv.attention %q, %q, %q scale(0.125) : (!q, !q, !q) -> (!q, !l)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %r = arith.cmpi ule, %qi, %ki : index
      tv.yield %r : i1
    }
  return %o : !q
}

//--- lengths.mlir
#m = #tv.mesh<tp = 1>
!q = tensor<1x2x?x64xbf16, #tv.local<#tv.view<#m, [1, 2, _, 64]>, of [1, 2, s, 64]>>
!k = tensor<1x2x?x64xbf16, #tv.local<#tv.view<#m, [1, 2, _, 64]>, of [1, 2, t, 64]>>
!l = tensor<1x2x?xf32, #tv.local<#tv.view<#m, [1, 2, _]>, of [1, 2, s]>>
func.func @main(%q: !q {tv.name = "q", tv.dims = ["s"]},
                %k: !k {tv.name = "k", tv.dims = ["t"]}) -> (!q {tv.name = "o"})
    attributes {tv.sizes = {s = 8, t = 8}} {
  %o, %lse = tv.attention %q, %k, %k scale(0.125) causal : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}

//--- fewer.mlir
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x4x64xbf16, #tv.local<#tv.view<#m, [did(tp) * 1, 2, 4, 64]>, of [2, 2, 4, 64]>>
!k = tensor<1x2x12x64xbf16, #tv.local<#tv.view<#m, [did(tp) * 1, 2, 12, 64]>, of [2, 2, 12, 64]>>
!l = tensor<1x2x4xf32, #tv.local<#tv.view<#m, [did(tp) * 1, 2, 4]>, of [2, 2, 4]>>
func.func @main(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

//--- positions.mlir
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x8x64xbf16, #tv.local<#tv.view<#m, [1, 2, 8, 64]>, of [1, 2, 8, 64]>>
!k = tensor<1x2x4x64xbf16, #tv.local<#tv.view<#m, [1, 2, did(tp) * 4, 64]>, of [1, 2, 8, 64]>>
!l = tensor<1x2x8xf32, #tv.local<#tv.view<#m, [1, 2, 8]>, of [1, 2, 8]>>
func.func @main(%q: !q, %k: !k) -> !q {
  %o, %lse = tv.attention %q, %k, %k scale(0.125) : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}

//--- module.mlir
#m = #tv.mesh<tp = 1>
!x = tensor<1x1x4x64xbf16, #tv.view<#m, [_, _, _, _]>>
!l = tensor<1x1x4xf32>
func.func @main(%q: !x, %k: !x, %v: !x) -> (!x, !l) {
  %o, %lse = tv.attention %q, %k, %v scale(0.125) causal : (!x, !x, !x) -> (!x, !l)
  return %o, %lse : !x, !l
}
