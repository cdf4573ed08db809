// Reshapes that merge a static dimension with a dynamic one, and cut it off again.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=2 to=local" --interpret=2 --interpret-sizes=s=7 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=3 to=local" --interpret=3 --interpret-sizes=s=1 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=4 to=kernels" --interpret=4 --interpret-sizes=s=5 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=2 to=local" | FileCheck %s %no_other_collective

// What is inside of the `?` is split.
// CHECK-LABEL: @main
// CHECK: tv.gelu
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!a = tensor<2x?x4xf32, #tv.view<#m, [_, _, did(x) * _]>>
func.func @main(%a: !a {tv.dims = ["s"]}) -> tensor<?x4xf32>
    attributes {tv.sizes = {s = 16 : i64}} {
  %r = tv.reshape %a : (!a) -> tensor<?x4xf32>
  %g = tv.gelu %r : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %g : tensor<?x4xf32>
}

// -----

// What is outside of it, there and back: shares that are uneven stay so.
// CHECK-LABEL: @main
// CHECK: tv.gelu
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!a = tensor<3x?x4xf32, #tv.view<#m, [did(x) * _, _, _]>>
func.func @main(%a: !a {tv.dims = ["s"]}) -> tensor<3x?x2x2xf32>
    attributes {tv.sizes = {s = 16 : i64}} {
  %r = tv.reshape %a : (!a) -> tensor<?x4xf32>
  %g = tv.gelu %r : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %b = tv.reshape %g : (tensor<?x4xf32>) -> tensor<3x?x2x2xf32>
  return %b : tensor<3x?x2x2xf32>
}

// -----

// A split of the `?` itself moves away first.
// CHECK-LABEL: @main
// CHECK: comm.all_gather
// CHECK: tv.gelu
// RAN x=1: nothing
// RAN x=2: all-gather 128 bytes 1 copies
// RAN x=3: all-gather 192 bytes 1 copies
// RAN x=4: all-gather 192 bytes 1 copies
#m = #tv.mesh<x = 2>
!a = tensor<2x?x4xf32, #tv.view<#m, [_, did(x) * _, _]>>
func.func @main(%a: !a {tv.dims = ["s"]}) -> tensor<?x4xf32>
    attributes {tv.sizes = {s = 16 : i64}} {
  %r = tv.reshape %a : (!a) -> tensor<?x4xf32>
  %g = tv.gelu %r : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return %g : tensor<?x4xf32>
}

// -----

// A split that crosses the `?`.
// CHECK-LABEL: @main
// CHECK: comm.all_gather
// CHECK: tv.gelu
// RAN x=1: nothing
// RAN x=2: all-gather 168 bytes 1 copies
// RAN x=3: all-gather 224 bytes 1 copies
// RAN x=4: all-gather 336 bytes 1 copies
#m = #tv.mesh<x = 2>
!a = tensor<2x?x6xf32, #tv.view<#m, [_, _, did(x) * _]>>
func.func @main(%a: !a {tv.dims = ["s"]}) -> tensor<3x?x4xf32>
    attributes {tv.sizes = {s = 16 : i64}} {
  %r = tv.reshape %a : (!a) -> tensor<3x?x4xf32>
  %g = tv.gelu %r : (tensor<3x?x4xf32>) -> tensor<3x?x4xf32>
  return %g : tensor<3x?x4xf32>
}
