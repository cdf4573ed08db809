// RUN: tessera-opt --tv-bind --tv-propagate-shardings=explain --split-input-file --verify-diagnostics %s

// Where a split comes from, and what was not taken.

#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [did(tp) * _, _]>>
!w = tensor<16x8xf32, #tv.view<#m, [did(tp) * _, _]>>
// expected-remark @+1 {{argument 'x' dimension 0: did(tp) * 2 does not pass 'tv.linear' in line 11, whose loops did(tp) * 8 of argument 'w' splits: 5 us, 5.001 us otherwise}}
func.func @both_on_one_axis(%x: !x {tv.name = "x"}, %w: !w {tv.name = "w", tv.role = "weight"}) -> tensor<4x16xf32> {
  // expected-remark @+1 {{'tv.linear' in line 11 dimension 1 becomes did(tp) * 8 from argument 'w' through 'tv.linear' in line 11}}
  %y = tv.linear %x, %w : (!x, !w) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// -----

// expected-error @+1 {{no tensor of 'nothing_to_propagate' has a view}}
func.func @nothing_to_propagate(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

#m = #tv.mesh<tp = 2>
!x = tensor<1024x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<512x8xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @returned_sum(%x: !x, %w: !w) -> tensor<1024x512xf32> {
  // expected-remark @+1 {{'tv.linear' in line 29 becomes [did(tp) * 512, 512], for it is a sum and nothing else says how it lies}}
  %y = tv.linear %x, %w : (!x, !w) -> tensor<1024x512xf32>
  return %y : tensor<1024x512xf32>
}
