// A large sum that is returned, of which nothing says how it lies: each device keeps a
// part, also of what pointwise ops make of it. The residual, which is an argument, stays
// whole, and each device takes its part of it.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=local" | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=kernels" --interpret=3 -o /dev/null

// CHECK-LABEL: @main
// CHECK: tv.linear
// CHECK: comm.reduce_scatter
// CHECK: comm.slice %arg2
// CHECK: tv.add
// CHECK: tv.gelu
// CHECK-NEXT: return
// RAN tp=1: nothing
// RAN tp=2: reduce-scatter 16384 bytes 0 copies
// RAN tp=3: reduce-scatter 22016 bytes 0 copies
// RAN tp=4: reduce-scatter 24576 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<128x128xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<128x64xf32>
module attributes {tv.machine = #tv.machine<latency = 1.6e-7, bandwidth = 2.0e10, copy = 2.5e11, loops = 5.0e12>} {
func.func @main(%x: !x, %w: tensor<64x128xf32>, %r: !y) -> !y {
  %p = tv.linear %x, %w : (!x, tensor<64x128xf32>) -> !y
  %t = tv.add %p, %r : (!y, !y) -> !y
  %y = tv.gelu %t : (!y) -> !y
  return %y : !y
}
}

// -----

// What is used inside too is split where its uses are for no more; what the user wants
// whole, and what is small is whole. The small one is of a batch; its sum takes its
// latency.
// CHECK-LABEL: @main
// CHECK: comm.reduce_scatter
// CHECK: comm.all_reduce
// CHECK: comm.all_reduce
// CHECK: comm.all_reduce
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: reduce-scatter 16384 bytes 0 copies, reduce-scatter 256 bytes 0 copies, all-reduce 4 bytes 0 copies, all-reduce 32768 bytes 0 copies
// RAN tp=3: reduce-scatter 22016 bytes 0 copies, reduce-scatter 344 bytes 0 copies, all-reduce 8 bytes 0 copies, all-reduce 43712 bytes 0 copies
// RAN tp=4: reduce-scatter 24576 bytes 0 copies, all-reduce 49152 bytes 0 copies, all-reduce 768 bytes 0 copies, all-reduce 12 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<128x128xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<128x64xf32>
!yw = tensor<128x64xf32, #tv.view<#m, [_, _]>>
!w = tensor<64x128xf32>
!v = tensor<1x128xf32>
!z = tensor<128x1xf32>
module attributes {tv.machine = #tv.machine<latency = 1.6e-7, bandwidth = 2.0e10, copy = 2.5e11, loops = 5.0e12>} {
func.func @main(%x: !x, %w: !w, %u: !w, %v: !v, %t: tensor<64x64xf32>) -> (!y, !y, !yw, !z, tensor<f32>) {
  %a = tv.linear %x, %w : (!x, !w) -> !y
  %b = tv.linear %a, %t : (!y, tensor<64x64xf32>) -> !y
  %c = tv.linear %x, %u : (!x, !w) -> !yw
  %d = tv.linear %x, %v : (!x, !v) -> !z
  %e = tv.reduce max %a dims [0, 1] : (!y) -> tensor<f32>
  return %a, %b, %c, %d, %e : !y, !y, !yw, !z, tensor<f32>
}
}

// -----

// A product of a sum is of its rows, where each device has some.
// CHECK-LABEL: @main
// CHECK: comm.reduce_scatter
// CHECK-NEXT: tv.linear
// CHECK-NEXT: return
// RAN tp=1: nothing
// RAN tp=2: reduce-scatter 16384 bytes 0 copies
// RAN tp=3: reduce-scatter 22016 bytes 0 copies
// RAN tp=4: reduce-scatter 24576 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<128x128xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<128x64xf32>
!u = tensor<64x64xf32>
module attributes {tv.machine = #tv.machine<latency = 1.6e-7, bandwidth = 2.0e10, copy = 2.5e11, loops = 5.0e12>} {
func.func @main(%x: !x, %w: tensor<64x128xf32>, %u: !u) -> !y {
  %p = tv.linear %x, %w : (!x, tensor<64x128xf32>) -> !y
  %y = tv.linear %p, %u : (!y, !u) -> !y
  return %y : !y
}
}

// -----

// Where one dimension is open it is split there: columns of a sum, rows instead of the
// columns that the product's weight has.
// CHECK-LABEL: @main
// CHECK: comm.reduce_scatter
// CHECK: comm.all_to_all
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: reduce-scatter 16384 bytes 0 copies, all-to-all 131072 bytes 1 copies
// RAN tp=3: reduce-scatter 22528 bytes 0 copies, all-to-all 116960 bytes 1 copies
// RAN tp=4: reduce-scatter 24576 bytes 0 copies, all-to-all 98304 bytes 1 copies
#m = #tv.mesh<tp = 2>
!x = tensor<128x128xf32, #tv.view<#m, [_, did(tp) * _]>>
!v = tensor<128x512xf32, #tv.view<#m, [_, _]>>
!w = tensor<1024x512xf32, #tv.view<#m, [did(tp) * _, _]>>
!y = tensor<128x64xf32, #tv.view<#m, [_, ?]>>
!z = tensor<128x1024xf32, #tv.view<#m, [?, _]>>
module attributes {tv.machine = #tv.machine<latency = 1.6e-7, bandwidth = 2.0e10, copy = 2.5e11, loops = 5.0e12>} {
func.func @main(%x: !x, %u: tensor<64x128xf32>, %v: !v, %w: !w) -> (!y, !z) {
  %y = tv.linear %x, %u : (!x, tensor<64x128xf32>) -> !y
  %z = tv.linear %v, %w : (!v, !w) -> !z
  return %y, %z : !y, !z
}
}
