// What must be 0 after a run reaches the module. Each device has all of it, or it is an
// error that says what to write.
// RUN: tessera-compile %s --quiet --compile-to=plan | FileCheck %s
// RUN: sed 's/> !whole/> !codes/; s/(!whole {/(!codes {/; s/: !whole,/: !codes,/' %s > %t.mlir
// RUN: not tessera-compile %t.mlir --quiet --compile-to=plan 2>&1 | FileCheck %s --check-prefix=SPLIT
// CHECK: output 'wrong' %{{[0-9]+}} is 0, else: codes are below 0
// CHECK-NOT: else:
// SPLIT: error: 'func.func' op 'tv.check' of result #0 is for one of which each device has all, not 'tensor<6xi32, #tv.view<#tv.mesh<tp = 2>, [did(tp) * 3]>>'; write a view that does not split it
#m = #tv.mesh<tp = 2>
!split = tensor<6xi32, #tv.view<#m, [did(tp) * _]>>
!whole = tensor<6xi32, #tv.view<#m, [_]>>
!codes = tensor<6xi32>
func.func @main(%codes: !split {tv.name = "codes"})
    -> (!whole {tv.name = "wrong", tv.check = "codes are below 0"}, !codes {tv.name = "same"}) {
  %wrong = tv.map %codes : (!split) -> !whole (%c: i32) {
    %zero = arith.constant 0 : i32
    %is = arith.cmpi slt, %c, %zero : i32
    %r = arith.extui %is : i1 to i32
    tv.yield %r : i32
  }
  %same = tv.neg %codes : (!split) -> !codes
  return %wrong, %same : !whole, !codes
}
