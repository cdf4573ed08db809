// Meshes that list their devices in orders that are none of axes. Values lie on the
// devices of one; arguments and results on those of the other are moved, whole blocks.
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=4 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera=to=kernels --interpret=4 -o /dev/null

// A ring beside a line, with short blocks: a reshard from mesh to mesh is the move to the
// devices of the other, and the sum on the ring's positions needs none inside.
// CHECK-LABEL: func.func @main
// CHECK: comm.permute %arg1
// CHECK-NOT: comm.
// CHECK: tv.add
// CHECK: comm.permute
// CHECK-NOT: comm.
// CHECK: return
// RAN here: permute 192 bytes 0 copies, permute 192 bytes 0 copies
#m = #tv.mesh<x = 4>
#n = #tv.mesh<y = 4, devices = [0, 1, 3, 2]>
!x = tensor<10x16xf32, #tv.view<#m, [did(x) * _, _]>>
!y = tensor<10x16xf32, #tv.view<#n, [did(y) * _, _]>>
func.func @main(%x: !x, %y: !y) -> (!y, !x) {
  %r = tv.reshard %x : (!x) -> !y
  %s = tv.add %r, %y : (!y, !y) -> !y
  %t = tv.reshard %y : (!y) -> !x
  return %s, %t : !y, !x
}

// -----

// Most lie on the ring, so values do. Devices along b have the same: only who has not
// gets a block. Along a rank 0 and 1 are what they are on the line: nothing moves.
// CHECK-LABEL: func.func @main
// CHECK: comm.permute %arg1
// CHECK-NOT: comm.
// CHECK: return
// RAN here: permute 96 bytes 0 copies
#m = #tv.mesh<a = 2, b = 2, devices = [0, 1, 3, 2]>
#n = #tv.mesh<c = 2, d = 2>
!a = tensor<6x8xf32, #tv.view<#m, [did(a) * _, _]>>
!b = tensor<6x8xf32, #tv.view<#m, [did(b) * _, _]>>
!c = tensor<6x8xf32, #tv.view<#n, [did(c) * _, _]>>
!d = tensor<6x8xf32, #tv.view<#n, [did(d) * _, _]>>
func.func @main(%x: !b, %y: !d, %z: !a, %c: !c) -> (!b, !b, !a) {
  %r = tv.mul %x, %y : (!b, !d) -> !b
  %s = tv.sub %r, %x : (!b, !b) -> !b
  %t = tv.add %z, %c : (!a, !c) -> !a
  return %r, %s, %t : !b, !b, !a
}

// -----

// A move to another view next to the move between devices is one exchange with it.
// CHECK-LABEL: func.func @main
// CHECK: comm.exchange %arg1
// CHECK-NOT: comm.
// CHECK: tv.add
// CHECK: comm.exchange
// CHECK-NOT: comm.
// CHECK: return
// RAN here: exchange 192 bytes 1 copies, exchange 192 bytes 1 copies
#m = #tv.mesh<x = 4>
#n = #tv.mesh<x = 4, devices = [3, 2, 1, 0]>
!x = tensor<16x16xf32, #tv.view<#m, [did(x) * _, _]>>
!y = tensor<16x16xf32, #tv.view<#n, [_, did(x) * _]>>
!z = tensor<16x16xf32, #tv.view<#n, [did(x) * _, _]>>
func.func @main(%x: !x, %y: !y, %w: !x) -> !y {
  %r = tv.reshard %y : (!y) -> !x
  %s = tv.add %r, %x : (!x, !x) -> !x
  %t = tv.add %s, %w : (!x, !x) -> !x
  %u = tv.reshard %t : (!x) -> !y
  return %u : !y
}

// -----

// A dynamic number of rows, and a result with a constraint in place of a type.
// CHECK-LABEL: func.func @main
// CHECK: comm.permute %arg1
// CHECK: comm.permute
// CHECK-NOT: comm.
// CHECK: return
// RAN here: permute 24 bytes 0 copies, permute 24 bytes 0 copies
#m = #tv.mesh<x = 4>
#n = #tv.mesh<y = 2, z = 2, devices = [1, 3, 2, 0]>
!x = tensor<?x3xf32, #tv.view<#m, [did(x) * _, _]>>
!y = tensor<?x3xf32, #tv.view<#n, [did(y) * did(z) * _, _]>>
!s = tensor<?x3xf32>
func.func @main(%x: !x {tv.dims = ["s"]}, %y: !y {tv.dims = ["s"]}, %z: !x {tv.dims = ["s"]})
    -> (!x, !s, !x) attributes {tv.sizes = {s = 12 : i64}} {
  %r = tv.add %x, %y : (!x, !y) -> !x
  %t = tv.exp %z : (!x) -> !s
  %u = tv.constrain %t : (!s) -> !s to #tv.view<#n, [did(y) * did(z) * _, _]>
  return %r, %u, %x : !x, !s, !x
}

// -----

// A state on the ring, whose next value follows it; an argument that is returned as it
// lies; blocks that are empty; a value that all have.
// CHECK-LABEL: func.func @main
// RAN here: permute 20 bytes 0 copies
#m = #tv.mesh<x = 4>
#n = #tv.mesh<x = 4, devices = [2, 0, 1, 3]>
!x = tensor<3x5xf32, #tv.view<#m, [did(x) * _, _]>>
!y = tensor<3x5xf32, #tv.view<#n, [did(x) * _, _]>>
!w = tensor<5xf32, #tv.view<#n, [_]>>
!s = tensor<3x5xf32>
func.func @main(%x: !x, %u: !x, %v: !x, %y: !y, %w: !w, %s: !y {tv.name = "s", tv.role = "state"}) -> (!x, !y, !x, !w, !s {tv.name = "s"}) {
  %b = tv.broadcast %w dims [1] : (!w) -> !x
  %0 = tv.add %x, %b : (!x, !x) -> !x
  %1 = tv.add %s, %x : (!y, !x) -> !s
  %2 = tv.add %u, %v : (!x, !x) -> !x
  return %0, %y, %2, %w, %1 : !x, !y, !x, !w, !s
}

// -----

// Inside a local region coordinates are those of its own mesh. What comes in and what goes
// out is inside, too, so only the argument and the result are moved.
// CHECK-LABEL: func.func @main
// CHECK: comm.permute %arg1
// CHECK: comm.all_to_all
// CHECK: comm.all_reduce
// CHECK: comm.all_to_all
// CHECK-NOT: comm.
// CHECK: return
// RAN here: permute 128 bytes 0 copies, all-to-all 96 bytes 1 copies, all-reduce 96 bytes 0 copies, all-to-all 96 bytes 1 copies
#m = #tv.mesh<x = 4>
#n = #tv.mesh<y = 4, devices = [1, 3, 2, 0]>
#rows = #tv.view<#n, [did(y) * _, _]>
#columns = #tv.view<#n, [_, did(y) * _]>
!x = tensor<8x16xf32, #tv.view<#m, [did(x) * _, _]>>
!y = tensor<8x16xf32, #rows>
!z = tensor<8x16xf32, #columns>
!y_rows = tensor<2x16xf32, #tv.local<#rows, of [8, 16]>>
!y_columns = tensor<8x4xf32, #tv.local<#columns, of [8, 16]>>
!most = tensor<16xf32, #tv.local<#tv.view<#n, [_], partial = [y : max]>, of [16]>>
!of_all = tensor<16xf32, #tv.local<#tv.view<#n, [_]>, of [16]>>
func.func @main(%x: !x, %y: !y, %w: !x) -> (!x, !x, tensor<16xf32>) {
  %z, %most = tv.local_region %y : (!y) -> (!z, tensor<16xf32>) {
  ^bb0(%own: !y_rows):
    %0 = comm.all_to_all %own over #n [y] id 0 : (!y_rows) -> !y_columns
    %1 = tv.softmax %0 dim 0 : (!y_columns) -> !y_columns
    %2 = tv.reduce max %own dims [0] : (!y_rows) -> !most
    %3 = comm.all_reduce %2 over #n [y] id 1 : (!most) -> !of_all
    tv.yield %1, %3 : !y_columns, !of_all
  }
  %t = tv.reshard %z : (!z) -> !y
  %r = tv.add %x, %t : (!x, !y) -> !x
  return %r, %w, %most : !x, !x, tensor<16xf32>
}
