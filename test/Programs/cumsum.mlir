// Running sums: rows over an axis move nothing; of the dimension that is summed the totals
// of each device's part do. Sums of small floats are of f32.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels" --interpret=4 -o /dev/null
// RUN: sed s/f32/bf16/g %s | tessera-opt --split-input-file --tessera="mesh=tp=3 to=kernels" --interpret=3 --interpret-precision=program -o /dev/null

// CHECK: tv.cumsum
// CHECK: tv.cumsum reverse
// CHECK: tv.cumsum
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<5x9xf32, #tv.view<#m, [did(tp) * _, _]>>
!y = tensor<5x9xf32>
!i = tensor<5x9xi32>
func.func @main(%x: !x, %i: !i {tv.range = [-9, 9]}) -> (!y, !y, !i) {
  %0 = tv.cumsum %x dim 1 : (!x) -> !y
  %1 = tv.cumsum reverse %0 dim 1 : (!y) -> !y
  %2 = tv.cumsum %i dim 0 : (!i) -> !i
  return %0, %1, %2 : !y, !y, !i
}

// -----

// CHECK: tv.cumsum
// CHECK: comm.all_gather
// CHECK: tv.cumsum
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather 12 bytes 0 copies
// RAN tp=3: all-gather 24 bytes 0 copies
// RAN tp=4: all-gather 36 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<7x3xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%x: !x) -> !x {
  %0 = tv.cumsum %x dim 0 : (!x) -> !x
  return %0 : !x
}

// -----

// From the end, in columns.
// CHECK: tv.cumsum reverse
// CHECK: comm.all_gather
// CHECK: tv.cumsum reverse
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather 44 bytes 0 copies
// RAN tp=3: all-gather 88 bytes 0 copies
// RAN tp=4: all-gather 132 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<11x7xi32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x {tv.range = [-9, 9]}) -> !x {
  %0 = tv.cumsum reverse %x dim 1 : (!x) -> !x
  return %0 : !x
}

// -----

// Runs of 3 in turn, and rows that are known at the run.
// CHECK: tv.cumsum
// CHECK: comm.all_gather
// CHECK: tv.cumsum
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather 60 bytes 2 copies
// RAN tp=3: all-gather 72 bytes 2 copies
// RAN tp=4: all-gather 108 bytes 2 copies
#m = #tv.mesh<tp = 2>
!x = tensor<?x26xf32, #tv.view<#m, [_, _ * did(tp) * 3]>>
func.func @main(%x: !x {tv.dims = ["b"]}) -> !x attributes {tv.sizes = {b = 8}} {
  %0 = tv.cumsum %x dim 1 : (!x) -> !x
  return %0 : !x
}

// -----

// Each element in turn: the totals would be all of it.
// CHECK: comm.all_gather
// CHECK: tv.cumsum
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather 96 bytes 1 copies
// RAN tp=3: all-gather 144 bytes 1 copies
// RAN tp=4: all-gather 144 bytes 1 copies
#m = #tv.mesh<tp = 2>
!x = tensor<8x6xf32, #tv.view<#m, [_ * did(tp), _]>>
func.func @main(%x: !x) -> !x {
  %0 = tv.cumsum %x dim 0 : (!x) -> !x
  return %0 : !x
}

// -----

// Addends stay addends, and are combined once.
// CHECK: tv.linear
// CHECK: tv.cumsum
// CHECK: comm.all_reduce
// CHECK-NEXT: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 80 bytes 0 copies
// RAN tp=3: all-reduce 108 bytes 0 copies
// RAN tp=4: all-reduce 120 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<5x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!p = tensor<4x5xf32, #tv.view<#m, [_, _], partial = [tp : sum]>>
!y = tensor<4x5xf32, #tv.view<#m, [_, _]>>
func.func @main(%x: !x, %w: !w) -> !y {
  %0 = tv.linear %x, %w : (!x, !w) -> !p
  %1 = tv.cumsum %0 dim 1 : (!p) -> !p
  %2 = tv.reshard %1 : (!p) -> !y
  return %2 : !y
}
