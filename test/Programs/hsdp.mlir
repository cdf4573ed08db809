// HSDP: weights and their moments split over one axis and copied over the other, the batch
// split over both; a weight is gathered along the first, its gradient reduced along both.
// RUN: tessera-opt %s --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --tessera=to=local --interpret=4 | FileCheck %s
// RUN: tessera-opt %t --tessera="mesh=shard=3 to=local" --interpret=6 | FileCheck %s
// RUN: tessera-opt %t --tessera="mesh=copy=3 to=kernels" --interpret=6 -o /dev/null

// CHECK: comm.all_gather {{.*}}[shard]
// CHECK: comm.all_gather {{.*}}[shard]
// CHECK: comm.all_reduce {{.*}}[copy, shard]
// CHECK: comm.all_reduce {{.*}}[copy, shard]
// CHECK-NOT: comm.all_gather
// A gradient that is not small is reduced to where its weight lies, and that along the
// other axis.
// RUN: sed 's/16x16/1024x1024/g; s/48x16/49152x1024/g' %t | tessera-opt --tessera=to=local | FileCheck %s --check-prefix=LARGE
// LARGE-COUNT-2: comm.all_gather {{.*}}[shard]
// LARGE: comm.reduce_scatter {{.*}}[shard]
// LARGE: comm.all_reduce {{.*}}[copy]
// LARGE: comm.reduce_scatter {{.*}}[shard]
// LARGE: comm.all_reduce {{.*}}[copy]
// RAN here: all-gather 512 bytes 0 copies, all-gather 512 bytes 0 copies, all-reduce of 2 1548 bytes 0 copies, all-reduce 1536 bytes 0 copies
#m = #tv.mesh<copy = 2, shard = 2>
!x = tensor<48x16xf32, #tv.view<#m, [did(copy) * did(shard) * _, _]>>
!w = tensor<16x16xf32, #tv.view<#m, [did(shard) * _, _]>>
!whole = tensor<16x16xf32>
!y = tensor<48x16xf32>
!loss = tensor<f32, #tv.view<#m, []>>
!c = tensor<16x16xf32>
func.func private @loss(%x: !x, %w0: !w, %w1: !w) -> !loss {
  %0 = tv.constrain %w0 : (!w) -> !whole to #tv.view<#m, [_, _]>
  %1 = tv.linear %x, %0 : (!x, !whole) -> !y
  %2 = tv.tanh %1 : (!y) -> !y
  %3 = tv.constrain %w1 : (!w) -> !whole to #tv.view<#m, [_, _]>
  %4 = tv.linear %2, %3 : (!y, !whole) -> !y
  %5 = tv.mul %4, %4 : (!y, !y) -> !y
  %6 = tv.reduce sum %5 dims [0, 1] : (!y) -> !loss
  return %6 : !loss
}
func.func @main(%x: !x {tv.name = "x"},
                %w0: !w {tv.name = "w0", tv.role = "parameter"}, %m0: !w {tv.name = "m0", tv.role = "state"},
                %w1: !w {tv.name = "w1", tv.role = "parameter"}, %m1: !w {tv.name = "m1", tv.role = "state"})
    -> (!loss {tv.name = "loss"}, !w {tv.name = "w0"}, !w {tv.name = "m0"}, !w {tv.name = "w1"}, !w {tv.name = "m1"}) {
  %loss, %g0, %g1 = tv.gradient @loss(%x, %w0, %w1) of [0] to [1, 2] : (!x, !w, !w) -> (!loss, !w, !w)
  %beta = tv.constant dense<0.9> : tensor<f32> : () -> !c
  %rate = tv.constant dense<-0.001> : tensor<f32> : () -> !c
  %old0 = tv.mul %m0, %beta : (!w, !c) -> !c
  %n0 = tv.add %old0, %g0 : (!c, !w) -> !w
  %step0 = tv.mul %n0, %rate : (!w, !c) -> !c
  %new0 = tv.add %w0, %step0 : (!w, !c) -> !w
  %old1 = tv.mul %m1, %beta : (!w, !c) -> !c
  %n1 = tv.add %old1, %g1 : (!c, !w) -> !w
  %step1 = tv.mul %n1, %rate : (!w, !c) -> !c
  %new1 = tv.add %w1, %step1 : (!w, !c) -> !w
  return %loss, %new0, %n0, %new1, %n1 : !loss, !w, !w, !w, !w
}
