// Attention with block masks, on any target and at any split: of queries, where a
// device's queries begin inside of a block, of heads and of the batch.
// RUN: tessera-opt %s --split-input-file --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --split-input-file --tessera="mesh=x=2 to=local" --interpret=2 -o /dev/null
// RUN: tessera-opt %t --split-input-file --tessera="mesh=x=3 to=kernels" --interpret=3 -o /dev/null

// Causal, built by the program, queries over x; and its gradient. 150 queries are
// blocks of 64, 64 and 22.
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!q = tensor<1x2x150x4xf32, #tv.view<#m, [_, _, did(x) * _, _]>>
!k = tensor<1x2x150x4xf32>
!lse = tensor<1x2x150xf32>
func.func @main(%q: !q, %k: !k, %v: !k) -> (!q, tensor<1x1x3x3xi8>) {
  %bm = tv.block_mask of [150, 150] blocks [64, 64] : () -> tensor<1x1x3x3xi8>
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi sle, %ki, %qi : index
      tv.yield %c : i1
    }
  %a, %lse = tv.attention %q, %k, %v scale(0.5) block_mask(%bm) blocks [64, 64]
      : (!q, !k, !k, tensor<1x1x3x3xi8>) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.cmpi sle, %ki, %qi : index
      tv.yield %c : i1
    }
  return %a, %bm : !q, tensor<1x1x3x3xi8>
}

// -----

// A window, heads over x in groups of two, blocks that are no square; the gradient.
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!q = tensor<2x4x130x4xf32, #tv.view<#m, [_, (did(x) * _ | 2) * 2, _, _]>>
!k = tensor<2x2x200x4xf32, #tv.view<#m, [_, did(x) * _, _, _]>>
!lse = tensor<2x4x130xf32>
!bm = tensor<1x1x3x2xi8>
func.func private @attend(%q: !q, %k: !k, %v: !k) -> !q {
  %bm = tv.block_mask of [130, 200] blocks [64, 128] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %width = arith.constant 40 : index
      %d = arith.subi %qi, %ki : index
      %c = arith.cmpi ult, %d, %width : index
      tv.yield %c : i1
    }
  %a, %lse = tv.attention %q, %k, %v scale(0.25) block_mask(%bm) blocks [64, 128]
      : (!q, !k, !k, !bm) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %width = arith.constant 40 : index
      %d = arith.subi %qi, %ki : index
      %c = arith.cmpi ult, %d, %width : index
      tv.yield %c : i1
    }
  return %a : !q
}
func.func @main(%q: !q, %k: !k, %v: !k, %dy: !q) -> (!q, !q, !k, !k) {
  %y, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v) of [0] with (%dy) to [0, 1, 2]
    : (!q, !k, !k, !q) -> (!q, !q, !k, !k)
  return %y, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// Documents, another mask each sequence, batch over x: what is loaded says which. A
// bias with a gradient besides.
// RAN x=1: nothing
// RAN x=2: all-reduce 1040 bytes 0 copies
// RAN x=3: all-reduce 1388 bytes 0 copies
// RAN x=4: all-reduce 1560 bytes 0 copies
#m = #tv.mesh<x = 2>
!q = tensor<3x2x130x4xf32, #tv.view<#m, [did(x) * _, _, _, _]>>
!lse = tensor<3x2x130xf32>
!bias_of_lse = tensor<2x130xf32>
!ids = tensor<3x130xi32>
!bm = tensor<3x1x3x3xi8>
func.func private @attend(%q: !q, %k: !q, %v: !q, %ids: !ids, %bias: !bias_of_lse) -> !q {
  %bm = tv.block_mask of [130, 130] blocks [64, 64] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %ids[%b, %qi] : !ids -> i32
      %j = tv.load %ids[%b, %ki] : !ids -> i32
      %same = arith.cmpi eq, %i, %j : i32
      tv.yield %same : i1
    }
  %a, %lse = tv.attention %q, %k, %v scale(0.5) causal block_mask(%bm) blocks [64, 64]
      : (!q, !q, !q, !bm) -> (!q, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %bias[%h, %qi] : !bias_of_lse -> f32
      %y = arith.mulf %s, %x : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %ids[%b, %qi] : !ids -> i32
      %j = tv.load %ids[%b, %ki] : !ids -> i32
      %same = arith.cmpi eq, %i, %j : i32
      tv.yield %same : i1
    }
  return %a : !q
}
func.func @main(%q: !q, %k: !q, %v: !q, %ids: !ids {tv.range = [0, 2]}, %bias: !bias_of_lse,
                %dy: !q) -> (!q, !q, !q, !q, !bias_of_lse) {
  %y, %dq, %dk, %dv, %db = tv.gradient @attend(%q, %k, %v, %ids, %bias) of [0] with (%dy)
    to [0, 1, 2, 4]
    : (!q, !q, !q, !ids, !bias_of_lse, !q) -> (!q, !q, !q, !q, !bias_of_lse)
  return %y, %dq, %dk, %dv, %db : !q, !q, !q, !q, !bias_of_lse
}

// -----

// A mask that is data, by head, heads over x; kinds that no mask_mod agrees with, numbers
// that are no kinds, which count as 1, and rows that see nothing.
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!q = tensor<1x4x130x4xf32, #tv.view<#m, [_, did(x) * _, _, _]>>
!lse = tensor<1x4x130xf32>
!bm = tensor<1x4x3x3xi8>
func.func @main(%q: !q, %k: !q, %v: !q, %bm: !bm {tv.range = [-1, 4]}) -> (!q, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.5) block_mask(%bm) blocks [64, 64]
      : (!q, !q, !q, !bm) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %two = arith.constant 2 : index
      %sum = arith.addi %qi, %ki : index
      %odd = arith.remui %sum, %two : index
      %zero = arith.constant 0 : index
      %c = arith.cmpi eq, %odd, %zero : index
      tv.yield %c : i1
    }
  return %a, %lse : !q, !lse
}

// -----

// Documents, causal, heads over x: the mask is of what all heads load.
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!q = tensor<1x4x150x4xf32, #tv.view<#m, [_, did(x) * _, _, _]>>
!lse = tensor<1x4x150xf32>
!ids = tensor<150xi32>
!bm = tensor<1x1x3x3xi8>
func.func @main(%q: !q, %k: !q, %v: !q, %ids: !ids {tv.range = [0, 2]}) -> (!q, !bm) {
  %bm = tv.block_mask of [150, 150] blocks [64, 64] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %ids[%qi] : !ids -> i32
      %j = tv.load %ids[%ki] : !ids -> i32
      %same = arith.cmpi eq, %i, %j : i32
      %before = arith.cmpi sle, %ki, %qi : index
      %c = arith.andi %same, %before : i1
      tv.yield %c : i1
    }
  %a, %lse = tv.attention %q, %k, %v scale(0.5) block_mask(%bm) blocks [64, 64]
      : (!q, !q, !q, !bm) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %ids[%qi] : !ids -> i32
      %j = tv.load %ids[%ki] : !ids -> i32
      %same = arith.cmpi eq, %i, %j : i32
      %before = arith.cmpi sle, %ki, %qi : index
      %c = arith.andi %same, %before : i1
      tv.yield %c : i1
    }
  return %a, %bm : !q, !bm
}

// -----

// Documents of some 40 positions, sorted, as a sum of steps says;
// another order each batch, queries over x, more keys than queries. Most blocks are decided.
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!q = tensor<2x2x130x4xf32, #tv.view<#m, [_, _, did(x) * _, _]>>
!k = tensor<2x2x200x4xf32>
!lse = tensor<2x2x130xf32>
!ids = tensor<2x200xi32>
!bm = tensor<2x1x3x2xi8>
func.func @main(%q: !q, %k: !k, %v: !k, %steps: !ids {tv.range = [0, 2]}) -> (!q, !bm) {
  %ids = tv.cumsum %steps dim 1 : (!ids) -> !ids
  %bm = tv.block_mask of [130, 200] blocks [64, 128] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %ids[%b, %qi] : !ids -> i32
      %j = tv.load %ids[%b, %ki] : !ids -> i32
      %n = arith.constant 20 : i32
      %x = arith.divsi %i, %n : i32
      %y = arith.divsi %j, %n : i32
      %same = arith.cmpi eq, %x, %y : i32
      tv.yield %same : i1
    }
  %a, %lse = tv.attention %q, %k, %v scale(0.25) block_mask(%bm) blocks [64, 128]
      : (!q, !k, !k, !bm) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %ids[%b, %qi] : !ids -> i32
      %j = tv.load %ids[%b, %ki] : !ids -> i32
      %n = arith.constant 20 : i32
      %x = arith.divsi %i, %n : i32
      %y = arith.divsi %j, %n : i32
      %same = arith.cmpi eq, %x, %y : i32
      tv.yield %same : i1
    }
  return %a, %bm : !q, !bm
}

// -----

// Lengths of batches and a limit of heads, keys over x; a window as two comparisons.
// RAN x=1: nothing
// RAN x=2: all-gather of 2 8320 bytes 2 copies
// RAN x=3: all-gather of 2 11264 bytes 2 copies
// RAN x=4: all-gather of 2 12672 bytes 2 copies
#m = #tv.mesh<x = 2>
!q = tensor<2x2x130x4xf32>
!k = tensor<2x2x130x4xf32, #tv.view<#m, [_, _, did(x) * _, _]>>
!lse = tensor<2x2x130xf32>
!bm = tensor<2x2x3x3xi8>
func.func @main(%q: !q, %k: !k, %v: !k, %ends: tensor<2xi32> {tv.range = [0, 130]},
                %widths: tensor<2xi64> {tv.range = [1, 90]}) -> (!q, !bm) {
  %bm = tv.block_mask of [130, 130] blocks [64, 64] : () -> !bm
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %e = tv.load %ends[%b] : tensor<2xi32> -> i32
      %w = tv.load %widths[%h] : tensor<2xi64> -> i64
      %end = arith.index_cast %e : i32 to index
      %width = arith.index_cast %w : i64 to index
      %d = arith.subi %qi, %ki : index
      %near = arith.cmpi slt, %d, %width : index
      %before = arith.cmpi sle, %ki, %qi : index
      %both = arith.andi %near, %before : i1
      %in = arith.cmpi slt, %ki, %end : index
      %c = arith.andi %both, %in : i1
      tv.yield %c : i1
    }
  %a, %lse = tv.attention %q, %k, %v scale(0.5) block_mask(%bm) blocks [64, 64]
      : (!q, !k, !k, !bm) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %e = tv.load %ends[%b] : tensor<2xi32> -> i32
      %w = tv.load %widths[%h] : tensor<2xi64> -> i64
      %end = arith.index_cast %e : i32 to index
      %width = arith.index_cast %w : i64 to index
      %d = arith.subi %qi, %ki : index
      %near = arith.cmpi slt, %d, %width : index
      %before = arith.cmpi sle, %ki, %qi : index
      %both = arith.andi %near, %before : i1
      %in = arith.cmpi slt, %ki, %end : index
      %c = arith.andi %both, %in : i1
      tv.yield %c : i1
    }
  return %a, %bm : !q, !bm
}
