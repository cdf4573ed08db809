// Equal elements are few bytes of text, but as many as any of a module.
// RUN: not tessera-compile %s --compile-from=kernels -o %t.tsr 2>&1 | FileCheck %s
// CHECK: splat-invalid.mlir:[[# @LINE + 4]]:8: error: a constant of 1099511627776 equal elements would take more than 1073741824 bytes of the module; broadcast one element
#m = #tv.mesh<tp = 2>
!y = tensor<1099511627776xf32, #tv.local<#tv.view<#m, [1099511627776], alloc = (0)>, of [1099511627776]>>
func.func @main() -> !y {
  %c = plan.constant dense<1.0> : tensor<1099511627776xf32> : () -> !y
  %y = plan.copy %c from "func.return" : (!y) -> !y
  return %y : !y
}
