// RUN: tessera-opt --tv-bind --split-input-file %s | FileCheck %s

// Devices in an order that is none of axes: values lie on those of the mesh on which most
// of arguments and results is, in its axes. Of what crosses it is noted where it lies, and
// whether a reshard of the source takes it there. What all devices have counts for none.

// CHECK: #[[LINE:mesh[0-9]*]] = #tv.mesh<x = 6>
// CHECK: #[[SNAKE:mesh[0-9]*]] = #tv.mesh<x = 6, devices = [0, 1, 2, 5, 4, 3]>
// CHECK-LABEL: @elsewhere
// CHECK-SAME: %{{.*}}: tensor<12xf32, #tv.view<#[[LINE]], [did(x) * 2]>> {tv.user_view = #tv.view<#[[LINE]], [did(x) * _]>}
// CHECK-SAME: %{{.*}}: tensor<12xf32, #tv.view<#[[LINE]], [did(x:(2)3) * 4]>> {tv.user_view = #tv.view<#[[SNAKE]], [did(x:(2)3) * _]>}
// CHECK-SAME: %{{.*}}: tensor<12xf32, #tv.view<#[[LINE]], [did(x) * 2]>> {tv.user_move, tv.user_view = #tv.view<#[[SNAKE]], [did(x:(1)2) * did(x:(2)3) * _]>}
// CHECK-SAME: -> (tensor<12xf32> {tv.user_view = #tv.view<#[[SNAKE]], [did(x:(1)2) * did(x:(2)3) * _]>}, tensor<12xf32, #tv.view<#[[LINE]], [did(x) * 2]>> {tv.user_move, tv.user_view = #tv.view<#[[SNAKE]], [did(x:(1)2) * did(x:(2)3) * _]>}
#line = #tv.mesh<x = 6>
#snake = #tv.mesh<a = 2, b = 3, devices = [0, 1, 2, 5, 4, 3]>
!on_line = tensor<12xf32, #tv.view<#line, [did(x) * _]>>
!on_snake = tensor<12xf32, #tv.view<#snake, [did(a) * did(b) * _]>>
!of_b = tensor<12xf32, #tv.view<#snake, [did(b) * _]>>
!all = tensor<1000xf32, #tv.view<#snake, [_]>>
func.func @elsewhere(%x: !on_line, %y: !of_b, %z: !on_snake, %all: !all) -> (tensor<12xf32>, !on_snake, !on_line, !on_line) {
  %0 = tv.reshard %z : (!on_snake) -> !on_line
  %1 = tv.add %y, %0 : (!of_b, !on_line) -> tensor<12xf32>
  %2 = tv.constrain %1 : (tensor<12xf32>) -> tensor<12xf32> to #tv.view<#snake, [did(a) * did(b) * _]>
  %3 = tv.reshard %x : (!on_line) -> !on_snake
  return %2, %3, %x, %0 : tensor<12xf32>, !on_snake, !on_line, !on_line
}

// -----

// Most on the snake.

// CHECK: #[[SNAKE2:mesh[0-9]*]] = #tv.mesh<a = 2, b = 3, devices = [0, 1, 2, 5, 4, 3]>
// CHECK-LABEL: @most_elsewhere
// CHECK-SAME: %{{.*}}: tensor<12xf32, #tv.view<#[[SNAKE2]], [did(a) * 6]>> {tv.user_view = #tv.view<#tv.mesh<a = 2, b = 3>, [did(a) * _]>}
// CHECK-SAME: %{{.*}}: tensor<12x2xf32, #tv.view<#[[SNAKE2]], [did(a) * did(b) * 2, 2]>> {tv.user_view = #tv.view<#[[SNAKE2]],
#snake2 = #tv.mesh<a = 2, b = 3, devices = [0, 1, 2, 5, 4, 3]>
#line2 = #tv.mesh<x = 6>
func.func @most_elsewhere(%x: tensor<12xf32, #tv.view<#line2, [did(x:(1)2) * _]>>,
                          %y: tensor<12x2xf32, #tv.view<#snake2, [did(a) * did(b) * _, _]>>) {
  return
}
