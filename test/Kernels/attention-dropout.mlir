// Dropout of attention's weights, of any number of keys; what has pages, or numbers of
// queries or keys that are not known, has no such kernel, and `math` drops weights in memory.
// RUN: tessera-opt %s --tessera="to=kernels target=cuda:sm_90a attention=flash" | FileCheck %s --check-prefix=FLASH
// RUN: tessera-opt %s --tessera="to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=ALL
// RUN: tessera-opt %s --tessera=to=kernels | FileCheck %s --check-prefix=MATH
// RUN: sed 's/x120x64/x123x64/' %s | tessera-opt --tessera="to=kernels target=cuda:sm_90a attention=flash" | FileCheck %s --check-prefix=FLASH
// RUN: sed 's/x120x64/x?x64/; s/%[kv]: !k/& {tv.dims = ["t"]}/g; s/^func.* (!q, !q)/& attributes {tv.sizes = {t = 120}}/' %s > %t
// RUN: not tessera-opt %t --tessera="to=kernels target=cuda:sm_90a attention=flash" 2>&1 | FileCheck %s --check-prefix=KEYS
// RUN: tessera-opt %t --tessera="to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=MATH
// RUN: not tessera-opt %s --tessera="to=kernels target=cuda:sm_90a attention=cudnn" 2>&1 | FileCheck %s --check-prefix=CUDNN

// Streams and steps are the launch's: layers share a kernel, which knows the seed.
// FLASH: plan.attention {{.*}} dropout(1.000000e-01) seed %{{.*}} stream %{{.*}} step
// FLASH: number_mod
// FLASH-NOT: plan.attention
// FLASH: plan.launch @attention_0({{.*}}) scalars [#plan.extent<2>]
// FLASH: plan.launch @attention_0({{.*}}) scalars [#plan.extent<3>]
// ALL: plan.choose "attention" of "flash"({{.*}}), "math"({{.*}}) without {cudnn = "it has dropout"} from "tv.attention" on "{{.*}} bf16 scale 0.125 dropout"
// MATH-NOT: plan.attention
// MATH: plan.random
// KEYS: with dropout, the numbers of queries and keys must be static
// CUDNN: it has dropout
#m = #tv.mesh<tp = 1>
!q = tensor<2x4x100x64xbf16, #tv.view<#m, [_, _, _, _]>>
!k = tensor<2x4x120x64xbf16>
!lse = tensor<2x4x100xf32>
!step = tensor<i64>
func.func @main(%q: !q, %k: !k, %v: !k, %step: !step) -> (!q, !q) {
  %a, %l = tv.attention %q, %k, %v scale(0.125) dropout(0.1) seed(1) stream(2) step %step : (!q, !k, !k, !step) -> (!q, !lse)
  %b, %m = tv.attention %a, %k, %v scale(0.125) dropout(0.1) seed(1) stream(3) step %step : (!q, !k, !k, !step) -> (!q, !lse)
  return %a, %b : !q, !q
}
