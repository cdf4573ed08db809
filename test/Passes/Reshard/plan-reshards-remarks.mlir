// Plans as MLIR remarks, for tools: plan, bytes, bound, copies, cost, loser.
//
// RUN: tessera-opt %s --tv-plan-reshards --remarks-filter=tv-plan-reshards \
// RUN:   --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [did(tp) * 4]>
#w = #tv.view<#m, [8]>
func.func @gather(%x: tensor<8xf32, #s>) -> tensor<8xf32, #w> {
  // CHECK: [[#@LINE+1]]:8: remark: [Passed] reshard | Category:tv-plan-reshards | Function=gather | bound=16, bytes=16, copies=0, loser="exchange, 16 bytes, 5.0 us", plan="all-gather over [tp]", us=5.0{{.*}}, views="[did(tp) * 4] to [8]"
  %z = tv.reshard %x : (tensor<8xf32, #s>) -> tensor<8xf32, #w>
  return %z : tensor<8xf32, #w>
}
