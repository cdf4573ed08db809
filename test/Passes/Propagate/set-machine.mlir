// What a program says of its machine stays, unless it is replaced.
// RUN: tessera-opt %s --tv-bind --tv-set-machine='machine=<latency=1.0e-5,bandwidth=2.0e10,copy=2.5e11,loops=4.0e13>' | FileCheck %s --check-prefix=KEPT
// RUN: tessera-opt %s --tv-bind --tv-set-machine='replaces machine=<latency=1.0e-5,bandwidth=2.0e10,copy=2.5e11,loops=4.0e13>' | FileCheck %s --check-prefix=REPLACED
// RUN: tessera-compile %s --compile-to=propagated --target=cuda:sm_80 | FileCheck %s --check-prefix=KEPT
// RUN: tessera-compile %s --compile-to=propagated --machine='<latency=1.0e-5,bandwidth=2.0e10,copy=2.5e11,loops=4.0e13>' | FileCheck %s --check-prefix=REPLACED
// KEPT: tv.machine = #tv.machine<latency = 1.0e+00,
// REPLACED: tv.machine = #tv.machine<latency = 1.0e-05,

// Without it tessera-compile says what a target has, where it is not an H200's.
// RUN: sed 's/attributes {.*} {/{/' %s > %t.mlir
// RUN: tessera-compile %t.mlir --compile-to=propagated --target=cuda:sm_80 | FileCheck %s --check-prefix=A100
// RUN: tessera-compile %t.mlir --compile-to=propagated --target=cuda:sm_89 | FileCheck %s --check-prefix=L4
// RUN: tessera-compile %t.mlir --compile-to=propagated --target=cuda:sm_90a | FileCheck %s --check-prefix=NONE
// RUN: tessera-compile %t.mlir --compile-to=propagated | FileCheck %s --check-prefix=NONE
// One without figures has those of the nearest before it.
// RUN: tessera-compile %t.mlir --compile-to=propagated --target=cuda:sm_81 | FileCheck %s --check-prefix=A100
// RUN: tessera-compile %t.mlir --compile-to=propagated --target=cuda:sm_88 | FileCheck %s --check-prefix=L4
// RUN: tessera-compile %t.mlir --compile-to=propagated --target=cuda:sm_103 | FileCheck %s --check-prefix=B200
// RUN: tessera-compile %t.mlir --compile-to=propagated --target=cuda:sm_130 | FileCheck %s --check-prefix=L4
// A100: tv.machine = #tv.machine<latency = 5.0e-06, bandwidth = 2.0e+11,
// L4: tv.machine = #tv.machine<latency = 1.0e-05, bandwidth = 2.0e+10,
// B200: tv.machine = #tv.machine<latency = 5.0e-06, bandwidth = 6.0e+11,
// NONE-NOT: tv.machine

// Numbers as people write them.
// RUN: tessera-compile %s --compile-to=propagated --machine='<latency=1e-5,bandwidth=2e10,copy=250000000000,loops=4.0e+13>' | FileCheck %s --check-prefix=SHORT
// SHORT: tv.machine = #tv.machine<latency = 1.0e-05, bandwidth = 2.0e+10, copy = 2.5e+11, loops = 4.0e+13>

// RUN: not tessera-compile %s --machine='<latency=1.0e-5>' -o %t.tsr 2>&1 | FileCheck %s --check-prefix=PART
// PART: the bandwidth of a machine is a number above 0
// RUN: not tessera-compile %s --machine=fast -o %t.tsr 2>&1 | FileCheck %s --check-prefix=TEXT
// TEXT: error: --machine='fast': must be as <latency=5.0e-6,bandwidth=3.0e11,copy=2.0e12,loops=3.0e14>
// RUN: not tessera-compile %s --machine='<latency=1e-5,bandwith=3e9>' -o %t.tsr 2>&1 | FileCheck %s --check-prefix=FIGURE
// FIGURE: error: --machine='<latency=1e-5,bandwith=3e9>' at 'bandwith=3e9>': 'bandwith' is not one of latency, bandwidth, copy and loops
// RUN: not tessera-compile %s --machine= -o %t.tsr 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: --machine names no figures
// RUN: not tessera-compile %s --machine='<latency=1.0e-5>' --compile-to=bind 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: --machine changes nothing before 'propagated'

// With slow arithmetic devices share the rows of the product and gather what they make;
// with fast arithmetic and slow links each computes all.
// RUN: sed 's/attributes {.*} {/{/' %s | tessera-opt --tessera='to=planned machine=<latency=1.0e-7,bandwidth=1.0e11,copy=1.0e12,loops=1.0e9>' | FileCheck %s --check-prefix=SHARE
// SHARE: tv.matmul
// SHARE: tv.reshard
#m = #tv.mesh<tp = 2>
!x = tensor<8x64xf32, #tv.view<#m, [did(tp) * _, _]>>
!w = tensor<64x64xf32, #tv.view<#m, [_, _]>>
!y = tensor<8x64xf32, #tv.view<#m, [_, _]>>
module attributes {tv.machine = #tv.machine<latency = 1.0, bandwidth = 1.0e11, copy = 1.0e12, loops = 1.0e15>} {
func.func @main(%x: !x, %w: !w) -> !y {
  %y = tv.matmul %x, %w : (!x, !w) -> !y
  return %y : !y
}
}
