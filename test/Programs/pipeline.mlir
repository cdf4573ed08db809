// Two stages on two groups of devices, two batches: what lies on a stage has that stage's
// place of the axis pp alone. A permute sends each batch on, and its gradient back; a
// weight's gradient is where the weight is, and the loss is known to all.
// RUN: tessera-opt %s --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --tessera=to=local --interpret=4 | FileCheck %s
// RUN: tessera-opt %t --tessera=to=kernels --interpret=4 -o /dev/null

// CHECK-COUNT-2: comm.permute {{.*}} [pp]
// CHECK: comm.all_reduce {{.*}} [pp]
// CHECK-NOT: comm.all_gather
// RAN here: all-reduce 512 bytes 0 copies, permute 512 bytes 0 copies, all-reduce 512 bytes 0 copies, all-reduce 512 bytes 0 copies, permute 512 bytes 0 copies, all-reduce 512 bytes 0 copies, all-reduce 4 bytes 0 copies, reduce-scatter 256 bytes 0 copies, exchange 512 bytes 0 copies, reduce-scatter 256 bytes 0 copies, exchange 512 bytes 0 copies
#m = #tv.mesh<tp = 2, pp = 2>
!x = tensor<1x8x16xf32>
!h = tensor<1x8x64xf32>
!up = tensor<1x16x64xf32>
!down = tensor<1x64x16xf32>
#first = #tv.view<#m, [(did(pp) * 1 | 0:1), _, _]>
#second = #tv.view<#m, [(did(pp) * 1 | 1:2), _, _]>
#up_first = #tv.view<#m, [(did(pp) * 1 | 0:1), _, did(tp) * _]>
#up_second = #tv.view<#m, [(did(pp) * 1 | 1:2), _, did(tp) * _]>
#down_first = #tv.view<#m, [(did(pp) * 1 | 0:1), did(tp) * _, _]>
#down_second = #tv.view<#m, [(did(pp) * 1 | 1:2), did(tp) * _, _]>
func.func private @layer(%x: !x, %up: !up, %down: !down) -> !x {
  %0 = tv.matmul %x, %up : (!x, !up) -> !h
  %1 = tv.gelu tanh %0 : (!h) -> !h
  %2 = tv.matmul %1, %down : (!h, !down) -> !x
  %3 = tv.add %x, %2 : (!x, !x) -> !x
  return %3 : !x
}
func.func private @stages(%x: !x, %up0: !up, %down0: !down, %up1: !up, %down1: !down) -> tensor<f32> {
  %0 = call @layer(%x, %up0, %down0) : (!x, !up, !down) -> !x
  %1 = tv.constrain %0 : (!x) -> !x to #second
  %2 = call @layer(%1, %up1, %down1) : (!x, !up, !down) -> !x
  %3 = tv.tanh %2 : (!x) -> !x
  %4 = tv.mul %3, %3 : (!x, !x) -> !x
  %5 = tv.reduce sum %4 dims [0, 1, 2] : (!x) -> tensor<f32>
  return %5 : tensor<f32>
}
func.func private @loss(%a: !x, %b: !x, %up0: !up, %down0: !down, %up1: !up, %down1: !down)
    -> tensor<f32> {
  %0 = call @stages(%a, %up0, %down0, %up1, %down1) : (!x, !up, !down, !up, !down) -> tensor<f32>
  %1 = call @stages(%b, %up0, %down0, %up1, %down1) : (!x, !up, !down, !up, !down) -> tensor<f32>
  %2 = tv.add %0, %1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}
func.func @main(%a: !x {tv.user_view = #first}, %b: !x {tv.user_view = #first},
                %up0: !up {tv.user_view = #up_first, tv.role = "weight"},
                %down0: !down {tv.user_view = #down_first, tv.role = "weight"},
                %up1: !up {tv.user_view = #up_second, tv.role = "weight"},
                %down1: !down {tv.user_view = #down_second, tv.role = "weight"})
    -> (tensor<f32>, !up, !down, !up, !down) {
  %r:5 = tv.gradient @loss(%a, %b, %up0, %down0, %up1, %down1) of [0] to [2, 3, 4, 5]
      : (!x, !x, !up, !down, !up, !down) -> (tensor<f32>, !up, !down, !up, !down)
  return %r#0, %r#1, %r#2, %r#3, %r#4 : tensor<f32>, !up, !down, !up, !down
}
