// The variant of attention's gradient that cuDNN computes: a plan.attend_grad.

// RUN: split-file %s %t
// DEFINE: %{cudnn} = --tessera="from=local to=kernels target=cuda:sm_90a attention=cudnn"
// DEFINE: %{all} = --tessera="from=local to=kernels target=cuda:sm_90a"
// RUN: tessera-opt %t/split.mlir %{cudnn} | FileCheck %s --check-prefix=SPLIT
// RUN: tessera-opt %t/split.mlir %{cudnn} --interpret=2 --interpret-sizes=b=2,s=5 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: sed 's/ causal//' %t/split.mlir | tessera-opt %{cudnn} --interpret=2 --interpret-sizes=b=2,s=5 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/split.mlir %{all} | FileCheck %s --check-prefix=ALL
// RUN: tessera-opt %t/packed.mlir %{cudnn} | FileCheck %s --check-prefix=PACKED
// RUN: tessera-opt %t/packed.mlir %{cudnn} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/packed.mlir %{all} | FileCheck %s --check-prefix=PACKED-ALL
// EQUAL: interpret: @main equals the source on

// ALL: plan.attend_grad
// ALL: plan.choose "attention" of "flash"({{.*}}), "cudnn"({{.*}}), "math"({{.*}}) from "tv.attention_grad" on "[?, 4, ?, 64] [?, 2, ?, 64] [?, 2, ?, 64] bf16 scale 0.125 causal"

// What does not fit has its reason.
// RUN: sed 's/64\]/136]/g; s/x64x/x136x/g' %t/split.mlir | not tessera-opt %{cudnn} 2>&1 | FileCheck %s --check-prefix=DEPTH
// RUN: sed 's/bf16/f32/g' %t/split.mlir | not tessera-opt %{cudnn} 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: sed 's/scale(0/scale(-0/' %t/split.mlir | not tessera-opt %{cudnn} 2>&1 | FileCheck %s --check-prefix=SCALE
// RUN: sed 's/%lse scale/%lse dlse %lse scale/; s/!q, !l)/!q, !l, !l)/' %t/split.mlir | not tessera-opt %{cudnn} 2>&1 | FileCheck %s --check-prefix=LSE
// RUN: not tessera-opt %t/mask.mlir %{cudnn} 2>&1 | FileCheck %s --check-prefix=MASK
// RUN: sed 's/x4x64x/x1x64x/g; s/4, 64\]/1, 64]/g; s/x4xf32/x1xf32/; s/2, 4\]/2, 1]/g; /mask_mod/,/^    }/d' %t/mask.mlir > %t/one.mlir
// RUN: not tessera-opt %t/one.mlir %{cudnn} 2>&1 | FileCheck %s --check-prefix=ONE
// DEPTH: error: has no variant that is allowed; cudnn does not fit: its head dimension must be a multiple of 8, at most 128
// TYPE: error: has no variant that is allowed; cudnn does not fit: its elements must be bf16 or f16
// SCALE: error: has no variant that is allowed; cudnn does not fit: its scale must be positive
// LSE: error: has no variant that is allowed; cudnn does not fit: it has a gradient of the log-sum-exp; what would fit: flash, math
// MASK: error: has no variant that is allowed; cudnn does not fit: it has a score_mod or a mask_mod
// ONE: error: has no variant that is allowed; cudnn does not fit: it has one query and one key

// In a module it is a step of its own.
// RUN: tessera-compile %t/module.mlir --target=cuda:sm_90a --compile-to=plan | FileCheck %s --check-prefix=PLAN
// PLAN: alternative 0: attention flash, cudnn, math // tv.attention_grad at
// PLAN: if 0 is flash: launch attention_grad_{{[0-9]+}}
// PLAN: if 0 is cudnn: attend grad %0, %1, %2, %3, %4 lse %5 to %[[Q:[0-9]+]], %[[K:[0-9]+]], %[[V:[0-9]+]] scale 1.250000e-01 causal // tv.attention_grad at
// PLAN: if 0 is math:

//--- split.mlir
#m = #tv.mesh<tp = 2>
#q = #tv.view<#m, [_, did(tp) * 2, _, 64]>
#k = #tv.view<#m, [_, did(tp), _, 64]>
#l = #tv.view<#m, [_, did(tp) * 2, _]>
!q = tensor<?x2x?x64xbf16, #tv.local<#q, of [b, 4, s, 64]>>
!k = tensor<?x1x?x64xbf16, #tv.local<#k, of [b, 2, s, 64]>>
!l = tensor<?x2x?xf32, #tv.local<#l, of [b, 4, s]>>
func.func @main(%do: !q {tv.name = "do", tv.dims = ["b", "s"]},
                %q: !q {tv.name = "q", tv.dims = ["b", "s"]},
                %k: !k {tv.name = "k", tv.dims = ["b", "s"]},
                %v: !k {tv.name = "v", tv.dims = ["b", "s"]},
                %o: !q {tv.name = "o", tv.dims = ["b", "s"]},
                %lse: !l {tv.name = "lse", tv.dims = ["b", "s"]})
    -> (!q {tv.name = "dq"}, !k {tv.name = "dk"}, !k {tv.name = "dv"})
    attributes {tv.sizes = {b = 64, s = 32}} {
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) causal
      : (!q, !q, !k, !k, !q, !l) -> (!q, !k, !k)
  return %dq, %dk, %dv : !q, !k, !k
}
// SPLIT-NOT: plan.copy
// SPLIT: %[[R:.*]], %[[K:.*]], %[[V:.*]] = plan.attend_grad %arg0, %arg1, %arg2, %arg3, %arg4, %arg5 scale(1.250000e-01) causal from "tv.attention_grad"
// SPLIT-NEXT: plan.choose "attention" of "cudnn"() without {flash = "it is not compiled in", math = "it is not compiled in"}
// SPLIT-NEXT: return %[[R]], %[[K]], %[[V]]

//--- packed.mlir
// Queries, keys and values are parts of one tensor, and so are their gradients: these are
// written in their places.
#m = #tv.mesh<tp = 1>
#y = #tv.view<#m, [_, 2, _, 64]>
!p = tensor<2x6x2x192xbf16, #tv.local<#tv.view<#m, [_, _, 2, 192]>, of [2, 6, 2, 192]>>
!x = tensor<2x6x2x64xbf16, #tv.local<#tv.view<#m, [_, _, 2, 64]>, of [2, 6, 2, 64]>>
!y = tensor<2x2x6x64xbf16, #tv.local<#y, of [2, 2, 6, 64]>>
!l = tensor<2x2x6xf32, #tv.local<#tv.view<#m, [_, 2, _]>, of [2, 2, 6]>>
func.func @main(%p: !p {tv.name = "p"}, %do: !y {tv.name = "do"}, %o: !y {tv.name = "o"},
                %l: !l {tv.name = "l"}) -> (!p {tv.name = "dp"}) {
  %q0 = tv.slice %p offsets [0, 0, 0, 0] : (!p) -> !x
  %k0 = tv.slice %p offsets [0, 0, 0, 64] : (!p) -> !x
  %v0 = tv.slice %p offsets [0, 0, 0, 128] : (!p) -> !x
  %q = tv.transpose %q0 perm [0, 2, 1, 3] : (!x) -> !y
  %k = tv.transpose %k0 perm [0, 2, 1, 3] : (!x) -> !y
  %v = tv.transpose %v0 perm [0, 2, 1, 3] : (!x) -> !y
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %l scale(0.125)
      : (!y, !y, !y, !y, !y, !l) -> (!y, !y, !y)
  %dq0 = tv.transpose %dq perm [0, 2, 1, 3] : (!y) -> !x
  %dk0 = tv.transpose %dk perm [0, 2, 1, 3] : (!y) -> !x
  %dv0 = tv.transpose %dv perm [0, 2, 1, 3] : (!y) -> !x
  %dp = tv.concat %dq0, %dk0, %dv0 dim 3 : (!x, !x, !x) -> !p
  return %dp : !p
}
// PACKED-NOT: {{plan.(copy|launch)}}
// PACKED: %[[Q:.*]], %[[K:.*]], %[[V:.*]] = plan.attend_grad
// PACKED-NOT: {{plan.(copy|launch)}}
// PACKED: plan.join
// PACKED-NOT: {{plan.(copy|launch)}}
// PACKED: return
// PACKED-ALL: plan.choose "attention" of "flash"({{.*}}), "cudnn"({{.*}}), "math"(
// PACKED-ALL: plan.join

//--- mask.mlir
#m = #tv.mesh<tp = 1>
!q = tensor<1x2x4x64xbf16, #tv.local<#tv.view<#m, [1, 2, 4, 64]>, of [1, 2, 4, 64]>>
!l = tensor<1x2x4xf32, #tv.local<#tv.view<#m, [1, 2, 4]>, of [1, 2, 4]>>
func.func @main(%q: !q, %l: !l) -> !q {
  %dq, %dk, %dv = tv.attention_grad %q, %q, %q, %q, %q, %l scale(0.125)
      : (!q, !q, !q, !q, !q, !l) -> (!q, !q, !q)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %r = arith.cmpi ule, %qi, %ki : index
      tv.yield %r : i1
    }
  return %dq : !q
}

//--- module.mlir
#m = #tv.mesh<tp = 1>
!x = tensor<1x1x4x64xbf16, #tv.view<#m, [_, _, _, _]>>
!l = tensor<1x1x4xf32, #tv.view<#m, [_, _, _]>>
func.func @main(%do: !x, %q: !x, %k: !x, %v: !x, %o: !x, %l: !l) -> (!x, !x, !x) {
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %l scale(0.125) causal
      : (!x, !x, !x, !x, !x, !l) -> (!x, !x, !x)
  return %dq, %dk, %dv : !x, !x, !x
}
