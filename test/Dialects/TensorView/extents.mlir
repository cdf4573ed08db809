// Extents in terms of the function's dynamic sizes.
// RUN: tessera-opt %s --tv-print-rules="rules=false extents=true" -verify-diagnostics

#m = #tv.mesh<x = 2>
#v = #tv.view<#m, [did(x) * _, 8]>

func.func @extents(%x: tensor<?x?x12xf32> {tv.dims = ["b", "s"]}, %y: tensor<?x12xf32> {tv.dims = ["s"]},
                   %i: tensor<?x?xi32> {tv.dims = ["b", "s"]}, %l: tensor<?x8xf32, #tv.local<#v, of [3 * b, 8]>>)
    attributes {tv.sizes = {b = 64, s = [256, 8]}} {
  // expected-remark@+1 {{extents of result #0: [24, 12]}}
  %w = tv.constant dense<1.0> : tensor<24x12xf32> : () -> tensor<24x12xf32>
  // expected-remark@+1 {{extents of result #0: [b, s, 24]}}
  %0 = tv.linear %x, %w : (tensor<?x?x12xf32>, tensor<24x12xf32>) -> tensor<?x?x24xf32>
  // In order, as the operand.
  // expected-remark@+1 {{extents of result #0: [b, s, 3, 8]}}
  %1 = tv.reshape %0 : (tensor<?x?x24xf32>) -> tensor<?x?x3x8xf32>
  // One dynamic extent takes what is left.
  // expected-remark@+1 {{extents of result #0: [b * s, 24]}}
  %2 = tv.reshape %0 : (tensor<?x?x24xf32>) -> tensor<?x24xf32>
  // expected-remark@+1 {{extents of result #0: [3 * b * s, 8]}}
  %3 = tv.reshape %0 : (tensor<?x?x24xf32>) -> tensor<?x8xf32>
  // expected-remark@+1 {{extents of result #0: [b, 3, s, 8]}}
  %4 = tv.transpose %1 perm [0, 2, 1, 3] : (tensor<?x?x3x8xf32>) -> tensor<?x3x?x8xf32>
  // expected-remark@+1 {{extents of result #0: [2 * s + 24, 12]}}
  %5 = tv.concat %y, %y, %w dim 0 : (tensor<?x12xf32>, tensor<?x12xf32>, tensor<24x12xf32>) -> tensor<?x12xf32>
  // expected-remark@+1 {{extents of result #0: [s + 3, 12]}}
  %6 = tv.pad %y low [1, 0] high [2, 0] value 0.0 : f32 : (tensor<?x12xf32>) -> tensor<?x12xf32>
  // The new dimension from `like`, the others from the operand.
  // expected-remark@+1 {{extents of result #0: [b, s, 12]}}
  %7 = tv.broadcast %y dims [1, 2] like %x : (tensor<?x12xf32>, tensor<?x?x12xf32>) -> tensor<?x?x12xf32>
  // expected-remark@+1 {{extents of result #0: [2 * s + 24, 12]}}
  %8 = tv.iota 0 like %5 : (tensor<?x12xf32>) -> tensor<?x12xi32>
  // expected-remark@+1 {{extents of result #0: [b, s, 12]}}
  %9 = tv.gather %w, %i dim 0 : (tensor<24x12xf32>, tensor<?x?xi32>) -> tensor<?x?x12xf32>
  // expected-remark@+1 {{extents of result #0: []}}
  %10 = tv.size %x dim 0 : (tensor<?x?x12xf32>) -> tensor<i32>
  // expected-remark@+1 {{extents of result #0: [s, 12]}}
  %11 = tv.reduce sum %x dims [0] : (tensor<?x?x12xf32>) -> tensor<?x12xf32>
  // expected-remark@+1 {{extents of result #0: [s, 12]}}
  %12 = tv.constrain %y : (tensor<?x12xf32>) -> tensor<?x12xf32> to #tv.view<#m, [did(x) * _, _]>
  // expected-remark@+2 {{extents of result #0: [s, 12]}}
  // expected-remark@+1 {{extents of result #1: [s, 12]}}
  %14:2 = tv.same_view %y, %12 : (tensor<?x12xf32>, tensor<?x12xf32>) -> (tensor<?x12xf32>, tensor<?x12xf32>)
  // expected-remark@+1 {{extents of result #0: [s, 12]}}
  %15 = tv.barrier none %y : (tensor<?x12xf32>) -> tensor<?x12xf32>
  // expected-remark@+1 {{extents of result #0: [3 * b, 8]}}
  %13 = tv.silu %l : (tensor<?x8xf32, #tv.local<#v, of [3 * b, 8]>>) -> tensor<?x8xf32, #tv.local<#v, of [3 * b, 8]>>
  return
}
