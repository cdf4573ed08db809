// What is said of an all-gather of uneven parts is what is sent: who has most sends it to
// each of the others.
// RUN: tessera-opt %s --tessera="to=local explain" --interpret=4 2>&1 >/dev/null | FileCheck %s

// CHECK: remark: [did(x) * 2, 28] to [5, 28]: all-gather over [x], 672 bytes
// RAN here: all-gather 672 bytes 0 copies
#m = #tv.mesh<x = 4, y = 1>
!rows = tensor<5x28xf32, #tv.view<#m, [did(x) * _, _]>>
!whole = tensor<5x28xf32, #tv.view<#m, [_, _]>>
func.func @main(%x: !rows {tv.name = "x"}) -> (!whole {tv.name = "y"}) {
  %y = tv.reshard %x : (!rows) -> !whole
  return %y : !whole
}
