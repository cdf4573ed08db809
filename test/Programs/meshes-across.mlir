// Two meshes that cut six devices at places that do not divide each other: the views lie on
// one mesh of all, and moves between them are exchanges of what each device lacks. A
// product has its rows by one mesh and its columns by the other.
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=6 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera=to=kernels --interpret=6 -o /dev/null

// CHECK: tv.mesh<a_b = 6>

// RAN here: all-gather 360 bytes 1 copies
#m = #tv.mesh<a = 2, b = 3>
#n = #tv.mesh<c = 3, d = 2>
!x = tensor<12x8xf32, #tv.view<#m, [did(a) * _, did(b) * _]>>
!y = tensor<12x8xf32, #tv.view<#n, [did(c) * _, did(d) * _]>>
!w = tensor<10x8xf32, #tv.view<#n, [did(d) * _, _]>>
func.func @main(%x: !x, %w: !w) -> (!y, tensor<12x10xf32>, tensor<12xf32, #tv.view<#n, [did(c) * _]>>) {
  %y = tv.exp %x : (!x) -> !y
  %p = tv.linear %x, %w : (!x, !w) -> tensor<12x10xf32>
  %s = tv.reduce sum %x dims [1] : (!x) -> tensor<12xf32, #tv.view<#n, [did(c) * _]>>
  return %y, %p, %s : !y, tensor<12x10xf32>, tensor<12xf32, #tv.view<#n, [did(c) * _]>>
}

// -----

// A third mesh has an axis of all, which gives the name. Uneven parts, and a sum over an axis
// of one mesh that is wanted over another's.
// CHECK: tv.mesh<r = 6>
// CHECK: :2 = comm.all_gather

// RAN here: all-gather of 2 1360 bytes 2 copies
#m = #tv.mesh<a = 2, b = 3>
#n = #tv.mesh<c = 3, d = 2>
#r = #tv.mesh<r = 6>
!x = tensor<4x7x6xf32, #tv.view<#m, [_, did(a) * _, did(b) * _]>>
!y = tensor<4x7x6xf32, #tv.view<#n, [_, did(c) * _, did(d) * _]>>
!z = tensor<4x7x6xf32, #tv.view<#r, [_, did(r) * _, _]>>
func.func @main(%x: !x, %y: !y) -> (!z, !y, tensor<4x7xf32, #tv.view<#n, [_, did(d) * _]>>) {
  %z = tv.add %x, %y : (!x, !y) -> !z
  %u = tv.mul %z, %x : (!z, !x) -> !y
  %s = tv.reduce sum %x dims [2] : (!x) -> tensor<4x7xf32, #tv.view<#n, [_, did(d) * _]>>
  return %z, %u, %s : !z, !y, tensor<4x7xf32, #tv.view<#n, [_, did(d) * _]>>
}

// -----

// Rows over one mesh become addends of a sum over the other's: each device has its own, of
// those that have the same the first. Only the sum moves.
// CHECK-NOT: comm.exchange
// CHECK-NOT: comm.all_gather
// CHECK: comm.slice
// CHECK: comm.all_reduce

// RAN here: all-reduce 640 bytes 0 copies
#m = #tv.mesh<a = 2, b = 3>
#n = #tv.mesh<c = 3, d = 2>
!x = tensor<12x9xf32, #tv.view<#n, [_, did(c) * _]>>
!w = tensor<10x9xf32, #tv.view<#n, [_, did(c) * _]>>
!b = tensor<12x10xf32, #tv.view<#m, [did(a) * _, _]>>
!y = tensor<12x10xf32, #tv.view<#n, [_, _]>>
func.func @main(%x: !x, %w: !w, %b: !b) -> !y {
  %p = tv.linear %x, %w : (!x, !w) -> tensor<12x10xf32>
  %y = tv.add %p, %b : (tensor<12x10xf32>, !b) -> !y
  return %y : !y
}
