// Boxes that have other local dimensions on both sides, in any order in memory.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=2 to=kernels" --interpret=2 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=3 to=kernels" --interpret=3 -o /dev/null
// RAN x=1: nothing
// RAN x=2: all-to-all 4 bytes 0 copies
// RAN x=3: all-to-all 8 bytes 1 copies
// RAN x=4: all-to-all 16 bytes 1 copies
#m = #tv.mesh<x = 2>
!a = tensor<3x5xf32>
!b = tensor<5x3xf32, #tv.view<#m, [flat(2) did(x) * _]>>
func.func @main(%a: !a) -> !b {
  %0 = tv.transpose %a perm [1, 0] : (!a) -> tensor<5x3xf32>
  %1 = tv.constrain %0 : (tensor<5x3xf32>) -> !b to #tv.view<#m, [flat(2) did(x) * _]>
  return %1 : !b
}

// -----

// RAN x=1: nothing
// RAN x=2: all-to-all 56 bytes 1 copies, all-to-all 40 bytes 2 copies
// RAN x=3: all-to-all 64 bytes 1 copies, all-to-all 80 bytes 2 copies
// RAN x=4: all-to-all 48 bytes 1 copies, all-to-all 40 bytes 2 copies
#m = #tv.mesh<x = 2>
!a = tensor<5x3x4xf32, #tv.view<#m, [_, _, _], alloc = (2, 0, 1)>>
!b = tensor<5x3x4xf32, #tv.view<#m, [flat(2) did(x) * _, _]>>
!c = tensor<5x3x4xf32, #tv.view<#m, [_, flat(2) did(x) * _]>>
!d = tensor<5x3x4xf32, #tv.view<#m, [_, _, did(x) * _], alloc = (2, 0, 1)>>
func.func @main(%a: !a) -> (!b, !c, !d) {
  %0 = tv.reshard %a : (!a) -> !b
  %1 = tv.reshard %0 : (!b) -> !c
  %2 = tv.reshard %1 : (!c) -> !d
  return %0, %1, %2 : !b, !c, !d
}
