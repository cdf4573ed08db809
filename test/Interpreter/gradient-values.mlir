// Gradients where there is no slope, by their numbers: ties share evenly, what is not
// taken and what lies outside has 0.
// RUN: tessera-opt %s --tv-differentiate --interpret=1 --interpret-against=none --interpret-print -o /dev/null | FileCheck %s
// By differences, of what is smooth; both evaluate the whole program.
// RUN: tessera-opt %s --tv-differentiate --interpret=1 --interpret-entry=smooth -o /dev/null | FileCheck %s --check-prefix=SMOOTH
// RUN: not tessera-opt %s --interpret=1 --interpret-entry=large -o /dev/null 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not tessera-opt %s --tv-differentiate --interpret=1 --interpret-entry=smooth --interpret-precision=program -o /dev/null 2>&1 | FileCheck %s --check-prefix=PRECISION
// SMOOTH: interpret: @smooth equals the source on 1 ranks, largest error {{[0-9.]+}}e-1
// LARGE: error: 'tv.gradient' op asks for 1025 derivatives; the interpreter takes 1024 differences at most; give it what tv-differentiate makes of it
// PRECISION: error: the source has tv.gradient, which the interpreter has by differences: nothing to compare results of f64 with, or of --interpret-precision=program; give it what tv-differentiate makes of it

!v = tensor<4xf32>
!m = tensor<2x3xf32>
!s = tensor<f32>
func.func private @ties(%a: !v, %b: !v, %m: !m, %i: tensor<4xi32>) -> (!v, tensor<2xf32>, !v) {
  %0 = tv.max %a, %b : (!v, !v) -> !v
  %1 = tv.reduce max %m dims [1] : (!m) -> tensor<2xf32>
  // At 0 two updates and the start are 2, at 1 both are 1; one index is outside.
  %2 = tv.scatter max %a, %i, %b dim 0 : (!v, tensor<4xi32>, !v) -> !v
  return %0, %1, %2 : !v, tensor<2xf32>, !v
}
func.func private @guards(%x: !v, %z: !v) -> !v {
  %positive = tv.compare gt %x, %z : (!v, !v) -> tensor<4xi1>
  %r = tv.map %x, %positive : (!v, tensor<4xi1>) -> !v (%a: f32, %c: i1) {
    %zero = arith.constant 0.0 : f32
    %root = math.sqrt %a : f32
    %log = math.log %root : f32
    %y = arith.select %c, %log, %zero : f32
    tv.yield %y : f32
  }
  return %r : !v
}
// CHECK: result #0: [0.5, 0, 1, 0.5]
// CHECK: result #1: [0.5, 1, 0, 0.5]
// CHECK: result #2: {{\[}}[0.5, 0, 0.5], [0.333333333, 0.333333333, 0.333333333]]
// CHECK: result #3: [0.333333333, 0.5, 1, 1]
// CHECK: result #4: [0.333333333, 0.5, 0, 0.333333333]
// CHECK: result #5: [0, 0.125, 0, 0.5]
func.func @main() -> (!v, !v, !m, !v, !v, !v) {
  %a = tv.constant dense<[2.0, 1.0, 3.0, 4.0]> : !v : () -> !v
  %b = tv.constant dense<[2.0, 5.0, 1.0, 4.0]> : !v : () -> !v
  %c = tv.constant dense<[2.0, 1.0, 3.0, 2.0]> : !v : () -> !v
  %m = tv.constant dense<[[7.0, 1.0, 7.0], [2.0, 2.0, 2.0]]> : !m : () -> !m
  %i = tv.constant dense<[0, 1, 9, 0]> : tensor<4xi32> : () -> tensor<4xi32>
  %ones = tv.constant dense<1.0> : !v : () -> !v
  %ones2 = tv.constant dense<1.0> : tensor<2xf32> : () -> tensor<2xf32>
  %0:6 = tv.gradient @ties(%a, %b, %m, %i) of [0, 1] with (%ones, %ones2) to [0, 1, 2]
      : (!v, !v, !m, tensor<4xi32>, !v, tensor<2xf32>) -> (!v, tensor<2xf32>, !v, !v, !v, !m)
  %1:5 = tv.gradient @ties(%a, %c, %m, %i) of [2] with (%ones) to [0, 1]
      : (!v, !v, !m, tensor<4xi32>, !v) -> (!v, tensor<2xf32>, !v, !v, !v)
  %x = tv.constant dense<[0.0, 4.0, -1.0, 1.0]> : !v : () -> !v
  %z = tv.constant dense<0.0> : !v : () -> !v
  %2:2 = tv.gradient @guards(%x, %z) of [0] with (%ones) to [0] : (!v, !v, !v) -> (!v, !v)
  return %0#3, %0#4, %0#5, %1#3, %1#4, %2#1 : !v, !v, !m, !v, !v, !v
}

func.func private @f(%x: !v) -> !s {
  %0 = tv.softmax %x dim 0 : (!v) -> !v
  %1 = tv.mul %0, %x : (!v, !v) -> !v
  %2 = tv.reduce sum %1 dims [0] : (!v) -> !s
  return %2 : !s
}
func.func @smooth(%x: !v) -> (!s, !v) {
  %0, %1 = tv.gradient @f(%x) of [0] to [0] : (!v) -> (!s, !v)
  return %0, %1 : !s, !v
}

func.func private @g(%x: tensor<1025xf32>) -> tensor<1025xf32> {
  return %x : tensor<1025xf32>
}
func.func @large(%x: tensor<1025xf32>) -> tensor<1025xf32> {
  %0, %1 = tv.gradient @g(%x) of [0] with (%x) to [0]
      : (tensor<1025xf32>, tensor<1025xf32>) -> (tensor<1025xf32>, tensor<1025xf32>)
  return %1 : tensor<1025xf32>
}
