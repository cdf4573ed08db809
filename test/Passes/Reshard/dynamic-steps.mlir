// A reduce-scatter that holds at the maximum alone is an all-reduce with an exchange behind
// it: with their price, another plan is cheaper than the two that are at the maximum. What
// is said is what runs.
// RUN: tessera-opt %s --split-input-file --tessera="to=local explain" -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAID
// RUN: tessera-opt %s --split-input-file --tessera=to=local | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=8 --interpret-sizes=n=0 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=8 --interpret-sizes=n=3 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=8 -o /dev/null

// SAID: remark: [did(y) * did(x:(1)2) * _], partial = [x:(2)2 : sum] to [_]: all-reduce over [x:(2)2], then all-gather over [x:(1)2, y], 32 bytes, 10.0 us; {{.*}}instead of all-reduce over [x:(2)2], then exchange, 32 bytes, 10.0 us
// CHECK: comm.all_reduce {{.*}} [x:(2)2]
// CHECK: comm.all_gather {{.*}} [x:(1)2, y]
// CHECK-NOT: comm.
#m = #tv.mesh<x = 4, y = 2>
!from = tensor<?xi32, #tv.view<#m, [did(y) * did(x:(1)2) * _], partial = [x:(2)2 : sum]>>
!to = tensor<?xi32, #tv.view<#m, [_]>>
func.func @main(%x: !from {tv.dims = ["n"]}) -> !to attributes {tv.sizes = {n = 5}} {
  %y = tv.reshard %x : (!from) -> !to
  return %y : !to
}

// -----

// What is one view at the maximum is an exchange at other extents, and takes its latency.
// SAID: remark: [did(x) * _] to [did(x) * _ * 4]: exchange, 0 bytes, 5.0 us
// CHECK: comm.exchange
#m = #tv.mesh<x = 2, y = 4>
!from = tensor<?xf32, #tv.view<#m, [did(x) * _]>>
!to = tensor<?xf32, #tv.view<#m, [did(x) * _ * 4]>>
func.func @main(%x: !from {tv.dims = ["n"]}) -> !to attributes {tv.sizes = {n = 136}} {
  %y = tv.reshard %x : (!from) -> !to
  return %y : !to
}
