// Ops that run together, as IR between tv-group-ops and tv-emit-kernels.

// RUN: split-file %s %t
// DEFINE: %{group} = --tv-expand-composites --tv-separate-variants --tv-group-ops
// RUN: tessera-opt %t/block.mlir %{group} | FileCheck %s --check-prefix=BLOCK
// RUN: tessera-opt %t/block.mlir %{group} --interpret=2 --interpret-sizes=b=3 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/extents.mlir %{group} | FileCheck %s --check-prefix=EXTENTS
// RUN: tessera-opt %t/extents.mlir %{group} --interpret=2 --interpret-sizes=b=3 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/memory.mlir %{group} | FileCheck %s --check-prefix=MEMORY
// RUN: tessera-opt %t/memory.mlir %{group} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/captured.mlir --tv-expand-composites=attention=flash --tv-group-ops | FileCheck %s --check-prefix=CAPTURED
// RUN: tessera-opt %t/product.mlir --tv-group-ops=matmul=own,cublaslt | FileCheck %s --check-prefix=PRODUCT
// RUN: tessera-opt %t/product.mlir --tv-group-ops=matmul=own,cublaslt --tv-choose-variants | FileCheck %s --check-prefix=CHOOSE
// RUN: tessera-opt %t/product.mlir --tv-group-ops=matmul=own,cublaslt --tv-choose-variants --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/product.mlir --tv-group-ops=matmul=cublaslt --tv-choose-variants | FileCheck %s --check-prefix=ALONE
// RUN: tessera-opt %t/product.mlir --tv-group-ops | FileCheck %s --check-prefix=LIBRARY
// RUN: tessera-opt %t/reads.mlir --tv-group-ops | FileCheck %s --check-prefix=READS
// RUN: tessera-opt %t/widened.mlir %{group} | FileCheck %s --check-prefix=WIDENED
// RUN: tessera-opt %t/widened.mlir %{group} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/again.mlir %{group} | FileCheck %s --check-prefix=AGAIN
// RUN: tessera-opt %t/again.mlir %{group} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/few.mlir %{group} | FileCheck %s --check-prefix=FEW
// RUN: tessera-opt %t/few.mlir %{group} --interpret=2 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/waits.mlir %{group} | FileCheck %s --check-prefix=WAITS
// RUN: tessera-opt %t/waits.mlir %{group} --interpret=1 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// EQUAL: interpret: @main equals the source on

// The pipeline stops between them as anywhere.
// RUN: tessera-opt %t/block.mlir --tessera="from=local to=kernels" --mlir-print-ir-after=tv-group-ops -o /dev/null 2>&1 | FileCheck %s --check-prefix=STEP
// STEP: IR Dump After GroupOps (tv-group-ops)
// STEP: plan.group {

//--- block.mlir
// A softmax is one group of its stages; a product another.
#m = #tv.mesh<tp = 2>
!x = tensor<?x8xf32, #tv.local<#tv.view<#m, [_, 8]>, of [b, 8]>>
!w = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 8]>, of [8, 8]>>
!y = tensor<?x4xf32, #tv.local<#tv.view<#m, [_, did(tp) * 4]>, of [b, 8]>>
func.func @main(%x: !x, %w: !w) -> !y attributes {tv.sizes = {b = 4}} {
  %s = tv.softmax %x dim 1 : (!x) -> !x
  %y = tv.linear %s, %w : (!x, !w) -> !y
  return %y : !y
}
// BLOCK: func.func @main(%[[X:.*]]: tensor{{.*}}, %[[W:.*]]: tensor
// BLOCK-NEXT: %[[S:.*]] = plan.group {
// BLOCK-NEXT: %[[MAX:.*]] = tv.reduce max %[[X]]
// BLOCK-NEXT: tv.broadcast %[[MAX]]
// BLOCK: tv.reduce sum
// BLOCK-NOT: plan.yield {{.*}},
// BLOCK: plan.yield %{{.*}} : tensor
// BLOCK-NEXT: } : tensor
// BLOCK-NEXT: %[[Y:.*]] = plan.group {
// BLOCK-NEXT: %[[P:.*]] = tv.linear %[[S]], %[[W]]
// BLOCK-NEXT: plan.yield %[[P]]
// BLOCK-NEXT: } : tensor
// BLOCK-NEXT: return %[[Y]]

//--- extents.mlir
// What only lends its extents to another group is not given to it.
#m = #tv.mesh<tp = 2>
!x = tensor<?x8xf32, #tv.local<#tv.view<#m, [_, 8]>, of [b, 8]>>
!r = tensor<?xf32, #tv.local<#tv.view<#m, [_]>, of [b]>>
!n = tensor<f32, #tv.local<#tv.view<#m, []>, of []>>
func.func @main(%x: !x, %r: !r) -> (!n, !x) attributes {tv.sizes = {b = 4}} {
  %e = tv.exp %x : (!x) -> !x
  %s = tv.reduce sum %e dims [0, 1] : (!x) -> !n
  %c = tv.broadcast %r dims [0] like %e : (!r, !x) -> !x
  %y = tv.abs %c : (!x) -> !x
  return %s, %y : !n, !x
}
// EXTENTS: %[[S:.*]] = plan.group {
// EXTENTS-COUNT-1: plan.yield
// EXTENTS: plan.group {
// EXTENTS: %[[TYPE:.*]] = tv.constant dense<0.000000e+00> : tensor<f32> :
// EXTENTS-NEXT: tv.broadcast %arg1 dims [0] like %[[TYPE]]
// EXTENTS: return %[[S]], %

//--- memory.mlir
// A splat that a product reads is in memory, and computed again by a map.
#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8]>, of [4, 8]>>
!w = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 8]>, of [8, 8]>>
!y = tensor<4x4xf32, #tv.local<#tv.view<#m, [4, did(tp) * 4]>, of [4, 8]>>
func.func @main(%w: !w, %x: !x) -> (!y, !x) {
  %two = tv.constant dense<2.0> : tensor<f32> : () -> !x
  %y = tv.linear %two, %w : (!x, !w) -> !y
  %z = tv.map %x, %two : (!x, !x) -> !x (%u: f32, %v: f32) {
    %0 = arith.mulf %u, %v : f32
    tv.yield %0 : f32
  }
  return %y, %z : !y, !x
}
// MEMORY: %[[TWO:.*]] = plan.group {
// MEMORY-NEXT: tv.constant
// MEMORY-NEXT: plan.yield
// MEMORY: plan.group {
// MEMORY-NEXT: tv.linear %[[TWO]], %arg0
// MEMORY: plan.group {
// MEMORY-NEXT: %[[C:.*]] = tv.constant
// MEMORY-NEXT: tv.map %arg1, %[[C]]

//--- captured.mlir
// What the function of scores loads is in the group of its attention.
#m = #tv.mesh<tp = 1>
!q = tensor<1x2x64x64xbf16, #tv.local<#tv.view<#m, [1, 2, 64, 64]>, of [1, 2, 64, 64]>>
!l = tensor<1x2x64xf32, #tv.local<#tv.view<#m, [1, 2, 64]>, of [1, 2, 64]>>
!h = tensor<2xf32, #tv.local<#tv.view<#m, [2]>, of [2]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func @main(%q: !q) -> !q {
    %h = tv.iota 0 : () -> !h
    %o, %l = tv.attention %q, %q, %q scale(0.125) : (!q, !q, !q) -> (!q, !l)
      score_mod (%s: f32, %b: index, %n: index, %qi: index, %ki: index) {
        %x = tv.load %h[%n] : !h -> f32
        %y = arith.addf %s, %x : f32
        tv.yield %y : f32
      }
    return %o : !q
  }
}
// CAPTURED: plan.group {
// CAPTURED-NEXT: %[[H:.*]] = tv.iota 0
// CAPTURED-NEXT: tv.attention
// CAPTURED: tv.load %[[H]]

//--- product.mlir
// Variants, and what follows: the gelu is the library's epilogue too.
#m = #tv.mesh<tp = 2>
!x = tensor<4x16xbf16, #tv.local<#tv.view<#m, [4, 16]>, of [4, 16]>>
!w = tensor<8x16xbf16, #tv.local<#tv.view<#m, [did(tp) * 8, 16]>, of [16, 16]>>
!y = tensor<4x8xbf16, #tv.local<#tv.view<#m, [4, did(tp) * 8]>, of [4, 16]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func @main(%x: !x, %w: !w, %r: !y) -> (!y, !y) {
    %p = tv.linear %x, %w : (!x, !w) -> !y
    %g = tv.gelu tanh %p : (!y) -> !y
    %s = tv.map %g, %r : (!y, !y) -> !y (%u: bf16, %v: bf16) {
      %0 = arith.addf %u, %v : bf16
      tv.yield %0 : bf16
    }
    return %s, %p : !y, !y
  }
}
// PRODUCT: %[[G:.*]]:2 = plan.group of ["own", "cublaslt"] then gelu_tanh {
// PRODUCT-NEXT: tv.linear
// PRODUCT-NEXT: tv.gelu tanh
// PRODUCT-NEXT: tv.map
// PRODUCT-NOT: plan.group
// PRODUCT: return %[[G]]#{{[01]}}, %[[G]]#{{[01]}}

// CHOOSE: %[[OWN:.*]]:2 = plan.group of ["own"] {
// CHOOSE-NEXT: tv.linear
// CHOOSE-NEXT: tv.gelu tanh
// CHOOSE-NEXT: tv.map
// CHOOSE: %[[P:.*]]:2 = plan.group of ["cublaslt"] then gelu_tanh {
// CHOOSE-NEXT: tv.linear
// CHOOSE-NEXT: tv.gelu tanh
// CHOOSE-NEXT: plan.yield
// CHOOSE: %[[REST:.*]] = plan.group {
// CHOOSE-NEXT: tv.map %[[P]]#{{[01]}}, %arg2
// CHOOSE: plan.choose "matmul" of "own"(%[[OWN]]#0, %[[OWN]]#1), "cublaslt"(

// ALONE: plan.group of ["cublaslt"] then gelu_tanh {
// ALONE: plan.choose "matmul" of "cublaslt"() without {own = "it is not compiled in"} from "tv.linear"

// LIBRARY: plan.group then gelu_tanh {
// LIBRARY-NEXT: tv.linear
// LIBRARY-NEXT: tv.gelu tanh
// LIBRARY: plan.group {
// LIBRARY-NEXT: tv.map
// LIBRARY-NOT: plan.choose

//--- reads.mlir
// A kernel reads no more tensors than there are registers for.
#m = #tv.mesh<tp = 1>
!x = tensor<8xf32, #tv.local<#tv.view<#m, [8]>, of [8]>>
// READS: plan.group
// READS-COUNT-31: tv.add
// READS: plan.group
// READS-COUNT-8: tv.add
func.func @main(%0: !x, %1: !x, %2: !x, %3: !x, %4: !x, %5: !x, %6: !x, %7: !x, %8: !x, %9: !x, %10: !x, %11: !x, %12: !x, %13: !x, %14: !x, %15: !x, %16: !x, %17: !x, %18: !x, %19: !x, %20: !x, %21: !x, %22: !x, %23: !x, %24: !x, %25: !x, %26: !x, %27: !x, %28: !x, %29: !x, %30: !x, %31: !x, %32: !x, %33: !x, %34: !x, %35: !x, %36: !x, %37: !x, %38: !x, %39: !x) -> !x {
  %a1 = tv.add %0, %1 : (!x, !x) -> !x
  %a2 = tv.add %a1, %2 : (!x, !x) -> !x
  %a3 = tv.add %a2, %3 : (!x, !x) -> !x
  %a4 = tv.add %a3, %4 : (!x, !x) -> !x
  %a5 = tv.add %a4, %5 : (!x, !x) -> !x
  %a6 = tv.add %a5, %6 : (!x, !x) -> !x
  %a7 = tv.add %a6, %7 : (!x, !x) -> !x
  %a8 = tv.add %a7, %8 : (!x, !x) -> !x
  %a9 = tv.add %a8, %9 : (!x, !x) -> !x
  %a10 = tv.add %a9, %10 : (!x, !x) -> !x
  %a11 = tv.add %a10, %11 : (!x, !x) -> !x
  %a12 = tv.add %a11, %12 : (!x, !x) -> !x
  %a13 = tv.add %a12, %13 : (!x, !x) -> !x
  %a14 = tv.add %a13, %14 : (!x, !x) -> !x
  %a15 = tv.add %a14, %15 : (!x, !x) -> !x
  %a16 = tv.add %a15, %16 : (!x, !x) -> !x
  %a17 = tv.add %a16, %17 : (!x, !x) -> !x
  %a18 = tv.add %a17, %18 : (!x, !x) -> !x
  %a19 = tv.add %a18, %19 : (!x, !x) -> !x
  %a20 = tv.add %a19, %20 : (!x, !x) -> !x
  %a21 = tv.add %a20, %21 : (!x, !x) -> !x
  %a22 = tv.add %a21, %22 : (!x, !x) -> !x
  %a23 = tv.add %a22, %23 : (!x, !x) -> !x
  %a24 = tv.add %a23, %24 : (!x, !x) -> !x
  %a25 = tv.add %a24, %25 : (!x, !x) -> !x
  %a26 = tv.add %a25, %26 : (!x, !x) -> !x
  %a27 = tv.add %a26, %27 : (!x, !x) -> !x
  %a28 = tv.add %a27, %28 : (!x, !x) -> !x
  %a29 = tv.add %a28, %29 : (!x, !x) -> !x
  %a30 = tv.add %a29, %30 : (!x, !x) -> !x
  %a31 = tv.add %a30, %31 : (!x, !x) -> !x
  %a32 = tv.add %a31, %32 : (!x, !x) -> !x
  %a33 = tv.add %a32, %33 : (!x, !x) -> !x
  %a34 = tv.add %a33, %34 : (!x, !x) -> !x
  %a35 = tv.add %a34, %35 : (!x, !x) -> !x
  %a36 = tv.add %a35, %36 : (!x, !x) -> !x
  %a37 = tv.add %a36, %37 : (!x, !x) -> !x
  %a38 = tv.add %a37, %38 : (!x, !x) -> !x
  %a39 = tv.add %a38, %39 : (!x, !x) -> !x
  return %a39 : !x
}

//--- widened.mlir
// What is summed in another kernel is stored as narrow as it is; what rows of the same
// kernel sum is not stored.
#m = #tv.mesh<tp = 2>
!x = tensor<8x4xbf16, #tv.local<#tv.view<#m, [8, 4]>, of [8, 4]>>
!w = tensor<8x4xf32, #tv.local<#tv.view<#m, [8, 4]>, of [8, 4]>>
!c = tensor<4xf32, #tv.local<#tv.view<#m, [4]>, of [4]>>
!r = tensor<8xf32, #tv.local<#tv.view<#m, [8]>, of [8]>>
func.func @main(%x: !x) -> (!x, !c, !x, !r) {
  %y = tv.exp %x : (!x) -> !x
  %0 = tv.cast %y : (!x) -> !w
  %1 = tv.reduce sum %0 dims [0] : (!w) -> !c
  %z = tv.tanh %y : (!x) -> !x
  %2 = tv.cast %z : (!x) -> !w
  %3 = tv.reduce sum %2 dims [1] : (!w) -> !r
  return %y, %1, %z, %3 : !x, !c, !x, !r
}
// WIDENED: %[[MADE:.*]]:3 = plan.group {
// WIDENED: math.exp
// WIDENED: math.tanh
// WIDENED: arith.extf
// WIDENED: tv.reduce sum {{.*}} dims [1]
// WIDENED: plan.group {
// WIDENED: tv.map %[[MADE]]#0
// WIDENED: arith.extf
// WIDENED: tv.reduce sum {{.*}} dims [0]

//--- again.mlir
// x - mean is made again where sums of columns need it, and the mean is kept for that;
// what costs more than sums and products is kept, and what is kept anyway is read.
#m = #tv.mesh<tp = 2>
!x = tensor<64x8xf32, #tv.local<#tv.view<#m, [64, 8]>, of [64, 8]>>
!r = tensor<64xf32, #tv.local<#tv.view<#m, [64]>, of [64]>>
!c = tensor<8xf32, #tv.local<#tv.view<#m, [8]>, of [8]>>
func.func @main(%x: !x) -> (!r, !c, !c, !c, !x) {
  %m = tv.reduce sum %x dims [1] : (!x) -> !r
  %b = tv.broadcast %m dims [0] : (!r) -> !x
  %d = tv.sub %x, %b : (!x, !x) -> !x
  %q = tv.div %d, %b : (!x, !x) -> !x
  %p = tv.mul %d, %b : (!x, !x) -> !x
  %s = tv.mul %p, %q : (!x, !x) -> !x
  %n = tv.reduce max %s dims [1] : (!x) -> !r
  %0 = tv.reduce sum %d dims [0] : (!x) -> !c
  %1 = tv.reduce sum %q dims [0] : (!x) -> !c
  %2 = tv.reduce sum %p dims [0] : (!x) -> !c
  return %n, %0, %1, %2, %p : !r, !c, !c, !c, !x
}
// AGAIN: %[[ROWS:.*]]:4 = plan.group {
// AGAIN: %[[M:.*]] = tv.reduce sum
// AGAIN: arith.subf
// AGAIN: %[[Q:.*]] = tv.map
// AGAIN-NEXT: arith.divf
// AGAIN: %[[P:.*]] = tv.map
// AGAIN-NEXT: arith.mulf
// AGAIN: plan.yield %[[M]], %[[Q]], %[[P]], %
// AGAIN: plan.group {
// AGAIN-NEXT: %[[B:.*]] = tv.broadcast %[[ROWS]]#0
// AGAIN-NEXT: %[[D:.*]] = tv.map %arg0, %[[B]]
// AGAIN: tv.reduce sum %[[D]] dims [0]
// AGAIN-NEXT: tv.reduce sum %[[ROWS]]#1 dims [0]
// AGAIN-NEXT: tv.reduce sum %[[ROWS]]#2 dims [0]
// AGAIN: return %[[ROWS]]#3, {{.*}}, %[[ROWS]]#2

//--- few.mlir
// Small kernels side by side are one. %f does not join %a: what reads %a would wait for
// %g, too. %d cannot, for it waits for what reads %a.
#m = #tv.mesh<tp = 2>
!s = tensor<512xf32, #tv.local<#tv.view<#m, [512]>, of [512]>>
func.func @main(%x: !s, %y: !s, %z: !s) -> (!s, !s, !s, !s) {
  %a = tv.exp %x : (!s) -> !s
  %c = tv.log %y : (!s) -> !s
  %b = tv.cumsum %a dim 0 : (!s) -> !s
  %g = tv.cumsum %z dim 0 : (!s) -> !s
  %f = tv.sqrt %g : (!s) -> !s
  %d = tv.tanh %b : (!s) -> !s
  return %a, %c, %f, %d : !s, !s, !s, !s
}
// FEW: %[[A:.*]]:2 = plan.group {
// FEW: math.exp
// FEW: math.log
// FEW: %[[B:.*]] = plan.group {
// FEW-NEXT: tv.cumsum %[[A]]#0
// FEW: %[[G:.*]] = plan.group {
// FEW-NEXT: tv.cumsum %arg2
// FEW: %[[D:.*]]:2 = plan.group {
// FEW-NEXT: tv.map %[[G]]
// FEW-NEXT: math.sqrt
// FEW: tv.map %[[B]]
// FEW-NEXT: math.tanh
// FEW: return %[[A]]#0, %[[A]]#1, %[[D]]#0, %[[D]]#1

//--- waits.mlir
// %z joins %a and so waits for %t, which is not there yet when the product is; %o, of the
// product and %t, cannot join %t then.
#m = #tv.mesh<tp = 1>
!x = tensor<4x8x8xf32, #tv.local<#tv.view<#m, [4, 8, 8], alloc = (0, 1, 2)>, of [4, 8, 8]>>
!r = tensor<32x8xf32, #tv.local<#tv.view<#m, [32, 8], alloc = (0, 1)>, of [32, 8]>>
!v = tensor<2x8xf32, #tv.local<#tv.view<#m, [2, 8], alloc = (0, 1)>, of [2, 8]>>
!w = tensor<32x2xf32, #tv.local<#tv.view<#m, [32, 2], alloc = (0, 1)>, of [32, 2]>>
!y = tensor<8x8xf32, #tv.local<#tv.view<#m, [8, 8], alloc = (0, 1)>, of [8, 8]>>
func.func @main(%x: !x, %v: !v, %y: !y) -> (!x, !y) {
  %a = tv.map %x : (!x) -> !x (%u: f32) {
    %r = arith.addf %u, %u : f32
    tv.yield %r : f32
  }
  %flat = tv.reshape %a : (!x) -> !r
  %w = tv.linear %flat, %v : (!r, !v) -> !w
  %t = tv.map %y : (!y) -> !y (%u: f32) {
    %r = math.exp %u : f32
    tv.yield %r : f32
  }
  %wide = tv.broadcast %t dims [1, 2] : (!y) -> !x
  %z = tv.map %a, %wide : (!x, !x) -> !x (%p: f32, %q: f32) {
    %r = arith.mulf %p, %q : f32
    tv.yield %r : f32
  }
  %square = tv.reshape %w : (!w) -> !y
  %o = tv.map %t, %square : (!y, !y) -> !y (%p: f32, %q: f32) {
    %r = arith.subf %p, %q : f32
    tv.yield %r : f32
  }
  return %z, %o : !x, !y
}
// WAITS: %[[T:.*]] = plan.group
// WAITS: math.exp
// WAITS: %[[A:.*]]:2 = plan.group
// WAITS: arith.addf
// WAITS: arith.mulf
// WAITS: tv.linear
// WAITS: arith.subf
