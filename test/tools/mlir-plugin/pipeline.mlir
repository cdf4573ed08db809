// A stock mlir-opt with the dialects and passes of the plug-in: as tessera-opt.
// DEFINE: %{opt} = mlir-opt --load-dialect-plugin=%lib/TesseraMLIRPlugin.so --load-pass-plugin=%lib/TesseraMLIRPlugin.so
// RUN: tessera-opt %examples/gpt/block_sp.mlir --tessera="to=kernels target=cuda:sm_90a" > %t.mlir
// RUN: %{opt} %examples/gpt/block_sp.mlir --pass-pipeline="builtin.module(tessera{to=kernels target=cuda:sm_90a})" | diff - %t.mlir
// RUN: %{opt} %s --pass-pipeline="builtin.module(tv-bind,func.func(tv-propagate-shardings),cse)" | FileCheck %s
// RUN: sed '/^!x = /s/8x/7x/' %s | not %{opt} --pass-pipeline="builtin.module(tv-bind)" 2>&1 | FileCheck %s --check-prefix=ERROR

// CHECK: tv.add {{.*}}did(x) * 4
// ERROR: :[[@LINE+6]]:8: error: 'tv.add' op
#m = #tv.mesh<x = 2>
!x = tensor<8xf32, #tv.view<#m, [did(x) * _]>>
!y = tensor<8xf32>
!w = tensor<9xf32>
func.func @main(%x: !x, %w: !w) -> !y {
  %y = tv.add %x, %x : (!x, !x) -> !y
  %z = tv.add %y, %y : (!y, !y) -> !y
  return %z : !y
}
