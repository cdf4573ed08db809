// Strict mode: a move that the program does not write is an error with the line to
// write; with that line the program passes.
// RUN: tessera-opt %s --split-input-file --tessera="to=planned strict=true" --verify-diagnostics

#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<6x8xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @all_reduce(%x: !x, %w: !w) -> tensor<4x6xf32> {
  // expected-error @+2 {{strict mode: the program does not write this move, all-reduce over [tp] of 96 bytes on a device, from [4, 6], partial = [tp : sum] to [4, 6]}}
  // expected-note @+1 {{give this result the view [4, 6], partial = [tp : sum] and write after it: %r = tv.reshard %v : (tensor<4x6xf32, #tv.view<#tv.mesh<tp = 2>, [4, 6], partial = [tp : sum]>>) -> tensor<4x6xf32, #tv.view<#tv.mesh<tp = 2>, [4, 6]>>}}
  %y = tv.linear %x, %w : (!x, !w) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<6x8xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @all_reduce_written(%x: !x, %w: !w) -> tensor<4x6xf32, #tv.view<#tv.mesh<tp = 2>, [4, 6]>> {
  %y = tv.linear %x, %w : (!x, !w) -> tensor<4x6xf32, #tv.view<#tv.mesh<tp = 2>, [4, 6], partial = [tp : sum]>>
  %r = tv.reshard %y : (tensor<4x6xf32, #tv.view<#tv.mesh<tp = 2>, [4, 6], partial = [tp : sum]>>) -> tensor<4x6xf32, #tv.view<#tv.mesh<tp = 2>, [4, 6]>>
  return %r : tensor<4x6xf32, #tv.view<#tv.mesh<tp = 2>, [4, 6]>>
}

// -----

// An argument: all moves are reported in one run.

#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [did(tp) * _, _]>>
!w = tensor<6x8xf32, #tv.view<#m, [did(tp) * _, _]>>
// expected-note @+1 {{write: %r = tv.reshard %argument : (tensor<4x8xf32, #tv.view<#tv.mesh<tp = 2>, [did(tp) * 2, 8]>>) -> tensor<4x8xf32, #tv.view<#tv.mesh<tp = 2>, [4, 8]>>}}
func.func @gather(%x: !x, %w: !w) -> tensor<4x6xf32> {
  // expected-error @+1 {{strict mode: the program does not write this move, all-gather over [tp] of 64 bytes on a device, from [did(tp) * 2, 8] to [4, 8]}}
  %y = tv.linear %x, %w : (!x, !w) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [did(tp) * _, _]>>
!w = tensor<6x8xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @gather_written(%x: !x, %w: !w) -> tensor<4x6xf32> {
  %r = tv.reshard %x : (!x) -> tensor<4x8xf32, #tv.view<#tv.mesh<tp = 2>, [4, 8]>>
  %y = tv.linear %r, %w : (tensor<4x8xf32, #tv.view<#tv.mesh<tp = 2>, [4, 8]>>, !w) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// -----

// What moves no byte need not be written: a device takes its part of a whole value,
// and a whole bias becomes an addend.

#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [_, _]>>
!y = tensor<4x8xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @no_bytes(%x: !x, %y: !y) -> tensor<4x8xf32> {
  %s = tv.add %x, %y : (!x, !y) -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// -----

// Arguments and results on devices that another mesh lists: the move to them is written as
// a reshard between the meshes. Where all devices have the same, nothing moves.

#m = #tv.mesh<x = 4>
#n = #tv.mesh<x = 4, devices = [0, 1, 3, 2]>
!x = tensor<8x4xf32, #tv.view<#m, [did(x) * _, _]>>
!y = tensor<8x4xf32, #tv.view<#n, [did(x) * _, _]>>
!w = tensor<8x4xf32, #tv.view<#n, [_, _]>>
func.func @devices(%x: !x,
                   // expected-error @+2 {{strict mode: the program does not write this move, permute over [x] of 32 bytes on a device, from [did(x) * 2, 4] on <x = 4, devices = [0, 1, 3, 2]> to [did(x) * 2, 4] on <x = 4>}}
                   // expected-note @+1 {{write: %r = tv.reshard %argument : (tensor<8x4xf32, #tv.view<#tv.mesh<x = 4, devices = [0, 1, 3, 2]>, [did(x) * 2, 4]>>) -> tensor<8x4xf32, #tv.view<#tv.mesh<x = 4>, [did(x) * 2, 4]>>}}
                   %y: !y, %w: !w) -> (!x, !y, !x) {
  %0 = tv.add %x, %y : (!x, !y) -> !x
  %1 = tv.exp %x : (!x) -> !x
  %2 = tv.mul %x, %w : (!x, !w) -> !y
  // expected-note @+1 {{give this result the view [did(x) * 2, 4] and write after it: %r = tv.reshard %v}}
  %3 = tv.add %2, %1 : (!y, !x) -> !y
  // expected-error @+1 {{strict mode: the program does not write this move, permute over [x] of 32 bytes on a device, from [did(x) * 2, 4] on <x = 4> to [did(x) * 2, 4] on <x = 4, devices = [0, 1, 3, 2]>}}
  return %0, %3, %1 : !x, !y, !x
}

// -----

#m = #tv.mesh<x = 4>
#n = #tv.mesh<x = 4, devices = [0, 1, 3, 2]>
!x = tensor<8x4xf32, #tv.view<#m, [did(x) * _, _]>>
!y = tensor<8x4xf32, #tv.view<#n, [did(x) * _, _]>>
func.func @devices_written(%x: !x, %y: !y) -> (!x, !y) {
  %r = tv.reshard %y : (!y) -> !x
  %0 = tv.add %x, %r : (!x, !x) -> !x
  %1 = tv.reshard %0 : (!x) -> !y
  return %0, %1 : !x, !y
}
