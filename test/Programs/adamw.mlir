// A step of AdamW on a batch that is split. The moments lie as the program says: where
// they are whole the gradient is combined by an all-reduce; where they are split (ZeRO) by
// a reduce-scatter, and the weight is gathered.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels" --interpret=4 -o /dev/null

// CHECK: comm.all_reduce
// CHECK: tv.adamw
// RAN tp=1: nothing
// RAN tp=2: all-reduce 140 bytes 0 copies
// RAN tp=3: all-reduce 188 bytes 0 copies
// RAN tp=4: all-reduce 212 bytes 0 copies
#m = #tv.mesh<tp = 2>
!rows = tensor<5x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<7x5xf32, #tv.view<#m, [_, _]>>
!grad = tensor<7x5xf32>
!scalar = tensor<f32, #tv.view<#m, []>>
!step = tensor<i64, #tv.view<#m, []>>
func.func @main(%x: !rows, %dy: tensor<7x8xf32, #tv.view<#m, [_, did(tp) * _]>>, %w: !w, %m: !w, %root: !w,
                %scale: !scalar, %rate: !scalar, %t: !step {tv.range = [1, 9]}) -> (!w, !w, !w) {
  %v = tv.mul %root, %root : (!w, !w) -> !w
  %dw = tv.linear %dy, %x : (tensor<7x8xf32, #tv.view<#m, [_, did(tp) * _]>>, !rows) -> !grad
  %new:3 = tv.adamw %w, %m, %v, %dw scale %scale rate %rate step %t betas(0.9, 0.95) epsilon(1.0e-8) decay(0.1)
    : (!w, !w, !w, !grad, !scalar, !scalar, !step) -> (!w, !w, !w)
  return %new#0, %new#1, %new#2 : !w, !w, !w
}

// -----

// CHECK: comm.reduce_scatter
// CHECK: tv.adamw
// CHECK: comm.all_gather
// RAN tp=1: nothing
// RAN tp=2: reduce-scatter 80 bytes 0 copies, all-gather 80 bytes 0 copies
// RAN tp=3: reduce-scatter 120 bytes 0 copies, all-gather 120 bytes 0 copies
// RAN tp=4: reduce-scatter 120 bytes 0 copies, all-gather 120 bytes 0 copies
#m = #tv.mesh<tp = 2>
!rows = tensor<5x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<7x5xf32, #tv.view<#m, [_, _]>>
!split = tensor<7x5xf32, #tv.view<#m, [did(tp) * _, _]>>
!grad = tensor<7x5xf32>
!scalar = tensor<f32, #tv.view<#m, []>>
!step = tensor<i64, #tv.view<#m, []>>
func.func @main(%x: !rows, %dy: tensor<7x8xf32, #tv.view<#m, [_, did(tp) * _]>>, %w: !w, %m: !split, %root: !split,
                %scale: !scalar, %rate: !scalar, %t: !step {tv.range = [1, 9]}) -> (!w, !split, !split) {
  %v = tv.mul %root, %root : (!split, !split) -> !split
  %dw = tv.linear %dy, %x : (tensor<7x8xf32, #tv.view<#m, [_, did(tp) * _]>>, !rows) -> !grad
  %new:3 = tv.adamw %w, %m, %v, %dw scale %scale rate %rate step %t betas(0.9, 0.95) epsilon(1.0e-8) decay(0.1)
    : (!w, !split, !split, !grad, !scalar, !scalar, !step) -> (!w, !split, !split)
  return %new#0, %new#1, %new#2 : !w, !split, !split
}
