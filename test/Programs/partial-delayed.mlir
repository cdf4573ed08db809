// Partial sums go through ops that are linear in them, and are combined before others.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=local" --interpret=4 | FileCheck %s %no_other_collective

// Two products are added first: one all-reduce for both.
// CHECK: tv.linear
// CHECK: tv.linear
// CHECK: tv.add
// CHECK-NEXT: comm.all_reduce
// CHECK-NEXT: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 96 bytes 0 copies
// RAN tp=3: all-reduce 128 bytes 0 copies
// RAN tp=4: all-reduce 144 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<6x8xf32>
func.func @main(%x: !x, %w: !w, %v: !w) -> tensor<4x6xf32> {
  %a = tv.linear %x, %w : (!x, !w) -> tensor<4x6xf32>
  %b = tv.linear %x, %v : (!x, !w) -> tensor<4x6xf32>
  %y = tv.add %a, %b : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

// Through a reduction, which makes it smaller: 4 sums are combined, not 24.
// CHECK: tv.linear
// CHECK-NEXT: tv.reduce sum
// CHECK-NEXT: comm.all_reduce {{.*}}tensor<4xf32
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 16 bytes 0 copies
// RAN tp=3: all-reduce 24 bytes 0 copies
// RAN tp=4: all-reduce 24 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<6x8xf32>
func.func @main(%x: !x, %w: !w) -> tensor<4xf32> {
  %a = tv.linear %x, %w : (!x, !w) -> tensor<4x6xf32>
  %y = tv.reduce sum %a dims [1] : (tensor<4x6xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Through a slice, a transpose, a scale by a constant and a reshape to a sum, where
// there is least to combine.
// CHECK: tv.linear
// CHECK: tv.slice
// CHECK: tv.transpose
// CHECK: tv.map
// CHECK: tv.reshape
// CHECK: tv.reduce
// CHECK: comm.all_reduce {{.*}}tensor<2xf32
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 8 bytes 0 copies
// RAN tp=3: all-reduce 12 bytes 0 copies
// RAN tp=4: all-reduce 16 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<6x8xf32>
func.func @main(%x: !x, %w: !w) -> tensor<2xf32> {
  %a = tv.linear %x, %w : (!x, !w) -> tensor<4x6xf32>
  %s = tv.slice %a offsets [0, 1] : (tensor<4x6xf32>) -> tensor<4x2xf32>
  %t = tv.transpose %s perm [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %h = tv.map %t : (tensor<2x4xf32>) -> tensor<2x4xf32> (%e: f32) {
    %c = arith.constant 0.5 : f32
    %p = arith.mulf %e, %c : f32
    tv.yield %p : f32
  }
  %r = tv.reshape %h : (tensor<2x4xf32>) -> tensor<2x2x2xf32>
  %y = tv.reduce sum %r dims [0, 1] : (tensor<2x2x2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// Not through gelu, nor through a product of two partial values: all that is read is
// gathered at once, where there would be two all-reduces.
// CHECK: :3 = comm.all_gather
// CHECK: tv.linear
// CHECK: tv.gelu
// CHECK: tv.linear
// CHECK: tv.mul
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather of 3 256 bytes 3 copies
// RAN tp=3: all-gather of 3 384 bytes 3 copies
// RAN tp=4: all-gather of 3 384 bytes 3 copies
#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<6x8xf32>
func.func @main(%x: !x, %w: !w, %v: !w) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %a = tv.linear %x, %w : (!x, !w) -> tensor<4x6xf32>
  %g = tv.gelu %a : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %b = tv.linear %x, %v : (!x, !w) -> tensor<4x6xf32>
  %m = tv.mul %b, %b : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %g, %m : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// What is split joins sums without a move: each device adds its part, others nothing
// there. 6 columns, in strides, are uneven on 4.
// CHECK: comm.slice {{.*}}partial = [tp : sum]
// CHECK: tv.add
// CHECK: comm.all_reduce
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 120 bytes 0 copies
// RAN tp=3: all-reduce 160 bytes 0 copies
// RAN tp=4: all-reduce 184 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<5x4xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<6x4xf32, #tv.view<#m, [_, did(tp) * _]>>
!s = tensor<5x6xf32, #tv.view<#m, [_, _ * did(tp)]>>
!p = tensor<5x6xf32, #tv.view<#m, [_, _], partial = [tp : sum]>>
!y = tensor<5x6xf32, #tv.view<#m, [_, _]>>
func.func @main(%x: !x, %w: !w, %s: !s) -> !y {
  %0 = tv.linear %x, %w : (!x, !w) -> !p
  %1 = tv.reshard %s : (!s) -> !p
  %2 = tv.add %0, %1 : (!p, !p) -> !p
  %3 = tv.reshard %2 : (!p) -> !y
  return %3 : !y
}
