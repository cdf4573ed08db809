// A standard output that is full, closed or a closed pipe is an error.
// RUN: not tessera-compile %s --mesh tp=2 --compile-to=plan > /dev/full 2> %t; FileCheck %s --check-prefix=COMPILE < %t
// RUN: not bash -c "tessera-compile %s --mesh tp=2 --compile-to=plan >&-" 2> %t; FileCheck %s --check-prefix=COMPILE < %t
// RUN: not bash -c "set -o pipefail; (sleep 1; tessera-compile %s --mesh tp=2 --compile-to=plan) | :" 2> %t; FileCheck %s --check-prefix=COMPILE < %t
// RUN: not tessera-opt %s > /dev/full 2> %t; FileCheck %s --check-prefix=OPT < %t
// RUN: not bash -c "tessera-opt %s >&-" 2> %t; FileCheck %s --check-prefix=OPT < %t
// RUN: not bash -c "set -o pipefail; (sleep 1; tessera-opt %s) | :" 2> %t; FileCheck %s --check-prefix=OPT < %t
// COMPILE: tessera-compile: error: cannot write '-': {{No space left on device|Bad file descriptor|Broken pipe}}
// COMPILE-NOT: {{.}}
// OPT: tessera-opt: error: cannot write '-': {{No space left on device|Bad file descriptor|Broken pipe}}
// OPT-NOT: {{.}}

#m = #tv.mesh<tp = 2>
!w0 = tensor<10x6xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%x: tensor<2x5x6xf32>, %w0: !w0, %w1: tensor<6x10xf32>) -> tensor<2x5x6xf32> {
  %h = tv.linear %x, %w0 : (tensor<2x5x6xf32>, !w0) -> tensor<2x5x10xf32>
  %g = tv.gelu tanh %h : (tensor<2x5x10xf32>) -> tensor<2x5x10xf32>
  %y = tv.linear %g, %w1 : (tensor<2x5x10xf32>, tensor<6x10xf32>) -> tensor<2x5x6xf32>
  return %y : tensor<2x5x6xf32>
}
