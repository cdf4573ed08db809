// A view beside the types, of an argument and of a result, gives the program that views
// in the types give.
// RUN: tessera-opt %s --tessera=to=local -o %t.beside
// RUN: sed 's/, tv.user_view = [^}]*//; s/^!\([xw]\) = \(.*\)>$/!\1 = \2, #tv.view<#m, [did(tp) * _, _]>>/' %s > %t.mlir
// RUN: FileCheck %s --check-prefix=TYPES < %t.mlir
// RUN: tessera-opt %t.mlir --tessera=to=local | sed 's/, tv.user_view = #tv.view<[^>]*>//; s/ {tv.user_view = [[][^]]*[]]>[]]}//' > %t.types
// RUN: sed 's/, tv.user_view = #tv.view<[^>]*>//' %t.beside | diff - %t.types
// TYPES: !w = tensor<16x4xf32, #tv.view<#m, [did(tp) * _, _]>>
#m = #tv.mesh<tp = 2>
!x = tensor<8x4xf32>
!w = tensor<16x4xf32>
!y = tensor<8x16xf32>
func.func @main(%x: !x {tv.name = "x", tv.user_view = #tv.view<#m, [did(tp) * _, _]>}, %w: !w {tv.name = "w", tv.user_view = #tv.view<#m, [did(tp) * _, _]>}) -> (!y {tv.name = "y"}) {
  %0 = tv.linear %x, %w : (!x, !w) -> !y
  return %0 : !y
}
