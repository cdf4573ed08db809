// A decomposition computes what the interpreter says of the composite: in
// float64, and with each value rounded to its type.
// RUN: split-file %s %t
// RUN: tessera-opt %t/f32.mlir --tv-decompose-composites=all --interpret=1 -o /dev/null | FileCheck %s
// RUN: tessera-opt %t/f32.mlir --tv-decompose-composites=all --interpret=1 --interpret-precision=program -o /dev/null | FileCheck %s
// RUN: tessera-opt %t/bf16.mlir --tv-decompose-composites=all --interpret=1 --interpret-precision=program -o /dev/null | FileCheck %s
// RUN: tessera-opt %t/dynamic.mlir --tv-decompose-composites=all --interpret=1 --interpret-sizes=b=3,s=6 -o /dev/null | FileCheck %s
// RUN: tessera-opt %t/split.mlir --tv-decompose-composites --interpret=3 -o /dev/null | FileCheck %s
// RUN: tessera-opt %t/local.mlir --tv-decompose-composites=all --interpret=3 -o /dev/null | FileCheck %s
// CHECK: interpret: @main equals the source

//--- f32.mlir
func.func @main(%x: tensor<5x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>)
    -> (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>,
        tensor<5x8xf32>, tensor<5xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>,
        tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>,
        tensor<5x3xf32>, tensor<5x3xi64>, tensor<5x8xf32>) {
  %0 = tv.softmax %x dim 0 : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %1 = tv.softmax %x dim 1 : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %2 = tv.layer_norm %x, %w, %b epsilon(1.0e-5) : (tensor<5x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  %3 = tv.rms_norm %x, %w epsilon(1.0e-5) : (tensor<5x8xf32>, tensor<8xf32>) -> tensor<5x8xf32>
  %4 = tv.rope %x base(10000.0) : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %5 = tv.dropout %x rate(0.3) seed(1) stream(2) : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %l = tv.iota 0 : () -> tensor<5xi32>
  %6 = tv.cross_entropy %x, %l : (tensor<5x8xf32>, tensor<5xi32>) -> tensor<5xf32>
  %7 = tv.gelu %x : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %8 = tv.gelu tanh %x : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %9 = tv.silu %x : (tensor<5x8xf32>) -> tensor<5x8xf32>
  %10 = tv.mul %x, %9 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %11 = tv.add %x, %10 : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %12 = tv.gelu_grad %11, %x : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %13 = tv.gelu_grad tanh %11, %x : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %c = tv.constant dense<0.5> : tensor<f32> : () -> tensor<f32>
  %t = tv.constant dense<3> : tensor<i64> : () -> tensor<i64>
  %square = tv.mul %x, %x : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  %14:3 = tv.adamw %x, %11, %square, %10 scale %c rate %c step %t betas(0.9, 0.95) epsilon(1.0e-8) decay(0.1)
    : (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<f32>, tensor<f32>, tensor<i64>) -> (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>)
  // Of equal elements, too.
  %halves = tv.map %x : (tensor<5x8xf32>) -> tensor<5x8xf32> (%e: f32) {
    %r = math.floor %e : f32
    tv.yield %r : f32
  }
  %15:2 = tv.top_k %halves dim 1 : (tensor<5x8xf32>) -> (tensor<5x3xf32>, tensor<5x3xi64>)
  %16 = tv.rope %x at %l base(10000.0) : (tensor<5x8xf32>, tensor<5xi32>) -> tensor<5x8xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %11, %12, %13, %14#0, %14#1, %14#2, %15#0, %15#1, %16
    : tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>,
      tensor<5x8xf32>, tensor<5xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>,
      tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>,
      tensor<5x3xf32>, tensor<5x3xi64>, tensor<5x8xf32>
}

//--- bf16.mlir
func.func @main(%x: tensor<5x64xbf16>, %w: tensor<64xbf16>, %b: tensor<64xbf16>)
    -> (tensor<5x64xbf16>, tensor<5x64xbf16>, tensor<5x64xbf16>, tensor<5xbf16>) {
  %0 = tv.softmax %x dim 1 : (tensor<5x64xbf16>) -> tensor<5x64xbf16>
  %1 = tv.layer_norm %x, %w, %b epsilon(1.0e-5) : (tensor<5x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<5x64xbf16>
  %2 = tv.rms_norm %x, %w epsilon(1.0e-5) : (tensor<5x64xbf16>, tensor<64xbf16>) -> tensor<5x64xbf16>
  %l = tv.iota 0 : () -> tensor<5xi32>
  %3 = tv.cross_entropy %x, %l : (tensor<5x64xbf16>, tensor<5xi32>) -> tensor<5xbf16>
  return %0, %1, %2, %3 : tensor<5x64xbf16>, tensor<5x64xbf16>, tensor<5x64xbf16>, tensor<5xbf16>
}

//--- dynamic.mlir
func.func @main(%x: tensor<?x?x4xf32> {tv.dims = ["b", "s"]}, %n: tensor<?x?xf32> {tv.dims = ["b", "s"]},
                %w: tensor<?xf32> {tv.dims = ["s"]})
    -> (tensor<?x?x4xf32>, tensor<?x?x4xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?x2xi32>)
    attributes {tv.sizes = {b = 8, s = 16}} {
  %0 = tv.softmax %x dim 1 : (tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %1 = tv.rope %x base(100.0) : (tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
  %2 = tv.layer_norm %n, %w, %w epsilon(1.0e-5) : (tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32>) -> tensor<?x?xf32>
  %3 = tv.rms_norm %n, %w epsilon(1.0e-5) : (tensor<?x?xf32>, tensor<?xf32>) -> tensor<?x?xf32>
  %4 = tv.dropout %n rate(0.5) seed(3) stream(0) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  %5:2 = tv.top_k %x dim 2 : (tensor<?x?x4xf32>) -> (tensor<?x?x2xf32>, tensor<?x?x2xi32>)
  return %0, %1, %2, %3, %4, %5#1 : tensor<?x?x4xf32>, tensor<?x?x4xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>, tensor<?x?x2xi32>
}

//--- split.mlir
#m = #tv.mesh<x = 3>
#v = #tv.view<#m, [_, did(x) * _]>
#k = #tv.view<#m, [did(x) * _]>
func.func @main(%x: tensor<5x8xf32, #v>, %w: tensor<8xf32, #k>) -> (tensor<5x8xf32, #v>, tensor<5x8xf32, #v>) {
  %0 = tv.softmax %x dim 1 : (tensor<5x8xf32, #v>) -> tensor<5x8xf32, #v>
  %1 = tv.rms_norm %x, %w epsilon(1.0e-5) : (tensor<5x8xf32, #v>, tensor<8xf32, #k>) -> tensor<5x8xf32, #v>
  return %0, %1 : tensor<5x8xf32, #v>, tensor<5x8xf32, #v>
}

//--- local.mlir
#m = #tv.mesh<x = 3>
#v = #tv.view<#m, [did(x) * 2, 8]>
#w = #tv.view<#m, [8]>
#l = #tv.local<#v, of [5, 8]>
#k = #tv.local<#w, of [8]>
#top = #tv.view<#m, [did(x) * 2, 2]>
#t = #tv.local<#top, of [5, 2]>
func.func @main(%x: tensor<?x8xf32, #l>, %w: tensor<8xf32, #k>)
    -> (tensor<?x8xf32, #l>, tensor<?x8xf32, #l>, tensor<?x8xf32, #l>, tensor<?x8xf32, #l>, tensor<?x2xf32, #t>, tensor<?x2xi32, #t>) {
  %0 = tv.softmax %x dim 1 : (tensor<?x8xf32, #l>) -> tensor<?x8xf32, #l>
  %1 = tv.layer_norm %x, %w, %w epsilon(1.0e-5) : (tensor<?x8xf32, #l>, tensor<8xf32, #k>, tensor<8xf32, #k>) -> tensor<?x8xf32, #l>
  %2 = tv.rope %x base(10000.0) : (tensor<?x8xf32, #l>) -> tensor<?x8xf32, #l>
  %3 = tv.dropout %x rate(0.5) seed(3) stream(0) : (tensor<?x8xf32, #l>) -> tensor<?x8xf32, #l>
  %4:2 = tv.top_k %x dim 1 : (tensor<?x8xf32, #l>) -> (tensor<?x2xf32, #t>, tensor<?x2xi32, #t>)
  return %0, %1, %2, %3, %4#0, %4#1 : tensor<?x8xf32, #l>, tensor<?x8xf32, #l>, tensor<?x8xf32, #l>, tensor<?x8xf32, #l>, tensor<?x2xf32, #t>, tensor<?x2xi32, #t>
}
