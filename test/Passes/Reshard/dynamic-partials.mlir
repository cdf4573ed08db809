// A move that ends in a new partial state, between views that are one at the maximum
// alone: an exchange, in which devices keep what they have at any extent.
// RUN: tessera-opt %s --tessera=to=local | FileCheck %s
// RUN: tessera-opt %s --tessera=to=local --interpret=6 --interpret-sizes=b=0 -o /dev/null
// RUN: tessera-opt %s --tessera=to=local --interpret=6 --interpret-sizes=b=1 -o /dev/null
// RUN: tessera-opt %s --tessera=to=local --interpret=6 --interpret-sizes=b=3 -o /dev/null

// CHECK-LABEL: @main
// CHECK: comm.exchange {{.*}} [x, y]
// CHECK-NOT: comm.
// CHECK: return
#m = #tv.mesh<x = 2, y = 3>
!a = tensor<?x4xf32, #tv.view<#m, [did(y) * did(x) * _, _]>>
!p = tensor<?x4xf32, #tv.view<#m, [flat(2) _ * did(x)], partial = [y : sum]>>
func.func @main(%a: !a {tv.dims = ["b"]}) -> !p attributes {tv.sizes = {b = 4 : i64}} {
  %0 = tv.reshard %a : (!a) -> !p
  return %0 : !p
}
