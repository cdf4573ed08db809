// The rows of the experts' buffers are split, evenly or not, by what is written on them
// or by what joins them later: each device fills those that it holds.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=2 to=local" --interpret=2 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=3 to=local" --interpret=3 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=4 to=kernels" --interpret=4 -o /dev/null

// One row of five is on the last of three devices, none on the last of four.
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!b = tensor<3x5x8xf32, #tv.view<#m, [_, did(x) * _, _]>>
func.func @main(%t: tensor<6x8xf32>, %e: tensor<6x2xi32> {tv.range = [-1, 3]}) -> (!b, tensor<3xi32>, tensor<6x2xi32>) {
  %b, %c, %s = tv.dispatch %t, %e : (tensor<6x8xf32>, tensor<6x2xi32>) -> (!b, tensor<3xi32>, tensor<6x2xi32>)
  return %b, %c, %s : !b, tensor<3xi32>, tensor<6x2xi32>
}

// -----

// From a residual; there and back through the experts' weights.
// RAN x=1: nothing
// RAN x=2: all-reduce 192 bytes 0 copies
// RAN x=3: all-reduce 256 bytes 0 copies
// RAN x=4: all-reduce 288 bytes 0 copies
#m = #tv.mesh<x = 2>
!r = tensor<3x4x8xf32, #tv.view<#m, [_, did(x) * _, _]>>
!e = tensor<6x2xi32>
func.func @main(%t: tensor<6x8xf32>, %e: !e {tv.range = [0, 2]}, %r: !r,
    %w: tensor<3x8x8xf32>, %p: tensor<6x2xf32>) -> tensor<6x8xf32> {
  %b, %c, %s = tv.dispatch %t, %e : (tensor<6x8xf32>, !e) -> (tensor<3x4x8xf32>, tensor<3xi32>, !e)
  %a = tv.add %b, %r : (tensor<3x4x8xf32>, !r) -> tensor<3x4x8xf32>
  %g = tv.grouped_matmul %a, %w counts %c : (tensor<3x4x8xf32>, tensor<3x8x8xf32>, tensor<3xi32>) -> tensor<3x4x8xf32>
  %y = tv.combine %g, %e, %s, %p : (tensor<3x4x8xf32>, !e, !e, tensor<6x2xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

// Rows in turn; tokens of a number known at run time.
// RAN x=1: nothing
// RAN x=2: all-gather 128 bytes 0 copies
// RAN x=3: all-gather 192 bytes 0 copies
// RAN x=4: all-gather 192 bytes 0 copies
#m = #tv.mesh<x = 2>
!b = tensor<3x5x8xf32, #tv.view<#m, [_, _ * did(x), _]>>
!t = tensor<?x8xf32, #tv.view<#m, [did(x) * _, _]>>
!e = tensor<?x2xi32>
func.func @main(%t: !t {tv.dims = ["s"]}, %e: !e {tv.dims = ["s"], tv.range = [0, 3]}) -> (!b, !e)
    attributes {tv.sizes = {s = 16 : i64}} {
  %b, %c, %s = tv.dispatch %t, %e : (!t, !e) -> (!b, tensor<3xi32>, !e)
  return %b, %s : !b, !e
}
