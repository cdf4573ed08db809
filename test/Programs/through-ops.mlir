// Moves to and from devices that another mesh lists meet through ops between them. Many
// sums put most bytes on the line, so all values would lie there.
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=4 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera=to=kernels --interpret=4 -o /dev/null

// To the line, dropout by global indices, and back: it runs where its argument lies, whose
// blocks are short. Nothing moves.
// CHECK-LABEL: func.func @main
// CHECK-NOT: comm.
// CHECK: return
// RAN here: nothing
#m = #tv.mesh<x = 4>
#n = #tv.mesh<x = 4, devices = [1, 3, 0, 2]>
!b = tensor<16x16xf32, #tv.view<#m, [did(x) * _, _]>>
!x = tensor<10x7xf32, #tv.view<#n, [did(x) * _, _]>>
!t = tensor<7x10xf32, #tv.view<#n, [_, did(x) * _]>>
func.func @main(%a: !b, %b: !b, %x: !x) -> (!b, !x, !t) {
  %s = tv.add %a, %b : (!b, !b) -> !b
  %d = tv.dropout %x rate(0.5) seed(1) stream(2) : (!x) -> tensor<10x7xf32>
  %y = tv.exp %d : (tensor<10x7xf32>) -> !x
  %z = tv.transpose %d perm [1, 0] : (tensor<10x7xf32>) -> !t
  return %s, %y, %z : !b, !x, !t
}

// -----

// Rows there become columns here before ops, and rows here columns there behind them: one
// exchange, of both.
// CHECK-LABEL: func.func @main
// CHECK: :2 = comm.exchange %{{.*}}, %arg2
// CHECK-NOT: comm.
// CHECK: return
// RAN here: exchange of 2 384 bytes 2 copies
#m = #tv.mesh<x = 4>
#n = #tv.mesh<x = 4, devices = [3, 2, 1, 0]>
!x = tensor<16x16xf32, #tv.view<#m, [did(x) * _, _]>>
!y = tensor<16x16xf32, #tv.view<#m, [_, did(x) * _]>>
!u = tensor<16x16xf32, #tv.view<#n, [did(x) * _, _]>>
!v = tensor<16x16xf32, #tv.view<#n, [_, did(x) * _]>>
!t = tensor<16x16xf32>
func.func @main(%x: !x, %z: !x, %u: !u) -> (!x, !y, !v) {
  %s = tv.add %x, %z : (!x, !x) -> !x
  %e = tv.exp %u : (!u) -> !t
  %y = tv.neg %e : (!t) -> !y
  %c = tv.exp %z : (!x) -> !t
  %v = tv.neg %c : (!t) -> !v
  return %s, %y, %v : !x, !y, !v
}

// -----

// From one list of devices to another, neither of them the program's, and from rows to
// columns on one; a number of rows that is known when it runs. One exchange, of both.
// CHECK-LABEL: func.func @main
// CHECK: :2 = comm.exchange %arg3, %arg4
// CHECK-NOT: comm.
// CHECK: return
// RAN here: exchange of 2 168 bytes 1 copies
#m = #tv.mesh<x = 4>
#n = #tv.mesh<x = 4, devices = [3, 2, 1, 0]>
#o = #tv.mesh<x = 4, devices = [1, 2, 3, 0]>
!x = tensor<?x12xf32, #tv.view<#m, [did(x) * _, _]>>
!n = tensor<?x12xf32, #tv.view<#n, [did(x) * _, _]>>
!o = tensor<?x12xf32, #tv.view<#o, [did(x) * _, _]>>
!p = tensor<?x12xf32, #tv.view<#n, [_, did(x) * _]>>
func.func @main(%x: !x {tv.dims = ["s"]}, %z: !x {tv.dims = ["s"]}, %w: !x {tv.dims = ["s"]}, %u: !n {tv.dims = ["s"]}, %v: !n {tv.dims = ["s"]})
    -> (!x, !o, !p) attributes {tv.sizes = {s = 12 : i64}} {
  %q = tv.add %x, %z : (!x, !x) -> !x
  %s = tv.add %q, %w : (!x, !x) -> !x
  %e = tv.silu %u : (!n) -> !o
  %f = tv.silu %v : (!n) -> !p
  return %s, %e, %f : !x, !o, !p
}

// -----

// What a slice has of short blocks, where these lie; what all have stays what it is.
// CHECK-LABEL: func.func @main
// CHECK: tv.slice %arg2
// CHECK: comm.exchange
// CHECK-NOT: comm.
// CHECK: return
// RAN here: exchange 64 bytes 0 copies
#m = #tv.mesh<x = 4>
#n = #tv.mesh<x = 4, devices = [3, 0, 2, 1]>
#o = #tv.mesh<x = 4, devices = [1, 2, 3, 0]>
!b = tensor<16x16xf32, #tv.view<#m, [did(x) * _, _]>>
!x = tensor<8x7xf32, #tv.view<#n, [_, did(x) * _]>>
!y = tensor<8x5xf32, #tv.view<#o, [_, did(x) * _]>>
!w = tensor<8xf32, #tv.view<#o, [_]>>
func.func @main(%a: !b, %b: !b, %x: !x, %w: !w) -> (!b, !y, !w) {
  %s = tv.add %a, %b : (!b, !b) -> !b
  %y = tv.slice %x offsets [0, 2] : (!x) -> !y
  %v = tv.exp %w : (!w) -> !w
  return %s, %y, %v : !b, !y, !w
}

// -----

// Operands on two lists of devices, and a result on a third: both go there in one step.
// What has most operands there is computed there.
// CHECK-LABEL: func.func @main
// CHECK: :3 = comm.permute
// CHECK-NOT: comm.
// CHECK: return
// RAN here: permute of 3 180 bytes 0 copies
#m = #tv.mesh<x = 4>
#n = #tv.mesh<x = 4, devices = [3, 0, 2, 1]>
#o = #tv.mesh<x = 4, devices = [1, 2, 3, 0]>
!b = tensor<16x16xf32, #tv.view<#m, [did(x) * _, _]>>
!x = tensor<10x5xf32, #tv.view<#m, [did(x) * _, _]>>
!y = tensor<10x5xf32, #tv.view<#n, [did(x) * _, _]>>
!z = tensor<10x5xf32, #tv.view<#o, [did(x) * _, _]>>
func.func @main(%a: !b, %b: !b, %x: !x, %y: !y, %u: !z, %v: !z, %w: !y) -> (!b, !z, !z) {
  %s = tv.add %a, %b : (!b, !b) -> !b
  %z = tv.add %x, %y : (!x, !y) -> !z
  %p = tv.mul %u, %v : (!z, !z) -> tensor<10x5xf32>
  %q = tv.exp %w : (!y) -> tensor<10x5xf32>
  %r = tv.sub %p, %q : (tensor<10x5xf32>, tensor<10x5xf32>) -> !z
  return %s, %z, %r : !b, !z, !z
}
