// The programs of all folders in the phase kernels, each on 1 to 4 ranks, equal
// their source. (Those of many elements are for what GPUs do: their own files interpret
// that. Several meshes, parts of axes, and parts that are rows, get their sizes there, too.)
// RUN: %python %S/Inputs/run_kernels.py source %examples %examples/gpt %S/../Programs --skip block-mask flash flash-blocks flash-captured flash-dropout flash-few flash-grad flash-packed flash-pages listed-devices local-parts local-sums meshes-across partial-parts ring-devices several-meshes small-sums through-ops told-by-one | FileCheck %s
// RUN: %python %S/Inputs/run_kernels.py local %S/../Compiler/programs | FileCheck %s --check-prefix=LOCAL
// RUN: tessera-opt %examples/minilm/encoder.mlir --tessera=to=kernels --interpret=4 --interpret-sizes=b=1,s=3 -o /dev/null | FileCheck %s --check-prefix=MINILM

// CHECK: examples/mlp.mlir
// CHECK: examples/gpt/block_dp_tp.mlir
// CHECK: interpret: @main equals the source on 8 ranks
// CHECK: Programs/slice-pad-concat.mlir
// CHECK: interpret: @main equals the source on 4 ranks
// LOCAL: programs/attention.mlir
// LOCAL-NEXT: tessera-opt
// LOCAL-NEXT: interpret: @main equals the source on 2 ranks, largest error {{[1-9.]+e-0[89]}}
// LOCAL: programs/sources.mlir
// MINILM: interpret: @main equals the source on 4 ranks, largest error {{[1-9.]+e-(0[89]|1.)}}

// Windows and kernels that are wrong: each shows as wrong numbers, or as an error
// at its place.
// DEFINE: %{wrong} = not tessera-opt --interpret=2 --interpret-against=@reference -o /dev/null
// RUN: split-file %s %t
// RUN: tessera-opt %t/right.mlir --interpret=2 --interpret-against=@reference -o /dev/null | FileCheck %s --check-prefix=RIGHT
// RUN: sed 's/at .0, 0, 1./at [0, 0, 2]/' %t/right.mlir | %{wrong} 2>&1 | FileCheck %s --check-prefix=BEYOND
// RUN: sed 's/at .0, 0, 1./at [0, 0, 0]/' %t/right.mlir | %{wrong} 2>&1 | FileCheck %s --check-prefix=NUMBERS
// RUN: sed 's/at .0, 2, 1./at [1, 2, 0]/' %t/right.mlir | %{wrong} 2>&1 | FileCheck %s --check-prefix=NUMBERS
// RUN: sed 's/alloc = (0, 1, 2)/alloc = (1, 0, 2)/' %t/right.mlir | %{wrong} 2>&1 | FileCheck %s --check-prefix=ORDER
// RUN: sed 's/reshape \(.\)scaled/reshape \1turned/' %t/right.mlir | %{wrong} 2>&1 | FileCheck %s --check-prefix=TURNED
// RUN: sed 's/c3) step/c4) step/' %t/right.mlir | %{wrong} 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// RUN: sed 's/c3) step/c2) step/' %t/right.mlir | %{wrong} 2>&1 | FileCheck %s --check-prefix=HOLE
// RUN: sed 's/load \(.\)in\[/load \1out[/; s/: !in$/: !out/' %t/right.mlir | %{wrong} 2>&1 | FileCheck %s --check-prefix=UNWRITTEN
// RUN: sed 's/number) step (.c1/number) step (\x25rank/' %t/right.mlir | %{wrong} 2>&1 | FileCheck %s --check-prefix=STEP
// RUN: sed 's/arith.addf/arith.mulf/' %t/right.mlir | %{wrong} 2>&1 | FileCheck %s --check-prefix=NUMBERS
// RUN: sed 's/\(in = .*\)?]/\11]/' %t/right.mlir | %{wrong} 2>&1 | FileCheck %s --check-prefix=STRIDES
// RUN: sed 's/^  return$/  \x25local = memref.alloca() : memref<1xf32>\n  return/' %t/right.mlir | %{wrong} 2>&1 | FileCheck %s --check-prefix=RULE
// RUN: not tessera-opt %t/right.mlir --interpret=2 --interpret-against=unsharded -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNSHARDED

// UNSHARDED: error: 'plan.alias' op runs on each device's part only; compare with 'source' or '@NAME'
// RIGHT: interpret: @main equals @reference on 2 ranks, largest error 0
// BEYOND: :37:8: error: 'plan.alias' op along dimension 2 element 2 is not at its place in one window on its source
// NUMBERS: error: result #0 differs at [0, {{[01]}}]: {{.*}} on 2 ranks, {{.*}} in @reference
// ORDER: error: 'plan.alias' op reshapes a part of shape [2, 3, 2] and strides [2, 4, 1] to [2, 6]: its elements do not lie in that order
// TURNED: error: 'plan.alias' op reshapes a part of shape [2, 3, 2] and strides [8, 1, 4] to [2, 6]: its elements do not lie in that order
// OUTSIDE: error: 'memref.load' op reads element [0, 3, 0] of memory of shape [2, 3, 2] on rank 0, in kernel @scale
// HOLE: error: 'plan.launch' op result #0 on rank 0: element [0, 2, 0] was never written
// UNWRITTEN: error: 'memref.load' op reads element [0, 0, 0], which was never written, on rank 0, in kernel @scale
// STEP: error: 'scf.parallel' op has a step of 0 on rank 0, in kernel @scale
// STRIDES: error: argument #0 of kernel @scale on rank 0 has shape [2, 3, 2] and strides [8, 1, 4], not as 'memref<2x3x2xf32, strided<[?, ?, 1], offset: ?>>'
// RULE: error: the interpreter has no rule for 'memref.alloca' in a kernel
//--- right.mlir
#m = #tv.mesh<tp = 2>
!x = tensor<4x4xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 4]>, of [8, 4]>>
!a = tensor<2x2x4xf32, #tv.local<#tv.view<#m, [did(tp) * 2, 2, 4]>, of [4, 2, 4]>>
!s = tensor<2x2x3xf32, #tv.local<#tv.view<#m, [did(tp) * 2, 2, 3]>, of [4, 2, 3]>>
!t = tensor<2x3x2xf32, #tv.local<#tv.view<#m, [did(tp) * 2, 3, 2], alloc = (0, 1, 2)>, of [4, 3, 2]>>
!r = tensor<2x6xf32, #tv.local<#tv.view<#m, [did(tp) * 2, 6]>, of [4, 6]>>
!in = memref<2x3x2xf32, strided<[?, ?, ?], offset: ?>>
!out = memref<2x3x2xf32, strided<[?, ?, 1], offset: ?>>
func.func @scale(%in: !in, %out: !out, %tp: i64) attributes {plan.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %rank = arith.index_cast %tp : i64 to index
  %number = arith.addi %rank, %c1 : index
  %factor = scf.parallel (%i) = (%c0) to (%number) step (%c1) init (%zero) -> f32 {
    scf.reduce(%one : f32) {
    ^bb0(%left: f32, %right: f32):
      %sum = arith.addf %left, %right : f32
      scf.reduce.return %sum : f32
    }
  }
  scf.parallel (%i, %j) = (%c0, %c0) to (%c2, %c3) step (%c1, %c1) {
    scf.for %k = %c0 to %c2 step %c1 {
      %0 = memref.load %in[%i, %j, %k] : !in
      %1 = arith.mulf %0, %factor : f32
      memref.store %1, %out[%i, %j, %k] : !out
    }
  }
  return
}
func.func @main(%x: !x) -> !r {
  %a = plan.alias reshape %x : (!x) -> !a
  %s = plan.alias slice %a at [0, 0, 1] : (!a) -> !s
  %turned = plan.alias transpose %s at [0, 2, 1] : (!s) -> !t
  %scaled = plan.launch @scale(%turned) scalars [#plan.coord<"tp">] from "tv.map" : (!t) -> !t
  %r = plan.alias reshape %scaled : (!t) -> !r
  return %r : !r
}
// The half that device 0 has times 1, the other times 2.
func.func @reference(%x: tensor<8x4xf32>) -> tensor<4x6xf32> {
  %a = tv.reshape %x : (tensor<8x4xf32>) -> tensor<4x2x4xf32>
  %s = tv.slice %a offsets [0, 0, 1] : (tensor<4x2x4xf32>) -> tensor<4x2x3xf32>
  %t = tv.transpose %s perm [0, 2, 1] : (tensor<4x2x3xf32>) -> tensor<4x3x2xf32>
  %f = tv.constant dense<[1.0, 1.0, 2.0, 2.0]> : tensor<4xf32> : () -> tensor<4xf32>
  %b = tv.broadcast %f dims [0] : (tensor<4xf32>) -> tensor<4x3x2xf32>
  %m = tv.mul %t, %b : (tensor<4x3x2xf32>, tensor<4x3x2xf32>) -> tensor<4x3x2xf32>
  %r = tv.reshape %m : (tensor<4x3x2xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
