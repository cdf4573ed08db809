// Matrix products that are kernels of our own, with what follows them.
// (product-variants.mlir has them beside the library's.)

// RUN: split-file %s %t
// DEFINE: %{own} = --tessera="from=local to=kernels target=cuda:sm_90a matmul=own"
// RUN: tessera-opt %t/block.mlir %{own} | FileCheck %s --check-prefix=BLOCK
// RUN: tessera-opt %t/block.mlir %{own} --interpret=2 --interpret-sizes=b=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/uses.mlir %{own} | FileCheck %s --check-prefix=USES
// RUN: tessera-opt %t/uses.mlir %{own} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/windows.mlir %{own} | FileCheck %s --check-prefix=WINDOWS
// RUN: tessera-opt %t/windows.mlir %{own} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL

// EQUAL: interpret: @main equals the source on

// The library alone by default.
// RUN: tessera-opt %t/block.mlir --tessera="from=local to=kernels target=cuda:sm_90a" | FileCheck %s --check-prefix=LIBRARY
// RUN: tessera-opt %t/block.mlir --tessera="from=local to=kernels" | FileCheck %s --check-prefix=LIBRARY
// LIBRARY-NOT: {{plan.product|plan.choose}}
// LIBRARY: plan.contract
// LIBRARY-NOT: {{plan.product|plan.choose}}

// What does not fit has its reason.
// RUN: not tessera-opt %t/block.mlir --tessera="from=local to=kernels matmul=own" 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not tessera-opt %t/block.mlir --tessera="from=local to=kernels matmul=cublaslt,own" 2>&1 | FileCheck %s --check-prefix=NEITHER
// RUN: sed 's/bf16/f32/g' %t/block.mlir | not tessera-opt %{own} 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: sed 's/16]/12]/g; s/x16x/x12x/g' %t/block.mlir | not tessera-opt %{own} 2>&1 | FileCheck %s --check-prefix=TERMS
// RUN: sed 's/24/20/g; s/48/40/g' %t/block.mlir | not tessera-opt %{own} 2>&1 | FileCheck %s --check-prefix=COLUMNS
// RUN: sed 's/alloc = (0, 1)/alloc = (1, 0)/' %t/block.mlir | not tessera-opt %{own} 2>&1 | FileCheck %s --check-prefix=TERMS
// RUN: sed 's/0, 0, 8/0, 0, 4/' %t/windows.mlir | not tessera-opt %{own} 2>&1 | FileCheck %s --check-prefix=TERMS
// RUN: not tessera-opt %t/plain.mlir %{own} 2>&1 | FileCheck %s --check-prefix=TERMS
// RUN: not tessera-opt %t/four.mlir %{own} 2>&1 | FileCheck %s --check-prefix=FOUR
// RUN: not tessera-opt %t/block.mlir --tv-set-target=target=cuda:sm_90a --tv-group-ops=matmul=best 2>&1 | FileCheck %s --check-prefix=NAME
// CPU: block.mlir:{{[0-9]+}}:8: error: has no variant that is allowed; own does not fit: it is for cuda:sm_90a{{$}}
// NEITHER: error: has no variant that is allowed; cublaslt does not fit: it is for cuda:sm_90a and cuda:sm_XY from sm_80 on; own does not fit: it is for cuda:sm_90a
// TYPE: error: has no variant that is allowed; own does not fit: its elements must be bf16 or f16; what would fit: cublaslt{{$}}
// TERMS: error: has no variant that is allowed; own does not fit: what it contracts must be innermost in memory, in rows of a multiple of 16 bytes
// COLUMNS: error: has no variant that is allowed; own does not fit: the columns of its result must be innermost in memory, in rows of a multiple of 16 bytes
// FOUR: error: has no variant that is allowed; own does not fit: its result must be a matrix or a batch of matrices
// NAME: error: 'best' is no variant of matmul; there are 'cublaslt' and 'own'

//--- block.mlir
// Bias, gelu, scaling by a row's number and a residual are of one kernel. Random numbers
// are not.
#m = #tv.mesh<tp = 2>
!x = tensor<?x3x16xbf16, #tv.local<#tv.view<#m, [_, 3, 16]>, of [b, 3, 16]>>
!w = tensor<24x16xbf16, #tv.local<#tv.view<#m, [did(tp) * 24, 16], alloc = (0, 1)>, of [48, 16]>>
!b = tensor<24xbf16, #tv.local<#tv.view<#m, [did(tp) * 24]>, of [48]>>
!h = tensor<?x3x24xbf16, #tv.local<#tv.view<#m, [_, 3, did(tp) * 24]>, of [b, 3, 48]>>
!n = tensor<?x3x24xi64, #tv.local<#tv.view<#m, [_, 3, did(tp) * 24]>, of [b, 3, 48]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["b"]}, %w: !w {tv.name = "w"},
                %b: !b {tv.name = "b"}, %r: !h {tv.name = "r", tv.dims = ["b"]})
    -> (!h {tv.name = "y"}) attributes {tv.sizes = {b = 64}} {
  %0 = tv.linear %x, %w bias %b : (!x, !w, !b) -> !h
  %1 = tv.gelu tanh %0 : (!h) -> !h
  %2 = tv.iota 2 like %r : (!h) -> !n
  %3 = tv.map %1, %2 : (!h, !n) -> !h (%u: bf16, %n: i64) {
    %s = arith.sitofp %n : i64 to bf16
    %p = arith.mulf %u, %s : bf16
    tv.yield %p : bf16
  }
  %4 = tv.add %3, %r : (!h, !h) -> !h
  %5 = tv.dropout %4 rate(2.5e-01) seed(1) stream(2) : (!h) -> !h
  return %5 : !h
}
// BLOCK: func.func @linear_0(%[[X:.*]]: memref<?x3x16xbf16, {{.*}}>, %[[W:.*]]: memref<24x16xbf16, {{.*}}>, %[[B:.*]]: memref<24xbf16, {{.*}}>, %[[R:.*]]: memref<?x3x24xbf16, {{.*}}>, %[[Y:.*]]: memref<?x3x24xbf16, {{.*}}>, %{{.*}}: i64
// BLOCK: %[[COORD:.*]] = arith.index_cast
// BLOCK: plan.product %[[X]], %[[W]] to %[[Y]] : {{.*}} epilogue (%[[SUM:.*]]: f32, %[[I:.*]]: index, %[[J:.*]]: index, %[[K:.*]]: index) {
// BLOCK-NEXT: %[[BIAS:.*]] = memref.load %[[B]][%[[K]]]
// BLOCK-NEXT: %[[WIDE:.*]] = arith.extf %[[BIAS]]
// BLOCK-NEXT: arith.addf %[[SUM]], %[[WIDE]] : f32
// BLOCK: math.exp
// BLOCK: %[[FIRST:.*]] = arith.muli %[[COORD]]
// BLOCK: arith.addi %[[K]], %[[FIRST]]
// BLOCK: memref.load %[[R]][%[[I]], %[[J]], %[[K]]]
// BLOCK: tv.yield %{{.*}} : f32
// BLOCK: func.func @map_1(
// BLOCK-NOT: plan.contract
// BLOCK: %[[P:.*]] = plan.launch @linear_0({{.*}}) scalars [#plan.coord<"tp">] from "tv.linear"
// BLOCK-NEXT: plan.choose "matmul" of "own"() without {cublaslt = "it is not compiled in"}
// BLOCK-NEXT: plan.launch @map_1(%[[P]])

//--- uses.mlir
// At most two values of a kernel are stored. A reduction, another type or another order
// in memory are of another one; so is what needs what comes later.
#m = #tv.mesh<tp = 1>
!x = tensor<4x8xf16, #tv.local<#tv.view<#m, [4, 8]>, of [4, 8]>>
!w = tensor<8x8xf16, #tv.local<#tv.view<#m, [8, 8]>, of [8, 8]>>
!t = tensor<4x8xf16, #tv.local<#tv.view<#m, [4, 8], alloc = (1, 0)>, of [4, 8]>>
!f = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8]>, of [4, 8]>>
!r = tensor<4xf16, #tv.local<#tv.view<#m, [4]>, of [4]>>
func.func @main(%x: !x, %w: !w, %v: !w) -> (!x, !x, !x, !r, !t, !f, !x) {
  %0 = tv.linear %x, %w : (!x, !w) -> !x
  %1 = tv.silu %0 : (!x) -> !x
  %2 = tv.mul %0, %0 : (!x, !x) -> !x
  %3 = tv.linear %1, %v : (!x, !w) -> !x
  %4 = tv.add %0, %3 : (!x, !x) -> !x
  %5 = tv.reduce sum %3 dims [1] : (!x) -> !r
  %6 = tv.map %3 : (!x) -> !t (%u: f16) {
    tv.yield %u : f16
  }
  %7 = tv.map %3 : (!x) -> !f (%u: f16) {
    %s = arith.extf %u : f16 to f32
    tv.yield %s : f32
  }
  return %1, %2, %4, %5, %6, %7, %0 : !x, !x, !x, !r, !t, !f, !x
}
// USES: func.func @linear_0(
// USES: plan.product %{{.*}}, %{{.*}} to %[[S:.*]], %[[P:.*]] : memref
// USES: math.exp
// USES: tv.yield %{{.*}}, %{{.*}} : f32, f32
// USES: func.func @main(%[[X:.*]]: tensor<{{.*}}, %[[W:.*]]: tensor<{{.*}}, %[[V:.*]]: tensor
// USES: plan.launch @linear_0(%[[X]], %[[W]])
// USES: plan.launch @linear_{{.*}}(%{{.*}}, %[[V]], %{{.*}})

//--- windows.mlir
// Operands that are windows are read where they are; what is right of a matmul is the
// source of the transpose.
#m = #tv.mesh<tp = 1>
!p = tensor<2x4x24xbf16, #tv.local<#tv.view<#m, [2, 4, 24]>, of [2, 4, 24]>>
!a = tensor<2x4x16xbf16, #tv.local<#tv.view<#m, [2, 4, 16]>, of [2, 4, 16]>>
!k = tensor<8x2x16xbf16, #tv.local<#tv.view<#m, [8, 2, 16]>, of [8, 2, 16]>>
!b = tensor<2x8x16xbf16, #tv.local<#tv.view<#m, [2, 8, 16]>, of [2, 8, 16]>>
!t = tensor<2x16x8xbf16, #tv.local<#tv.view<#m, [2, 16, 8]>, of [2, 16, 8]>>
!y = tensor<2x4x8xbf16, #tv.local<#tv.view<#m, [2, 4, 8]>, of [2, 4, 8]>>
func.func @main(%p: !p, %k: !k) -> !y {
  %a = tv.slice %p offsets [0, 0, 8] : (!p) -> !a
  %b = tv.transpose %k perm [1, 0, 2] : (!k) -> !b
  %t = tv.transpose %b perm [0, 2, 1] : (!b) -> !t
  %y = tv.matmul %a, %t : (!a, !t) -> !y
  return %y : !y
}
// WINDOWS: func.func @matmul_0(%[[A:.*]]: memref<2x4x16xbf16, strided<[?, ?, 1], offset: ?>>, %[[B:.*]]: memref<2x8x16xbf16, strided<[?, ?, 1], offset: ?>>, %[[C:.*]]: memref<2x4x8xbf16
// WINDOWS-NEXT: plan.product %[[A]], %[[B]] to %[[C]]
// WINDOWS-NOT: epilogue
// WINDOWS: %[[S:.*]] = plan.alias slice
// WINDOWS: %[[T:.*]] = plan.alias transpose %{{.*}} at [1, 0, 2]
// WINDOWS-NOT: plan.copy
// WINDOWS: plan.launch @matmul_0(%[[S]], %[[T]])

//--- plain.mlir
// Columns of the right operand.
#m = #tv.mesh<tp = 1>
!x = tensor<8x8xbf16, #tv.local<#tv.view<#m, [8, 8]>, of [8, 8]>>
func.func @main(%x: !x, %y: !x) -> !x {
  %z = tv.matmul %x, %y : (!x, !x) -> !x
  return %z : !x
}

//--- four.mlir
#m = #tv.mesh<tp = 1>
!x = tensor<2x2x8x8xbf16, #tv.local<#tv.view<#m, [2, 2, 8, 8]>, of [2, 2, 8, 8]>>
!w = tensor<8x8xbf16, #tv.local<#tv.view<#m, [8, 8]>, of [8, 8]>>
func.func @main(%x: !x, %w: !w) -> !x {
  %z = tv.linear %x, %w : (!x, !w) -> !x
  return %z : !x
}
