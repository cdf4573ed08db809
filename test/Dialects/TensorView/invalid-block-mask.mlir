// Block masks that do not fit.
// RUN: tessera-opt %s --split-input-file --verify-diagnostics

func.func @block_mask(%q: tensor<2x4x130x16xf32>, %k: tensor<2x4x70x16xf32>, %bm: tensor<1x1x3x1xi32>) {
  // expected-error@+1 {{'tv.attention' op block_mask has element type 'i32'; it must be i8}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) block_mask(%bm) blocks [64, 128] : (tensor<2x4x130x16xf32>, tensor<2x4x70x16xf32>, tensor<2x4x70x16xf32>, tensor<1x1x3x1xi32>) -> (tensor<2x4x130x16xf32>, tensor<2x4x130xf32>)
  return
}

// -----

func.func @block_mask(%q: tensor<2x4x130x16xf32>, %k: tensor<2x4x70x16xf32>, %bm: tensor<1x3x1xi8>) {
  // expected-error@+1 {{'tv.attention' op block_mask has rank 3; it must be 4}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) block_mask(%bm) blocks [64, 128] : (tensor<2x4x130x16xf32>, tensor<2x4x70x16xf32>, tensor<2x4x70x16xf32>, tensor<1x3x1xi8>) -> (tensor<2x4x130x16xf32>, tensor<2x4x130xf32>)
  return
}

// -----

func.func @block_mask(%q: tensor<2x4x130x16xf32>, %k: tensor<2x4x70x16xf32>, %bm: tensor<1x1x2x1xi8>) {
  // expected-error@+1 {{'tv.attention' op block_mask has 2 blocks of queries; 130 in blocks of 64 are 3}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) block_mask(%bm) blocks [64, 128] : (tensor<2x4x130x16xf32>, tensor<2x4x70x16xf32>, tensor<2x4x70x16xf32>, tensor<1x1x2x1xi8>) -> (tensor<2x4x130x16xf32>, tensor<2x4x130xf32>)
  return
}

// -----

func.func @block_mask(%q: tensor<2x4x130x16xf32>, %k: tensor<2x4x70x16xf32>, %bm: tensor<1x1x3x2xi8>) {
  // expected-error@+1 {{'tv.attention' op block_mask has 2 blocks of keys; 70 in blocks of 128 are 1}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) block_mask(%bm) blocks [64, 128] : (tensor<2x4x130x16xf32>, tensor<2x4x70x16xf32>, tensor<2x4x70x16xf32>, tensor<1x1x3x2xi8>) -> (tensor<2x4x130x16xf32>, tensor<2x4x130xf32>)
  return
}

// -----

func.func @block_mask(%q: tensor<2x4x130x16xf32>, %k: tensor<2x4x70x16xf32>, %bm: tensor<1x1x3x1xi8>) {
  // expected-error@+1 {{'tv.attention' op has blocks of 96; block sizes must be positive multiples of 64, below 2^31}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) block_mask(%bm) blocks [96, 128] : (tensor<2x4x130x16xf32>, tensor<2x4x70x16xf32>, tensor<2x4x70x16xf32>, tensor<1x1x3x1xi8>) -> (tensor<2x4x130x16xf32>, tensor<2x4x130xf32>)
  return
}

// -----

func.func @block_mask(%q: tensor<2x4x130x16xf32>, %k: tensor<2x4x70x16xf32>, %bm: tensor<1x1x3x1xi8>) {
  // expected-error@+1 {{'tv.attention' op has 1 block sizes; a block mask has two, of queries and of keys}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) block_mask(%bm) blocks [64] : (tensor<2x4x130x16xf32>, tensor<2x4x70x16xf32>, tensor<2x4x70x16xf32>, tensor<1x1x3x1xi8>) -> (tensor<2x4x130x16xf32>, tensor<2x4x130xf32>)
  return
}

// -----

func.func @block_mask(%q: tensor<2x4x130x16xf32>, %k: tensor<2x4x70x16xf32>, %bm: tensor<3x1x3x1xi8>) {
  // expected-error@+1 {{'tv.attention' op block_mask is for 3 batches; it must be for 1 or 2}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) block_mask(%bm) blocks [64, 128] : (tensor<2x4x130x16xf32>, tensor<2x4x70x16xf32>, tensor<2x4x70x16xf32>, tensor<3x1x3x1xi8>) -> (tensor<2x4x130x16xf32>, tensor<2x4x130xf32>)
  return
}

// -----

func.func @block_mask(%q: tensor<2x4x130x16xf32>, %k: tensor<2x4x70x16xf32>, %bm: tensor<1x2x3x1xi8>) {
  // expected-error@+1 {{'tv.attention' op block_mask is for 2 heads; it must be for 1 or 4}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) block_mask(%bm) blocks [64, 128] : (tensor<2x4x130x16xf32>, tensor<2x4x70x16xf32>, tensor<2x4x70x16xf32>, tensor<1x2x3x1xi8>) -> (tensor<2x4x130x16xf32>, tensor<2x4x130xf32>)
  return
}

// -----

func.func @block_mask(%q: tensor<2x4x?x16xf32>, %k: tensor<2x4x70x16xf32>, %bm: tensor<1x1x3x1xi8>) {
  // expected-error@+1 {{'tv.attention' op has a block mask; its numbers of queries and keys must be static}}
  %o, %l = tv.attention %q, %k, %k scale(1.0) block_mask(%bm) blocks [64, 128] : (tensor<2x4x?x16xf32>, tensor<2x4x70x16xf32>, tensor<2x4x70x16xf32>, tensor<1x1x3x1xi8>) -> (tensor<2x4x?x16xf32>, tensor<2x4x?xf32>)
  return
}

// -----

func.func @made() {
  // expected-error@+1 {{'tv.block_mask' op must be of two numbers, of queries and of keys}}
  %bm = tv.block_mask of [130] blocks [64, 128] : () -> tensor<1x1x3x1xi8>
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi sle, %ki, %qi : index
      tv.yield %c : i1
    }
  return
}

// -----

func.func @made() {
  // expected-error@+1 {{'tv.block_mask' op block_mask has 3 blocks of queries; 200 in blocks of 64 are 4}}
  %bm = tv.block_mask of [200, 70] blocks [64, 128] : () -> tensor<1x1x3x1xi8>
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi sle, %ki, %qi : index
      tv.yield %c : i1
    }
  return
}

// -----

func.func @made() {
  // expected-error@+1 {{'tv.block_mask' op has blocks of 0; block sizes must be positive multiples of 64, below 2^31}}
  %bm = tv.block_mask of [130, 70] blocks [64, 0] : () -> tensor<1x1x3x1xi8>
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi sle, %ki, %qi : index
      tv.yield %c : i1
    }
  return
}

// -----

func.func @made() {
  // expected-error@+1 {{'tv.block_mask' op must be of a static shape}}
  %bm = tv.block_mask of [130, 70] blocks [64, 128] : () -> tensor<?x1x3x1xi8>
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi sle, %ki, %qi : index
      tv.yield %c : i1
    }
  return
}

// -----

func.func @made(%ids: tensor<2x130xi32>) {
  %bm = tv.block_mask of [130, 70] blocks [64, 128] : () -> tensor<2x1x3x1xi8>
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      // expected-error@+1 {{'tv.load' op has 1 indices; the tensor has rank 2}}
      %i = tv.load %ids[%qi] : tensor<2x130xi32> -> i32
      %j = tv.load %ids[%b, %ki] : tensor<2x130xi32> -> i32
      %c = arith.cmpi eq, %i, %j : i32
      tv.yield %c : i1
    }
  return
}

// -----

func.func @made(%ids: tensor<2x130xi32>) {
  %n = arith.constant 3 : index
  %bm = tv.block_mask of [130, 70] blocks [64, 128] : () -> tensor<2x1x3x1xi8>
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      // expected-error@+1 {{'arith.cmpi' op uses a value from outside of the scalar region; only tv.load may, to read a tensor}}
      %c = arith.cmpi sle, %ki, %n : index
      tv.yield %c : i1
    }
  return
}

// -----

// What a mask loads from is whole on every device.
#m = #tv.mesh<x = 2>
!ids = tensor<65xi32, #tv.local<#tv.view<#m, [did(x) * 65], alloc = (0)>, of [130]>>
!bm = tensor<1x1x3x3xi8, #tv.local<#tv.view<#m, [1, 1, 3, 3], alloc = (0, 1, 2, 3)>, of [1, 1, 3, 3]>>
func.func @made(%ids: !ids) {
  %bm = tv.block_mask of [130, 130] blocks [64, 64] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      // expected-error@+1 {{'tv.load' op reads a tensor that is not whole on each device}}
      %i = tv.load %ids[%qi] : !ids -> i32
      %j = tv.load %ids[%ki] : !ids -> i32
      %c = arith.cmpi eq, %i, %j : i32
      tv.yield %c : i1
    }
  return
}

// -----

// Counts of blocks alone may be those of other sizes.
!x = tensor<1x1x250x64xf32>
!bm = tensor<1x1x2x2xi8>
func.func @attend(%x: !x) -> !x {
  // expected-note@+1 {{the block mask is made here}}
  %bm = tv.block_mask of [250, 250] blocks [192, 192] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi sle, %ki, %qi : index
      tv.yield %c : i1
    }
  // expected-error@+1 {{'tv.attention' op has a block mask of 250 queries and 250 keys in blocks of 192 and 192; it is of 250 queries and 250 keys in blocks of 128 and 128}}
  %o, %lse = tv.attention %x, %x, %x scale(0.125) block_mask(%bm) blocks [128, 128]
      : (!x, !x, !x, !bm) -> (!x, tensor<1x1x250xf32>)
  return %o : !x
}

// -----

!x = tensor<1x1x250x64xf32>
!lse = tensor<1x1x250xf32>
!bm = tensor<1x1x2x2xi8>
func.func @gradient(%x: !x, %lse: !lse) -> !x {
  // expected-note@+1 {{the block mask is made here}}
  %bm = tv.block_mask of [129, 250] blocks [128, 128] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi sle, %ki, %qi : index
      tv.yield %c : i1
    }
  // expected-error@+1 {{'tv.attention_grad' op has a block mask of 129 queries and 250 keys in blocks of 128 and 128; it is of 250 queries and 250 keys in blocks of 128 and 128}}
  %dq, %dk, %dv = tv.attention_grad %x, %x, %x, %x, %x, %lse scale(0.125) block_mask(%bm) blocks [128, 128]
      : (!x, !x, !x, !x, !x, !lse, !bm) -> (!x, !x, !x)
  return %dq : !x
}
