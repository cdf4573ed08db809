// RUN: tessera-opt %s --allow-unregistered-dialect --tv-differentiate -split-input-file -verify-diagnostics

// The way back from the loss to what has no gradient.
!x = tensor<1x1x2x4xf32>
!l = tensor<1x1x2xf32>
!loss = tensor<f32>
func.func private @f(%x: !x, %l: !l) -> !loss {
  // expected-error@+2 {{'tv.attention_grad' op has no gradient, and one is asked for}}
  // expected-note@+1 {{on the way back from what is differentiated through tv.reduce, tv.exp}}
  %0, %1, %2 = tv.attention_grad %x, %x, %x, %x, %x, %l scale(1.0)
      : (!x, !x, !x, !x, !x, !l) -> (!x, !x, !x)
  %e = tv.exp %0 : (!x) -> !x
  %s = tv.reduce sum %e dims [0, 1, 2, 3] : (!x) -> !loss
  return %s : !loss
}
func.func @g(%x: !x, %l: !l) -> !x {
  %y, %dx = tv.gradient @f(%x, %l) of [0] to [0] : (!x, !l) -> (!loss, !x)
  return %dx : !x
}

// -----

// The last update of a row alone has a part; of so many rows none can be told.
!x = tensor<?xf32>
!i = tensor<2xi32>
func.func private @f(%x: !x {tv.dims = ["b"]}, %i: !i, %u: tensor<2xf32>) -> !x attributes {tv.sizes = {b = 4}} {
  // expected-error@+1 {{'tv.scatter' op of 'set' has no gradient where the dimension that is set is dynamic}}
  %0 = tv.scatter set %x, %i, %u dim 0 : (!x, !i, tensor<2xf32>) -> !x
  return %0 : !x
}
func.func @g(%x: !x {tv.dims = ["b"]}, %i: !i, %u: tensor<2xf32>, %dy: !x {tv.dims = ["b"]}) -> !x attributes {tv.sizes = {b = 4}} {
  %y, %dx = tv.gradient @f(%x, %i, %u) of [0] with (%dy) to [0] : (!x, !i, tensor<2xf32>, !x) -> (!x, !x)
  return %dx : !x
}

// -----

// Not where nothing is asked for.
!x = tensor<4xf32>
func.func private @f(%x: !x, %y: !x) -> !x {
  %0 = tv.map %x, %y : (!x, !x) -> !x (%a: f32, %b: f32) {
    %i = arith.bitcast %b : f32 to i32
    %c = arith.sitofp %i : i32 to f32
    %p = arith.mulf %a, %c : f32
    tv.yield %p : f32
  }
  return %0 : !x
}
func.func @g(%x: !x) -> !x {
  %0, %1 = tv.gradient @f(%x, %x) of [0] with (%x) to [0] : (!x, !x, !x) -> (!x, !x)
  return %1 : !x
}

// -----

!x = tensor<4xf32>
func.func private @f(%x: !x) -> !x {
  %0 = tv.map %x : (!x) -> !x (%b: f32) {
    // expected-error@+1 {{'arith.bitcast' op has no gradient, and one is asked for}}
    %i = arith.bitcast %b : f32 to i32
    %c = arith.sitofp %i : i32 to f32
    tv.yield %c : f32
  }
  return %0 : !x
}
func.func @g(%x: !x) -> !x {
  %0, %1 = tv.gradient @f(%x) of [0] with (%x) to [0] : (!x, !x) -> (!x, !x)
  return %1 : !x
}

// -----

!x = tensor<4xf32>
func.func private @f(%x: !x) -> !x {
  // expected-error@+1 {{'tv.cast' op has no gradient, and one is asked for}}
  %0 = tv.cast %x : (!x) -> tensor<4xf8E4M3FN>
  // expected-note@-1 {{through tv.cast}}
  %1 = tv.cast %0 : (tensor<4xf8E4M3FN>) -> !x
  return %1 : !x
}
func.func @g(%x: !x) -> !x {
  %0, %1 = tv.gradient @f(%x) of [0] with (%x) to [0] : (!x, !x) -> (!x, !x)
  return %1 : !x
}

// -----

func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@+1 {{'f' asks for a gradient of itself}}
  %0, %1 = tv.gradient @f(%x) of [0] to [0] : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %1 : tensor<f32>
}

// -----

func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  "else.branch"()[^end] : () -> ()
^end:
  return %x : tensor<f32>
}
func.func @g(%x: tensor<f32>) -> tensor<f32> {
  // expected-error@+1 {{'f' has control flow; only straight-line functions have a gradient}}
  %0, %1 = tv.gradient @f(%x) of [0] to [0] : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %1 : tensor<f32>
}

// -----

// An extent that depends on a run-time size lies between.
!x = tensor<?xf32>
!y = tensor<?xf32>
func.func private @f(%x: !x) -> !y {
  // expected-error@+1 {{'tv.concat' op has no gradient along dimension 0, which is dynamic and not one operand's alone}}
  %0 = tv.concat %x, %x dim 0 : (!x, !x) -> !y
  return %0 : !y
}
func.func @g(%x: !x {tv.dims = ["b"]}, %dy: !y {tv.dims = ["c"]}) -> !x attributes {tv.sizes = {b = 4, c = 8}} {
  %0, %1 = tv.gradient @f(%x) of [0] with (%dy) to [0] : (!x, !y) -> (!y, !x)
  return %1 : !x
}

// -----

!x = tensor<4xf32>
func.func private @inner(%x: !x) -> !x {
  %0 = tv.neg %x : (!x) -> !x
  return %0 : !x
}
func.func private @f(%x: !x) -> !x {
  // expected-note@+2 {{on the way back from what is differentiated}}
  // expected-error@+1 {{'tv.call' op has no gradient, and one is asked for; tv-inline, run before, puts the function's ops in its place}}
  %0 = tv.call @inner(%x) : (!x) -> !x
  return %0 : !x
}
func.func @g(%x: !x) -> !x {
  %0, %1 = tv.gradient @f(%x) of [0] with (%x) to [0] : (!x, !x) -> (!x, !x)
  return %1 : !x
}
// -----

!q = tensor<1x2x4x8xf32>
!l = tensor<1x2x4xf32>
func.func @other_scale(%q: !q) -> (!q, !q, !q) {
  // expected-note@+1 {{the attention is here}}
  %y, %lse = tv.attention %q, %q, %q scale(0.5) : (!q, !q, !q) -> (!q, !l)
  // expected-error@+1 {{'tv.attention_grad' op differs from its attention in 'scale': 2.500000e-01 : f64 here, 5.000000e-01 : f64 there}}
  %0, %1, %2 = tv.attention_grad %q, %q, %q, %q, %y, %lse scale(0.25) : (!q, !q, !q, !q, !q, !l) -> (!q, !q, !q)
  return %0, %1, %2 : !q, !q, !q
}

// -----

!q = tensor<1x2x4x8xf32>
!l = tensor<1x2x4xf32>
func.func @not_causal(%q: !q) -> (!q, !q, !q) {
  // expected-note@+1 {{the attention is here}}
  %y, %lse = tv.attention %q, %q, %q scale(0.5) causal : (!q, !q, !q) -> (!q, !l)
  // expected-error@+1 {{'tv.attention_grad' op differs from its attention in 'causal': none here, it there}}
  %0, %1, %2 = tv.attention_grad %q, %q, %q, %q, %y, %lse scale(0.5) : (!q, !q, !q, !q, !q, !l) -> (!q, !q, !q)
  return %0, %1, %2 : !q, !q, !q
}

// -----

!q = tensor<1x2x4x8xf32>
!l = tensor<1x2x4xf32>
func.func @other_block_mask(%q: !q, %m: tensor<1x1x1x1xi8>, %n: tensor<1x1x1x1xi8>) -> (!q, !q, !q) {
  // expected-note@+1 {{the attention is here}}
  %y, %lse = tv.attention %q, %q, %q scale(0.5) block_mask(%m) blocks [64, 64] : (!q, !q, !q, tensor<1x1x1x1xi8>) -> (!q, !l)
  // expected-error@+1 {{'tv.attention_grad' op differs from its attention in its block mask}}
  %0, %1, %2 = tv.attention_grad %q, %q, %q, %q, %y, %lse scale(0.5) block_mask(%n) blocks [64, 64] : (!q, !q, !q, !q, !q, !l, tensor<1x1x1x1xi8>) -> (!q, !q, !q)
  return %0, %1, %2 : !q, !q, !q
}

// -----

!q = tensor<1x2x4x8xf32>
!l = tensor<1x2x4xf32>
func.func @no_sequences(%q: !q, %b: tensor<1x3xi32>) -> (!q, !q, !q) {
  // expected-note@+1 {{the attention is here}}
  %y, %lse = tv.attention %q, %q, %q scale(0.5) sequences(%b) : (!q, !q, !q, tensor<1x3xi32>) -> (!q, !l)
  // expected-error@+1 {{'tv.attention_grad' op differs from its attention in its sequences}}
  %0, %1, %2 = tv.attention_grad %q, %q, %q, %q, %y, %lse scale(0.5) : (!q, !q, !q, !q, !q, !l) -> (!q, !q, !q)
  return %0, %1, %2 : !q, !q, !q
}

// -----

!q = tensor<1x2x4x8xf32>
!l = tensor<1x2x4xf32>
func.func @tiles_of_other_sequences(%q: !q, %b: tensor<1x3xi32>, %c: tensor<1x3xi32>) -> (!q, !q, !q) {
  %t = tv.packed_tiles %c rows(64) : (tensor<1x3xi32>) -> tensor<1x24xi32>
  // expected-note@+1 {{the attention is here}}
  %y, %lse = tv.attention %q, %q, %q scale(0.5) sequences(%b) : (!q, !q, !q, tensor<1x3xi32>) -> (!q, !l)
  // expected-error@+1 {{'tv.attention_grad' op differs from its attention in its sequences}}
  %0, %1, %2 = tv.attention_grad %q, %q, %q, %q, %y, %lse scale(0.5) tiles(%t) : (!q, !q, !q, !q, !q, !l, tensor<1x24xi32>) -> (!q, !q, !q)
  return %0, %1, %2 : !q, !q, !q
}

// -----

!q = tensor<1x2x4x8xf32>
!l = tensor<1x2x4xf32>
func.func @other_mask_mod(%q: !q) -> (!q, !q, !q) {
  // expected-note@+1 {{the attention is here}}
  %y, %lse = tv.attention %q, %q, %q scale(0.5) : (!q, !q, !q) -> (!q, !l)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %m = arith.cmpi sle, %ki, %qi : index
      tv.yield %m : i1
    }
  // expected-error@+1 {{'tv.attention_grad' op differs from its attention in its mask_mod}}
  %0, %1, %2 = tv.attention_grad %q, %q, %q, %q, %y, %lse scale(0.5) : (!q, !q, !q, !q, !q, !l) -> (!q, !q, !q)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %m = arith.cmpi slt, %ki, %qi : index
      tv.yield %m : i1
    }
  return %0, %1, %2 : !q, !q, !q
}

// -----

!q = tensor<1x2x4x8xf32>
!l = tensor<1x2x4xf32>
func.func @two_attentions(%q: !q, %k: !q) -> (!q, !q, !q) {
  // expected-note@+1 {{the attention is here}}
  %y, %lse = tv.attention %q, %q, %q scale(0.5) : (!q, !q, !q) -> (!q, !l)
  %z, %other = tv.attention %q, %k, %k scale(0.5) : (!q, !q, !q) -> (!q, !l)
  // expected-error@+1 {{'tv.attention_grad' op has the output of one attention, and the log-sum-exp of another}}
  %0, %1, %2 = tv.attention_grad %q, %q, %q, %q, %y, %other scale(0.5) : (!q, !q, !q, !q, !q, !l) -> (!q, !q, !q)
  return %0, %1, %2 : !q, !q, !q
}

// -----

!q = tensor<1x2x4x8xf32>
!l = tensor<1x2x4xf32>
func.func @other_key(%q: !q) -> (!q, !q, !q) {
  %k = tv.neg %q : (!q) -> !q
  // expected-note@+1 {{the attention is here}}
  %y, %lse = tv.attention %q, %q, %q scale(0.5) : (!q, !q, !q) -> (!q, !l)
  // expected-error@+1 {{'tv.attention_grad' op differs from its attention in its key}}
  %0, %1, %2 = tv.attention_grad %q, %q, %k, %q, %y, %lse scale(0.5) : (!q, !q, !q, !q, !q, !l) -> (!q, !q, !q)
  return %0, %1, %2 : !q, !q, !q
}

// -----

// Behind a barrier, and where only its log-sum-exp is known, it is the attention's as well.
!q = tensor<1x2x4x8xf32>
!l = tensor<1x2x4xf32>
func.func @behind_a_barrier(%q: !q, %o: !q) -> (!q, !q, !q) {
  // expected-note@+1 {{the attention is here}}
  %y, %lse = tv.attention %q, %q, %q scale(0.5) : (!q, !q, !q) -> (!q, !l)
  %b = tv.barrier none %lse : (!l) -> !l
  // expected-error@+1 {{'tv.attention_grad' op differs from its attention in 'scale'}}
  %0, %1, %2 = tv.attention_grad %q, %q, %q, %q, %o, %b scale(0.25) : (!q, !q, !q, !q, !q, !l) -> (!q, !q, !q)
  return %0, %1, %2 : !q, !q, !q
}

// -----

// Where its ops go nobody would look at what a function checks.
!x = tensor<4xf32>
func.func private @checked(%x: !x) -> (tensor<f32>, tensor<4xi32> {tv.check = "x is not whole"}) {
  %s = tv.reduce sum %x dims [0] : (!x) -> tensor<f32>
  %n = tv.map %x : (!x) -> tensor<4xi32> (%e: f32) {
    %i = arith.fptosi %e : f32 to i32
    tv.yield %i : i32
  }
  return %s, %n : tensor<f32>, tensor<4xi32>
}
func.func @of_checked(%x: !x) -> !x {
  // expected-error@+1 {{'checked' checks result #1; 'tv.check' is of the results of the function that runs}}
  %s, %n, %dx = tv.gradient @checked(%x) of [0] to [0] : (!x) -> (tensor<f32>, tensor<4xi32>, !x)
  return %dx : !x
}

// -----

// What a score loads may be made twice, and the mask go through a barrier.
!q = tensor<1x2x4x8xf32>
!l = tensor<1x2x4xf32>
func.func @made_twice(%q: !q, %h: tensor<2x4xf16>, %m: tensor<1x1x1x1xi8>) -> !q {
  %a = tv.cast %h : (tensor<2x4xf16>) -> tensor<2x4xf32>
  %b = tv.cast %h : (tensor<2x4xf16>) -> tensor<2x4xf32>
  %n = tv.barrier none %m : (tensor<1x1x1x1xi8>) -> tensor<1x1x1x1xi8>
  %y, %lse = tv.attention %q, %q, %q scale(0.5) block_mask(%m) blocks [64, 64] : (!q, !q, !q, tensor<1x1x1x1xi8>) -> (!q, !l)
    score_mod (%s: f32, %b0: index, %hi: index, %qi: index, %ki: index) {
      %x = tv.load %a[%hi, %qi] : tensor<2x4xf32> -> f32
      %z = arith.addf %s, %x : f32
      tv.yield %z : f32
    }
  %0, %1, %2 = tv.attention_grad %q, %q, %q, %q, %y, %lse scale(0.5) block_mask(%n) blocks [64, 64] : (!q, !q, !q, !q, !q, !l, tensor<1x1x1x1xi8>) -> (!q, !q, !q)
    score_mod (%s: f32, %b0: index, %hi: index, %qi: index, %ki: index) {
      %x = tv.load %b[%hi, %qi] : tensor<2x4xf32> -> f32
      %z = arith.addf %s, %x : f32
      tv.yield %z : f32
    }
  return %0 : !q
}

// -----

// The same mask made twice, and tiles of the same sequences, are the same.
!q = tensor<1x2x4x8xf32>
!l = tensor<1x2x4xf32>
func.func @alike(%q: !q, %b: tensor<1x3xi32>) -> (!q, !q) {
  %m = tv.block_mask of [4, 4] blocks [64, 64] : () -> tensor<1x1x1x1xi8>
    mask_mod (%b0: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi slt, %ki, %qi : index
      tv.yield %c : i1
    }
  %n = tv.block_mask of [4, 4] blocks [64, 64] : () -> tensor<1x1x1x1xi8>
    mask_mod (%b0: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi slt, %ki, %qi : index
      tv.yield %c : i1
    }
  %y, %lse = tv.attention %q, %q, %q scale(0.5) block_mask(%m) blocks [64, 64] : (!q, !q, !q, tensor<1x1x1x1xi8>) -> (!q, !l)
  %0, %1, %2 = tv.attention_grad %q, %q, %q, %q, %y, %lse scale(0.5) block_mask(%n) blocks [64, 64] : (!q, !q, !q, !q, !q, !l, tensor<1x1x1x1xi8>) -> (!q, !q, !q)
  %t = tv.packed_tiles %b rows(64) : (tensor<1x3xi32>) -> tensor<1x24xi32>
  %z, %other = tv.attention %q, %q, %q scale(0.5) sequences(%b) : (!q, !q, !q, tensor<1x3xi32>) -> (!q, !l)
  %3, %4, %5 = tv.attention_grad %q, %q, %q, %q, %z, %other scale(0.5) tiles(%t) : (!q, !q, !q, !q, !q, !l, tensor<1x24xi32>) -> (!q, !q, !q)
  return %0, %3 : !q, !q
}

// -----

// A block mask of another mask: blocks that it keeps whole are not asked.
!q = tensor<1x2x200x64xf32>
func.func @main(%q: !q) -> !q {
  // expected-note@+1 {{the block mask is here}}
  %bm = tv.block_mask of [200, 200] blocks [128, 128] : () -> tensor<1x1x2x2xi8>
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi sle, %ki, %qi : index
      tv.yield %c : i1
    }
  // expected-error@+1 {{'tv.attention' op has another mask_mod than its block mask; write the same in both}}
  %a, %lse = tv.attention %q, %q, %q scale(0.125) block_mask(%bm) blocks [128, 128] : (!q, !q, !q, tensor<1x1x2x2xi8>) -> (!q, tensor<1x2x200xf32>)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi slt, %ki, %qi : index
      tv.yield %c : i1
    }
  return %a : !q
}
