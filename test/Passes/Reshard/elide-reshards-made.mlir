// What is hoisted over a transpose is made again: its dynamic extents are those of what it
// was, when a placement is looked at once more.
// RUN: tessera-opt %s --tessera=to=planned --interpret=2 -o /dev/null | FileCheck %s
// CHECK: interpret: @main equals the source on 2 ranks
#m = #tv.mesh<dp = 2>
!x = tensor<?x16xf32, #tv.view<#m, [did(dp) * _, _]>>
!xt = tensor<16x?xf32>
!h = tensor<?x24xf32, #tv.view<#m, [_, _]>>
!w0 = tensor<16x24xf32, #tv.view<#m, [_, _]>>
!w0t = tensor<24x16xf32>
!b0 = tensor<24xf32, #tv.view<#m, [_]>>
!w1 = tensor<24x16xf32>
!w1t = tensor<16x24xf32, #tv.view<#m, [(did(dp) * _ | 16) * 1, _]>>
!w2 = tensor<16x16xf32, #tv.view<#m, [_, _]>>
!b1 = tensor<16xf32, #tv.view<#m, [_]>>
func.func @main(%x: !x {tv.dims = ["s"]}, %w0: !w0 {tv.role = "weight"}, %w1t: !w1t {tv.role = "weight"},
                %w2: !w2 {tv.role = "weight"}, %dy: !x {tv.dims = ["s"]})
    -> (!x, !x, !w0, !b0, !w1t, !w2, !b1) attributes {tv.sizes = {s = 64}} {
  %u = tv.matmul %x, %w0 : (!x, !w0) -> !h
  %h = tv.gelu tanh %u : (!h) -> !h
  %w1 = tv.transpose %w1t perm [1, 0] : (!w1t) -> !w1
  %0 = tv.matmul %h, %w1 : (!h, !w1) -> !x
  %1 = tv.matmul %x, %w2 : (!x, !w2) -> !x
  %y = tv.add %0, %1 : (!x, !x) -> !x
  %dh = tv.matmul %dy, %w1t : (!x, !w1t) -> !h
  %du = tv.gelu_grad tanh %dh, %u : (!h, !h) -> !h
  %db0 = tv.reduce sum %du dims [0] : (!h) -> !b0
  %xt = tv.transpose %x perm [1, 0] : (!x) -> !xt
  %dw0 = tv.matmul %xt, %du : (!xt, !h) -> !w0
  %w0t = tv.transpose %w0 perm [1, 0] : (!w0) -> !w0t
  %2 = tv.matmul %du, %w0t : (!h, !w0t) -> !x
  %w2t = tv.transpose %w2 perm [1, 0] : (!w2) -> !w2
  %3 = tv.matmul %dy, %w2t : (!x, !w2) -> !x
  %dx = tv.add %2, %3 : (!x, !x) -> !x
  %db1 = tv.reduce sum %dy dims [0] : (!x) -> !b1
  %dw2 = tv.matmul %xt, %dy : (!xt, !x) -> !w2
  %dyt = tv.transpose %dy perm [1, 0] : (!x) -> !xt
  %dw1t = tv.matmul %dyt, %h : (!xt, !h) -> !w1t
  return %y, %dx, %dw0, %db0, %dw1t, %dw2, %db1 : !x, !x, !w0, !b0, !w1t, !w2, !b1
}
