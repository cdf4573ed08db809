// RUN: tessera-opt --tv-bind --tv-propagate-shardings=explain --split-input-file --verify-diagnostics %s

// Where a split comes from, and what was not taken.

#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [did(tp) * _, _]>>
!w = tensor<16x8xf32, #tv.view<#m, [did(tp) * _, _]>>
// expected-remark @+1 {{argument 'x' dimension 0: did(tp) * 2 does not pass 'tv.linear' in line 11, whose loops did(tp) * 8 of argument 'w' splits: 64 bytes, 5 us; otherwise 256 bytes, 5.001 us}}
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
  // expected-remark @+1 {{'tv.linear' in line 29 becomes [did(tp) * 512, 512], for it is a sum and nothing else says how it lies: 1048576 bytes, 8.495 us; otherwise 2097152 bytes, 11.99 us}}
  %y = tv.linear %x, %w : (!x, !w) -> tensor<1024x512xf32>
  return %y : tensor<1024x512xf32>
}

// -----

// Where the user's priority decides, both choices have their price, too.
#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [did(tp) * _, _], priority = [0, 0]>>
!w = tensor<16x8xf32, #tv.view<#m, [did(tp) * _, _], priority = [1, 0]>>
// expected-remark @+1 {{argument 'w' dimension 0: did(tp) * 8 does not pass 'tv.linear' in line 42, whose loops did(tp) * 2 of argument 'x' splits: 256 bytes, 5.001 us; otherwise 128 bytes, 10 us}}
func.func @by_priority(%x: !x {tv.name = "x"}, %w: !w {tv.name = "w"}) -> tensor<4x16xf32> {
  // expected-remark @+1 {{'tv.linear' in line 42 dimension 0 becomes did(tp) * 2 from argument 'x' through 'tv.linear' in line 42}}
  %y = tv.linear %x, %w : (!x, !w) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// -----

// What no move could be planned from is not made by a reshape.
#m = #tv.mesh<x = 2, y = 3>
!x = tensor<3072x3072xf32, #tv.view<#m, [did(y) * _, did(x) * _]>>
!y = tensor<3072x3072xf32, #tv.view<#m, [_, _]>>
func.func @too_many_pieces(%x: !x {tv.name = "x"}) -> !y {
  // expected-remark @+1 {{'tv.reshape' in line 54 dimension 0 becomes did(y) * 1024 * did(x) from argument 'x' through 'tv.reshape' in line 54}}
  %0 = tv.reshape %x : (!x) -> tensor<6144x1536xf32>
  // expected-remark @+1 {{'tv.transpose' in line 56 dimension 1 becomes did(y) * 1024 * did(x) from 'tv.reshape' in line 54 through 'tv.transpose' in line 56}}
  %1 = tv.transpose %0 perm [1, 0] : (tensor<6144x1536xf32>) -> tensor<1536x6144xf32>
  // expected-remark @+1 {{'tv.reshape' in line 58 dimension 0 does not become 1536 * did(y) * 1024 * did(x) from 'tv.transpose' in line 56 through 'tv.reshape' in line 58: it would lie in too many pieces to move}}
  %2 = tv.reshape %1 : (tensor<1536x6144xf32>) -> tensor<3072x3072xf32>
  %3 = tv.neg %2 : (tensor<3072x3072xf32>) -> !y
  return %3 : !y
}
