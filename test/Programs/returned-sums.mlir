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
// RAN tp=2: reduce-scatter 1048576 bytes 0 copies
// RAN tp=3: reduce-scatter 1400832 bytes 0 copies
// RAN tp=4: reduce-scatter 1572864 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<1024x1024xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<1024x512xf32>
func.func @main(%x: !x, %w: tensor<512x1024xf32>, %r: !y) -> !y {
  %p = tv.linear %x, %w : (!x, tensor<512x1024xf32>) -> !y
  %t = tv.add %p, %r : (!y, !y) -> !y
  %y = tv.gelu %t : (!y) -> !y
  return %y : !y
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
// RAN tp=2: all-reduce 2097152 bytes 0 copies, all-reduce 2097152 bytes 0 copies, all-reduce 16384 bytes 0 copies
// RAN tp=3: all-reduce 2796224 bytes 0 copies, all-reduce 2796224 bytes 0 copies, all-reduce 21888 bytes 0 copies
// RAN tp=4: reduce-scatter 1572864 bytes 0 copies, all-reduce 3145728 bytes 0 copies, all-reduce 24576 bytes 0 copies, all-reduce 12 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<1024x1024xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<1024x512xf32>
!yw = tensor<1024x512xf32, #tv.view<#m, [_, _]>>
!w = tensor<512x1024xf32>
!v = tensor<4x1024xf32>
!z = tensor<1024x4xf32>
func.func @main(%x: !x, %w: !w, %u: !w, %v: !v, %t: tensor<512x512xf32>) -> (!y, !y, !yw, !z, tensor<f32>) {
  %a = tv.linear %x, %w : (!x, !w) -> !y
  %b = tv.linear %a, %t : (!y, tensor<512x512xf32>) -> !y
  %c = tv.linear %x, %u : (!x, !w) -> !yw
  %d = tv.linear %x, %v : (!x, !v) -> !z
  %e = tv.reduce max %a dims [0, 1] : (!y) -> tensor<f32>
  return %a, %b, %c, %d, %e : !y, !y, !yw, !z, tensor<f32>
}

// -----

// A product of a sum is of its rows, where each device has some.
// CHECK-LABEL: @main
// CHECK: comm.reduce_scatter
// CHECK-NEXT: tv.linear
// CHECK-NEXT: return
// RAN tp=1: nothing
// RAN tp=2: reduce-scatter 1048576 bytes 0 copies
// RAN tp=3: reduce-scatter 1400832 bytes 0 copies
// RAN tp=4: reduce-scatter 1572864 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<1024x1024xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<1024x512xf32>
!u = tensor<512x512xf32>
func.func @main(%x: !x, %w: tensor<512x1024xf32>, %u: !u) -> !y {
  %p = tv.linear %x, %w : (!x, tensor<512x1024xf32>) -> !y
  %y = tv.linear %p, %u : (!y, !u) -> !y
  return %y : !y
}
