// RUN: tessera-opt --tv-decompose-reshardings --split-input-file --verify-diagnostics %s

// Without tv-bind, views are not in canonical form.

#m = #tv.mesh<x = 2>
#a = #tv.view<#m, [(did(x) * _ | 3) * 1, _]>
#b = #tv.view<#m, [3 * did(x) * 5]>
// expected-error @+1 {{has another view than its canonical one, [did(x) * 2, 10]}}
func.func @not_bound(%a: tensor<3x10xf32, #a>) -> tensor<30xf32, #b> {
  %0 = tv.reshape %a : (tensor<3x10xf32, #a>) -> tensor<30xf32, #b>
  return %0 : tensor<30xf32, #b>
}

// -----

// What is written for each device moves nothing.

#m = #tv.mesh<tp = 2>
!rows = tensor<4x8xf32, #tv.view<#m, [did(tp) * 2, 8]>>
!whole = tensor<4x8xf32, #tv.view<#m, [4, 8]>>
func.func @written_local(%x: !rows, %y: !whole) -> !rows {
  // expected-error@+1 {{is written for each device, but needs data of others: operand #1 lies as [4, 8], but must lie as [did(tp) * 2, 8] beside the others; a 'comm' op moves it before, or after, where a result is written as it lies}}
  %z = tv.add %x, %y {tv.local} : (!rows, !whole) -> !rows
  return %z : !rows
}

// -----

// A rounded sum is not the sum of what is rounded.

#m = #tv.mesh<tp = 2>
!addends = tensor<8x4xf32, #tv.view<#m, [8, 4], partial = [tp : sum]>>
!rounded = tensor<8x4xbf16, #tv.view<#m, [8, 4], partial = [tp : sum]>>
func.func @rounded_local(%x: !addends) -> !rounded {
  // expected-error@+1 {{operand #0 lies as [8, 4], partial = [tp : sum], but must lie as [8, 4] beside the others: tv.cast may not run on a partial (sum) operand: arith.truncf of the addends is not that of their sum, which is rounded once it is whole, after an all-reduce; a 'comm' op moves it before}}
  %y = tv.cast %x {tv.local} : (!addends) -> !rounded
  return %y : !rounded
}
