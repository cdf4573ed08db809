// Callers may give and take parts of a sum; for files there is a warning.
// RUN: tessera-compile %s -o %t.tsr 2>&1 | FileCheck %s

// CHECK: partial-ports.mlir:[[#@LINE+8]]:17: warning: argument 'x' is partial: ranks have parts of a max each, which no file holds for tessera-run; as [_, _] it is whole
// CHECK: partial-ports.mlir:[[#@LINE+15]]:3: warning: result 'y' is partial: ranks have parts of a sum each, which no file holds for tessera-run; as [_] it is whole
// CHECK: result 'z' is partial
// CHECK-NOT: is partial
#m = #tv.mesh<tp = 2>
!x = tensor<8x6xf32, #tv.view<#m, [_, _], partial = [tp : max]>>
!s = tensor<6xf32, #tv.view<#m, [_], partial = [tp : sum]>>
!rows = tensor<8x6xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%x: !x {tv.name = "x"}, %s: !s {tv.name = "s", tv.role = "state", tv.init = "zero"})
    -> (!s {tv.name = "y"}, tensor<6xf32> {tv.name = "z", tv.user_view = #tv.view<#m, [_], partial = [tp : sum]>},
        !s {tv.name = "s"}) {
  %r = tv.reshard %x : (!x) -> !rows
  %e = tv.exp %r : (!rows) -> !rows
  %y = tv.reduce sum %e dims [0] : (!rows) -> !s
  %n = tv.add %s, %y : (!s, !s) -> !s
  %z = tv.neg %y : (!s) -> tensor<6xf32>
  return %y, %z, %n : !s, tensor<6xf32>, !s
}
