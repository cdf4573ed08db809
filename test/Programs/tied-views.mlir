// Keys lie by their weight's view, and values as the keys, for both are tied; behind the
// barrier nothing is split, so that their product is gathered once; of its gradient each
// device takes a part. What makes the values follows, and so do the gradients.
// RUN: tessera-opt %s --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %t --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %t --tessera="mesh=tp=4 to=kernels" --interpret=4 -o /dev/null

// CHECK: comm.all_gather
// CHECK: tv.mul
// CHECK: comm.slice
// RAN tp=1: nothing
// RAN tp=2: all-gather 384 bytes 0 copies
// RAN tp=3: all-gather 512 bytes 0 copies
// RAN tp=4: all-gather 576 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<8x16xf32, #tv.view<#m, [_, _]>>
!wk = tensor<24x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!w = tensor<24x16xf32>
!y = tensor<8x24xf32>
func.func private @product(%x: !x, %wk: !wk, %wv: !w) -> !y {
  %k = tv.linear %x, %wk : (!x, !wk) -> !y
  %v = tv.linear %x, %wv : (!x, !w) -> !y
  %k1, %v1 = tv.same_view %k, %v : (!y, !y) -> (!y, !y)
  %p = tv.mul %k1, %v1 : (!y, !y) -> !y
  %r = tv.barrier none %p : (!y) -> !y
  %y = tv.mul %r, %r : (!y, !y) -> !y
  return %y : !y
}
func.func @main(%x: !x, %wk: !wk {tv.role = "weight"}, %wv: !w {tv.role = "weight"}, %dy: !y) -> (!y, !wk, !w) {
  %y, %dk, %dv = tv.gradient @product(%x, %wk, %wv) of [0] with (%dy) to [1, 2]
      : (!x, !wk, !w, !y) -> (!y, !wk, !w)
  return %y, %dk, %dv : !y, !wk, !w
}
