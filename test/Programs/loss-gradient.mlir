// A loss of tokens, its vocabulary split, with one table for the way in and the way out.
// The gradient of the cross entropy moves nothing: it has the log-sum-exp;
// what is gathered and scattered lies with the table.
// RUN: tessera-opt %s --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s
// RUN: tessera-opt %t --tessera="mesh=tp=3 to=local" --interpret=3 -o /dev/null
// RUN: tessera-opt %t --tessera="mesh=tp=4 to=kernels" --interpret=4 -o /dev/null

// CHECK: tv.gather
// CHECK: comm.all_reduce
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather 224 bytes 0 copies, all-reduce of 2 80 bytes 0 copies, all-reduce 320 bytes 0 copies
// RAN tp=3: all-gather 320 bytes 0 copies, all-reduce of 2 112 bytes 0 copies, all-reduce 428 bytes 0 copies
// RAN tp=4: all-gather 384 bytes 0 copies, all-reduce of 2 128 bytes 0 copies, all-reduce 480 bytes 0 copies
#m = #tv.mesh<tp = 2>
!ids = tensor<2x5xi32, #tv.view<#m, [_, _]>>
!table = tensor<14x8xf32, #tv.view<#m, [did(tp) * _, _]>>
!vec = tensor<8xf32, #tv.view<#m, [_]>>
!x = tensor<2x5x8xf32>
!logits = tensor<2x5x14xf32>
!rows = tensor<2x5xf32>
!loss = tensor<f32>
func.func private @loss(%ids: !ids, %labels: !ids, %table: !table, %g: !vec, %b: !vec) -> !loss {
  %e = tv.gather %table, %ids dim 0 : (!table, !ids) -> !x
  %n = tv.layer_norm %e, %g, %b epsilon(1.0e-5) : (!x, !vec, !vec) -> !x
  %r = tv.rms_norm %n, %g epsilon(1.0e-5) : (!x, !vec) -> !x
  %s = tv.silu %r : (!x) -> !x
  %l = tv.linear %s, %table : (!x, !table) -> !logits
  %c = tv.cross_entropy %l, %labels : (!logits, !ids) -> !rows
  %loss = tv.reduce sum %c dims [0, 1] : (!rows) -> !loss
  return %loss : !loss
}
func.func @main(%ids: !ids {tv.range = [0, 13]}, %labels: !ids {tv.range = [-1, 13]}, %table: !table {tv.role = "weight"},
                %g: !vec {tv.role = "weight"}, %b: !vec {tv.role = "weight"}) -> (!loss, !table, !vec, !vec) {
  %loss, %dt, %dg, %db = tv.gradient @loss(%ids, %labels, %table, %g, %b) of [0] to [2, 3, 4]
      : (!ids, !ids, !table, !vec, !vec) -> (!loss, !table, !vec, !vec)
  return %loss, %dt, %dg, %db : !loss, !table, !vec, !vec
}
