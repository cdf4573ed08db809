// Where the operands of a product want one axis for its rows and for its columns, and
// neither is larger, the view of what comes of the result decides, however far it is and
// however the product is written: one gather.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=local" --interpret=4 | FileCheck %s %no_other_collective

// CHECK: comm.all_gather
// CHECK: tv.contract
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather 128 bytes 1 copies
// RAN tp=3: all-gather 192 bytes 1 copies
// RAN tp=4: all-gather 192 bytes 1 copies
#m = #tv.mesh<tp = 2>
!a = tensor<8x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<8x8xf32>
!out = tensor<8x8xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%a: !a, %b: !a) -> !out {
  %at = tv.transpose %a perm [1, 0] : (!a) -> !y
  %p = tv.matmul %at, %b : (!y, !a) -> !y
  %0 = tv.exp %p : (!y) -> !y
  %1 = tv.neg %0 : (!y) -> !y
  %2 = tv.exp %1 : (!y) -> !y
  %3 = tv.neg %2 : (!y) -> !out
  return %3 : !out
}

// -----

// The transpose of the product of the transposes.
// CHECK: comm.all_gather
// CHECK: tv.contract
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather 128 bytes 1 copies
// RAN tp=3: all-gather 192 bytes 1 copies
// RAN tp=4: all-gather 192 bytes 1 copies
#m = #tv.mesh<tp = 2>
!a = tensor<8x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!y = tensor<8x8xf32>
!out = tensor<8x8xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%a: !a, %b: !a) -> !out {
  %bt = tv.transpose %b perm [1, 0] : (!a) -> !y
  %q = tv.matmul %bt, %a : (!y, !a) -> !y
  %p = tv.transpose %q perm [1, 0] : (!y) -> !y
  %0 = tv.exp %p : (!y) -> !y
  %1 = tv.neg %0 : (!y) -> !y
  %2 = tv.exp %1 : (!y) -> !y
  %3 = tv.neg %2 : (!y) -> !out
  return %3 : !out
}

// -----

// The update of pairs by triangles with incoming edges.
// CHECK: comm.all_gather
// CHECK: tv.contract
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather 800 bytes 0 copies
// RAN tp=3: all-gather 1280 bytes 0 copies
// RAN tp=4: all-gather 1440 bytes 0 copies
#m = #tv.mesh<tp = 2>
!z = tensor<10x10x4xf32, #tv.view<#m, [_, did(tp) * _, _]>>
!n = tensor<10x10x4xf32>
!c = tensor<4x10x10xf32>
!w = tensor<4x4xf32>
!v = tensor<4xf32>
func.func @main(%z: !z, %wa: !w {tv.role = "weight"}, %wb: !w {tv.role = "weight"},
                %wg: !w {tv.role = "weight"}, %wo: !w {tv.role = "weight"},
                %scale: !v, %shift: !v) -> !z {
  %a = tv.linear %z, %wa : (!z, !w) -> !n
  %b = tv.linear %z, %wb : (!z, !w) -> !n
  %at = tv.transpose %a perm [2, 1, 0] : (!n) -> !c
  %bt = tv.transpose %b perm [2, 0, 1] : (!n) -> !c
  %p = tv.matmul %at, %bt : (!c, !c) -> !c
  %o = tv.transpose %p perm [1, 2, 0] : (!c) -> !n
  %l = tv.layer_norm %o, %scale, %shift epsilon(1.0e-5) : (!n, !v, !v) -> !n
  %u = tv.linear %l, %wo : (!n, !w) -> !n
  %g = tv.linear %z, %wg : (!z, !w) -> !n
  %s = tv.sigmoid %g : (!n) -> !n
  %r = tv.mul %u, %s : (!n, !n) -> !n
  %y = tv.add %r, %z : (!n, !z) -> !z
  return %y : !z
}
