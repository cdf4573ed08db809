// Which steps become one, and where it is.
//
// RUN: tessera-opt %s --tv-merge-reshards --verify-each | FileCheck %s
// RUN: tessera-opt %s --tv-merge-reshards --tv-localize | FileCheck %s --check-prefix=LOCAL
// RUN: tessera-opt %s --tv-merge-reshards --remarks-filter=tv-merge-reshards \
// RUN:   --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#m = #tv.mesh<dp = 2, tp = 2>
!whole = tensor<8xf32, #tv.view<#m, [8], alloc = (0)>>
!halves = tensor<8xf32, #tv.view<#m, [did(tp) * 4], alloc = (0)>>
!dp = tensor<8xf32, #tv.view<#m, [8], alloc = (0), partial = [dp : sum]>>
!tp = tensor<8xf32, #tv.view<#m, [8], alloc = (0), partial = [tp : sum]>>
!most = tensor<8xf32, #tv.view<#m, [8], alloc = (0), partial = [dp : max]>>
!ints = tensor<3xi32, #tv.view<#m, [3], alloc = (0)>>
!floats = tensor<3xf32, #tv.view<#m, [3], alloc = (0)>>
!ints_dp = tensor<3xi32, #tv.view<#m, [3], alloc = (0), partial = [dp : sum]>>

// The first that is needed ends the group; what comes later begins the next.
// CHECK-LABEL: @group
// CHECK-NEXT: tv.neg
// CHECK-NEXT: %[[R:.*]]:2 = tv.reshard %{{.*}}, %{{.*}} plan <all_reduce over {{.*}} [dp]>
// CHECK-NEXT: tv.exp %[[R]]#0
// CHECK-NEXT: %[[S:.*]]:2 = tv.reshard
// CHECK-NEXT: return %{{.*}}, %[[R]]#1, %[[S]]#0, %[[S]]#1
// LOCAL-LABEL: @group
// LOCAL: comm.all_reduce %{{.*}}, %{{.*}} over {{.*}} [dp] id 0 :
// LOCAL: comm.all_reduce %{{.*}}, %{{.*}} over {{.*}} [dp] id 1 :
// REMARK: remark: [Passed] together | Category:tv-merge-reshards | Function=group | kind=all-reduce
// REMARK: remark: [Passed] together | Category:tv-merge-reshards | Function=group | kind=all-reduce
// REMARK: remark: [Passed] reshards | Category:tv-merge-reshards | Function=group | bytes=64, tensors=2
// REMARK: remark: [Passed] reshards | Category:tv-merge-reshards | Function=group | bytes=44, tensors=2
// From peer to peer, what the device with the most moves.
// REMARK: remark: [Passed] reshards | Category:tv-merge-reshards | Function=operands_of_one | {{.*}}moved=
func.func @group(%a: !dp, %b: !dp, %c: !dp, %i: !ints_dp) -> (!whole, !whole, !whole, !ints) {
  %x = tv.reshard %a plan <all_reduce over #m [dp]> : (!dp) -> !whole
  %n = tv.neg %b : (!dp) -> !dp
  %y = tv.reshard %n plan <all_reduce over #m [dp]> : (!dp) -> !whole
  %e = tv.exp %x : (!whole) -> !whole
  %z = tv.reshard %c plan <all_reduce over #m [dp]> : (!dp) -> !whole
  %j = tv.reshard %i plan <all_reduce over #m [dp]> : (!ints_dp) -> !ints
  return %e, %y, %z, %j : !whole, !whole, !whole, !ints
}

// Another kind, other axes, another combiner, and what moves nothing.
// CHECK-LABEL: @apart
// CHECK-COUNT-6: %{{[0-9]+}} = tv.reshard
// CHECK-NEXT: return
func.func @apart(%a: !dp, %b: !tp, %c: !most, %d: !tp, %e: !whole, %f: !whole)
    -> (!whole, !whole, !whole, !halves, !halves, !halves) {
  %0 = tv.reshard %a plan <all_reduce over #m [dp]> : (!dp) -> !whole
  %1 = tv.reshard %b plan <all_reduce over #m [tp]> : (!tp) -> !whole
  %2 = tv.reshard %c plan <all_reduce over #m [dp]> : (!most) -> !whole
  %3 = tv.reshard %d plan <reduce_scatter over #m [tp]> : (!tp) -> !halves
  %4 = tv.reshard %e plan <slice over #m [tp]> : (!whole) -> !halves
  %5 = tv.reshard %f plan <slice over #m [tp]> : (!whole) -> !halves
  return %0, %1, %2, %3, %4, %5 : !whole, !whole, !whole, !halves, !halves, !halves
}

// A step of another's result waits for it, not with it.
// CHECK-LABEL: @chain
// CHECK: %[[R:.*]]:2 = tv.reshard %{{.*}}, %{{.*}} plan <reduce_scatter
// CHECK-NEXT: %[[G:.*]]:2 = tv.reshard %[[R]]#0, %[[R]]#1 plan <all_gather
// CHECK-NEXT: return %[[G]]#0, %[[G]]#1
func.func @chain(%a: !tp, %b: !tp) -> (!whole, !whole) {
  %0 = tv.reshard %a plan <reduce_scatter over #m [tp]> : (!tp) -> !halves
  %1 = tv.reshard %b plan <reduce_scatter over #m [tp]> : (!tp) -> !halves
  %2 = tv.reshard %0 plan <all_gather over #m [tp]> : (!halves) -> !whole
  %3 = tv.reshard %1 plan <all_gather over #m [tp]> : (!halves) -> !whole
  return %2, %3 : !whole, !whole
}

// What an op's region reads is needed there. One that is alone stays where it is.
// CHECK-LABEL: @region
// CHECK-NEXT: %[[R:.*]]:2 = tv.reshard
// CHECK-NEXT: tv.map
// CHECK: tv.load %[[R]]#1
// CHECK: %[[Z:.*]] = tv.reshard
// CHECK-NEXT: tv.exp
// CHECK-NEXT: return %[[R]]#0, %{{.*}}, %{{.*}}, %[[Z]]
func.func @region(%a: !dp, %b: !dp, %c: !dp, %i: !ints) -> (!whole, !floats, !whole, !whole) {
  %x = tv.reshard %a plan <all_reduce over #m [dp]> : (!dp) -> !whole
  %y = tv.reshard %b plan <all_reduce over #m [dp]> : (!dp) -> !whole
  %j = tv.map %i : (!ints) -> !floats
    (%n: i32) {
      %at = arith.index_cast %n : i32 to index
      %e = tv.load %y[%at] : !whole -> f32
      tv.yield %e : f32
    }
  %z = tv.reshard %c plan <all_reduce over #m [dp]> : (!dp) -> !whole
  %e = tv.exp %x : (!whole) -> !whole
  return %x, %j, %e, %z : !whole, !floats, !whole, !whole
}

// Of as long as the latency, and of longer.
!large = tensor<375000xf32, #tv.view<#m, [375000], alloc = (0)>>
!large_dp = tensor<375000xf32, #tv.view<#m, [375000], alloc = (0), partial = [dp : sum]>>
!larger = tensor<375001xf32, #tv.view<#m, [375001], alloc = (0)>>
!larger_dp = tensor<375001xf32, #tv.view<#m, [375001], alloc = (0), partial = [dp : sum]>>
// CHECK-LABEL: @bound
// CHECK-NEXT: %[[L:[0-9]+]] = tv.reshard
// CHECK-NEXT: %[[R:.*]]:2 = tv.reshard
// CHECK-NEXT: return %[[R]]#0, %[[L]], %[[R]]#1
func.func @bound(%a: !large_dp, %b: !larger_dp, %c: !dp) -> (!large, !larger, !whole) {
  %x = tv.reshard %a plan <all_reduce over #m [dp]> : (!large_dp) -> !large
  %y = tv.reshard %b plan <all_reduce over #m [dp]> : (!larger_dp) -> !larger
  %z = tv.reshard %c plan <all_reduce over #m [dp]> : (!dp) -> !whole
  return %x, %y, %z : !large, !larger, !whole
}

// From peer to peer for one op: of any size, along any axes, and with what later ops need
// too. What an earlier op needs is there already.
!rows = tensor<1024x1024xf32, #tv.view<#m, [did(dp) * 512, 1024], alloc = (0, 1)>>
!columns = tensor<1024x1024xf32, #tv.view<#m, [1024, did(dp) * 512], alloc = (0, 1)>>
!other = tensor<1024x1024xf32, #tv.view<#m, [did(tp) * 512, 1024], alloc = (0, 1)>>
// CHECK-LABEL: @operands_of_one
// CHECK-NEXT: %[[E:.*]]:2 = tv.reshard %{{.*}}, %{{.*}} plan <exchange over {{.*}} [dp, tp]>
// CHECK-NEXT: tv.add %[[E]]#0, %[[E]]#1
// CHECK-NEXT: %[[F:.*]]:2 = tv.reshard %{{.*}}, %{{.*}} plan <exchange over {{.*}} [dp, tp]>
// CHECK-NEXT: tv.add %[[F]]#0, %[[F]]#1
// CHECK-NEXT: %[[A:.*]] = tv.reshard {{.*}} plan <all_to_all over {{.*}} [dp]>
// CHECK-NEXT: tv.add %[[A]], %[[F]]#1
// CHECK-NEXT: return
func.func @operands_of_one(%a: !rows, %b: !other) -> (!columns, !columns, !columns, !columns) {
  %0 = tv.reshard %a plan <all_to_all over #m [dp]> : (!rows) -> !columns
  %1 = tv.reshard %b plan <exchange over #m [dp, tp]> : (!other) -> !columns
  %2 = tv.add %0, %1 : (!columns, !columns) -> !columns
  %3 = tv.reshard %a plan <all_to_all over #m [dp]> : (!rows) -> !columns
  %4 = tv.reshard %b plan <exchange over #m [dp, tp]> : (!other) -> !columns
  %5 = tv.add %3, %4 : (!columns, !columns) -> !columns
  %6 = tv.reshard %a plan <all_to_all over #m [dp]> : (!rows) -> !columns
  %7 = tv.add %6, %4 : (!columns, !columns) -> !columns
  return %2, %4, %5, %7 : !columns, !columns, !columns, !columns
}

// Behind a cast too, which waits; not behind an op of two operands, nor what another needs.
!half_rows = tensor<1024x1024xbf16, #tv.view<#m, [did(tp) * 512, 1024], alloc = (0, 1)>>
!half_columns = tensor<1024x1024xbf16, #tv.view<#m, [1024, did(dp) * 512], alloc = (0, 1)>>
// CHECK-LABEL: @behind_a_cast
// CHECK-NEXT: %[[E:.*]]:2 = tv.reshard %{{.*}}, %{{.*}} plan <exchange over {{.*}} [dp, tp]>
// CHECK-NEXT: %[[C:.*]] = tv.cast %[[E]]#0
// CHECK-NEXT: %[[N:.*]] = tv.neg %[[C]]
// CHECK-NEXT: tv.add %[[N]], %[[E]]#1
// CHECK-NEXT: %[[A:.*]] = tv.reshard {{.*}} plan <all_to_all over {{.*}} [dp]>
// CHECK-NEXT: tv.mul %[[A]], %{{.*}}
// CHECK-NEXT: tv.reshard {{.*}} plan <all_to_all over {{.*}} [dp]>
func.func @behind_a_cast(%a: !half_rows, %b: !rows) -> (!columns, !columns) {
  %0 = tv.reshard %a plan <exchange over #m [dp, tp]> : (!half_rows) -> !half_columns
  %1 = tv.cast %0 : (!half_columns) -> !columns
  %2 = tv.neg %1 : (!columns) -> !columns
  %3 = tv.reshard %b plan <all_to_all over #m [dp]> : (!rows) -> !columns
  %4 = tv.add %2, %3 : (!columns, !columns) -> !columns
  %5 = tv.reshard %b plan <all_to_all over #m [dp]> : (!rows) -> !columns
  %6 = tv.mul %5, %4 : (!columns, !columns) -> !columns
  %7 = tv.reshard %b plan <all_to_all over #m [dp]> : (!rows) -> !columns
  %8 = tv.add %6, %7 : (!columns, !columns) -> !columns
  return %4, %8 : !columns, !columns
}

// Small ones: a permute is an exchange with others along its axes, and what waits for one
// op goes with what else the op needs.
!few_rows = tensor<8x4xf32, #tv.view<#m, [did(dp) * 4, 4], alloc = (0, 1)>>
!few_other = tensor<8x4xf32, #tv.view<#m, [did(tp) * 4, 4], alloc = (0, 1)>>
!few_columns = tensor<8x4xf32, #tv.view<#m, [8, did(dp) * 2], alloc = (0, 1)>>
// CHECK-LABEL: @permutes
// CHECK-NEXT: %[[E:.*]]:4 = tv.reshard %arg0, %arg1, %arg0, %arg0 plan <exchange over {{.*}} [dp, tp]>
// CHECK-NEXT: tv.add %[[E]]#0, %[[E]]#3
// CHECK-NEXT: tv.neg
// CHECK-NEXT: %[[P:.*]]:2 = tv.reshard %{{.*}}, %{{.*}} plan <permute over {{.*}} [dp, tp]>
// CHECK-NEXT: return %{{.*}}, %[[E]]#1, %[[E]]#2, %[[P]]#0, %[[P]]#1
func.func @permutes(%a: !few_rows, %b: !few_other)
    -> (!few_other, !few_columns, !few_other, !few_other, !few_other) {
  %0 = tv.reshard %a plan <permute over #m [dp, tp]> : (!few_rows) -> !few_other
  %1 = tv.reshard %b plan <exchange over #m [dp, tp]> : (!few_other) -> !few_columns
  %2 = tv.reshard %a plan <permute over #m [dp, tp]> : (!few_rows) -> !few_other
  %3 = tv.reshard %a plan <exchange over #m [dp]> : (!few_rows) -> !few_other
  %4 = tv.add %0, %3 : (!few_other, !few_other) -> !few_other
  %5 = tv.neg %a : (!few_rows) -> !few_rows
  %6 = tv.reshard %5 plan <permute over #m [dp, tp]> : (!few_rows) -> !few_other
  %7 = tv.reshard %a plan <permute over #m [dp, tp]> : (!few_rows) -> !few_other
  return %4, %1, %2, %6, %7 : !few_other, !few_columns, !few_other, !few_other, !few_other
}
