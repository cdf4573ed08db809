// Slice, pad and concat of parts: the result lies where the operand's elements
// are, and what each device gets is computed with global indices.
// RUN: tessera-opt %s --interpret=2 -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --interpret=2 --interpret-entry=values --interpret-against=none --interpret-print=shards -o /dev/null | FileCheck %s --check-prefix=SHARDS

#m = #tv.mesh<x = 2>
#four = #tv.local<#tv.view<#m, [did(x) * 2]>, of [4]>
#cut = #tv.local<#tv.view<#m, [(did(x) * 2 | 1 : 4)]>, of [3]>
#pair = #tv.local<#tv.view<#m, [2, did(x) * 2]>, of [2, 4]>
#rows = #tv.local<#tv.view<#m, [3, did(x) * 2]>, of [3, 4]>
#framed = #tv.local<#tv.view<#m, [4, did(x) * 2]>, of [4, 4]>

// CHECK: interpret: @main equals the source on 2 ranks, largest error 0
func.func @main(%x: tensor<2xf32, #four>, %y: tensor<2x2xf32, #pair>,
                %z: tensor<3x2xf32, #rows>)
    -> (tensor<?xf32, #cut>, tensor<4x2xf32, #framed>, tensor<2x2xf32, #pair>) {
  %s = tv.slice %x offsets [1] : (tensor<2xf32, #four>) -> tensor<?xf32, #cut>
  %p = tv.pad %y low [1, 0] high [1, 0] value 7.0 : f32
     : (tensor<2x2xf32, #pair>) -> tensor<4x2xf32, #framed>
  %t = tv.slice %z offsets [1, 0] : (tensor<3x2xf32, #rows>) -> tensor<2x2xf32, #pair>
  return %s, %p, %t : tensor<?xf32, #cut>, tensor<4x2xf32, #framed>, tensor<2x2xf32, #pair>
}

// SHARDS: result #0 on rank 0: [1]
// SHARDS: result #0 on rank 1: [2, 3]
// SHARDS: result #1 on rank 0: {{\[\[}}7, 7], [0, 1], [0, 1], [7, 7]]
// SHARDS: result #1 on rank 1: {{\[\[}}7, 7], [2, 3], [2, 3], [7, 7]]
func.func @values() -> (tensor<?xi32, #cut>, tensor<4x2xi32, #framed>) {
  %x = tv.iota 0 : () -> tensor<2xi32, #four>
  %s = tv.slice %x offsets [1] : (tensor<2xi32, #four>) -> tensor<?xi32, #cut>
  %y = tv.iota 1 : () -> tensor<2x2xi32, #pair>
  %p = tv.pad %y low [1, 0] high [1, 0] value 7 : i32
     : (tensor<2x2xi32, #pair>) -> tensor<4x2xi32, #framed>
  return %s, %p : tensor<?xi32, #cut>, tensor<4x2xi32, #framed>
}
