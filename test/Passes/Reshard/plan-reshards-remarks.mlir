// Plans as MLIR remarks, for tools: plan, bytes, bound, copies, cost, loser.
//
// RUN: tessera-opt %s --tv-plan-reshards --remarks-filter=tv-plan-reshards \
// RUN:   --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s
// RUN: tessera-opt %s --tv-plan-reshards --tv-merge-reshards --remarks-filter=tv-merge-reshards \
// RUN:   --remark-format=emitRemark --mlir-print-op-generic -o - 2>&1 | FileCheck %s --check-prefix=MERGED

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [did(tp) * 4]>
#w = #tv.view<#m, [8]>
func.func @gather(%x: tensor<8xf32, #s>) -> tensor<8xf32, #w> {
  // CHECK: [[#@LINE+1]]:8: remark: [Passed] reshard | Category:tv-plan-reshards | Function=gather | bound=16, bytes=16, copies=0, loser="exchange, 16 bytes, 5.0 us", move=0, plan="all-gather over [tp]", steps=1, us=5.0{{.*}}, views="[did(tp) * 4] to [8]"
  %z = tv.reshard %x : (tensor<8xf32, #s>) -> tensor<8xf32, #w>
  return %z : tensor<8xf32, #w>
}

// Those that go together are told by their numbers, which their step has.
// MERGED: Function=numbers | kind=all-reduce, move=0
// MERGED: Function=numbers | kind=all-reduce, move=2
// MERGED: {tv.move = array<i64: 1>}
// MERGED: {tv.move = array<i64: 0, 2>}
#p = #tv.view<#m, [8], partial = [tp : sum]>
func.func @numbers(%x: tensor<8xf32, #p>, %y: tensor<8xf32, #s>, %z: tensor<8xf32, #p>)
    -> (tensor<8xf32, #w>, tensor<8xf32, #w>, tensor<8xf32, #w>) {
  %0 = tv.reshard %x : (tensor<8xf32, #p>) -> tensor<8xf32, #w>
  %1 = tv.reshard %y : (tensor<8xf32, #s>) -> tensor<8xf32, #w>
  %2 = tv.reshard %z : (tensor<8xf32, #p>) -> tensor<8xf32, #w>
  return %0, %1, %2 : tensor<8xf32, #w>, tensor<8xf32, #w>, tensor<8xf32, #w>
}
