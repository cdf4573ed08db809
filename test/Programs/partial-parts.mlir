// Data parallel over one part of an axis, tensor parallel over the other: what is summed over
// both is partial along all of the axis, what is summed over one, along its part.
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=4 | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK: tv.reduce sum {{.*}} -> tensor<32xf32, {{.*}}partial = [x : sum]
// CHECK: comm.all_reduce
// CHECK-NOT: comm.
// RAN here: all-reduce 192 bytes 0 copies
#m = #tv.mesh<x = 4, y = 1>
!a = tensor<8x16xf32, #tv.view<#m, [did(x:(1)2) * _, did(x:(2)2) * _]>>
!w = tensor<32x16xf32, #tv.view<#m, [_, did(x:(2)2) * _]>>
func.func @main(%x: !a {tv.name = "x"}, %w: !w {tv.name = "w"}) -> (tensor<32xf32, #tv.view<#m, [_]>> {tv.name = "z"}) {
  %y = tv.linear %x, %w : (!a, !w) -> tensor<8x32xf32>
  %z = tv.reduce sum %y dims [0] : (tensor<8x32xf32>) -> tensor<32xf32, #tv.view<#m, [_]>>
  return %z : tensor<32xf32, #tv.view<#m, [_]>>
}

// -----

// A step of training.
// CHECK-LABEL: func.func @main
// CHECK: -> tensor<16xf32, {{.*}}partial = [x : sum]
// RAN here: all-reduce of 2 108 bytes 0 copies, all-reduce of 2 1024 bytes 0 copies
#m = #tv.mesh<x = 4, y = 1>
!x = tensor<8x16xf32, #tv.view<#m, [did(x:(1)2) * _, _]>>
!up = tensor<16x16xf32, #tv.view<#m, [did(x:(2)2) * _, _]>>
!down = tensor<16x16xf32, #tv.view<#m, [_, did(x:(2)2) * _]>>
!h = tensor<8x16xf32>
!y = tensor<8x16xf32>
!b = tensor<16xf32>
!loss = tensor<f32>
func.func private @loss(%x: !x, %up: !up, %down: !down, %b: !b) -> !loss {
  %n = tv.mul %x, %x : (!x, !x) -> !y
  %bb = tv.broadcast %b dims [1] : (!b) -> !y
  %m = tv.mul %n, %bb : (!y, !y) -> !y
  %h = tv.linear %m, %up : (!y, !up) -> !h
  %g = tv.gelu tanh %h : (!h) -> !h
  %y = tv.linear %g, %down : (!h, !down) -> !y
  %loss = tv.reduce sum %y dims [0, 1] : (!y) -> !loss
  return %loss : !loss
}
func.func @main(%x: !x {tv.name = "x"}, %up: !up {tv.name = "up", tv.role = "weight"},
                %down: !down {tv.name = "down", tv.role = "weight"}, %b: !b {tv.name = "b", tv.role = "weight"})
    -> (!loss {tv.name = "loss"}, !up {tv.name = "dup"}, !down {tv.name = "ddown"}, !b {tv.name = "db"}) {
  %loss, %dup, %ddown, %db = tv.gradient @loss(%x, %up, %down, %b) of [0] to [1, 2, 3] : (!x, !up, !down, !b) -> (!loss, !up, !down, !b)
  return %loss, %dup, %ddown, %db : !loss, !up, !down, !b
}
