// A warning without a place is one, and not the error of a flag.
// RUN: tessera-opt %s --strip-debuginfo --emit-bytecode -o %t.mlirbc
// RUN: tessera-compile %t.mlirbc -o %t.tsr 2>&1 | FileCheck %s

// CHECK-NOT: error
// CHECK: warning: of the work the first rank does 50.0 % and the last 0.0 %
!k = tensor<2x8xf32, #tv.view<#tv.mesh<tp = 4>, [did(tp) * _, _]>>
func.func @main(%k: !k) -> !k {
  %y = tv.exp %k : (!k) -> !k
  return %y : !k
}
