// Packed sequences that do not fit.
// RUN: tessera-opt %s --split-input-file --verify-diagnostics

!q = tensor<1x4x130x16xf32>
!l = tensor<1x4x130xf32>
func.func @attention(%q: !q, %begins: tensor<1x5xi64>) {
  // expected-error@+1 {{'tv.attention' op sequences has element type 'i64'; it must be i32}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) sequences(%begins) : (!q, !q, !q, tensor<1x5xi64>) -> (!q, !l)
  return
}

// -----

!q = tensor<1x4x130x16xf32>
!l = tensor<1x4x130xf32>
func.func @attention(%q: !q, %begins: tensor<5xi32>) {
  // expected-error@+1 {{'tv.attention' op sequences has rank 1; it must be 2}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) sequences(%begins) : (!q, !q, !q, tensor<5xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<1x4x130x16xf32>
!l = tensor<1x4x130xf32>
func.func @attention(%q: !q, %begins: tensor<1x0xi32>) {
  // expected-error@+1 {{'tv.attention' op sequences has no column; it has one more than sequences}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) sequences(%begins) : (!q, !q, !q, tensor<1x0xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<2x4x130x16xf32>
!l = tensor<2x4x130xf32>
func.func @attention(%q: !q, %begins: tensor<1x5xi32>) {
  // expected-error@+1 {{'tv.attention' op sequences of 1 batches; the query has 2}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) sequences(%begins) : (!q, !q, !q, tensor<1x5xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<1x4x130x16xf32>
!k = tensor<1x4x100x16xf32>
!l = tensor<1x4x130xf32>
func.func @attention(%q: !q, %k: !k, %begins: tensor<1x5xi32>) {
  // expected-error@+1 {{'tv.attention' op has packed sequences, 130 queries and 100 keys; a position is one of a query and of a key}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) sequences(%begins) : (!q, !k, !k, tensor<1x5xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<1x4x?x16xf32>
!l = tensor<1x4x?xf32>
func.func @attention(%q: !q, %begins: tensor<1x5xi32>) {
  // expected-error@+1 {{'tv.attention' op has packed sequences; the numbers of batches, sequences and positions must be static}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) sequences(%begins) : (!q, !q, !q, tensor<1x5xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<1x4x130x16xf32>
!l = tensor<1x4x130xf32>
func.func @attention(%q: !q, %begins: tensor<1x5xi32>, %bm: tensor<1x1x2x2xi8>) {
  // expected-error@+1 {{'tv.attention' op must have one of a block_mask, sequences, tiles and pages, or none}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) block_mask(%bm) blocks [128, 128] sequences(%begins) : (!q, !q, !q, tensor<1x1x2x2xi8>, tensor<1x5xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<1x4x130x16xf32>
!l = tensor<1x4x130xf32>
func.func @attention(%q: !q, %tiles: tensor<1x135xi32>) {
  // expected-error@+1 {{'tv.attention' op has tiles of 135 words; those of 130 positions have 134, and 8 for each sequence}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) tiles(%tiles) : (!q, !q, !q, tensor<1x135xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<1x4x130x16xf32>
!l = tensor<1x4x130xf32>
func.func @attention_grad(%q: !q, %l: !l, %begins: tensor<1x5xi32>, %tiles: tensor<1x170xi32>) {
  // expected-error@+1 {{'tv.attention_grad' op must have one of a block_mask, sequences and tiles, or none}}
  %g:3 = tv.attention_grad %q, %q, %q, %q, %q, %l scale(1.0) sequences(%begins) tiles(%tiles) : (!q, !q, !q, !q, !q, !l, tensor<1x5xi32>, tensor<1x170xi32>) -> (!q, !q, !q)
  return
}

// -----

func.func @packed_tiles(%begins: tensor<1x5xi32>) {
  // expected-error@+1 {{'tv.packed_tiles' op has tiles of 3 rows; they have at least 4, below 2^31}}
  %t = tv.packed_tiles %begins rows(3) : (tensor<1x5xi32>) -> tensor<1x170xi32>
  return
}

// -----

func.func @packed_tiles(%begins: tensor<1x5xi32>) {
  // expected-error@+1 {{'tv.packed_tiles' op has a result of 19 words; it has 4, 8 for each of 4 sequences, and as many as there are positions}}
  %t = tv.packed_tiles %begins rows(128) : (tensor<1x5xi32>) -> tensor<1x19xi32>
  return
}

// -----

func.func @packed_tiles(%begins: tensor<1x?xi32>) {
  // expected-error@+1 {{'tv.packed_tiles' op must have static shapes}}
  %t = tv.packed_tiles %begins rows(128) : (tensor<1x?xi32>) -> tensor<1x190xi32>
  return
}

// -----

!q = tensor<1x4x130x16xf32>
!l = tensor<1x4x130xf32>
func.func @attention(%q: !q, %used: tensor<1x4xi32>) {
  // expected-error@+1 {{'tv.attention' op has used lengths, but no sequences}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) used(%used) : (!q, !q, !q, tensor<1x4xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<1x4x130x16xf32>
!l = tensor<1x4x130xf32>
func.func @attention(%q: !q, %used: tensor<1x4xi32>, %tiles: tensor<1x166xi32>) {
  // expected-error@+1 {{'tv.attention' op has used lengths, but no sequences}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) used(%used) tiles(%tiles) : (!q, !q, !q, tensor<1x4xi32>, tensor<1x166xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<1x4x130x16xf32>
!l = tensor<1x4x130xf32>
func.func @attention(%q: !q, %begins: tensor<1x5xi32>, %used: tensor<1x5xi32>) {
  // expected-error@+1 {{'tv.attention' op used is for 5 sequences of 1 batches; there are 4 of 1}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) sequences(%begins) used(%used) : (!q, !q, !q, tensor<1x5xi32>, tensor<1x5xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<1x4x130x16xf32>
!l = tensor<1x4x130xf32>
func.func @attention_grad(%q: !q, %l: !l, %begins: tensor<1x5xi32>, %used: tensor<1x4xi64>) {
  // expected-error@+1 {{'tv.attention_grad' op used has element type 'i64'; it must be i32}}
  %g:3 = tv.attention_grad %q, %q, %q, %q, %q, %l scale(1.0) sequences(%begins) used(%used) : (!q, !q, !q, !q, !q, !l, tensor<1x5xi32>, tensor<1x4xi64>) -> (!q, !q, !q)
  return
}

// -----

func.func @packed_tiles(%begins: tensor<1x5xi32>, %used: tensor<2x4xi32>) {
  // expected-error@+1 {{'tv.packed_tiles' op used is for 4 sequences of 2 batches; there are 4 of 1}}
  %t = tv.packed_tiles %begins used %used rows(128) : (tensor<1x5xi32>, tensor<2x4xi32>) -> tensor<1x170xi32>
  return
}

// -----

// As many words as 138 positions in 4 sequences have.
!q = tensor<1x2x138x16xf32>
!l = tensor<1x2x138xf32>
func.func @attention(%q: !q, %begins: tensor<1x6xi32>) {
  // expected-note@+1 {{the tiles are made here}}
  %t = tv.packed_tiles %begins rows(128) causal : (tensor<1x6xi32>) -> tensor<1x174xi32>
  // expected-error@+1 {{'tv.attention' op has tiles of 130 positions in 5 sequences; the query has 138 positions}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) causal tiles(%t) : (!q, !q, !q, tensor<1x174xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<1x2x138x16xf32>
!l = tensor<1x2x138xf32>
func.func @attention(%q: !q, %begins: tensor<1x5xi32>) {
  // expected-note@+1 {{the tiles are made here}}
  %t = tv.packed_tiles %begins rows(128) : (tensor<1x5xi32>) -> tensor<1x174xi32>
  // expected-error@+1 {{'tv.attention' op has tiles that are not causal; it is causal}}
  %o, %l = tv.attention %q, %q, %q scale(1.0) causal tiles(%t) : (!q, !q, !q, tensor<1x174xi32>) -> (!q, !l)
  return
}

// -----

!q = tensor<1x2x138x16xf32>
!l = tensor<1x2x138xf32>
func.func @attention_grad(%q: !q, %l: !l, %begins: tensor<1x5xi32>) {
  // expected-note@+1 {{the tiles are made here}}
  %t = tv.packed_tiles %begins rows(128) causal : (tensor<1x5xi32>) -> tensor<1x174xi32>
  // expected-error@+1 {{'tv.attention_grad' op has tiles that are causal; it is not}}
  %g:3 = tv.attention_grad %q, %q, %q, %q, %q, %l scale(1.0) tiles(%t) : (!q, !q, !q, !q, !q, !l, tensor<1x174xi32>) -> (!q, !q, !q)
  return
}
