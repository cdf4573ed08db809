// Tiles that are data, and say what is beyond the positions: those are in no sequence.
// RUN: tessera-opt %s --interpret=1 --interpret-print -o /dev/null | FileCheck %s

// CHECK{LITERAL}: result #0: [[[[0, 0], [0, 0], [0, 0], [0, 0]]]]
// CHECK{LITERAL}: result #1: [[[[0, 0], [0, 0], [0, 0], [0, 0]]]]
!q = tensor<1x1x4x2xf32>
!l = tensor<1x1x4xf32>
!t = tensor<1x16xi32>
func.func @main(%q: !q, %beyond: !t {tv.range = [1000000, 1000001]},
                %before: !t {tv.range = [-2147483648, -2147483647]}) -> (!q, !q) {
  %a, %l = tv.attention %q, %q, %q scale(1.0) tiles(%beyond) : (!q, !q, !q, !t) -> (!q, !l)
  %b, %m = tv.attention %q, %q, %q scale(1.0) tiles(%before) : (!q, !q, !q, !t) -> (!q, !l)
  return %a, %b : !q, !q
}
