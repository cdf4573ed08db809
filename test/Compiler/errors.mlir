// Each error is one located sentence, the exit status is not 0, and no file is
// left behind.
// RUN: not tessera-compile %s -o %t.tsr 2>&1 | FileCheck %s --check-prefix=PARSE
// RUN: not test -e %t.tsr
// PARSE: errors.mlir:[[# @LINE + 13]]:{{[0-9]+}}: error:

// RUN: not tessera-compile %S/nothing.mlir 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: cannot read '{{.*}}nothing.mlir'

// RUN: not tessera-compile %S/functions.mlir --compile-from=local -o %t.none/x.tsr 2>&1 | FileCheck %s --check-prefix=WRITE
// WRITE: error: cannot write '{{.*}}x.tsr'

// RUN: not tessera-compile %S/functions.mlir --compile-from=local --target=abacus 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: there is no target 'abacus'; there is cpu

// RUN: echo 'module {}' | not tessera-compile --compile-from=local 2>&1 | FileCheck %s --check-prefix=MAIN
// MAIN: error: a program needs a function '@main'
func.func @main(%x: tensor<4xf32>) -> tensor<5xf32> { return %x : tensor<4xf32> }
