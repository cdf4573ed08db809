// A value that is twice the one before, forty times, is looked at a few times alone: not a
// bound, and compiled at once.
// RUN: %python -c "for i in range(1, 40): print(f'      %%x{i} = arith.addi %%x{i - 1}, %%x{i - 1} : index')" > %t.lines
// RUN: sed 's/FROM/%%qi/g' %s | sed '/LINES$/r %t.lines' > %t.query.mlir
// RUN: timeout 60 tessera-compile %t.query.mlir --quiet --target=cuda:sm_90a --attention=flash --compile-to=scheduled | FileCheck %s
// RUN: sed 's/FROM/%%h/g' %s | sed '/LINES$/r %t.lines' > %t.head.mlir
// RUN: timeout 60 tessera-compile %t.head.mlir --quiet --target=cuda:sm_90a --attention=flash --compile-to=scheduled | FileCheck %s

// CHECK: plan.attention
// CHECK: arith.cmpi sle, {{.*}} : index
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x300x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
func.func @main(%q: !q) -> !q {
  %y, %l = tv.attention %q, %q, %q scale(0.125) : (!q, !q, !q) -> (!q, tensor<1x2x300xf32>)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %x0 = arith.addi FROM, FROM : index
      // LINES
      %m = arith.cmpi sle, %ki, %x39 : index
      tv.yield %m : i1
    }
  return %y : !q
}
