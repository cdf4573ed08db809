// tv.cast from each element type to each: all that has a sign below 0, 8 bits wrap, i1
// is whether a number is not 0.
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=2 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera=to=kernels --interpret=2 -o /dev/null

#m = #tv.mesh<dp = 1, tp = 2>
!x = tensor<3x7xf64, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x) -> (
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>) {
  %0 = tv.cast %x : (!x) -> tensor<3x7xf64>
  %1 = tv.cast %x : (!x) -> tensor<3x7xf32>
  %2 = tv.cast %x : (!x) -> tensor<3x7xbf16>
  %3 = tv.cast %x : (!x) -> tensor<3x7xf16>
  %4 = tv.cast %x : (!x) -> tensor<3x7xi64>
  %5 = tv.cast %x : (!x) -> tensor<3x7xi32>
  %6 = tv.cast %x : (!x) -> tensor<3x7xui32>
  %7 = tv.cast %x : (!x) -> tensor<3x7xi8>
  %8 = tv.cast %x : (!x) -> tensor<3x7xui8>
  %9 = tv.cast %x : (!x) -> tensor<3x7xi1>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 :
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>
}

// -----

#m = #tv.mesh<dp = 1, tp = 2>
!x = tensor<3x7xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x) -> (
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>) {
  %0 = tv.cast %x : (!x) -> tensor<3x7xf64>
  %1 = tv.cast %x : (!x) -> tensor<3x7xf32>
  %2 = tv.cast %x : (!x) -> tensor<3x7xbf16>
  %3 = tv.cast %x : (!x) -> tensor<3x7xf16>
  %4 = tv.cast %x : (!x) -> tensor<3x7xi64>
  %5 = tv.cast %x : (!x) -> tensor<3x7xi32>
  %6 = tv.cast %x : (!x) -> tensor<3x7xui32>
  %7 = tv.cast %x : (!x) -> tensor<3x7xi8>
  %8 = tv.cast %x : (!x) -> tensor<3x7xui8>
  %9 = tv.cast %x : (!x) -> tensor<3x7xi1>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 :
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>
}

// -----

#m = #tv.mesh<dp = 1, tp = 2>
!x = tensor<3x7xbf16, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x) -> (
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>) {
  %0 = tv.cast %x : (!x) -> tensor<3x7xf64>
  %1 = tv.cast %x : (!x) -> tensor<3x7xf32>
  %2 = tv.cast %x : (!x) -> tensor<3x7xbf16>
  %3 = tv.cast %x : (!x) -> tensor<3x7xf16>
  %4 = tv.cast %x : (!x) -> tensor<3x7xi64>
  %5 = tv.cast %x : (!x) -> tensor<3x7xi32>
  %6 = tv.cast %x : (!x) -> tensor<3x7xui32>
  %7 = tv.cast %x : (!x) -> tensor<3x7xi8>
  %8 = tv.cast %x : (!x) -> tensor<3x7xui8>
  %9 = tv.cast %x : (!x) -> tensor<3x7xi1>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 :
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>
}

// -----

#m = #tv.mesh<dp = 1, tp = 2>
!x = tensor<3x7xf16, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x) -> (
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>) {
  %0 = tv.cast %x : (!x) -> tensor<3x7xf64>
  %1 = tv.cast %x : (!x) -> tensor<3x7xf32>
  %2 = tv.cast %x : (!x) -> tensor<3x7xbf16>
  %3 = tv.cast %x : (!x) -> tensor<3x7xf16>
  %4 = tv.cast %x : (!x) -> tensor<3x7xi64>
  %5 = tv.cast %x : (!x) -> tensor<3x7xi32>
  %6 = tv.cast %x : (!x) -> tensor<3x7xui32>
  %7 = tv.cast %x : (!x) -> tensor<3x7xi8>
  %8 = tv.cast %x : (!x) -> tensor<3x7xui8>
  %9 = tv.cast %x : (!x) -> tensor<3x7xi1>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 :
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>
}

// -----

#m = #tv.mesh<dp = 1, tp = 2>
!x = tensor<3x7xi64, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x {tv.range = [-200, 200]}) -> (
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>) {
  %0 = tv.cast %x : (!x) -> tensor<3x7xf64>
  %1 = tv.cast %x : (!x) -> tensor<3x7xf32>
  %2 = tv.cast %x : (!x) -> tensor<3x7xbf16>
  %3 = tv.cast %x : (!x) -> tensor<3x7xf16>
  %4 = tv.cast %x : (!x) -> tensor<3x7xi64>
  %5 = tv.cast %x : (!x) -> tensor<3x7xi32>
  %6 = tv.cast %x : (!x) -> tensor<3x7xui32>
  %7 = tv.cast %x : (!x) -> tensor<3x7xi8>
  %8 = tv.cast %x : (!x) -> tensor<3x7xui8>
  %9 = tv.cast %x : (!x) -> tensor<3x7xi1>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 :
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>
}

// -----

#m = #tv.mesh<dp = 1, tp = 2>
!x = tensor<3x7xi32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x {tv.range = [-200, 200]}) -> (
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>) {
  %0 = tv.cast %x : (!x) -> tensor<3x7xf64>
  %1 = tv.cast %x : (!x) -> tensor<3x7xf32>
  %2 = tv.cast %x : (!x) -> tensor<3x7xbf16>
  %3 = tv.cast %x : (!x) -> tensor<3x7xf16>
  %4 = tv.cast %x : (!x) -> tensor<3x7xi64>
  %5 = tv.cast %x : (!x) -> tensor<3x7xi32>
  %6 = tv.cast %x : (!x) -> tensor<3x7xui32>
  %7 = tv.cast %x : (!x) -> tensor<3x7xi8>
  %8 = tv.cast %x : (!x) -> tensor<3x7xui8>
  %9 = tv.cast %x : (!x) -> tensor<3x7xi1>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 :
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>
}

// -----

#m = #tv.mesh<dp = 1, tp = 2>
!x = tensor<3x7xui32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x {tv.range = [0, 200]}) -> (
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>) {
  %0 = tv.cast %x : (!x) -> tensor<3x7xf64>
  %1 = tv.cast %x : (!x) -> tensor<3x7xf32>
  %2 = tv.cast %x : (!x) -> tensor<3x7xbf16>
  %3 = tv.cast %x : (!x) -> tensor<3x7xf16>
  %4 = tv.cast %x : (!x) -> tensor<3x7xi64>
  %5 = tv.cast %x : (!x) -> tensor<3x7xi32>
  %6 = tv.cast %x : (!x) -> tensor<3x7xui32>
  %7 = tv.cast %x : (!x) -> tensor<3x7xi8>
  %8 = tv.cast %x : (!x) -> tensor<3x7xui8>
  %9 = tv.cast %x : (!x) -> tensor<3x7xi1>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 :
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>
}

// -----

#m = #tv.mesh<dp = 1, tp = 2>
!x = tensor<3x7xi8, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x {tv.range = [-100, 100]}) -> (
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>) {
  %0 = tv.cast %x : (!x) -> tensor<3x7xf64>
  %1 = tv.cast %x : (!x) -> tensor<3x7xf32>
  %2 = tv.cast %x : (!x) -> tensor<3x7xbf16>
  %3 = tv.cast %x : (!x) -> tensor<3x7xf16>
  %4 = tv.cast %x : (!x) -> tensor<3x7xi64>
  %5 = tv.cast %x : (!x) -> tensor<3x7xi32>
  %6 = tv.cast %x : (!x) -> tensor<3x7xui32>
  %7 = tv.cast %x : (!x) -> tensor<3x7xi8>
  %8 = tv.cast %x : (!x) -> tensor<3x7xui8>
  %9 = tv.cast %x : (!x) -> tensor<3x7xi1>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 :
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>
}

// -----

#m = #tv.mesh<dp = 1, tp = 2>
!x = tensor<3x7xui8, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x {tv.range = [0, 200]}) -> (
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>) {
  %0 = tv.cast %x : (!x) -> tensor<3x7xf64>
  %1 = tv.cast %x : (!x) -> tensor<3x7xf32>
  %2 = tv.cast %x : (!x) -> tensor<3x7xbf16>
  %3 = tv.cast %x : (!x) -> tensor<3x7xf16>
  %4 = tv.cast %x : (!x) -> tensor<3x7xi64>
  %5 = tv.cast %x : (!x) -> tensor<3x7xi32>
  %6 = tv.cast %x : (!x) -> tensor<3x7xui32>
  %7 = tv.cast %x : (!x) -> tensor<3x7xi8>
  %8 = tv.cast %x : (!x) -> tensor<3x7xui8>
  %9 = tv.cast %x : (!x) -> tensor<3x7xi1>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 :
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>
}

// -----

#m = #tv.mesh<dp = 1, tp = 2>
!x = tensor<3x7xi1, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x {tv.range = [0, 1]}) -> (
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>) {
  %0 = tv.cast %x : (!x) -> tensor<3x7xf64>
  %1 = tv.cast %x : (!x) -> tensor<3x7xf32>
  %2 = tv.cast %x : (!x) -> tensor<3x7xbf16>
  %3 = tv.cast %x : (!x) -> tensor<3x7xf16>
  %4 = tv.cast %x : (!x) -> tensor<3x7xi64>
  %5 = tv.cast %x : (!x) -> tensor<3x7xi32>
  %6 = tv.cast %x : (!x) -> tensor<3x7xui32>
  %7 = tv.cast %x : (!x) -> tensor<3x7xi8>
  %8 = tv.cast %x : (!x) -> tensor<3x7xui8>
  %9 = tv.cast %x : (!x) -> tensor<3x7xi1>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 :
    tensor<3x7xf64>, tensor<3x7xf32>, tensor<3x7xbf16>, tensor<3x7xf16>, tensor<3x7xi64>,
    tensor<3x7xi32>, tensor<3x7xui32>, tensor<3x7xi8>, tensor<3x7xui8>, tensor<3x7xi1>
}
