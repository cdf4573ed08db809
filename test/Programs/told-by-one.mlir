// What one device has, whichever it is, it tells all: a part of it to each, which these give
// each other. Of little it tells each all.
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=4 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera=to=kernels --interpret=4 -o /dev/null

// CHECK-LABEL: interpret: @main
// CHECK: comm.broadcast {{.*}} [pp, tp]
// CHECK-NOT: comm.
// RAN here: broadcast of 2 18168 bytes 0 copies
#m = #tv.mesh<pp = 2, tp = 2>
#last = #tv.view<#m, [(did(pp) * did(tp) * 1 | 3:4), _, _]>
#second = #tv.view<#m, [(did(pp) * did(tp) * 1 | 1:2), _, _]>
#all = #tv.view<#m, [_, _, _]>
func.func @main(%x: tensor<1x50x61xf32, #last>, %s: tensor<1x3x5xf32, #second>)
    -> (tensor<1x50x61xf32, #all>, tensor<1x3x5xf32, #all>) {
  %y = tv.exp %x : (tensor<1x50x61xf32, #last>) -> tensor<1x50x61xf32, #last>
  %a = tv.reshard %y : (tensor<1x50x61xf32, #last>) -> tensor<1x50x61xf32, #all>
  %b = tv.reshard %s : (tensor<1x3x5xf32, #second>) -> tensor<1x3x5xf32, #all>
  return %a, %b : tensor<1x50x61xf32, #all>, tensor<1x3x5xf32, #all>
}

// -----

// In groups of devices, of parts that are split, and in another order in memory.
// CHECK-LABEL: interpret: @main
// CHECK: comm.broadcast {{.*}} [pp]
// RAN here: broadcast 1480 bytes 1 copies
#m = #tv.mesh<tp = 2, pp = 2>
#part = #tv.view<#m, [(did(pp) * 1 | 1:2), did(tp) * _, _]>
!x = tensor<1x40x37xbf16, #part>
!y = tensor<1x40x37xbf16, #tv.view<#m, [_, did(tp) * _, _], alloc = (2, 1, 0)>>
func.func @main(%x: !x) -> !y {
  %0 = tv.neg %x : (!x) -> !x
  %1 = tv.reshard %0 : (!x) -> !y
  return %1 : !y
}
