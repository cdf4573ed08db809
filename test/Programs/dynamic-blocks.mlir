// Blocks of blocks lie in blocks where they divide the extent, as they do at its
// maximum, but not at each that is known at run time: exchanges take the place of what
// rests on that.
// RUN: tessera-opt %s --split-input-file --tessera=to=local | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=6 --interpret-sizes=s=7 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=6 --interpret-sizes=s=132 -o /dev/null

// Not a slice; not an all-gather.
// CHECK-LABEL: @main
// CHECK: :2 = comm.exchange
// CHECK-NOT: comm.
// CHECK: return
// RAN here: exchange of 2 72 bytes 0 copies
#m = #tv.mesh<x = 2, y = 3>
!a = tensor<?x3xf32, #tv.view<#m, [did(x) * _, _]>>
!b = tensor<?x3xf32, #tv.view<#m, [did(x) * did(y) * _, _]>>
func.func @main(%a: !a {tv.dims = ["s"]}, %b: !b {tv.dims = ["s"]}) -> (!b, !a)
    attributes {tv.sizes = {s = 132 : i64}} {
  %0 = tv.add %a, %a : (!a, !a) -> !a
  %1 = tv.constrain %0 : (!a) -> !b to #tv.view<#m, [did(x) * did(y) * _, _]>
  %2 = tv.constrain %b : (!b) -> !a to #tv.view<#m, [did(x) * _, _]>
  return %1, %2 : !b, !a
}

// -----

// Not a reduce-scatter.
// CHECK-LABEL: @main
// CHECK: comm.all_reduce
// CHECK: comm.exchange
// CHECK-NOT: comm.
// CHECK: return
// RAN here: all-reduce 64 bytes 0 copies, exchange 24 bytes 0 copies
#m = #tv.mesh<y = 3, x = 2>
!a = tensor<?x8xf32, #tv.view<#m, [did(x) * _, did(y) * _]>>
!w = tensor<3x8xf32, #tv.view<#m, [_, did(y) * _]>>
!b = tensor<?x3xf32, #tv.view<#m, [did(x) * did(y) * _, _]>>
func.func @main(%a: !a {tv.dims = ["s"]}, %w: !w) -> !b
    attributes {tv.sizes = {s = 132 : i64}} {
  %0 = tv.linear %a, %w : (!a, !w) -> tensor<?x3xf32>
  %1 = tv.constrain %0 : (tensor<?x3xf32>) -> !b to #tv.view<#m, [did(x) * did(y) * _, _]>
  return %1 : !b
}

// -----

// Two views that are one at the maximum.
// CHECK-LABEL: @main
// CHECK: comm.exchange
// CHECK-NOT: comm.
// CHECK: return
// RAN here: exchange 24 bytes 0 copies
#m = #tv.mesh<x = 2, y = 3>
!a = tensor<?x8xf32, #tv.view<#m, [did(x) * _, did(y) * _]>>
!b = tensor<?x8xf32, #tv.view<#m, [did(x) * _ * 3, did(y) * _]>>
func.func @main(%a: !a {tv.dims = ["s"]}) -> !b
    attributes {tv.sizes = {s = 132 : i64}} {
  %0 = tv.add %a, %a : (!a, !a) -> !a
  %1 = tv.constrain %0 : (!a) -> !b to #tv.view<#m, [did(x) * _ * 3, did(y) * _]>
  return %1 : !b
}
