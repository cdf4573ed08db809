// The loop-split MLP: one view on the first weight. The hidden layer follows, the
// second weight takes the same rows as columns, and the partial sums of the second
// linear are combined once: exactly one all-reduce. The hidden layer of 10 is
// uneven on 3 (4, 4, 2) and 4 (3, 3, 3, 1) devices.
// RUN: tessera-opt %s --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --tessera="mesh=tp=4 to=local" --interpret=4 | FileCheck %s %no_other_collective
// RUN: sed s/f32/bf16/g %s | tessera-opt --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program | FileCheck %s %no_other_collective
// RUN: sed s/f32/f16/g %s | tessera-opt --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program | FileCheck %s %no_other_collective

// CHECK: tv.linear
// CHECK: tv.gelu
// CHECK: tv.linear
// CHECK: comm.all_reduce
// CHECK-NEXT: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 240 bytes 0 copies
// RAN tp=3: all-reduce 320 bytes 0 copies
// RAN tp=4: all-reduce 360 bytes 0 copies
#m = #tv.mesh<tp = 2>
!w0 = tensor<10x6xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%x: tensor<2x5x6xf32>, %w0: !w0, %w1: tensor<6x10xf32>) -> tensor<2x5x6xf32> {
  %h = tv.linear %x, %w0 : (tensor<2x5x6xf32>, !w0) -> tensor<2x5x10xf32>
  %g = tv.gelu tanh %h : (tensor<2x5x10xf32>) -> tensor<2x5x10xf32>
  %y = tv.linear %g, %w1 : (tensor<2x5x10xf32>, tensor<6x10xf32>) -> tensor<2x5x6xf32>
  return %y : tensor<2x5x6xf32>
}
