// Convolutions: windows are gathered, and their product splits as any does.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels" --interpret=4 -o /dev/null
// RUN: sed s/f32/bf16/g %s | tessera-opt --split-input-file --tessera="mesh=tp=3 to=kernels" --interpret=3 --interpret-precision=program -o /dev/null

// Whisper's front: the results of the first are the channels of the second, of which each
// device has its own; what they sum is combined once.
// CHECK-NOT: comm.
// CHECK: tv.contract
// CHECK: tv.gelu
// CHECK-NOT: comm.
// CHECK: tv.contract
// CHECK: comm.all_reduce
// CHECK: tv.gelu
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 336 bytes 0 copies
// RAN tp=3: all-reduce 448 bytes 0 copies
// RAN tp=4: all-reduce 504 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<2x4x14xf32>
!w1 = tensor<6x4x3xf32, #tv.view<#m, [did(tp) * _, _, _]>>
!h = tensor<2x6x14xf32>
!w2 = tensor<6x6x3xf32>
!y = tensor<2x6x7xf32>
!b = tensor<6xf32>
func.func @main(%x: !x, %w1: !w1, %b1: !b, %w2: !w2, %b2: !b) -> !y {
  %0 = tv.conv %x, %w1 bias %b1 low [1] high [1] : (!x, !w1, !b) -> !h
  %1 = tv.gelu %0 : (!h) -> !h
  %2 = tv.conv %1, %w2 bias %b2 strides [2] low [1] high [1] : (!h, !w2, !b) -> !y
  %3 = tv.gelu %2 : (!y) -> !y
  return %3 : !y
}

// -----

// A ViT's patches and their positions, of a split batch of any size: nothing moves.
// CHECK-NOT: comm.
// CHECK: tv.gather
// CHECK: tv.contract
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<?x3x8x12xf32, #tv.view<#m, [did(tp) * _, _, _, _]>>
!w = tensor<5x3x4x4xf32>
!p = tensor<?x5x2x3xf32>
!r = tensor<?x5x6xf32>
!t = tensor<?x6x5xf32>
!e = tensor<6x5xf32>
func.func @main(%x: !x {tv.dims = ["b"]}, %w: !w, %b: tensor<5xf32>, %e: !e) -> !t attributes {tv.sizes = {b = 8}} {
  %0 = tv.conv %x, %w bias %b strides [4, 4] : (!x, !w, tensor<5xf32>) -> !p
  %1 = tv.reshape %0 : (!p) -> !r
  %2 = tv.transpose %1 perm [0, 2, 1] : (!r) -> !t
  %3 = tv.broadcast %e dims [1, 2] like %2 : (!e, !t) -> !t
  %4 = tv.add %2, %3 : (!t, !t) -> !t
  return %4 : !t
}

// -----

// Rows of an image over an axis are gathered: windows reach over their borders. With
// dilations, and borders on one side.
// CHECK: comm.
// CHECK: tv.contract
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather 480 bytes 1 copies
// RAN tp=3: all-gather 720 bytes 1 copies
// RAN tp=4: all-gather 720 bytes 1 copies
#m = #tv.mesh<tp = 2>
!x = tensor<2x3x7x5xf32, #tv.view<#m, [_, _, did(tp) * _, _]>>
!w = tensor<4x3x3x2xf32>
!y = tensor<2x4x4x5xf32>
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = tv.conv %x, %w strides [2, 1] low [2, 0] high [2, 3] dilations [2, 3] : (!x, !w) -> !y
  return %0 : !y
}

// -----

// Groups over an axis, each with its channels: of one channel, and of two. In three
// dimensions of which one has one value.
// CHECK-NOT: comm.
// CHECK: tv.contract
// CHECK: tv.contract
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: all-to-all 144 bytes 2 copies
#m = #tv.mesh<tp = 2>
!x = tensor<2x12x4x1x3xf32, #tv.view<#m, [_, did(tp) * _, _, _, _]>>
!w = tensor<12x1x2x1x2xf32>
!y = tensor<2x12x3x1x2xf32>
!v = tensor<24x2x3x1x1xf32>
!z = tensor<2x24x1x1x2xf32>
func.func @main(%x: !x, %w: !w, %v: !v, %b: tensor<24xf32>) -> !z {
  %0 = tv.conv %x, %w groups(12) : (!x, !w) -> !y
  %1 = tv.conv %0, %v bias %b groups(6) : (!y, !v, tensor<24xf32>) -> !z
  return %1 : !z
}

// -----

// Pools of images of a split batch and split channels, of borders too; and of split rows.
// RAN tp=1: nothing
// RAN tp=2: all-gather 80 bytes 0 copies
// RAN tp=3: all-gather 120 bytes 0 copies
// RAN tp=4: all-gather 120 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<3x4x6x7xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!p = tensor<3x4x3x3xf32>
!q = tensor<3x4x3x7xf32>
!r = tensor<3x4x2x1xf32>
!s = tensor<7x5xf32, #tv.view<#m, [did(tp) * _, _]>>
!t = tensor<5x5xf32>
func.func @main(%x: !x, %s: !s) -> (!q, !r, !t) {
  %0 = tv.pool max %x sizes [2, 2] strides [2, 2] : (!x) -> !p
  %1 = tv.pool mean %x sizes [3, 3] strides [2, 1] low [1, 1] high [0, 1] : (!x) -> !q
  %2 = tv.pool mean %0 sizes [2, 3] : (!p) -> !r
  %3 = tv.pool max %s sizes [3, 3] low [0, 1] high [0, 1] : (!s) -> !t
  return %1, %2, %3 : !q, !r, !t
}
