// A split dimension that is addressed by run-time indices may be empty on some devices,
// or on all: what is read there is 0, what would be written is dropped.
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=2 --interpret-sizes=z=0 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera=to=kernels --interpret=2 --interpret-sizes=z=0 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera=to=kernels --interpret=2 --interpret-sizes=z=1 -o /dev/null

// Blocks, cyclic, and both.
#m = #tv.mesh<x = 2>
!t = tensor<?x4xf32, #tv.view<#m, [did(x) * _, _]>>
!u = tensor<?x4xf32, #tv.view<#m, [_ * did(x), _]>>
!v = tensor<?x4xf32, #tv.view<#m, [_ * did(x) * 2, _]>>
!i = tensor<7xi32>
func.func @main(%t: !t {tv.dims = ["z"]}, %u: !u {tv.dims = ["z"]}, %v: !v {tv.dims = ["z"]},
    %i: !i {tv.range = [-2, 5]}) -> (tensor<7x4xf32>, tensor<7x4xf32>, tensor<7x4xf32>)
    attributes {tv.sizes = {z = 8 : i64}} {
  %a = tv.gather %t, %i dim 0 : (!t, !i) -> tensor<7x4xf32>
  %b = tv.gather %u, %i dim 0 : (!u, !i) -> tensor<7x4xf32>
  %c = tv.gather %v, %i dim 0 : (!v, !i) -> tensor<7x4xf32>
  return %a, %b, %c : tensor<7x4xf32>, tensor<7x4xf32>, tensor<7x4xf32>
}

// -----

#m = #tv.mesh<x = 2>
!t = tensor<?x4xf32, #tv.view<#m, [did(x) * _, _]>>
!u = tensor<?x4xf32, #tv.view<#m, [_ * did(x), _]>>
!i = tensor<7xi32>
func.func @main(%t: !t {tv.dims = ["z"]}, %u: !u {tv.dims = ["z"]}, %i: !i {tv.range = [-2, 5]},
    %w: tensor<7x4xf32>) -> (!t, !u)
    attributes {tv.sizes = {z = 8 : i64}} {
  %a = tv.scatter sum %t, %i, %w dim 0 : (!t, !i, tensor<7x4xf32>) -> !t
  %b = tv.scatter max %u, %i, %w dim 0 : (!u, !i, tensor<7x4xf32>) -> !u
  return %a, %b : !t, !u
}
