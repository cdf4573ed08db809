// Blocks of blocks lie in blocks where they divide every extent that may come, which
// tv.sizes says: no exchanges there (see dynamic-blocks.mlir).
// RUN: tessera-opt %s --split-input-file --tessera=to=local | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=6 --interpret-sizes=m=6 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=6 --interpret-sizes=m=126 -o /dev/null

// CHECK-LABEL: @main
// CHECK: comm.slice
// CHECK: comm.all_gather
// CHECK-NOT: comm.
// CHECK: return
// RAN here: all-gather 24 bytes 0 copies
#m = #tv.mesh<x = 2, y = 3>
!a = tensor<?x3xf32, #tv.view<#m, [did(x) * _, _]>>
!b = tensor<?x3xf32, #tv.view<#m, [did(x) * did(y) * _, _]>>
func.func @main(%a: !a {tv.dims = ["m"]}, %b: !b {tv.dims = ["m"]}) -> (!b, !a)
    attributes {tv.sizes = {m = [132, 6]}} {
  %0 = tv.add %a, %a : (!a, !a) -> !a
  %1 = tv.constrain %0 : (!a) -> !b to #tv.view<#m, [did(x) * did(y) * _, _]>
  %2 = tv.constrain %b : (!b) -> !a to #tv.view<#m, [did(x) * _, _]>
  return %1, %2 : !b, !a
}

// -----

// Of six devices, what is a multiple of three is not.
// CHECK-LABEL: @main
// CHECK: comm.exchange
// CHECK-NOT: comm.
// CHECK: return
// RAN here: exchange 0 bytes 0 copies
#m = #tv.mesh<x = 2, y = 3>
!a = tensor<?x3xf32, #tv.view<#m, [did(x) * _, _]>>
!b = tensor<?x3xf32, #tv.view<#m, [did(x) * did(y) * _, _]>>
func.func @main(%a: !a {tv.dims = ["m"]}) -> !b attributes {tv.sizes = {m = [132, 3]}} {
  %0 = tv.add %a, %a : (!a, !a) -> !a
  %1 = tv.constrain %0 : (!a) -> !b to #tv.view<#m, [did(x) * did(y) * _, _]>
  return %1 : !b
}
