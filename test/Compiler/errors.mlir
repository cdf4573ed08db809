// Each error is one located sentence, the exit status is not 0, and no file is
// left behind.
// RUN: not tessera-compile %s -o %t.tsr 2>&1 | FileCheck %s --check-prefix=PARSE
// RUN: not test -e %t.tsr
// PARSE: errors.mlir:[[# @LINE + 22]]:{{[0-9]+}}: error:

// RUN: not tessera-compile %S/nothing.mlir 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: cannot read '{{.*}}nothing.mlir'

// RUN: not tessera-compile %S/functions.mlir --compile-from=local -o %t.none/x.tsr 2>&1 | FileCheck %s --check-prefix=WRITE
// WRITE: error: cannot write '{{.*}}x.tsr'

// RUN: not tessera-compile %S/functions.mlir --compile-from=local --target=abacus 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: there is no target 'abacus'; there are cpu and cuda:sm_90a

// RUN: not tessera-opt %S/functions.mlir "--tessera=from=local target=abacus" 2>&1 | FileCheck %s --check-prefix=PLAN
// PLAN: functions.mlir:{{[0-9:]+}} error: there is no target "abacus"; there are cpu and cuda:sm_90a

// RUN: tessera-compile %S/functions.mlir --compile-from=local --target=cuda:sm_90a --compile-to=kernels -o %t.cuda.mlir
// RUN: FileCheck %s --check-prefix=RECORDED < %t.cuda.mlir
// RUN: not tessera-compile %t.cuda.mlir --compile-from=kernels 2>&1 | FileCheck %s --check-prefix=PLANNED
// RECORDED: module attributes {plan.target = "cuda:sm_90a"}
// PLANNED: error: the program is planned for 'cuda:sm_90a', not for 'cpu'

// RUN: echo 'module {}' | not tessera-compile --compile-from=local 2>&1 | FileCheck %s --check-prefix=MAIN
// MAIN: error: a program needs a function '@main'
func.func @main(%x: tensor<4xf32>) -> tensor<5xf32> { return %x : tensor<4xf32> }
