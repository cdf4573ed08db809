// Each error is one located sentence, the exit status is not 0, and no file is
// left behind.
// RUN: not tessera-compile %s -o %t.tsr 2>&1 | FileCheck %s --check-prefix=PARSE
// RUN: not test -e %t.tsr
// PARSE: errors.mlir:[[# @LINE + 81]]:{{[0-9]+}}: error:

// RUN: not tessera-compile %S/nothing.mlir 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: cannot read '{{.*}}nothing.mlir'

// RUN: not tessera-compile %S/functions.mlir --compile-from=local -o %t.none/x.tsr 2>&1 | FileCheck %s --check-prefix=WRITE
// WRITE: error: cannot write '{{.*}}x.tsr'

// RUN: not tessera-compile %S/functions.mlir --compile-from=local --target=abacus 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: there is no target 'abacus'; there are cpu, cuda:sm_90a and cuda:sm_XY from sm_80 on

// RUN: not tessera-opt %S/functions.mlir "--tessera=to=bind target=abacus" 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not tessera-opt %S/functions.mlir --tv-set-target=target=abacus 2>&1 | FileCheck %s --check-prefix=PLAN
// PLAN: functions.mlir:{{[0-9:]+}} error: there is no target 'abacus'; there are cpu, cuda:sm_90a and cuda:sm_XY from sm_80 on

// Phases that there are not, or that nothing leads through.
// RUN: not tessera-opt %S/functions.mlir --tessera=to=plan 2>&1 | FileCheck %s --check-prefix=PHASE
// RUN: not tessera-opt %S/functions.mlir --tessera=from=plan 2>&1 | FileCheck %s --check-prefix=PHASE
// PHASE: error: there is no phase 'plan'; there are source, differentiated, bind, propagated, planned, local, kernels, scheduled{{$}}
// RUN: not tessera-compile %S/functions.mlir --compile-from=plan 2>&1 | FileCheck %s --check-prefix=NO-IR
// NO-IR: error: nothing starts after 'plan', which is no program
// RUN: not tessera-compile %S/functions.mlir --compile-from=local --compile-to=bind 2>&1 | FileCheck %s --check-prefix=BACK
// RUN: not tessera-opt %S/functions.mlir "--tessera=from=local to=bind" 2>&1 | FileCheck %s --check-prefix=BACK
// BACK: error: the phase 'bind' is before 'local', in which the input is

// Flags of phases that do not run.
// RUN: not tessera-compile %s --compile-from=bind --mesh=tp=2 2>&1 | FileCheck %s --check-prefix=MESH
// MESH: error: --mesh changes nothing of a program that has been through 'bind'
// RUN: not tessera-compile %s --compile-from=planned --strict 2>&1 | FileCheck %s --check-prefix=STRICT
// STRICT: error: --strict changes nothing of a program that has been through 'planned'
// RUN: not tessera-compile %s --compile-from=planned --op-by-op 2>&1 | FileCheck %s --check-prefix=OPBYOP
// OPBYOP: error: --op-by-op changes nothing of a program that has been through 'planned'
// RUN: not tessera-compile %s --compile-from=kernels --attention=math 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: --attention changes nothing of a program that has been through 'kernels'
// RUN: not tessera-compile %s --matmul=cublaslt --compile-to=local 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: --matmul changes nothing before 'kernels', and 'local' is
// RUN: not tessera-compile %s --memory=1GiB --compile-to=local 2>&1 | FileCheck %s --check-prefix=MEMORY
// MEMORY: error: --memory changes nothing before 'kernels', and 'local' is
// RUN: not tessera-compile %s --memory=1GB 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not tessera-compile %s --memory=0 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not tessera-compile %s --memory=9000000000GiB 2>&1 | FileCheck %s --check-prefix=BYTES
// BYTES: error: --memory: '{{1GB|0|9000000000GiB}}' is no number of bytes above 0, as 1000, 64KiB, 500MiB or 80GiB
// RUN: not tessera-opt %s "--tessera=attention=math to=local" 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: error: attention changes nothing before 'kernels', and 'local' is

// RUN: not tessera-compile %S/functions.mlir --compile-from=local --dump-dir=%s/none 2>&1 | FileCheck %s --check-prefix=DUMP
// DUMP: error: cannot make the folder '{{.*}}/none': Not a directory

// RUN: tessera-compile %S/functions.mlir --compile-from=local --target=cuda:sm_90a --compile-to=kernels -o %t.cuda.mlir
// RUN: FileCheck %s --check-prefix=RECORDED < %t.cuda.mlir
// RUN: not tessera-compile %t.cuda.mlir --compile-from=kernels 2>&1 | FileCheck %s --check-prefix=PLANNED
// RECORDED: module attributes {plan.target = #plan.target<"cuda:sm_90a">}
// PLANNED: error: the program is planned for 'cuda:sm_90a', not for 'cpu'

// RUN: echo 'module {}' | not tessera-compile --compile-from=local 2>&1 | FileCheck %s --check-prefix=MAIN
// MAIN: error: a program needs a function '@main'

// RUN: sed 's/tv.name = "y"/tv.name = "x"/' %examples/mlp.mlir | not tessera-compile 2>&1 | FileCheck %s --check-prefix=TWO-NAMES
// TWO-NAMES: error: argument #0 and result #0 both have the name 'x'

// RUN: not tessera-compile %examples/mlp.mlir --mesh dp=2 2>&1 | FileCheck %s --check-prefix=AXIS
// AXIS: {{^}}error: --mesh dp=2: no view of the program has this axis; they have tp

// RUN: not tessera-compile %examples/mlp.mlir --mesh tp=two 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: {{^}}error: --mesh tp=two: must be axis=size, as tp=4
// RUN: not tessera-compile %examples/mlp.mlir --mesh tp=2,tp=3 2>&1 | FileCheck %s --check-prefix=TWO-SIZES
// TWO-SIZES: {{^}}error: --mesh tp=3: 'tp' has a size already; name each axis once

// RUN: sed 's/\[did(tp)/[did(dp)/' %examples/mlp.mlir | not tessera-compile 2>&1 | FileCheck %s --check-prefix=COLUMN
// COLUMN: :5:43: error: unknown mesh axis 'dp'; the mesh has tp

// A module is not written to a terminal, and is to a pipe.
// RUN: not %python -c 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' tessera-compile %examples/mlp.mlir | FileCheck %s --check-prefix=TERMINAL
// TERMINAL: a module is not for a terminal: name a file with -o, or a phase that is text with --compile-to
// RUN: tessera-compile %examples/mlp.mlir | wc -c | FileCheck %s --check-prefix=PIPE
// PIPE: {{[0-9][0-9][0-9][0-9]}}

// RUN: tessera-compile --version | FileCheck %s --check-prefix=VERSION
// RUN: tessera-opt --version | FileCheck %s --check-prefix=VERSION
// RUN: tessera-run --version | FileCheck %s --check-prefix=VERSION
// VERSION: {{^}}Tessera {{[0-9]+[.][0-9]+[.][0-9]+$}}
func.func @main(%x: tensor<4xf32>) -> tensor<5xf32> { return %x : tensor<4xf32> }
