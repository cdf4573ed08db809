// Packed sequences, on any target and at any split: of heads, and of positions, which a
// kernel for GPUs does not take.
// RUN: tessera-opt %s --split-input-file --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --split-input-file --tessera="mesh=x=2 to=local" --interpret=2 -o /dev/null
// RUN: tessera-opt %t --split-input-file --tessera="mesh=x=3 to=kernels" --interpret=3 -o /dev/null

// Where sequences begin is data, which need not rise, and so are positions of none: one
// that would begin before the end of another begins there. Positions over x.
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!q = tensor<1x2x50x4xf32, #tv.view<#m, [_, _, did(x) * _, _]>>
!k = tensor<1x2x50x4xf32>
!lse = tensor<1x2x50xf32>
func.func @main(%q: !q, %k: !k, %v: !k, %begins: tensor<1x9xi32> {tv.range = [-3, 53]})
    -> (!q, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(0.5) sequences(%begins)
      : (!q, !k, !k, tensor<1x9xi32>) -> (!q, !lse)
  return %a, %lse : !q, !lse
}

// -----

// The gradient, heads over x in groups of two, a window besides.
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!q = tensor<1x4x50x4xf32, #tv.view<#m, [_, (did(x) * _ | 2) * 2, _, _]>>
!k = tensor<1x2x50x4xf32, #tv.view<#m, [_, did(x) * _, _, _]>>
!lse = tensor<1x4x50xf32>
func.func private @attend(%q: !q, %k: !k, %v: !k, %begins: tensor<1x4xi32>) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.25) causal sequences(%begins)
      : (!q, !k, !k, tensor<1x4xi32>) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %width = arith.constant 12 : index
      %d = arith.subi %qi, %ki : index
      %c = arith.cmpi slt, %d, %width : index
      tv.yield %c : i1
    }
  return %a : !q
}
func.func @main(%q: !q, %k: !k, %v: !k, %begins: tensor<1x4xi32> {tv.range = [0, 51]}, %dy: !q)
    -> (!q, !q, !k, !k) {
  %y, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v, %begins) of [0] with (%dy) to [0, 1, 2]
    : (!q, !k, !k, tensor<1x4xi32>, !q) -> (!q, !q, !k, !k)
  return %y, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// The gradient of a bias by head and query, positions over x; the list of tiles, of both
// orders, whose words are the same on all devices.
// RAN x=1: nothing
// RAN x=2: all-reduce 600 bytes 0 copies
// RAN x=3: all-reduce 800 bytes 0 copies
// RAN x=4: all-reduce 904 bytes 0 copies
#m = #tv.mesh<x = 2>
!q = tensor<1x3x50x4xf32, #tv.view<#m, [_, _, did(x) * _, _]>>
!k = tensor<1x3x50x4xf32>
!lse = tensor<1x3x50xf32>
!bias_of_lse = tensor<3x50xf32>
!begins = tensor<1x6xi32>
func.func private @attend(%q: !q, %k: !k, %v: !k, %begins: !begins, %bias: !bias_of_lse) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.5) sequences(%begins)
      : (!q, !k, !k, !begins) -> (!q, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %bias[%h, %qi] : !bias_of_lse -> f32
      %y = arith.mulf %s, %x : f32
      tv.yield %y : f32
    }
  return %a : !q
}
func.func @main(%q: !q, %k: !k, %v: !k, %begins: !begins {tv.range = [0, 51]}, %bias: !bias_of_lse,
                %dy: !q) -> (!q, !q, !bias_of_lse, tensor<1x94xi32>, tensor<1x94xi32>) {
  %y, %dq, %db = tv.gradient @attend(%q, %k, %v, %begins, %bias) of [0] with (%dy) to [0, 4]
    : (!q, !k, !k, !begins, !bias_of_lse, !q) -> (!q, !q, !bias_of_lse)
  %causal = tv.packed_tiles %begins rows(8) causal : (!begins) -> tensor<1x94xi32>
  %all = tv.packed_tiles %begins rows(8) : (!begins) -> tensor<1x94xi32>
  return %y, %dq, %db, %causal, %all
    : !q, !q, !bias_of_lse, tensor<1x94xi32>, tensor<1x94xi32>
}

// -----

// Each batch has its own, and batches lie over x, whole where that divides them; the
// gradient, and the list of the tiles.
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!q = tensor<3x2x40x4xf32, #tv.view<#m, [did(x) * _, _, _, _]>>
!lse = tensor<3x2x40xf32>
!begins = tensor<3x6xi32>
!tiles = tensor<3x84xi32, #tv.view<#m, [did(x) * _, _]>>
func.func private @attend(%q: !q, %k: !q, %v: !q, %begins: !begins) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.5) causal sequences(%begins)
      : (!q, !q, !q, !begins) -> (!q, !lse)
  return %a : !q
}
func.func @main(%q: !q, %k: !q, %v: !q, %begins: !begins {tv.range = [0, 41]}, %dy: !q)
    -> (!q, !q, !q, !q, !tiles) {
  %y, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v, %begins) of [0] with (%dy) to [0, 1, 2]
    : (!q, !q, !q, !begins, !q) -> (!q, !q, !q, !q)
  %tiles = tv.packed_tiles %begins rows(16) : (!begins) -> !tiles
  return %y, %dq, %dk, %dv, %tiles : !q, !q, !q, !q, !tiles
}

// -----

// Of each sequence its used length alone, which may be below 0 or beyond its end: what is
// behind it is of none. Positions over x.
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!q = tensor<1x2x50x4xf32, #tv.view<#m, [_, _, did(x) * _, _]>>
!k = tensor<1x2x50x4xf32>
!lse = tensor<1x2x50xf32>
!begins = tensor<1x9xi32>
!used = tensor<1x8xi32>
!tiles = tensor<1x118xi32>
func.func @main(%q: !q, %k: !k, %v: !k, %begins: !begins {tv.range = [-3, 53]},
                %used: !used {tv.range = [-3, 12]}) -> (!q, !lse, !tiles, !tiles) {
  %a, %lse = tv.attention %q, %k, %v scale(0.5) sequences(%begins) used(%used)
      : (!q, !k, !k, !begins, !used) -> (!q, !lse)
  %causal = tv.packed_tiles %begins used %used rows(4) causal : (!begins, !used) -> !tiles
  %all = tv.packed_tiles %begins used %used rows(4) : (!begins, !used) -> !tiles
  return %a, %lse, %causal, %all : !q, !lse, !tiles, !tiles
}

// -----

// The gradient, heads over x in groups of two, with one of the log-sum-exp.
// RAN x=1: nothing
// RAN x=2: nothing
// RAN x=3: nothing
// RAN x=4: nothing
#m = #tv.mesh<x = 2>
!q = tensor<1x4x50x4xf32, #tv.view<#m, [_, (did(x) * _ | 2) * 2, _, _]>>
!k = tensor<1x2x50x4xf32, #tv.view<#m, [_, did(x) * _, _, _]>>
!lse = tensor<1x4x50xf32>
!begins = tensor<1x5xi32>
!used = tensor<1x4xi32>
func.func private @attend(%q: !q, %k: !k, %v: !k, %begins: !begins, %used: !used) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.25) causal sequences(%begins) used(%used)
      : (!q, !k, !k, !begins, !used) -> (!q, !lse)
  return %a : !q
}
func.func @main(%q: !q, %k: !k, %v: !k, %begins: !begins {tv.range = [0, 51]},
                %used: !used {tv.range = [-2, 25]}, %dy: !q) -> (!q, !q, !k, !k) {
  %y, %dq, %dk, %dv = tv.gradient @attend(%q, %k, %v, %begins, %used) of [0] with (%dy)
    to [0, 1, 2] : (!q, !k, !k, !begins, !used, !q) -> (!q, !q, !k, !k)
  return %y, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// Batches over x, and a bias with a gradient.
// RAN x=1: nothing
// RAN x=2: all-reduce 320 bytes 0 copies
// RAN x=3: all-reduce 428 bytes 0 copies
// RAN x=4: all-reduce 480 bytes 0 copies
#m = #tv.mesh<x = 2>
!q = tensor<3x2x40x4xf32, #tv.view<#m, [did(x) * _, _, _, _]>>
!lse = tensor<3x2x40xf32>
!bias_of_lse = tensor<2x40xf32>
!begins = tensor<3x6xi32>
!used = tensor<3x5xi32>
!tiles = tensor<3x84xi32, #tv.view<#m, [did(x) * _, _]>>
func.func private @attend(%q: !q, %k: !q, %v: !q, %begins: !begins, %used: !used,
                          %bias: !bias_of_lse) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.5) causal sequences(%begins) used(%used)
      : (!q, !q, !q, !begins, !used) -> (!q, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %bias[%h, %qi] : !bias_of_lse -> f32
      %y = arith.mulf %s, %x : f32
      tv.yield %y : f32
    }
  return %a : !q
}
func.func @main(%q: !q, %k: !q, %v: !q, %begins: !begins {tv.range = [0, 41]},
                %used: !used {tv.range = [-1, 20]}, %bias: !bias_of_lse, %dy: !q)
    -> (!q, !q, !q, !q, !bias_of_lse, !tiles) {
  %y, %dq, %dk, %dv, %db = tv.gradient @attend(%q, %k, %v, %begins, %used, %bias) of [0]
    with (%dy) to [0, 1, 2, 5]
    : (!q, !q, !q, !begins, !used, !bias_of_lse, !q) -> (!q, !q, !q, !q, !bias_of_lse)
  %tiles = tv.packed_tiles %begins used %used rows(16) : (!begins, !used) -> !tiles
  return %y, %dq, %dk, %dv, %db, %tiles : !q, !q, !q, !q, !bias_of_lse, !tiles
}
