// What a composite along a split dimension returns stays split: only what its core ops
// sum moves.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels" --interpret=4 -o /dev/null

// CHECK-LABEL: @main
// CHECK: comm.all_reduce
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 24 bytes 0 copies
// RAN tp=3: all-reduce 32 bytes 0 copies
// RAN tp=4: all-reduce 40 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<6x16xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<16xf32>
!y = tensor<6x16xf32>
!o = tensor<16x6xf32, #tv.view<#m, [?, ?]>>
func.func @main(%x: !x, %w: !w, %b: !y) -> (!y, !o) {
  %r = tv.rms_norm %x, %w epsilon(1.0e-5) : (!x, !w) -> !y
  %a = tv.add %r, %b : (!y, !y) -> !y
  %t = tv.transpose %a perm [1, 0] : (!y) -> !o
  return %a, %t : !y, !o
}

// -----

// Of a running sum totals move.
// CHECK-LABEL: @main
// CHECK: comm.all_gather
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather 24 bytes 0 copies
// RAN tp=3: all-gather 48 bytes 0 copies
// RAN tp=4: all-gather 72 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<6x16xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<6x16xf32>
func.func @main(%x: !x) -> !y {
  %c = tv.cumsum %x dim 1 : (!x) -> !y
  %e = tv.exp %c : (!y) -> !y
  return %e : !y
}
