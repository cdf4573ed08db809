// Each device scales its part by what is largest in it: the device is an index, so that
// the part is a row. Then the coordinate of each device, a slice of what all know.
// RUN: tessera-opt %s --tessera=to=local --interpret=4 | FileCheck %s

// CHECK-NOT: comm.all
// CHECK: comm.slice
// CHECK-NOT: comm.
// RAN here: nothing
#m = #tv.mesh<dp = 2, tp = 2>
#parts = #tv.view<#m, [did(dp) * _, did(tp) * _]>
!x = tensor<8x16xf32, #parts>
!own = tensor<4x8xf32, #tv.local<#parts, of [8, 16]>>
#apart = #tv.view<#m, [did(dp) * _, _, did(tp) * _, _]>
!row = tensor<1x4x1x8xf32, #tv.local<#apart, of [2, 4, 2, 8]>>
!one = tensor<1x1xf32, #tv.local<#parts, of [2, 2]>>
!all = tensor<2xi32, #tv.local<#tv.view<#m, [_]>, of [2]>>
!coordinate = tensor<1xi32, #tv.local<#tv.view<#m, [did(tp) * _]>, of [2]>>
!coordinates = tensor<1x1xi32, #tv.local<#parts, of [2, 2]>>
func.func @main(%x: !x) -> (!x, tensor<2x2xf32, #parts>, tensor<2x2xi32, #parts>) {
  %y, %scale, %tp = tv.local_region %x
      : (!x) -> (!x, tensor<2x2xf32, #parts>, tensor<2x2xi32, #parts>) {
  ^bb0(%own: !own):
    %0 = tv.reshape %own : (!own) -> !row
    %1 = tv.reduce max %0 dims [1, 3] : (!row) -> !one
    %2 = tv.broadcast %1 dims [0, 2] : (!one) -> !row
    %3 = tv.div %0, %2 : (!row, !row) -> !row
    %4 = tv.reshape %3 : (!row) -> !own
    %5 = tv.iota 0 : () -> !all
    %6 = comm.slice %5 over #m [tp] id 0 : (!all) -> !coordinate
    %7 = tv.broadcast %6 dims [1] : (!coordinate) -> !coordinates
    tv.yield %4, %1, %7 : !own, !one, !coordinates
  }
  return %y, %scale, %tp : !x, tensor<2x2xf32, #parts>, tensor<2x2xi32, #parts>
}
