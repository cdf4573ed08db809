// Matrix products and attention that are not legal.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics

func.func @linear_k(%x: tensor<2x8xf32>, %w: tensor<16x9xf32>) {
  // expected-error@+1 {{'tv.linear' op operand #1's dimension 1 has extent 9; it must be 8, as operand #0's dimension 1 has}}
  %r = tv.linear %x, %w : (tensor<2x8xf32>, tensor<16x9xf32>) -> tensor<2x16xf32>
  return
}

// -----

func.func @linear_weight_is_out_in(%x: tensor<2x8xf32>, %w: tensor<8x16xf32>) {
  // expected-error@+1 {{'tv.linear' op operand #1's dimension 1 has extent 16; it must be 8, as operand #0's dimension 1 has}}
  %r = tv.linear %x, %w : (tensor<2x8xf32>, tensor<8x16xf32>) -> tensor<2x16xf32>
  return
}

// -----

func.func @linear_bias(%x: tensor<2x8xf32>, %w: tensor<16x8xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{'tv.linear' op operand #2's dimension 0 has extent 8; it must be 16, as operand #1's dimension 0 has}}
  %r = tv.linear %x, %w bias %b : (tensor<2x8xf32>, tensor<16x8xf32>, tensor<8xf32>) -> tensor<2x16xf32>
  return
}

// -----

func.func @linear_element_types(%x: tensor<2x8xf32>, %w: tensor<16x8xbf16>) {
  // expected-error@+1 {{'tv.linear' op element type 'bf16' must be 'f32', as the others}}
  %r = tv.linear %x, %w : (tensor<2x8xf32>, tensor<16x8xbf16>) -> tensor<2x16xf32>
  return
}

// -----

func.func @linear_integers(%x: tensor<2x8xi32>, %w: tensor<16x8xi32>) {
  // expected-error@+1 {{'tv.linear' op input has element type 'i32'; it must be f64, f32, bf16 or f16}}
  %r = tv.linear %x, %w : (tensor<2x8xi32>, tensor<16x8xi32>) -> tensor<2x16xi32>
  return
}

// -----

// The global extents disagree, though the local ones do not.
#m = #tv.mesh<x = 2, y = 4>
#a = #tv.view<#m, [2, did(x) * 4]>
#b = #tv.view<#m, [16, did(y) * 4]>
#c = #tv.view<#m, [2, 16], partial = [x : sum]>
func.func @linear_of_local_types(%x: tensor<2x4xf32, #tv.local<#a, of [2, 8]>>, %w: tensor<16x4xf32, #tv.local<#b, of [16, 16]>>) {
  // expected-error@+1 {{'tv.linear' op operand #1's dimension 1 has extent 16; it must be 8, as operand #0's dimension 1 has}}
  %r = tv.linear %x, %w : (tensor<2x4xf32, #tv.local<#a, of [2, 8]>>, tensor<16x4xf32, #tv.local<#b, of [16, 16]>>) -> tensor<2x16xf32, #tv.local<#c, of [2, 16]>>
  return
}

// -----

func.func @matmul_batch(%a: tensor<2x3x8xf32>, %b: tensor<3x8x5xf32>) {
  // expected-error@+1 {{'tv.matmul' op operand #1's dimension 0 has extent 3; it must be 2, as operand #0's dimension 0 has}}
  %r = tv.matmul %a, %b : (tensor<2x3x8xf32>, tensor<3x8x5xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @matmul_rank(%a: tensor<8xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{'tv.matmul' op lhs has rank 1; it must be at least 2}}
  %r = tv.matmul %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  return
}

// -----

func.func @grouped_experts(%a: tensor<2x3x8xf32>, %b: tensor<4x5x8xf32>, %c: tensor<2xi32>) {
  // expected-error@+1 {{'tv.grouped_matmul' op operand #1's dimension 0 has extent 4; it must be 2, as operand #0's dimension 0 has}}
  %r = tv.grouped_matmul %a, %b counts %c : (tensor<2x3x8xf32>, tensor<4x5x8xf32>, tensor<2xi32>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @heads(%q: tensor<1x4x2x8xf32>, %k: tensor<1x3x2x8xf32>) {
  // expected-error@+1 {{'tv.attention' op the key's 3 heads must divide the query's 4}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) : (tensor<1x4x2x8xf32>, tensor<1x3x2x8xf32>, tensor<1x3x2x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x4x2xf32>)
  return
}

// -----

func.func @no_heads(%q: tensor<1x0x2x8xf32>) {
  // expected-error@+1 {{'tv.attention' op the query has 0 heads, the key 0; each must have at least 1}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) : (tensor<1x0x2x8xf32>, tensor<1x0x2x8xf32>, tensor<1x0x2x8xf32>) -> (tensor<1x0x2x8xf32>, tensor<1x0x2xf32>)
  return
}

// -----

func.func @no_query_heads(%q: tensor<1x0x2x8xf32>, %k: tensor<1x4x2x8xf32>) {
  // expected-error@+1 {{'tv.attention' op the query has 0 heads, the key 4; each must have at least 1}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) : (tensor<1x0x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> (tensor<1x0x2x8xf32>, tensor<1x0x2xf32>)
  return
}

// -----

func.func @lse_type(%q: tensor<1x4x2x8xbf16>) {
  // expected-error@+1 {{'tv.attention' op lse has element type 'bf16'; it must be 'f32'}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) : (tensor<1x4x2x8xbf16>, tensor<1x4x2x8xbf16>, tensor<1x4x2x8xbf16>) -> (tensor<1x4x2x8xbf16>, tensor<1x4x2xbf16>)
  return
}

// -----

func.func @key_length(%q: tensor<1x4x2x8xf32>, %v: tensor<1x4x3x8xf32>) {
  // expected-error@+1 {{'tv.attention' op operand #2's dimension 2 has extent 3; it must be 2, as operand #1's dimension 2 has}}
  %o, %l = tv.attention %q, %q, %v scale(1.0) : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x3x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x4x2xf32>)
  return
}

// -----

func.func @score_mod(%q: tensor<1x4x2x8xf32>) {
  // expected-error@+1 {{'tv.attention' op score_mod must have arguments ('f32', 'index', 'index', 'index', 'index'), not ('f32')}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x4x2xf32>)
    score_mod (%s: f32) { tv.yield %s : f32 }
  return
}

// -----

func.func @mask_mod(%q: tensor<1x4x2x8xf32>) {
  %o, %l = tv.attention %q, %q, %q scale(1.0) : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x4x2xf32>)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      // expected-error@+1 {{'tv.yield' op must yield ('i1'), not ('index')}}
      tv.yield %b : index
    }
  return
}

// -----

func.func @contract_extents(%a: tensor<2x8xf32>, %b: tensor<9x5xf32>) {
  // expected-error@+1 {{'tv.contract' op operand #1's dimension 0 has extent 9; it must be 8, as operand #0's dimension 1 has}}
  %r = tv.contract %a [0, 1], %b [1, 2] to [0, 2] : (tensor<2x8xf32>, tensor<9x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @contract_rank(%a: tensor<2x8xf32>, %b: tensor<8x5xf32>) {
  // expected-error@+1 {{'tv.contract' op b has rank 2 and 3 labels; they must be as many}}
  %r = tv.contract %a [0, 1], %b [1, 2, 3] to [0, 2] : (tensor<2x8xf32>, tensor<8x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @contract_diagonal(%a: tensor<8x8xf32>, %b: tensor<8x5xf32>) {
  // expected-error@+1 {{'tv.contract' op label 0 is twice in a}}
  %r = tv.contract %a [0, 0], %b [0, 1] to [1] : (tensor<8x8xf32>, tensor<8x5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @contract_sum_of_one(%a: tensor<2x8xf32>, %b: tensor<8x5xf32>) {
  // expected-error@+1 {{'tv.contract' op label 0 is in a only; it must be in two tensors at least}}
  %r = tv.contract %a [0, 1], %b [1, 2] to [2] : (tensor<2x8xf32>, tensor<8x5xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @contract_broadcast(%a: tensor<2x8xf32>, %b: tensor<8x5xf32>) {
  // expected-error@+1 {{'tv.contract' op label 3 is in result only; it must be in two tensors at least}}
  %r = tv.contract %a [0, 1], %b [1, 2] to [0, 2, 3] : (tensor<2x8xf32>, tensor<8x5xf32>) -> tensor<2x5x4xf32>
  return
}

// -----

func.func @contract_bias_of_rows(%a: tensor<2x8xf32>, %b: tensor<8x5xf32>, %c: tensor<2xf32>) {
  // expected-error@+1 {{'tv.contract' op the result's last dimension must be a column, to which the bias is added}}
  %r = tv.contract %a [0, 1], %b [1, 2] bias %c to [2, 0] : (tensor<2x8xf32>, tensor<8x5xf32>, tensor<2xf32>) -> tensor<5x2xf32>
  return
}

// -----

func.func @contract_integers(%a: tensor<2x8xi32>, %b: tensor<8x5xi32>) {
  // expected-error@+1 {{'tv.contract' op a has element type 'i32'; it must be f64, f32, bf16 or f16}}
  %r = tv.contract %a [0, 1], %b [1, 2] to [0, 2] : (tensor<2x8xi32>, tensor<8x5xi32>) -> tensor<2x5xi32>
  return
}

// -----

func.func @contract_narrow_result(%a: tensor<2x8xbf16>, %b: tensor<8x5xbf16>) {
  // expected-error@+1 {{'tv.contract' op result has element type 'f16'; it must be 'bf16', or 'f32', in which it sums}}
  %r = tv.contract %a [0, 1], %b [1, 2] to [0, 2] : (tensor<2x8xbf16>, tensor<8x5xbf16>) -> tensor<2x5xf16>
  return
}

// -----

func.func @contract_wide_result(%a: tensor<2x8xf32>, %b: tensor<8x5xf32>) {
  // expected-error@+1 {{'tv.contract' op result has element type 'f64'; it must be 'f32'}}
  %r = tv.contract %a [0, 1], %b [1, 2] to [0, 2] : (tensor<2x8xf32>, tensor<8x5xf32>) -> tensor<2x5xf64>
  return
}

// -----

func.func @contract_addend_element(%a: tensor<2x8xbf16>, %b: tensor<8x5xbf16>, %c: tensor<2x5xbf16>) {
  // expected-error@+1 {{'tv.contract' op element type 'bf16' must be 'f32', as the others}}
  %r = tv.contract %a [0, 1], %b [1, 2] add %c to [0, 2] : (tensor<2x8xbf16>, tensor<8x5xbf16>, tensor<2x5xbf16>) -> tensor<2x5xf32>
  return
}

// -----

func.func @contract_addend_rank(%a: tensor<2x8xf32>, %b: tensor<8x5xf32>, %c: tensor<5xf32>) {
  // expected-error@+1 {{'tv.contract' op addend has rank 1; it must be 2}}
  %r = tv.contract %a [0, 1], %b [1, 2] add %c to [0, 2] : (tensor<2x8xf32>, tensor<8x5xf32>, tensor<5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @contract_addend_extents(%a: tensor<2x8xf32>, %b: tensor<8x5xf32>, %c: tensor<5x2xf32>) {
  // expected-error@+1 {{'tv.contract' op operand #2's dimension 0 has extent 5; it must be 2, as operand #0's dimension 0 has}}
  %r = tv.contract %a [0, 1], %b [1, 2] add %c to [0, 2] : (tensor<2x8xf32>, tensor<8x5xf32>, tensor<5x2xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @variants(%q: tensor<1x4x2x8xf32>) {
  // expected-error@+1 {{'tv.attention' op 'tv.variants' must be names, such as ["flash", "math"], the preferred first}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) {tv.variants = []} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> (tensor<1x4x2x8xf32>, tensor<1x4x2xf32>)
  return
}

// -----

func.func @variants_of_what(%x: tensor<8xf32>) {
  // expected-error@+1 {{'tv.neg' op has no variants for 'tv.variants' to choose of; tv.attention and tv.attention_grad have}}
  %r = tv.neg %x {tv.variants = ["math"]} : (tensor<8xf32>) -> tensor<8xf32>
  return
}
