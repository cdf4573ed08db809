// Keys in pages: a kernel for few queries reads them where they lie, `math` gathers them.
// What has more queries, or no page, has no such kernel.
// RUN: split-file %s %t
// RUN: tessera-opt %t/pages.mlir --tessera="to=kernels target=cuda:sm_90a attention=flash" | FileCheck %s --check-prefix=FLASH
// RUN: tessera-opt %t/pages.mlir --tessera="to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=ALL
// RUN: tessera-opt %t/pages.mlir --tessera=to=kernels | FileCheck %s --check-prefix=MATH
// RUN: sed 's/x1x64/x17x64/; s/x1xf32/x17xf32/' %t/pages.mlir | tessera-opt --tessera="to=kernels target=cuda:sm_90a attention=flash" | FileCheck %s --check-prefix=FLASH
// RUN: sed 's/tensor<40x/tensor<?x/; s/: !pages,/: !pages {tv.dims = ["p"]},/g; s/-> !q {/-> !q attributes {tv.sizes = {p = 40}} {/' %t/pages.mlir | not tessera-opt --tessera="to=kernels target=cuda:sm_90a attention=flash" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/tensor<40x/tensor<0x/' %t/pages.mlir | not tessera-opt --tessera="to=kernels target=cuda:sm_90a attention=flash" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/tp = 1/tp = 3/; s/5x16x1x64xbf16, #tv.view<#m, \[_, _/5x16x1x64xbf16, #tv.view<#m, [_, (did(tp) * _ | 4) * 4/' %t/pages.mlir | tessera-opt --tessera="to=kernels target=cuda:sm_90a attention=flash" | FileCheck %s --check-prefix=FLASH
// RUN: not tessera-opt %t/pages.mlir --tessera="to=kernels target=cuda:sm_90a attention=cudnn" 2>&1 | FileCheck %s --check-prefix=CUDNN
// RUN: not tessera-opt %t/gradient.mlir --tessera=to=differentiated 2>&1 | FileCheck %s --check-prefix=GRADIENT

// FLASH-NOT: memref.load %{{.*}} : memref<40x
// FLASH: plan.attention {{.*}} pages %{{.*}} : {{.*}} pages memref<5x9xi32
// ALL: plan.attention {{.*}} pages
// ALL: plan.choose "attention" of "flash"({{.*}}), "math"({{.*}}) without {cudnn = "it has pages"}
// MATH-NOT: plan.attention
// NONE: the numbers of pages and of their positions must be known, and not 0
// CUDNN: {{it has pages|it has a score_mod or a mask_mod}}
// GRADIENT: gradient.mlir:6:{{.*}}: error: 'tv.attention' op has no gradient with pages; gather the keys and values first

//--- pages.mlir
#m = #tv.mesh<tp = 1>
!q = tensor<5x16x1x64xbf16, #tv.view<#m, [_, _, _, _]>>
!pages = tensor<40x4x64x64xbf16>
!table = tensor<5x9xi32>
!lse = tensor<5x16x1xf32>
func.func @main(%q: !q, %k: !pages, %v: !pages, %table: !table) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) pages(%table) : (!q, !pages, !pages, !table) -> (!q, !lse)
  return %a : !q
}

//--- gradient.mlir
#m = #tv.mesh<tp = 1>
!q = tensor<5x16x1x64xbf16, #tv.view<#m, [_, _, _, _]>>
!pages = tensor<40x4x64x64xbf16>
!table = tensor<5x9xi32>
func.func private @attend(%q: !q, %k: !pages, %v: !pages, %table: !table) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.125) pages(%table) : (!q, !pages, !pages, !table) -> (!q, tensor<5x16x1xf32>)
  return %a : !q
}
func.func @main(%q: !q, %k: !pages, %v: !pages, %table: !table, %dy: !q) -> !q {
  %y, %dq = tv.gradient @attend(%q, %k, %v, %table) of [0] with (%dy) to [0]
    : (!q, !pages, !pages, !table, !q) -> (!q, !q)
  return %dq : !q
}
