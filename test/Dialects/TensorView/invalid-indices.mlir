// Ops that move elements, and sources, that are not legal.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics

func.func @reshape_elements(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{'tv.reshape' op operand has 12 elements, result 13}}
  %r = tv.reshape %x : (tensor<4x3xf32>) -> tensor<13xf32>
  return
}

// -----

func.func @reshape_splits_a_dynamic_extent(%x: tensor<?x3xf32>) {
  // expected-error@+1 {{'tv.reshape' op cannot tell the result's dynamic extents: it must have as many as the operand and static extents of the same product, or one}}
  %r = tv.reshape %x : (tensor<?x3xf32>) -> tensor<?x?x3xf32>
  return
}

// -----

func.func @reshape_to_nothing(%x: tensor<?x3xf32>) {
  // expected-error@+1 {{'tv.reshape' op cannot tell the result's dynamic extents: it must have as many as the operand and static extents of the same product, or one}}
  %r = tv.reshape %x : (tensor<?x3xf32>) -> tensor<?x0xf32>
  return
}

// -----

// Local types say their extents.
#m = #tv.mesh<x = 2>
#one = #tv.view<#m, [_]>
#two = #tv.view<#m, [_, _]>
!in = tensor<?xf32, #tv.local<#one, of [b * s]>>
func.func @local_extents(%x: !in) attributes {tv.sizes = {b = 4, s = 8, t = 8}} {
  %0 = tv.reshape %x : (!in) -> tensor<?x?xf32, #tv.local<#two, of [s, b]>>
  // expected-error@+1 {{'tv.reshape' op cannot tell the result's dynamic extents}}
  %1 = tv.reshape %x : (!in) -> tensor<?x?xf32, #tv.local<#two, of [t, b]>>
  return
}

// -----

func.func @transpose_twice(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{'tv.transpose' op 'perm' must name each dimension once}}
  %r = tv.transpose %x perm [0, 0] : (tensor<4x3xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @transpose_shape(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{'tv.transpose' op result #0's dimension 0 has extent 4; it must be 3, as operand #0's dimension 1 has}}
  %r = tv.transpose %x perm [1, 0] : (tensor<4x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @slice_range(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{'tv.slice' op takes 3 values from 2 of dimension 0, which has extent 4}}
  %r = tv.slice %x offsets [2, 0] : (tensor<4x3xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @slice_dynamic(%x: tensor<?xf32>) {
  // expected-error@+1 {{'tv.slice' op must take dimension 0, which is dynamic, as a whole}}
  %r = tv.slice %x offsets [1] : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @concat_sum(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{'tv.concat' op result's dimension 0 has extent 7; it must be 8}}
  %r = tv.concat %x, %x dim 0 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<7x3xf32>
  return
}

// -----

func.func @concat_others(%x: tensor<4x3xf32>, %y: tensor<4x2xf32>) {
  // expected-error@+1 {{'tv.concat' op operand #1's dimension 1 has extent 2; it must be 3, as operand #0's dimension 1 has}}
  %r = tv.concat %x, %y dim 0 : (tensor<4x3xf32>, tensor<4x2xf32>) -> tensor<8x3xf32>
  return
}

// -----

func.func @pad_shape(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tv.pad' op result's dimension 0 has extent 5; it must be 6}}
  %r = tv.pad %x low [1] high [1] value 0.0 : f32 : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @pad_value(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tv.pad' op value has type 'f64'; it must be 'f32'}}
  %r = tv.pad %x low [1] high [1] value 0.0 : f64 : (tensor<4xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @pad_negative(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tv.pad' op 'low' and 'high' must not be negative or beyond 2^56}}
  %r = tv.pad %x low [-1] high [1] value 0.0 : f32 : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @gather_shape(%t: tensor<10x8xf32>, %i: tensor<2x3xi32>) {
  // expected-error@+1 {{'tv.gather' op result #0's dimension 2 has extent 7; it must be 8, as operand #0's dimension 1 has}}
  %r = tv.gather %t, %i dim 0 : (tensor<10x8xf32>, tensor<2x3xi32>) -> tensor<2x3x7xf32>
  return
}

// -----

func.func @gather_indices(%t: tensor<10x8xf32>, %i: tensor<2x3xf32>) {
  // expected-error@+1 {{'tv.gather' op indices has element type 'f32'; it must be i32 or i64}}
  %r = tv.gather %t, %i dim 0 : (tensor<10x8xf32>, tensor<2x3xf32>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @scatter_updates(%t: tensor<10x8xf32>, %i: tensor<3xi32>, %u: tensor<4x8xf32>) {
  // expected-error@+1 {{'tv.scatter' op operand #2's dimension 0 has extent 4; it must be 3, as operand #1's dimension 0 has}}
  %r = tv.scatter sum %t, %i, %u dim 0 : (tensor<10x8xf32>, tensor<3xi32>, tensor<4x8xf32>) -> tensor<10x8xf32>
  return
}

// -----

func.func @cumsum_dim(%x: tensor<5x8xf32>) {
  // expected-error@+1 {{'tv.cumsum' op}}
  %r = tv.cumsum %x dim 2 : (tensor<5x8xf32>) -> tensor<5x8xf32>
  return
}

// -----

func.func @cumsum_elements(%x: tensor<5x8xi1>) {
  // expected-error@+1 {{'tv.cumsum' op}}
  %r = tv.cumsum %x dim 0 : (tensor<5x8xi1>) -> tensor<5x8xi1>
  return
}

// -----

func.func @top_k_extent(%x: tensor<5x8xf32>) {
  // expected-error@+1 {{'tv.top_k' op takes 9 of 8 elements; k must be static, in [1, 64], and at most the input's extent, which is static}}
  %v, %i = tv.top_k %x dim 1 : (tensor<5x8xf32>) -> (tensor<5x9xf32>, tensor<5x9xi32>)
  return
}

// -----

func.func @top_k_many(%x: tensor<5x99xf32>) {
  // expected-error@+1 {{takes 65 of 99 elements}}
  %v, %i = tv.top_k %x dim 1 : (tensor<5x99xf32>) -> (tensor<5x65xf32>, tensor<5x65xi32>)
  return
}

// -----

func.func @top_k_dynamic(%x: tensor<5x?xf32>) {
  // expected-error@+1 {{takes 2 of ? elements}}
  %v, %i = tv.top_k %x dim 1 : (tensor<5x?xf32>) -> (tensor<5x2xf32>, tensor<5x2xi32>)
  return
}

// -----

func.func @top_k_results(%x: tensor<5x8xf32>) {
  // expected-error@+1 {{'tv.top_k' op}}
  %v, %i = tv.top_k %x dim 1 : (tensor<5x8xf32>) -> (tensor<5x2xf32>, tensor<5x3xi32>)
  return
}

// -----

func.func @top_k_indices(%x: tensor<5x8xf32>) {
  // expected-error@+1 {{'tv.top_k' op indices has element type 'f32'; it must be i32 or i64}}
  %v, %i = tv.top_k %x dim 1 : (tensor<5x8xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>)
  return
}

// -----

func.func @dispatch_capacity(%x: tensor<5x8xf32>, %e: tensor<5x2xi32>) {
  // expected-error@+1 {{'tv.dispatch' op the number of experts and their capacity must be static}}
  %b, %c, %s = tv.dispatch %x, %e : (tensor<5x8xf32>, tensor<5x2xi32>) -> (tensor<3x?x8xf32>, tensor<3xi32>, tensor<5x2xi32>)
  return
}

// -----

func.func @combine_tokens(%b: tensor<3x4x8xf32>, %e: tensor<5x2xi32>, %w: tensor<5x2xf32>) {
  // expected-error@+1 {{'tv.combine' op result #0's dimension 0 has extent 6; it must be 5, as operand #1's dimension 0 has}}
  %r = tv.combine %b, %e, %e, %w : (tensor<3x4x8xf32>, tensor<5x2xi32>, tensor<5x2xi32>, tensor<5x2xf32>) -> tensor<6x8xf32>
  return
}

// -----

func.func @constant_shape() {
  // expected-error@+1 {{'tv.constant' op value must have the result's shape or rank 0}}
  %r = tv.constant dense<1.0> : tensor<4xf32> : () -> tensor<5xf32>
  return
}

// -----

func.func @constant_type() {
  // expected-error@+1 {{'tv.constant' op value must be a tensor of 'f64' without encoding}}
  %r = tv.constant dense<1.0> : tensor<4xf32> : () -> tensor<4xf64>
  return
}

// -----

func.func @dynamic_without_like() {
  // expected-error@+1 {{'tv.iota' op result's dimension 0 is dynamic; 'like' must give its extent}}
  %r = tv.iota 0 : () -> tensor<?xi32>
  return
}

// -----

func.func @iota_dim() {
  // expected-error@+1 {{'tv.iota' op dim 1 is not in [0, 1)}}
  %r = tv.iota 1 : () -> tensor<4xi32>
  return
}

// -----

func.func @random_type() {
  // expected-error@+1 {{'tv.random' op result has element type 'f64'; it must be f32}}
  %r = tv.random seed(1) stream(2) : () -> tensor<4xf64>
  return
}

// -----

func.func @random_bits() {
  // expected-error@+1 {{'tv.random' op bits is 32; it must be 16 or 24}}
  %r = tv.random seed(1) stream(2) bits(32) : () -> tensor<4xf32>
  return
}

// -----

func.func @random_step(%t: tensor<f32>) {
  // expected-error@+1 {{'tv.random' op step is 'tensor<f32>'; it must be a tensor<i64>}}
  %r = tv.random seed(1) stream(2) step %t : (tensor<f32>) -> tensor<4xf32>
  return
}

// -----

func.func @size_rank(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tv.size' op result has rank 1; it must be 0}}
  %r = tv.size %x dim 0 : (tensor<4xf32>) -> tensor<1xi32>
  return
}

// -----

func.func @slice_overflow(%x: tensor<4xf32>) {
  // expected-error@+1 {{takes 4 values from 9223372036854775807 of dimension 0}}
  %r = tv.slice %x offsets [9223372036854775807] : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @pad_overflow(%x: tensor<4xf32>) {
  // expected-error@+1 {{'low' and 'high' must not be negative or beyond 2^56}}
  %r = tv.pad %x low [0] high [9223372036854775807] value 0.0 : f32 : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @too_large(%x: tensor<4294967296x4294967296xf32>) {
  // expected-error@+1 {{operand #0 has more than 2^56 elements}}
  %r = tv.reshape %x : (tensor<4294967296x4294967296xf32>) -> tensor<0xf32>
  return
}
