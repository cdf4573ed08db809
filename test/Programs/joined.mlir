// What nothing but a concat reads is written in its place there: no kernel copies it.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=kernels" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels target=cuda:sm_90a" --interpret=4 | FileCheck %s %no_other_collective

// Rows of 32 and 64 bytes, one part transposed; the result is returned, and multiplied.
// CHECK: func.func @main
// CHECK-NEXT: %[[A:.*]] = plan.launch @cumsum
// CHECK-NEXT: %[[B:.*]] = plan.launch @cumsum
// CHECK-NEXT: %[[T:.*]] = plan.alias transpose %[[B]] at [1, 0, 2]
// CHECK-NEXT: %[[Y:.*]] = plan.join %[[A]], %[[T]] dim 2
// CHECK-NEXT: plan.contract %[[Y]]
// CHECK-NEXT: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<5x3x8xf32, #tv.view<#m, [did(tp) * _, _, _]>>
!z = tensor<3x5x16xf32, #tv.view<#m, [_, did(tp) * _, _]>>
!a = tensor<5x3x8xf32>
!b = tensor<3x5x16xf32>
!t = tensor<5x3x16xf32>
!y = tensor<5x3x24xf32>
!w = tensor<6x24xf32, #tv.view<#m, [_, _]>>
!s = tensor<5x3x6xf32>
func.func @main(%x: !x, %z: !z, %w: !w) -> (!y, !s) {
  %a = tv.cumsum %x dim 1 : (!x) -> !a
  %b = tv.cumsum reverse %z dim 0 : (!z) -> !b
  %t = tv.transpose %b perm [1, 0, 2] : (!b) -> !t
  %y = tv.concat %a, %t dim 2 : (!a, !t) -> !y
  %s = tv.linear %y, %w : (!y, !w) -> !s
  return %y, %s : !y, !s
}

// -----

// Along an outer dimension; a collective reads the memory, and the caller gets it.
// CHECK: func.func @main
// CHECK: plan.join {{.*}} dim 0
// CHECK: comm.all_gather
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather 192 bytes 1 copies
// RAN tp=3: all-gather 192 bytes 1 copies
// RAN tp=4: all-gather 288 bytes 1 copies
#m = #tv.mesh<tp = 2>
!x = tensor<2x3x8xf32, #tv.view<#m, [_, did(tp) * _, _]>>
!w = tensor<1x3x8xf32, #tv.view<#m, [_, did(tp) * _, _]>>
!y = tensor<3x3x8xf32, #tv.view<#m, [_, did(tp) * _, _]>>
!g = tensor<3x3x8xf32, #tv.view<#m, [_, _, _]>>
func.func @main(%x: !x, %w: !w) -> (!y, !g) {
  %a = tv.cumsum %x dim 2 : (!x) -> !x
  %b = tv.cumsum %w dim 2 : (!w) -> !w
  %y = tv.concat %a, %b dim 0 : (!x, !w) -> !y
  %g = tv.reshard %y : (!y) -> !g
  return %y, %g : !y, !g
}

// -----

// Not where rows are no whole sectors, where something else reads a part, where a part is
// twice there, or where its rows are not the result's.
// CHECK: func.func @main
// CHECK-NOT: plan.join
// CHECK-COUNT-4: plan.launch @concat
// CHECK-NOT: plan.join
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!n = tensor<8x7xf32, #tv.view<#m, [did(tp) * _, _]>>
!x = tensor<8x8xf32, #tv.view<#m, [_, _]>>
!c = tensor<8x14xf32>
!d = tensor<8x16xf32>
func.func @main(%n: !n, %x: !x, %z: !x) -> (!c, !d, !x, !d, !d) {
  %0 = tv.cumsum %n dim 1 : (!n) -> !n
  %1 = tv.cumsum reverse %n dim 1 : (!n) -> !n
  %c = tv.concat %0, %1 dim 1 : (!n, !n) -> !c
  %2 = tv.cumsum %x dim 0 : (!x) -> !x
  %3 = tv.cumsum reverse %x dim 0 : (!x) -> !x
  %d = tv.concat %2, %3 dim 1 : (!x, !x) -> !d
  %4 = tv.cumsum reverse %z dim 0 : (!x) -> !x
  %e = tv.concat %4, %4 dim 1 : (!x, !x) -> !d
  %5 = tv.cumsum %z dim 0 : (!x) -> !x
  %6 = tv.cumsum reverse %z dim 1 : (!x) -> !x
  %t = tv.transpose %6 perm [1, 0] : (!x) -> !x
  %f = tv.concat %5, %t dim 1 : (!x, !x) -> !d
  return %c, %d, %3, %e, %f : !c, !d, !x, !d, !d
}

// -----

// Nor numbers of no dimensions, though eight are a sector.
// CHECK: func.func @main
// CHECK-NOT: plan.join
// CHECK: plan.launch @concat
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<8x5xf32, #tv.view<#m, [_, _]>>
!n = tensor<f32>
!one = tensor<1xf32>
!y = tensor<8xf32>
func.func @main(%x: !x, %z: !x) -> !y {
  %0 = tv.reduce sum %x dims [0, 1] : (!x) -> !n
  %1 = tv.reduce max %x dims [0, 1] : (!x) -> !n
  %2 = tv.reduce min %x dims [0, 1] : (!x) -> !n
  %3 = tv.reduce sum %z dims [0, 1] : (!x) -> !n
  %4 = tv.reduce max %z dims [0, 1] : (!x) -> !n
  %5 = tv.reduce min %z dims [0, 1] : (!x) -> !n
  %6 = tv.tanh %0 : (!n) -> !n
  %7 = tv.tanh %3 : (!n) -> !n
  %a = tv.reshape %0 : (!n) -> !one
  %b = tv.reshape %1 : (!n) -> !one
  %c = tv.reshape %2 : (!n) -> !one
  %d = tv.reshape %3 : (!n) -> !one
  %e = tv.reshape %4 : (!n) -> !one
  %f = tv.reshape %5 : (!n) -> !one
  %g = tv.reshape %6 : (!n) -> !one
  %h = tv.reshape %7 : (!n) -> !one
  %y = tv.concat %a, %b, %c, %d, %e, %f, %g, %h dim 0 : (!one, !one, !one, !one, !one, !one, !one, !one) -> !y
  return %y : !y
}
