// What --locations writes: the place of each op and each type once; it is a program
// yet, and an error in what follows has the place in the source.

// RUN: tessera-compile %s --compile-to=planned --locations -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tessera-compile %t.mlir --compile-from=planned --locations --compile-to=local | FileCheck %s --check-prefix=LOCAL
// RUN: tessera-compile %s --compile-to=planned | FileCheck %s --check-prefix=PLAIN

// CHECK: !t4x8xf32 = tensor<4x8xf32, #tv.view<
// CHECK: %[[Y:.*]] = tv.neg %{{.*}} : (!t4x8xf32) -> !t4x8xf32 loc(#[[PLACE:[a-z0-9]+]])
// CHECK: #[[PLACE]] = loc("{{.*}}locations.mlir":[[# @LINE + 11]]:8)

// LOCAL: tv.neg {{.*}} loc(#[[PLACE:[a-z0-9]+]])
// LOCAL: #[[PLACE]] = loc("{{.*}}locations.mlir":[[# @LINE + 8]]:8)

// PLAIN: tv.neg
// PLAIN-NOT: loc(

#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%x: !x {tv.name = "x"}) -> (!x {tv.name = "y"}) {
  %y = tv.neg %x : (!x) -> !x
  return %y : !x
}
