// A sum over one axis becomes one over another by parts; one that stays may be combined
// and made anew.
// RUN: tessera-opt %s --split-input-file --tessera="to=local explain" --interpret=8 2>&1 >/dev/null | FileCheck %s

// Of each half one device of the new sum has the total.
// CHECK: partial = [y : sum] to [16, 64], partial = [x:(1)2 : sum]: local slice over [x:(1)2], then all-reduce over [y], then split to partial over [x:(1)2], 2048 bytes, 5.0 us
#m = #tv.mesh<x = 4, y = 2>
!x = tensor<16x64xf32, #tv.view<#m, [_, did(y) * _]>>
!y = tensor<16x64xf32, #tv.view<#m, [_, _], partial = [y : sum]>>
!z = tensor<16x64xf32, #tv.view<#m, [_, _], partial = [x:(1)2 : sum]>>
!whole = tensor<16x64xf32, #tv.view<#m, [_, _]>>
func.func @main(%x: !x) -> !whole {
  %y = tv.reshard %x : (!x) -> !y
  %z = tv.reshard %y : (!y) -> !z
  %r = tv.reshard %z : (!z) -> !whole
  return %r : !whole
}

// -----

// Half of the rows as a total, and half of what is then not there, are fewer than all
// addends of the rows that are not.
// CHECK: partial = [y : sum] to [16, 4096], partial = [y : sum]: reduce-scatter over [y], then exchange to partial over [y], 131072 bytes, 131.3 us; lower bound 98304 bytes; instead of
#m = #tv.mesh<x = 4, y = 2>
!x = tensor<16x4096xf32, #tv.view<#m, [did(x) * _, did(y) * _]>>
!y = tensor<16x4096xf32, #tv.view<#m, [did(x) * _, _], partial = [y : sum]>>
!z = tensor<16x4096xf32, #tv.view<#m, [_, _], partial = [y : sum]>>
!whole = tensor<16x4096xf32, #tv.view<#m, [_, _]>>
module attributes {tv.machine = #tv.machine<latency = 1.0e-7, bandwidth = 1.0e9, copy = 2.0e12, loops = 3.0e14>} {
func.func @main(%x: !x) -> !whole {
  %y = tv.reshard %x : (!x) -> !y
  %z = tv.reshard %y : (!y) -> !z
  %r = tv.reshard %z : (!z) -> !whole
  return %r : !whole
}
}
