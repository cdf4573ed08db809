// A warning without a place is one, and not the error of a flag.
// RUN: tessera-opt %s --strip-debuginfo --emit-bytecode -o %t.mlirbc
// RUN: tessera-compile %t.mlirbc -o %t.tsr 2>&1 | FileCheck %s

// CHECK-NOT: error
// CHECK: warning: of the work ranks 0 and 1 do 50.0 % each and ranks 2 and 3 do 0.0 % each
!k = tensor<2x8xf32, #tv.view<#tv.mesh<tp = 4>, [did(tp) * _, _]>>
func.func @main(%k: !k) -> !k {
  %y = tv.exp %k : (!k) -> !k
  return %y : !k
}
