// A step of two parts of a batch, each a call of one function: what is left to sum over
// the devices is summed for both at once, all in one group.
// RUN: tessera-opt %s --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --tessera="mesh=dp=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %t --tessera="mesh=dp=3 to=local" --interpret=3 -o /dev/null
// RUN: tessera-opt %t --tessera="mesh=dp=4 to=kernels" --interpret=4 -o /dev/null

// CHECK-COUNT-3: tv.add
// CHECK: :3 = comm.all_reduce
// CHECK: return
// RAN dp=1: nothing
// RAN dp=2: all-reduce of 3 220 bytes 0 copies
// RAN dp=3: all-reduce of 3 296 bytes 0 copies
// RAN dp=4: all-reduce of 3 340 bytes 0 copies
#m = #tv.mesh<dp = 2>
!batch = tensor<2x12x8xf32, #tv.view<#m, [_, did(dp) * _, _]>>
!part = tensor<1x12x8xf32>
!x = tensor<12x8xf32>
!y = tensor<12x6xf32>
!w = tensor<6x8xf32, #tv.view<#m, [_, _]>>
!b = tensor<6xf32, #tv.view<#m, [_]>>
!loss = tensor<f32, #tv.view<#m, []>>
func.func private @loss(%x: !x, %w: !w, %b: !b) -> !loss {
  %0 = tv.linear %x, %w bias %b : (!x, !w, !b) -> !y
  %1 = tv.tanh %0 : (!y) -> !y
  %2 = tv.reduce sum %1 dims [0, 1] : (!y) -> !loss
  return %2 : !loss
}
func.func private @part(%part: !part, %w: !w, %b: !b) -> (!loss, !w, !b) {
  %x = tv.reshape %part : (!part) -> !x
  %loss, %dw, %db = tv.gradient @loss(%x, %w, %b) of [0] to [1, 2] : (!x, !w, !b) -> (!loss, !w, !b)
  return %loss, %dw, %db : !loss, !w, !b
}
func.func @main(%batch: !batch, %w: !w {tv.role = "weight"}, %b: !b {tv.role = "weight"}) -> (!loss, !w, !b) {
  %x0 = tv.slice %batch offsets [0, 0, 0] : (!batch) -> !part
  %x1 = tv.slice %batch offsets [1, 0, 0] : (!batch) -> !part
  %l0, %dw0, %db0 = call @part(%x0, %w, %b) : (!part, !w, !b) -> (!loss, !w, !b)
  %l1, %dw1, %db1 = call @part(%x1, %w, %b) : (!part, !w, !b) -> (!loss, !w, !b)
  %l = tv.add %l0, %l1 : (!loss, !loss) -> !loss
  %dw = tv.add %dw0, %dw1 : (!w, !w) -> !w
  %db = tv.add %db0, %db1 : (!b, !b) -> !b
  return %l, %dw, %db : !loss, !w, !b
}
