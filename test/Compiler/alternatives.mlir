// Variants of an op in a module: all that fit are there, one runs. Those for tensor
// cores end the program here, where kernels for GPUs run on the host.

// RUN: split-file %s %t
// RUN: tessera-compile %t/both.mlir --target=cuda:sm_90a --dump-dir=%t/both -o %t/both.gpu
// RUN: FileCheck %s --check-prefix=PLAN < %t/both/plan.txt
// RUN: emulate-module %t/both.gpu %t/both/kernels.cu %t/both.tsr
// RUN: tessera-run %t/both.tsr --attention=math --output %t/math.safetensors | FileCheck %s --check-prefix=MATH
// RUN: not --crash tessera-run %t/both.tsr
// PLAN: %[[O:[0-9]+]] = local bf16 of [1, 1, 4, 64] {{.*}} // attention_
// PLAN: alternative 0: attention flash, cudnn, math // tv.attention at {{.*}}both.mlir:
// PLAN: if 0 is flash: launch attention_{{[0-9]+}} {{.*}}%[[O]] //
// PLAN-NEXT: as attention_
// PLAN: if 0 is cudnn: attend {{.*}} to %[[O]] scale 1.250000e-01 causal //
// PLAN: if 0 is math: contract
// PLAN: if 0 is math: launch map_{{[0-9]+}} {{.*}}%[[O]] //
// PLAN: launch map_{{[0-9]+}} %[[O]],
// MATH: attention: flash 0, cudnn 0, math 1

// The same from the host's own attention, which is math.
// RUN: tessera-compile %t/both.mlir -o %t/cpu.tsr
// RUN: tessera-run %t/both.tsr --attention=math,flash --verify %t/cpu.tsr | FileCheck %s --check-prefix=EQUAL
// EQUAL: largest differences from the CPU's results

// Where a variant does not fit, it is missing with its reason.
// RUN: sed 's/bf16/f32/g' %t/both.mlir > %t/f32.mlir
// RUN: tessera-compile %t/f32.mlir --target=cuda:sm_90a --dump-dir=%t/f32 -o %t/f32.gpu
// RUN: emulate-module %t/f32.gpu %t/f32/kernels.cu %t/f32.tsr
// RUN: tessera-run %t/f32.tsr | FileCheck %s --check-prefix=F32
// RUN: not tessera-run %t/both.tsr --attention=cudnn 2>&1 | FileCheck %s --check-prefix=NO-GPU
// NO-GPU: no variant of attention that is allowed is there: cudnn: it needs the backend cuda; there is flash, math{{$}}
// RUN: not tessera-run %t/f32.tsr --attention=flash 2>&1 | FileCheck %s --check-prefix=FORCED
// F32: attention: math 1
// FORCED: tessera: {{.*}}f32.mlir:{{[0-9]+}}:{{[0-9]+}}: 'tv.attention': no variant of attention that is allowed is there: flash: its elements must be bf16 or f16; there is math{{$}}

// What is left out stays out.
// RUN: tessera-compile %t/both.mlir --attention=math -o %t/math.tsr
// RUN: not tessera-run %t/math.tsr --attention=flash 2>&1 | FileCheck %s --check-prefix=LEFT-OUT
// LEFT-OUT: flash: it is not compiled in; there is math

// One op says itself what there is of it, whatever the command says of all.
// RUN: sed 's/scale(0.125) causal/& {tv.variants = ["math", "flash"]}/' %t/both.mlir > %t/own.mlir
// RUN: tessera-compile %t/own.mlir --target=cuda:sm_90a --attention=cudnn --compile-to=plan | FileCheck %s --check-prefix=OWN-CHOICE
// OWN-CHOICE: alternative 0: attention math, flash, cudnn (not there: it is not compiled in) // tv.attention
// RUN: sed 's/scale(0.125) causal/& {tv.variants = ["swift"]}/' %t/both.mlir > %t/swift.mlir
// RUN: not tessera-compile %t/swift.mlir -o %t/swift.tsr 2>&1 | FileCheck %s --check-prefix=SWIFT
// SWIFT: swift.mlir:{{[0-9]+}}:{{[0-9]+}}: error: 'swift' is no variant of attention; there are 'flash', 'cudnn' and 'math'

// Matrix products in both variants, of which the list of a run takes one; the second
// product has one variant only. (The library's gets its own kernel of what follows.)
// RUN: tessera-compile %t/products.mlir --target=cuda:sm_90a --matmul=cublaslt,own --dump-dir=%t/products -o %t/products.gpu
// RUN: FileCheck %s --check-prefix=PRODUCTS < %t/products/plan.txt
// RUN: emulate-module %t/products.gpu %t/products/kernels.cu %t/products.tsr
// RUN: tessera-compile %t/products.mlir -o %t/products-cpu.tsr
// RUN: tessera-run %t/products.tsr --verify %t/products-cpu.tsr | FileCheck %s --check-prefix=LIBRARY
// RUN: tessera-run %t/products.tsr --matmul=own,cublaslt --verify %t/products-cpu.tsr | FileCheck %s --check-prefix=OWN
// RUN: not tessera-run %t/products.tsr --matmul=own 2>&1 | FileCheck %s --check-prefix=OWN-ALONE
// PRODUCTS-DAG: %[[S:[0-9]+]] = external bf16 of [4, 24] {{.*}} // sums
// PRODUCTS-DAG: %[[Y:[0-9]+]] = {{.*}} bf16 of [4, 24] {{.*}} // map_
// PRODUCTS: alternative 0: matmul cublaslt, own // tv.linear at {{.*}}products.mlir:
// PRODUCTS: alternative 1: matmul cublaslt, own (not there: the columns of its result must be innermost in memory, in rows of a multiple of 16 bytes) // tv.linear at
// PRODUCTS: if 0 is cublaslt: contract {{.*}}%[[S]]
// PRODUCTS-NEXT: if 0 is cublaslt: launch map_{{[0-9]+}} %[[S]], {{.*}}%[[Y]] //
// PRODUCTS: if 0 is own: launch linear_{{[0-9]+}} {{.*}}%[[S]], %[[Y]] //
// PRODUCTS-NOT: copy
// PRODUCTS: contract %[[Y]]
// LIBRARY: matmul: cublaslt 2, own 0
// LIBRARY-NEXT: largest differences from the CPU's results
// OWN: matmul: cublaslt 1, own 1
// OWN-NEXT: largest differences from the CPU's results
// OWN-ALONE: tessera: {{.*}}products.mlir:{{[0-9]+}}:{{[0-9]+}}: 'tv.linear': no variant of matmul that is allowed is there: own: the columns of its result must be innermost in memory, in rows of a multiple of 16 bytes; there is cublaslt{{$}}

// Products that nobody wrote: attention's variant math is all in f32.
// RUN: not tessera-compile %t/both.mlir --target=cuda:sm_90a --matmul=own -o %t/own.gpu 2>&1 | FileCheck %s --check-prefix=OWN-MATH
// RUN: not tessera-compile %t/both.mlir --target=cuda:sm_90a --matmul=own --attention=math -o %t/own.gpu 2>&1 | FileCheck %s --check-prefix=OWN-MATH
// RUN: tessera-compile %t/both.mlir --target=cuda:sm_90a --matmul=own --attention=flash,cudnn -o %t/own.gpu
// RUN: tessera-compile %t/both.mlir --target=cuda:sm_90a --matmul=own,cublaslt -o %t/own.gpu
// OWN-MATH: both.mlir:{{[0-9]+}}:{{[0-9]+}}: error: has no variant that is allowed; own does not fit: its elements must be bf16 or f16, but attention's variant math, which --attention can leave out, multiplies f32; what would fit: cublaslt{{$}}

// A plan by hand: a value that is no memory of its variant.
// RUN: not tessera-compile %t/window.mlir --compile-from=kernels -o %t/window.tsr 2>&1 | FileCheck %s --check-prefix=WINDOW
// RUN: sed 's/(%y), "b"(%z)/(%z), "b"(%y)/' %t/window.mlir > %t/other.mlir
// RUN: not tessera-compile %t/other.mlir --compile-from=kernels -o %t/window.tsr 2>&1 | FileCheck %s --check-prefix=WINDOW
// RUN: sed 's/return %c/return %y/' %t/window.mlir > %t/outside.mlir
// RUN: not tessera-compile %t/outside.mlir --compile-from=kernels -o %t/window.tsr 2>&1 | FileCheck %s --check-prefix=WINDOW
// WINDOW: error: 'plan.choose' op each of its values must be the result of a step of its variant, used by no other; tv-emit-kernels copies others

//--- both.mlir
#m = #tv.mesh<tp = 1>
!x = tensor<1x1x4x64xbf16, #tv.view<#m, [_, _, _, _]>>
!n = tensor<1x1x4x64xi64, #tv.view<#m, [_, _, _, _]>>
!l = tensor<1x1x4xf32>
func.func @main() -> !x {
  %i = tv.iota 3 : () -> !n
  %j = tv.iota 2 : () -> !n
  %x = tv.map %i, %j : (!n, !n) -> !x (%a: i64, %b: i64) {
    %c = arith.addi %a, %b : i64
    %seven = arith.constant 7 : i64
    %d = arith.remsi %c, %seven : i64
    %e = arith.sitofp %d : i64 to bf16
    tv.yield %e : bf16
  }
  %o, %lse = tv.attention %x, %x, %x scale(0.125) causal : (!x, !x, !x) -> (!x, !l)
  %y = tv.map %o : (!x) -> !x (%a: bf16) {
    %b = arith.negf %a : bf16
    tv.yield %b : bf16
  }
  return %y : !x
}

//--- products.mlir
#m = #tv.mesh<tp = 1>
!x = tensor<4x16xbf16, #tv.view<#m, [_, _]>>
!nx = tensor<4x16xi64, #tv.view<#m, [_, _]>>
!w = tensor<24x16xbf16, #tv.view<#m, [_, _]>>
!nw = tensor<24x16xi64, #tv.view<#m, [_, _]>>
!v = tensor<3x24xbf16, #tv.view<#m, [_, _]>>
!nv = tensor<3x24xi64, #tv.view<#m, [_, _]>>
!h = tensor<4x24xbf16>
!z = tensor<4x3xbf16>
func.func @main() -> (!h {tv.name = "sums"}, !z {tv.name = "z"}) {
  %i = tv.iota 1 : () -> !nx
  %x = tv.map %i : (!nx) -> !x (%a: i64) {
    %c = arith.constant 5 : i64
    %r = arith.remsi %a, %c : i64
    %f = arith.sitofp %r : i64 to bf16
    tv.yield %f : bf16
  }
  %j = tv.iota 0 : () -> !nw
  %k = tv.iota 1 : () -> !nw
  %w = tv.map %j, %k : (!nw, !nw) -> !w (%a: i64, %b: i64) {
    %c = arith.constant 3 : i64
    %s = arith.addi %a, %b : i64
    %r = arith.remsi %s, %c : i64
    %f = arith.sitofp %r : i64 to bf16
    tv.yield %f : bf16
  }
  %l = tv.iota 1 : () -> !nv
  %v = tv.map %l : (!nv) -> !v (%a: i64) {
    %f = arith.sitofp %a : i64 to bf16
    tv.yield %f : bf16
  }
  %h = tv.linear %x, %w : (!x, !w) -> !h
  %y = tv.mul %h, %h : (!h, !h) -> !h
  %z = tv.linear %y, %v : (!h, !v) -> !z
  return %h, %z : !h, !z
}

//--- window.mlir
#m = #tv.mesh<tp = 1>
!x = tensor<4x8xf32, #tv.local<#tv.view<#m, [4, 8]>, of [4, 8]>>
func.func @main(%x: !x) -> !x {
  %y = plan.copy %x from "tv.map" : (!x) -> !x
  %w = plan.copy %x from "tv.map" : (!x) -> !x
  %z = plan.alias reshape %w : (!x) -> !x
  %c = plan.choose "attention" of "a"(%y), "b"(%z) from "tv.map" : !x
  return %c : !x
}
