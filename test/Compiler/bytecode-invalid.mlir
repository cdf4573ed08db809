// A tensor type in bytecode whose encoding does not fit it is an error at its op,
// wherever the type stands and whichever tool reads it. The bytecode of this
// program is damaged where it holds the text of one encoding.

// RUN: tessera-opt %s --emit-bytecode -o %t.bc

// An argument's type: also that of the function.
// RUN: env LC_ALL=C sed 's/did(tp) \* _, 41\]/did(tp) * _    ]/' %t.bc > %t.argument.bc
// RUN: not tessera-opt %t.argument.bc 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// RUN: not tessera-opt %t.argument.bc --tv-bind 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// RUN: not tessera-opt %t.argument.bc --tessera 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// RUN: not tessera-opt %t.argument.bc --interpret=2 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// RUN: not tessera-compile %t.argument.bc 2>&1 | FileCheck %s --check-prefix=ARGUMENT

// A result's type.
// RUN: env LC_ALL=C sed 's/\[_, _, 43\]/[_, _    ]/' %t.bc > %t.result.bc
// RUN: not tessera-opt %t.result.bc 2>&1 | FileCheck %s --check-prefix=RESULT
// RUN: not tessera-compile %t.result.bc 2>&1 | FileCheck %s --check-prefix=RESULT

// A type inside of an attribute alone.
// RUN: env LC_ALL=C sed 's/\[_, _, 44\]/[_, _    ]/' %t.bc > %t.attribute.bc
// RUN: not tessera-opt %t.attribute.bc 2>&1 | FileCheck %s --check-prefix=ATTRIBUTE

// A local type, in a phase to go on from.
// RUN: env LC_ALL=C sed 's/of \[8, 45\]/of [6, 45]/' %t.bc > %t.local.bc
// RUN: not tessera-opt %t.local.bc --tessera=from=local 2>&1 | FileCheck %s --check-prefix=LOCAL
// RUN: not tessera-compile %t.local.bc --compile-from=local 2>&1 | FileCheck %s --check-prefix=LOCAL

// Not damaged, it is legal.
// RUN: tessera-opt %t.bc -o /dev/null

#mesh = #tv.mesh<tp = 2>
!arg = tensor<8x41xf32, #tv.view<#mesh, [did(tp) * _, 41]>>
// ARGUMENT: bytecode-invalid.mlir:[[# @LINE + 1]]:1: error: type 'tensor<8x41xf32, #tv.view<#tv.mesh<tp = 2>, [did(tp) * _]>>' is not legal: the view describes
func.func @main(%x: !arg) -> !arg {
  // RESULT: bytecode-invalid.mlir:[[# @LINE + 1]]:8: error: type 'tensor<1x1x43xf32, {{.*}}>' is not legal: the view describes
  %c = tv.constant dense<1.0> : tensor<1x1x43xf32> : () -> tensor<1x1x43xf32, #tv.view<#mesh, [_, _, 43]>>
  return %x : !arg
}
// ATTRIBUTE: bytecode-invalid.mlir:[[# @LINE + 1]]:1: error: type 'tensor<1x1x44xf32, {{.*}}>' is not legal: the view describes
func.func private @declared(tensor<1x1x44xf32, #tv.view<#mesh, [_, _, 44]>>)
// LOCAL: bytecode-invalid.mlir:[[# @LINE + 1]]:1: error: type 'tensor<4x45xf32, {{.*}} of [6, 45]>>' is not legal: local shape must be 3x45xf32
func.func private @local(tensor<4x45xf32, #tv.local<#tv.view<#mesh, [did(tp) * _, 45]>, of [8, 45]>>)
