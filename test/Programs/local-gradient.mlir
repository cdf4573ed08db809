// The gradient of what is written for each device: as of the ops that it stands for. What
// goes back is the program's: it moves as it likes.
// RUN: tessera-opt %s --tv-inline --tv-inline-regions --tv-differentiate -o %t
// RUN: tessera-opt %t --tessera=to=local --interpret=2 | FileCheck %s

// CHECK-COUNT-2: comm.all_gather
// CHECK: :2 = comm.reduce_scatter
// CHECK-NOT: comm.


// RAN tp=1: nothing
// RAN tp=2: all-gather 576 bytes 0 copies, all-gather 576 bytes 0 copies, reduce-scatter of 2 1152 bytes 0 copies
// RAN tp=3: all-gather 768 bytes 0 copies, all-gather 768 bytes 0 copies, reduce-scatter of 2 1536 bytes 0 copies
// RAN tp=4: all-gather 864 bytes 0 copies, all-gather 864 bytes 0 copies, reduce-scatter of 2 1728 bytes 0 copies
#m = #tv.mesh<tp = 2>
#rows = #tv.view<#m, [did(tp) * _, _]>
#columns = #tv.view<#m, [_, did(tp) * _]>
!x = tensor<12x24xf32, #rows>
!up = tensor<48x24xf32, #rows>
!down = tensor<24x48xf32, #columns>
!x_part = tensor<6x24xf32, #tv.local<#rows, of [12, 24]>>
!x_whole = tensor<12x24xf32, #tv.local<#tv.view<#m, [_, _]>, of [12, 24]>>
!x_sum = tensor<12x24xf32, #tv.local<#tv.view<#m, [_, _], partial = [tp : sum]>, of [12, 24]>>
!up_part = tensor<24x24xf32, #tv.local<#rows, of [48, 24]>>
!down_part = tensor<24x24xf32, #tv.local<#columns, of [24, 48]>>
!h_part = tensor<12x24xf32, #tv.local<#columns, of [12, 48]>>
func.func private @layer(%x: !x, %up: !up, %down: !down) -> !x {
  %y = tv.local_region %x, %up, %down : (!x, !up, !down) -> !x {
  ^bb0(%own: !x_part, %a: !up_part, %b: !down_part):
    %0 = comm.all_gather %own over #m [tp] id 0 : (!x_part) -> !x_whole
    %1 = tv.linear %0, %a : (!x_whole, !up_part) -> !h_part
    %2 = tv.gelu tanh %1 : (!h_part) -> !h_part
    %3 = tv.linear %2, %b : (!h_part, !down_part) -> !x_sum
    %4 = comm.reduce_scatter %3 over #m [tp] id 1 : (!x_sum) -> !x_part
    tv.yield %4 : !x_part
  }
  return %y : !x
}
func.func @main(%x: !x, %up: !up {tv.role = "weight"}, %down: !down {tv.role = "weight"}, %dy: !x)
    -> (!x, !x, !up, !down) {
  %r:4 = tv.gradient @layer(%x, %up, %down) of [0] with (%dy) to [0, 1, 2]
      : (!x, !up, !down, !x) -> (!x, !x, !up, !down)
  return %r#0, %r#1, %r#2, %r#3 : !x, !x, !up, !down
}
