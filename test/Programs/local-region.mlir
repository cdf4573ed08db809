// A layer of sequence and tensor parallel parts as each device runs it, moves and all,
// beside ops whose views propagation finds; then a part of rows for a part of columns.
// RUN: tessera-opt %s --tessera=to=local --interpret=2 | FileCheck %s
// RUN: tessera-opt %s --tessera="mesh=tp=3 to=kernels" --interpret=3 -o /dev/null

// CHECK: comm.all_gather
// CHECK: comm.reduce_scatter
// CHECK: comm.all_to_all
// CHECK: comm.all_reduce
// CHECK: comm.exchange
// CHECK-NOT: comm.
// RAN tp=1: nothing
// RAN tp=2: all-gather 576 bytes 0 copies, reduce-scatter 576 bytes 0 copies, all-to-all 288 bytes 1 copies, all-reduce 96 bytes 0 copies, exchange 288 bytes 1 copies
// RAN tp=3: all-gather 768 bytes 0 copies, reduce-scatter 768 bytes 0 copies, all-to-all 256 bytes 1 copies, all-reduce 128 bytes 0 copies, exchange 256 bytes 1 copies
// RAN tp=4: all-gather 864 bytes 0 copies, reduce-scatter 864 bytes 0 copies, all-to-all 216 bytes 1 copies, all-reduce 144 bytes 0 copies, exchange 216 bytes 1 copies
#m = #tv.mesh<tp = 2>
#rows = #tv.view<#m, [did(tp) * _, _]>
#columns = #tv.view<#m, [_, did(tp) * _]>
!x = tensor<12x24xf32>
!x_rows = tensor<6x24xf32, #tv.local<#rows, of [12, 24]>>
!x_columns = tensor<12x12xf32, #tv.local<#columns, of [12, 24]>>
!x_whole = tensor<12x24xf32, #tv.local<#tv.view<#m, [_, _]>, of [12, 24]>>
!x_sum = tensor<12x24xf32, #tv.local<#tv.view<#m, [_, _], partial = [tp : sum]>, of [12, 24]>>
!up = tensor<24x24xf32, #tv.local<#rows, of [48, 24]>>
!down = tensor<24x24xf32, #tv.local<#columns, of [24, 48]>>
!h = tensor<12x24xf32, #tv.local<#columns, of [12, 48]>>
!most = tensor<24xf32, #tv.local<#tv.view<#m, [_], partial = [tp : max]>, of [24]>>
!of_all = tensor<24xf32, #tv.local<#tv.view<#m, [_]>, of [24]>>
func.func @main(%x: tensor<12x24xf32, #rows>, %up: tensor<48x24xf32> {tv.role = "weight"},
                %down: tensor<24x48xf32> {tv.role = "weight"})
    -> (!x, tensor<24xf32>) {
  %n = tv.silu %x : (tensor<12x24xf32, #rows>) -> !x
  %y = tv.local_region %n, %up, %down
      : (!x, tensor<48x24xf32>, tensor<24x48xf32>) -> !x {
  ^bb0(%own: !x_rows, %a: !up, %b: !down):
    %0 = comm.all_gather %own over #m [tp] id 0 : (!x_rows) -> !x_whole
    %1 = tv.linear %0, %a : (!x_whole, !up) -> !h
    %2 = tv.gelu tanh %1 : (!h) -> !h
    %3 = tv.linear %2, %b : (!h, !down) -> !x_sum
    %4 = comm.reduce_scatter %3 over #m [tp] id 1 : (!x_sum) -> !x_rows
    tv.yield %4 : !x_rows
  }
  %r = tv.add %y, %x : (!x, tensor<12x24xf32, #rows>) -> !x
  %z, %most = tv.local_region %r : (!x) -> (!x, tensor<24xf32>) {
  ^bb0(%own: !x_rows):
    %0 = comm.all_to_all %own over #m [tp] id 0 : (!x_rows) -> !x_columns
    %1 = tv.softmax %0 dim 0 : (!x_columns) -> !x_columns
    %2 = tv.reduce max %own dims [0] : (!x_rows) -> !most
    %3 = comm.all_reduce %2 over #m [tp] id 1 : (!most) -> !of_all
    %4 = comm.exchange %1 over #m [tp] id 2 : (!x_columns) -> !x_rows
    tv.yield %4, %3 : !x_rows, !of_all
  }
  return %z, %most : !x, tensor<24xf32>
}
