// Pages of keys that do not fit.
// RUN: tessera-opt %s --split-input-file --verify-diagnostics

!q = tensor<3x4x1x16xf32>
!k = tensor<9x2x8x16xf32>
!l = tensor<3x4x1xf32>
func.func @attention(%q: !q, %k: !k, %table: tensor<3x5xi64>) {
  // expected-error@+1 {{'tv.attention' op pages has element type 'i64'; it must be i32}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) pages(%table) : (!q, !k, !k, tensor<3x5xi64>) -> (!q, !l)
  return
}

// -----

!q = tensor<3x4x1x16xf32>
!k = tensor<9x2x8x16xf32>
!l = tensor<3x4x1xf32>
func.func @attention(%q: !q, %k: !k, %table: tensor<15xi32>) {
  // expected-error@+1 {{'tv.attention' op pages has rank 1; it must be 2}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) pages(%table) : (!q, !k, !k, tensor<15xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<3x4x1x16xf32>
!k = tensor<9x2x8x16xf32>
!l = tensor<3x4x1xf32>
func.func @attention(%q: !q, %k: !k, %table: tensor<4x5xi32>) {
  // expected-error@+1 {{'tv.attention' op operand #3's dimension 0 has extent 4; it must be 3, as operand #0's dimension 0 has}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) pages(%table) : (!q, !k, !k, tensor<4x5xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<3x4x1x16xf32>
!k = tensor<9x2x8x16xf32>
!v = tensor<9x2x4x16xf32>
!l = tensor<3x4x1xf32>
func.func @attention(%q: !q, %k: !k, %v: !v, %table: tensor<3x5xi32>) {
  // expected-error@+1 {{'tv.attention' op operand #2's dimension 2 has extent 4; it must be 8, as operand #1's dimension 2 has}}
  %o, %l = tv.attention %q, %k, %v scale(1.0) pages(%table) : (!q, !k, !v, tensor<3x5xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<3x4x1x16xf32>
!k = tensor<9x2x8x16xf32>
!l = tensor<3x4x1xf32>
func.func @attention(%q: !q, %k: !k, %table: tensor<3x?xi32>) {
  // expected-error@+1 {{'tv.attention' op has pages; how many a batch has, and their numbers of positions, must be static}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) pages(%table) : (!q, !k, !k, tensor<3x?xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<1x4x8x16xf32>
!l = tensor<1x4x8xf32>
func.func @attention(%q: !q, %table: tensor<1x1xi32>, %begins: tensor<1x3xi32>) {
  // expected-error@+1 {{'tv.attention' op must have one of a block_mask, sequences, tiles and pages, or none}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) sequences(%begins) pages(%table) : (!q, !q, !q, tensor<1x3xi32>, tensor<1x1xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<2x4x1x64xbf16>
!pages = tensor<9x4x100000x64xbf16>
!table = tensor<2x30000xi32>
func.func @main(%q: !q, %k: !pages, %table: !table) -> !q {
  // expected-error@+1 {{'tv.attention' op has 30000 pages of 100000 positions a batch; keys of one must be below 2^31}}
  %a, %lse = tv.attention %q, %k, %k scale(0.125) pages(%table) : (!q, !pages, !pages, !table) -> (!q, tensor<2x4x1xf32>)
  return %a : !q
}
