// The gradient of rows that are set: of those that are set twice the last one has a part, of
// those outside none.
// RUN: tessera-opt %s --split-input-file --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --split-input-file --tessera="mesh=tp=2 to=local" --interpret=2 -o /dev/null
// RUN: tessera-opt %t --split-input-file --tessera="mesh=tp=3 to=kernels" --interpret=3 -o /dev/null

// Rows over tp.
// RAN tp=1: nothing
// RAN tp=2: all-gather 36 bytes 0 copies
// RAN tp=3: all-gather 48 bytes 0 copies
// RAN tp=4: all-gather 72 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<5x3xf32, #tv.view<#m, [did(tp) * _, _]>>
!u = tensor<2x6x3xf32>
!i = tensor<2x6xi64>
func.func private @f(%x: !x, %i: !i, %u: !u) -> !x {
  %y = tv.scatter set %x, %i, %u dim 0 : (!x, !i, !u) -> !x
  %z = tv.mul %y, %y : (!x, !x) -> !x
  return %z : !x
}
func.func @main(%x: !x, %i: !i {tv.range = [-2, 7]}, %u: !u, %dy: !x) -> (!x, !x, !u) {
  %y, %dx, %du = tv.gradient @f(%x, %i, %u) of [0] with (%dy) to [0, 2] : (!x, !i, !u, !x) -> (!x, !x, !u)
  return %y, %dx, %du : !x, !x, !u
}

// -----

// Columns are set, which are over tp.
// RAN tp=1: nothing
// RAN tp=2: all-gather 40 bytes 0 copies
// RAN tp=3: all-gather 40 bytes 0 copies
// RAN tp=4: all-gather 60 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<5x3xf32, #tv.view<#m, [_, did(tp) * _]>>
!u = tensor<5x2x6xf32>
!i = tensor<2x6xi64>
func.func private @f(%x: !x, %i: !i, %u: !u) -> !x {
  %y = tv.scatter set %x, %i, %u dim 1 : (!x, !i, !u) -> !x
  %z = tv.mul %y, %y : (!x, !x) -> !x
  return %z : !x
}
func.func @main(%x: !x, %i: !i {tv.range = [-2, 7]}, %u: !u, %dy: !x) -> (!x, !x, !u) {
  %y, %dx, %du = tv.gradient @f(%x, %i, %u) of [0] with (%dy) to [0, 2] : (!x, !i, !u, !x) -> (!x, !x, !u)
  return %y, %dx, %du : !x, !x, !u
}
