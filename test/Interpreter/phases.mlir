// One program, the row-parallel half of an MLP, at each phase: as the user wrote
// it, decomposed, local. All are the same function.
// RUN: split-file %s %t
// RUN: tessera-opt %t/source.mlir --interpret=2 -o /dev/null | FileCheck %s
// RUN: tessera-opt %t/decomposed.mlir --interpret=2 --interpret-local-only --interpret-against=@reference -o /dev/null | FileCheck %s --check-prefix=REF
// RUN: tessera-opt %t/local.mlir --interpret=2 --interpret-against=@reference -o /dev/null | FileCheck %s --check-prefix=REF
// RUN: tessera-opt %t/local.mlir --interpret=2 --interpret-precision=program --interpret-against=@reference -o /dev/null | FileCheck %s --check-prefix=PROGRAM
// RUN: not tessera-opt %t/source.mlir --interpret=2 --interpret-local-only -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOCAL
// RUN: not tessera-opt %t/dropped.mlir --interpret=2 --interpret-against=@reference -o /dev/null 2>&1 | FileCheck %s --check-prefix=DROPPED
// RUN: not tessera-opt %t/source.mlir --interpret=3 -o /dev/null 2>&1 | FileCheck %s --check-prefix=RANKS

// CHECK: interpret: @main equals the source on 2 ranks, largest error {{[0-9.]+e-1[5-9]|0}}
// REF: interpret: @main equals @reference on 2 ranks, largest error {{[0-9.]+e-1[5-9]|0}}
// PROGRAM: interpret: @main equals @reference on 2 ranks, largest error {{[0-9.]+e-0[789]}}
// LOCAL: error: 'tv.linear' op does not run on each device by itself: an operand that is added once must be partial along tp
// DROPPED: error: result #0 differs at [0, 0]: {{.*}} on 2 ranks, {{.*}} in @reference; an error of {{.*}} is allowed
// RANKS: error: its mesh has 2 devices; --interpret=3 gives it 3 ranks

//--- source.mlir
#m = #tv.mesh<tp = 2>
#columns = #tv.view<#m, [_, did(tp) * _]>
#whole2 = #tv.view<#m, [_, _]>
#whole1 = #tv.view<#m, [_]>
func.func @main(%x: tensor<4x7xf32, #columns>, %w: tensor<5x7xf32, #columns>,
                %b: tensor<5xf32, #whole1>) -> tensor<4x5xf32, #whole2> {
  %y = tv.linear %x, %w bias %b
     : (tensor<4x7xf32, #columns>, tensor<5x7xf32, #columns>, tensor<5xf32, #whole1>)
    -> tensor<4x5xf32, #whole2>
  return %y : tensor<4x5xf32, #whole2>
}

//--- decomposed.mlir
#m = #tv.mesh<tp = 2>
#columns = #tv.view<#m, [4, did(tp) * 4]>
#rows = #tv.view<#m, [5, did(tp) * 4]>
#whole2 = #tv.view<#m, [4, 5]>
#addends = #tv.view<#m, [4, 5], partial = [tp : sum]>
#whole1 = #tv.view<#m, [5]>
#once = #tv.view<#m, [5], partial = [tp : sum]>
func.func @main(%x: tensor<4x7xf32, #columns>, %w: tensor<5x7xf32, #rows>,
                %b: tensor<5xf32, #whole1>) -> tensor<4x5xf32, #whole2> {
  %c = tv.reshard %b : (tensor<5xf32, #whole1>) -> tensor<5xf32, #once>
  %y = tv.linear %x, %w bias %c
     : (tensor<4x7xf32, #columns>, tensor<5x7xf32, #rows>, tensor<5xf32, #once>)
    -> tensor<4x5xf32, #addends>
  %z = tv.reshard %y : (tensor<4x5xf32, #addends>) -> tensor<4x5xf32, #whole2>
  return %z : tensor<4x5xf32, #whole2>
}
func.func @reference(%x: tensor<4x7xf32>, %w: tensor<5x7xf32>, %b: tensor<5xf32>)
    -> tensor<4x5xf32> {
  %y = tv.linear %x, %w bias %b
     : (tensor<4x7xf32>, tensor<5x7xf32>, tensor<5xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

//--- local.mlir
#m = #tv.mesh<tp = 2>
#x = #tv.local<#tv.view<#m, [4, did(tp) * 4]>, of [4, 7]>
#w = #tv.local<#tv.view<#m, [5, did(tp) * 4]>, of [5, 7]>
#whole2 = #tv.local<#tv.view<#m, [4, 5]>, of [4, 5]>
#addends = #tv.local<#tv.view<#m, [4, 5], partial = [tp : sum]>, of [4, 5]>
#whole1 = #tv.local<#tv.view<#m, [5]>, of [5]>
#once = #tv.local<#tv.view<#m, [5], partial = [tp : sum]>, of [5]>
func.func private @kernel(%x: tensor<4x?xf32, #x>, %w: tensor<5x?xf32, #w>,
                          %b: tensor<5xf32, #once>) -> tensor<4x5xf32, #addends> {
  %y = tv.linear %x, %w bias %b
     : (tensor<4x?xf32, #x>, tensor<5x?xf32, #w>, tensor<5xf32, #once>)
    -> tensor<4x5xf32, #addends>
  return %y : tensor<4x5xf32, #addends>
}
func.func @main(%x: tensor<4x?xf32, #x>, %w: tensor<5x?xf32, #w>,
                %b: tensor<5xf32, #whole1>) -> tensor<4x5xf32, #whole2> {
  %c = comm.slice %b over #m [tp] id 0
     : (tensor<5xf32, #whole1>) -> tensor<5xf32, #once>
  %y = call @kernel(%x, %w, %c)
     : (tensor<4x?xf32, #x>, tensor<5x?xf32, #w>, tensor<5xf32, #once>)
    -> tensor<4x5xf32, #addends>
  %z = comm.all_reduce %y over #m [tp] id 1
     : (tensor<4x5xf32, #addends>) -> tensor<4x5xf32, #whole2>
  return %z : tensor<4x5xf32, #whole2>
}
func.func @reference(%x: tensor<4x7xf32>, %w: tensor<5x7xf32>, %b: tensor<5xf32>)
    -> tensor<4x5xf32> {
  %y = tv.linear %x, %w bias %b
     : (tensor<4x7xf32>, tensor<5x7xf32>, tensor<5xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

//--- dropped.mlir
#m = #tv.mesh<tp = 2>
#columns = #tv.view<#m, [4, did(tp) * 4]>
#rows = #tv.view<#m, [5, did(tp) * 4]>
#whole2 = #tv.view<#m, [4, 5]>
func.func @main(%x: tensor<4x7xf32, #columns>, %w: tensor<5x7xf32, #rows>,
                %b: tensor<5xf32>) -> tensor<4x5xf32, #whole2> {
  %y = tv.linear %x, %w
     : (tensor<4x7xf32, #columns>, tensor<5x7xf32, #rows>) -> tensor<4x5xf32, #whole2>
  return %y : tensor<4x5xf32, #whole2>
}
func.func @reference(%x: tensor<4x7xf32>, %w: tensor<5x7xf32>, %b: tensor<5xf32>)
    -> tensor<4x5xf32> {
  %y = tv.linear %x, %w bias %b
     : (tensor<4x7xf32>, tensor<5x7xf32>, tensor<5xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}
