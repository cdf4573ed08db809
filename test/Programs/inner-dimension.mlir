// Collectives over a dimension that is not outermost.
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=local" --interpret=4 | FileCheck %s %no_other_collective

// The producer writes the shard so that the all-gather works in place: no copy.
// CHECK: tv.gelu
// CHECK-NEXT: comm.all_gather
// CHECK-NEXT: tv.softmax
// RAN tp=1: nothing
// RAN tp=2: all-gather 96 bytes 0 copies
// RAN tp=3: all-gather 128 bytes 0 copies
// RAN tp=4: all-gather 144 bytes 0 copies
#m = #tv.mesh<tp = 2>
#whole = #tv.view<#m, [_, _]>
!x = tensor<4x12xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x) -> tensor<4x12xf32> {
  %g = tv.gelu %x : (!x) -> tensor<4x12xf32>
  %c = tv.constrain %g : (tensor<4x12xf32>) -> tensor<4x12xf32, #whole> to #whole
  %y = tv.softmax %c dim 1 : (tensor<4x12xf32, #whole>) -> tensor<4x12xf32>
  return %y : tensor<4x12xf32>
}

// -----

// An argument lies row-major: one copy packs it.
// CHECK: comm.slice
// CHECK-NEXT: comm.all_gather
// CHECK-NEXT: tv.softmax
// RAN tp=1: nothing
// RAN tp=2: all-gather 96 bytes 1 copies
// RAN tp=3: all-gather 128 bytes 1 copies
// RAN tp=4: all-gather 144 bytes 1 copies
#m = #tv.mesh<tp = 2>
#whole = #tv.view<#m, [_, _]>
!x = tensor<4x12xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x) -> tensor<4x12xf32> {
  %c = tv.constrain %x : (!x) -> tensor<4x12xf32, #whole> to #whole
  %y = tv.softmax %c dim 1 : (tensor<4x12xf32, #whole>) -> tensor<4x12xf32>
  return %y : tensor<4x12xf32>
}

// -----

// Partial sums combined and split along the inner dimension, in place.
// CHECK: tv.linear
// CHECK-NEXT: comm.reduce_scatter
// CHECK-NEXT: tv.add
// RAN tp=1: nothing
// RAN tp=2: reduce-scatter 96 bytes 0 copies
// RAN tp=3: reduce-scatter 128 bytes 0 copies
// RAN tp=4: reduce-scatter 144 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<4x6xf32, #tv.view<#m, [_, did(tp) * _]>>
!r = tensor<4x12xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x, %w: tensor<12x6xf32> {tv.role = "weight"}, %r: !r) -> tensor<4x12xf32> {
  %p = tv.linear %x, %w : (!x, tensor<12x6xf32>) -> tensor<4x12xf32>
  %y = tv.add %p, %r : (tensor<4x12xf32>, !r) -> tensor<4x12xf32>
  return %y : tensor<4x12xf32>
}
