// The gradients of attention. Split by heads or by batch each device has its own; what
// all of them add to, a captured tensor or the key of a group, is summed. Query blocks
// sum the keys' gradients and the values', key blocks the queries'.
// RUN: tessera-opt %s --split-input-file --tessera="to=local" --interpret=2 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels" --interpret=4 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=kernels target=cuda:sm_90a" --interpret=2 -o /dev/null

// By heads: nothing moves.
// CHECK-LABEL: func.func @main
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!h = tensor<2x6x5x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!x = tensor<2x6x5x4xf32>
!lse = tensor<2x6x5xf32>
func.func @main(%do: !h, %dlse: !lse, %q: !h, %k: !h, %v: !h) -> (!x, !x, !x, !x) {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) causal : (!h, !h, !h) -> (!x, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse dlse %dlse scale(0.5) causal
      : (!h, !h, !h, !h, !x, !lse, !lse) -> (!x, !x, !x)
  return %o, %dq, %dk, %dv : !x, !x, !x, !x
}

// -----

// By batch, with a bias of heads and queries and a factor of all scores: each is summed
// over the devices.
// CHECK-LABEL: func.func @main
// CHECK: tv.attention_grad
// CHECK: score_grad
// CHECK: :2 = comm.all_reduce
// CHECK-NOT: comm.
// CHECK: return


// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 44 bytes 0 copies
// RAN tp=3: all-reduce of 2 64 bytes 0 copies
// RAN tp=4: all-reduce of 2 76 bytes 0 copies
#m = #tv.mesh<tp = 2>
!h = tensor<4x2x5x4xf32, #tv.view<#m, [did(tp) * _, _, _, _]>>
!x = tensor<4x2x5x4xf32>
!lse = tensor<4x2x5xf32>
!bias_of_lse = tensor<2x5xf32>
!scalar_of_lse = tensor<f32>
func.func @main(%do: !h, %q: !h, %k: !h, %v: !h, %bias: !bias_of_lse, %gain: !scalar_of_lse)
    -> (!x, !x, !x, !bias_of_lse, !scalar_of_lse) {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) : (!h, !h, !h) -> (!x, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = tv.load %bias[%h, %qi] : !bias_of_lse -> f32
      %g = tv.load %gain[] : !scalar_of_lse -> f32
      %t = arith.mulf %s, %g : f32
      %y = arith.addf %t, %c : f32
      tv.yield %y : f32
    }
  %dq, %dk, %dv, %dbias, %dgain = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.5)
      captured %bias, %gain
      : (!h, !h, !h, !h, !x, !lse, !bias_of_lse, !scalar_of_lse) -> (!x, !x, !x, !bias_of_lse, !scalar_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = tv.load %bias[%h, %qi] : !bias_of_lse -> f32
      %g = tv.load %gain[] : !scalar_of_lse -> f32
      %t = arith.mulf %s, %g : f32
      %y = arith.addf %t, %c : f32
      tv.yield %y : f32
    }
  return %dq, %dk, %dv, %dbias, %dgain : !x, !x, !x, !bias_of_lse, !scalar_of_lse
}

// -----

// Query blocks, causal, with fewer queries than keys: the keys' gradients are partial.
// CHECK-LABEL: func.func @main
// CHECK: tv.attention_grad
// CHECK: :2 = comm.all_reduce
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 896 bytes 0 copies
// RAN tp=3: all-reduce of 2 1200 bytes 0 copies
// RAN tp=4: all-reduce of 2 1344 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<2x2x6x4xf32, #tv.view<#m, [_, _, did(tp) * _, _]>>
!k = tensor<2x2x7x4xf32, #tv.view<#m, [_, _, _, _]>>
!o = tensor<2x2x6x4xf32>
!lse = tensor<2x2x6xf32>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k) -> (!o, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) causal : (!q, !k, !k) -> (!o, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.5) causal
      : (!q, !q, !k, !k, !o, !lse) -> (!o, !k, !k)
  return %dq, %dk, %dv : !o, !k, !k
}

// -----

// Key blocks: the queries' gradient and those of captured tensors are partial, all in
// one. What went into the softmax is given. More queries than keys: the first rows have
// none. A soft cap, and a bias of relative positions.
// CHECK-LABEL: func.func @main
// CHECK: tv.attention_grad
// CHECK: :2 = comm.all_reduce
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 640 bytes 0 copies
// RAN tp=3: all-reduce of 2 856 bytes 0 copies
// RAN tp=4: all-reduce of 2 960 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<2x2x8x4xf32, #tv.view<#m, [_, _, _, _]>>
!k = tensor<2x2x6x4xf32, #tv.view<#m, [_, _, did(tp) * _, _]>>
!v = tensor<2x2x6x12xf32, #tv.view<#m, [_, _, did(tp) * _, _]>>
!o = tensor<2x2x8x12xf32, #tv.view<#m, [_, _, _, _]>>
!lse = tensor<2x2x8xf32, #tv.view<#m, [_, _, _]>>
!rel_of_lse = tensor<2x16xf32, #tv.view<#m, [_, _]>>
func.func @main(%do: !o, %q: !q, %k: !k, %v: !v, %o: !o, %any: !lse, %rel: !rel_of_lse)
    -> (!q, !k, !v, !rel_of_lse) {
  // Large enough that no weight is above 1.
  %lse = tv.map %any : (!lse) -> !lse
    (%x: f32) { // of lse
      %least = arith.constant 2.0 : f32 // of lse
      %square = arith.mulf %x, %x : f32 // of lse
      %l = arith.addf %square, %least : f32 // of lse
      tv.yield %l : f32 // of lse
    }
  %dq, %dk, %dv, %drel = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(-0.5) causal
      captured %rel : (!o, !q, !k, !v, !o, !lse, !rel_of_lse) -> (!q, !k, !v, !rel_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %eight = arith.constant 8 : index
      %d = arith.subi %qi, %ki : index
      %at = arith.addi %d, %eight : index
      %r = tv.load %rel[%h, %at] : !rel_of_lse -> f32
      %t = arith.addf %s, %r : f32
      %cap = arith.constant 1.5 : f32
      %u = arith.divf %t, %cap : f32
      %w = math.tanh %u : f32
      %y = arith.mulf %w, %cap : f32
      tv.yield %y : f32
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %four = arith.constant 4 : index
      %d = arith.subi %qi, %ki : index
      %m = arith.cmpi slt, %d, %four : index
      tv.yield %m : i1
    }
  return %dq, %dk, %dv, %drel : !q, !k, !v, !rel_of_lse
}

// -----

// Grouped queries: on 2 devices each has the heads of one key head, and what is moved is
// its gradients to the other device.
// CHECK-LABEL: func.func @main
// CHECK: comm.all_gather
// CHECK: comm.all_gather
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 24 bytes 0 copies, all-gather of 2 320 bytes 2 copies
// RAN tp=3: all-gather 640 bytes 1 copies, all-gather 640 bytes 1 copies
// RAN tp=4: all-gather 960 bytes 1 copies, all-gather 960 bytes 1 copies
#m = #tv.mesh<tp = 2>
!q = tensor<2x6x5x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<2x2x5x4xf32, #tv.view<#m, [_, _, _, _]>>
!o = tensor<2x6x5x4xf32>
!lse = tensor<2x6x5xf32>
!slopes_of_lse = tensor<6xf32>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k, %slopes: !slopes_of_lse) -> (!o, !k, !k, !slopes_of_lse) {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) causal : (!q, !k, !k) -> (!o, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %a = tv.load %slopes[%h] : !slopes_of_lse -> f32
      %d = arith.subi %ki, %qi : index
      %i = arith.index_cast %d : index to i32
      %f = arith.sitofp %i : i32 to f32
      %r = arith.mulf %a, %f : f32
      %y = arith.addf %s, %r : f32
      tv.yield %y : f32
    }
  %dq, %dk, %dv, %ds = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.5) causal
      captured %slopes : (!q, !q, !k, !k, !o, !lse, !slopes_of_lse) -> (!o, !k, !k, !slopes_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %a = tv.load %slopes[%h] : !slopes_of_lse -> f32
      %d = arith.subi %ki, %qi : index
      %i = arith.index_cast %d : index to i32
      %f = arith.sitofp %i : i32 to f32
      %r = arith.mulf %a, %f : f32
      %y = arith.addf %s, %r : f32
      tv.yield %y : f32
    }
  return %dq, %dk, %dv, %ds : !o, !k, !k, !slopes_of_lse
}

// -----

// One key head for all: each device has a part of its gradients, and what one adds at an
// index outside of the tensor is dropped.
// CHECK-LABEL: func.func @main
// CHECK: tv.attention_grad
// CHECK: :3 = comm.all_reduce
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 3 344 bytes 0 copies
// RAN tp=3: all-reduce of 3 464 bytes 0 copies
// RAN tp=4: all-reduce of 3 520 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<2x6x5x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<2x1x5x4xf32, #tv.view<#m, [_, _, _, _]>>
!o = tensor<2x6x5x4xf32>
!lse = tensor<2x6x5xf32>
!table_of_lse = tensor<3x2xf32>
func.func @main(%do: !q, %q: !q, %k: !k, %v: !k, %table: !table_of_lse,
                %of_query: tensor<5xi32> {tv.range = [0, 2]}) -> (!o, !k, !k, !table_of_lse) {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) : (!q, !k, !k) -> (!o, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %of_query[%qi] : tensor<5xi32> -> i32
      %at = arith.index_cast %i : i32 to index
      %a = tv.load %table[%at, %b] : !table_of_lse -> f32
      %y = arith.mulf %s, %a : f32
      tv.yield %y : f32
    }
  %dq, %dk, %dv, %dt = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.5)
      captured %table : (!q, !q, !k, !k, !o, !lse, !table_of_lse) -> (!o, !k, !k, !table_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %of_query[%qi] : tensor<5xi32> -> i32
      %at = arith.index_cast %i : i32 to index
      %a = tv.load %table[%at, %b] : !table_of_lse -> f32
      %y = arith.mulf %s, %a : f32
      tv.yield %y : f32
    }
    score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %i = tv.load %of_query[%qi] : tensor<5xi32> -> i32
      %at = arith.index_cast %i : i32 to index
      %a = tv.load %table[%at, %b] : !table_of_lse -> f32
      %da = arith.mulf %dy, %s : f32
      tv.accumulate 0[%at, %b], %da : f32
      %beyond = arith.addi %b, %b : index
      tv.accumulate 0[%at, %beyond], %dy : f32
      %ds = arith.mulf %dy, %a : f32
      tv.yield %ds : f32
    }
  return %dq, %dk, %dv, %dt : !o, !k, !k, !table_of_lse
}

// -----

// Extents that are not known, of what is summed and of a bias; by heads.
// CHECK-LABEL: func.func @main
// CHECK: tv.attention_grad
// CHECK: :2 = comm.all_reduce
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce of 2 1704 bytes 0 copies
// RAN tp=3: all-reduce of 2 2272 bytes 0 copies
// RAN tp=4: all-reduce of 2 2560 bytes 0 copies
#m = #tv.mesh<tp = 2>
!h = tensor<?x6x?x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!x = tensor<?x6x?x4xf32>
!lse = tensor<?x6x?xf32>
!rel_of_lse = tensor<6x64xf32>
!bias_of_lse = tensor<6x?xf32>
func.func @main(%do: !h {tv.dims = ["b", "s"]}, %q: !h {tv.dims = ["b", "s"]},
                %k: !h {tv.dims = ["b", "s"]}, %v: !h {tv.dims = ["b", "s"]},
                %rel: !rel_of_lse, %bias: !bias_of_lse {tv.dims = ["s"]})
    -> (!x, !x, !x, !rel_of_lse, !bias_of_lse) attributes {tv.sizes = {b = 4, s = 16}} {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) causal : (!h, !h, !h) -> (!x, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.constant 20 : index
      %d = arith.subi %qi, %ki : index
      %at = arith.addi %d, %c : index
      %r = tv.load %rel[%h, %at] : !rel_of_lse -> f32
      %r2 = tv.load %bias[%h, %qi] : !bias_of_lse -> f32
      %t = arith.addf %s, %r : f32
      %y = arith.addf %t, %r2 : f32
      tv.yield %y : f32
    }
  %dq, %dk, %dv, %dr, %db = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.5) causal
      captured %rel, %bias : (!h, !h, !h, !h, !x, !lse, !rel_of_lse, !bias_of_lse) -> (!x, !x, !x, !rel_of_lse, !bias_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.constant 20 : index
      %d = arith.subi %qi, %ki : index
      %at = arith.addi %d, %c : index
      %r = tv.load %rel[%h, %at] : !rel_of_lse -> f32
      %r2 = tv.load %bias[%h, %qi] : !bias_of_lse -> f32
      %t = arith.addf %s, %r : f32
      %y = arith.addf %t, %r2 : f32
      tv.yield %y : f32
    }
  return %dq, %dk, %dv, %dr, %db : !x, !x, !x, !rel_of_lse, !bias_of_lse
}

// -----

// One key head, which the first device has: no digit of its number says so. The others
// have nothing to sum and nowhere to write it.
// CHECK-LABEL: func.func @main
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<2x3x5x4xf32>
!k = tensor<2x1x6x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!h = tensor<2x3x5x4xf32, #tv.view<#m, [_, did(tp) * 3, _, _]>>
!lse = tensor<2x3x5xf32>
func.func @main(%do: !h, %q: !h, %k: !k, %v: !k) -> (!q, !q, !k, !k) {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) : (!h, !k, !k) -> (!q, !lse)
  %dq, %dk, %dv = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.5)
      : (!h, !h, !k, !k, !q, !lse) -> (!q, !k, !k)
  return %o, %dq, %dk, %dv : !q, !q, !k, !k
}

// -----

// What is captured in f64 is added in f32; its gradient is summed so, and has its type.
// CHECK-LABEL: func.func @main
// CHECK: tv.attention_grad
// CHECK: comm.all_reduce {{.*}}xf64
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 80 bytes 0 copies
// RAN tp=3: all-reduce 112 bytes 0 copies
// RAN tp=4: all-reduce 128 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x5x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!a = tensor<1x2x5x4xf32>
!lse = tensor<1x2x5xf32>
!c = tensor<2x5xf64>
func.func @main(%do: !q, %q: !q, %c: !c) -> (!a, !q, !q, !q, !c) {
  %o, %lse = tv.attention %q, %q, %q scale(0.5) : (!q, !q, !q) -> (!a, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %c[%h, %qi] : !c -> f64
      %t = math.sin %x : f64
      %f = arith.truncf %t : f64 to f32
      %y = arith.addf %s, %f : f32
      tv.yield %y : f32
    }
  %dq, %dk, %dv, %dc = tv.attention_grad %do, %q, %q, %q, %o, %lse scale(0.5)
      captured %c : (!q, !q, !q, !q, !a, !lse, !c) -> (!q, !q, !q, !c)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %c[%h, %qi] : !c -> f64
      %t = math.sin %x : f64
      %f = arith.truncf %t : f64 to f32
      %y = arith.addf %s, %f : f32
      tv.yield %y : f32
    }
  return %o, %dq, %dk, %dv, %dc : !a, !q, !q, !q, !c
}

// -----

// Extents of captured tensors that are not known, with a computed index: queries and the
// gradient are split.
// CHECK-LABEL: func.func @main
// CHECK: comm.
// RAN tp=1: nothing
// RAN tp=2: all-gather 12 bytes 0 copies, reduce-scatter 12 bytes 0 copies, all-reduce of 2 1152 bytes 0 copies
// RAN tp=3: all-gather 16 bytes 0 copies, reduce-scatter 16 bytes 0 copies, all-reduce of 2 1536 bytes 0 copies
// RAN tp=4: all-gather 24 bytes 0 copies, reduce-scatter 24 bytes 0 copies, all-reduce of 2 1728 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<?x4x?x4xf32, #tv.view<#m, [_, _, did(tp) * _, _]>>
!k = tensor<?x2x?x4xf32>
!o = tensor<?x4x?x4xf32>
!lse = tensor<?x4x?xf32>
!sr_of_lse = tensor<?xf32, #tv.view<#m, [did(tp) * _]>>
func.func @main(%do: !q {tv.dims = ["b", "s"]}, %q: !q {tv.dims = ["b", "s"]},
                %k: !k {tv.dims = ["b", "m"]}, %v: !k {tv.dims = ["b", "m"]},
                %rel: !sr_of_lse {tv.dims = ["m"]})
    -> (!o, !k, !k, !sr_of_lse) attributes {tv.sizes = {b = 4, s = 9, m = 12}} {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) : (!q, !k, !k) -> (!o, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.constant 3 : index
      %d = arith.subi %qi, %ki : index
      %at = arith.addi %d, %c : index
      %r = tv.load %rel[%at] : !sr_of_lse -> f32
      %t = arith.addf %s, %r : f32
      tv.yield %t : f32
    }
  %dq, %dk, %dv, %dr = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.5)
      captured %rel : (!q, !q, !k, !k, !o, !lse, !sr_of_lse) -> (!o, !k, !k, !sr_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.constant 3 : index
      %d = arith.subi %qi, %ki : index
      %at = arith.addi %d, %c : index
      %r = tv.load %rel[%at] : !sr_of_lse -> f32
      %t = arith.addf %s, %r : f32
      tv.yield %t : f32
    }
  return %dq, %dk, %dv, %dr : !o, !k, !k, !sr_of_lse
}

// -----

// Beside heads, which are split, computed or loaded; of another type.
// CHECK-LABEL: func.func @main
// CHECK: comm.
// RAN tp=1: nothing
// RAN tp=2: all-gather of 2 72 bytes 1 copies, reduce-scatter 24 bytes 0 copies, reduce-scatter 48 bytes 0 copies
// RAN tp=3: all-gather of 2 96 bytes 1 copies, reduce-scatter 32 bytes 0 copies, reduce-scatter 64 bytes 0 copies
// RAN tp=4: all-gather of 2 144 bytes 1 copies, reduce-scatter 48 bytes 0 copies, reduce-scatter 96 bytes 0 copies, all-reduce of 2 576 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<?x4x?x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<?x2x?x4xf32>
!o = tensor<?x4x?x4xf32>
!lse = tensor<?x4x?xf32>
!rel_of_lse = tensor<4x?xbf16, #tv.view<#m, [_, did(tp) * _]>>
!table_of_lse = tensor<?x4xf32, #tv.view<#m, [did(tp) * _, _]>>
!ids = tensor<?xi32>
func.func @main(%do: !q {tv.dims = ["b", "s"]}, %q: !q {tv.dims = ["b", "s"]},
                %k: !k {tv.dims = ["b", "m"]}, %v: !k {tv.dims = ["b", "m"]},
                %rel: !rel_of_lse {tv.dims = ["m"]},
                %table: !table_of_lse {tv.dims = ["m"]}, %ids: !ids {tv.dims = ["s"]})
    -> (!o, !k, !k, !rel_of_lse, !table_of_lse) attributes {tv.sizes = {b = 4, s = 9, m = 12}} {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) : (!q, !k, !k) -> (!o, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.constant 3 : index
      %d = arith.subi %qi, %ki : index
      %at = arith.addi %d, %c : index
      %r = tv.load %rel[%h, %at] : !rel_of_lse -> bf16
      %rr = arith.extf %r : bf16 to f32
      %i = tv.load %ids[%qi] : !ids -> i32
      %ii = arith.index_cast %i : i32 to index
      %e = tv.load %table[%ii, %h] : !table_of_lse -> f32
      %t = arith.addf %s, %rr : f32
      %u = arith.mulf %t, %e : f32
      tv.yield %u : f32
    }
  %dq, %dk, %dv, %dr, %dt = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.5)
      captured %rel, %table
      : (!q, !q, !k, !k, !o, !lse, !rel_of_lse, !table_of_lse) -> (!o, !k, !k, !rel_of_lse, !table_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.constant 3 : index
      %d = arith.subi %qi, %ki : index
      %at = arith.addi %d, %c : index
      %r = tv.load %rel[%h, %at] : !rel_of_lse -> bf16
      %rr = arith.extf %r : bf16 to f32
      %i = tv.load %ids[%qi] : !ids -> i32
      %ii = arith.index_cast %i : i32 to index
      %e = tv.load %table[%ii, %h] : !table_of_lse -> f32
      %t = arith.addf %s, %rr : f32
      %u = arith.mulf %t, %e : f32
      tv.yield %u : f32
    }
  return %dq, %dk, %dv, %dr, %dt : !o, !k, !k, !rel_of_lse, !table_of_lse
}

// -----

// Several such indices, which share positions, into extents that are not known.
// CHECK-LABEL: func.func @main
// CHECK: comm.
// RAN tp=1: nothing
// RAN tp=2: all-gather 252 bytes 0 copies, reduce-scatter 252 bytes 0 copies, all-reduce of 2 1152 bytes 0 copies
// RAN tp=3: all-gather 336 bytes 0 copies, reduce-scatter 336 bytes 0 copies, all-reduce of 2 1536 bytes 0 copies
// RAN tp=4: all-gather 504 bytes 0 copies, reduce-scatter 504 bytes 0 copies, all-reduce of 2 1728 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<?x4x?x4xf32, #tv.view<#m, [_, _, did(tp) * _, _]>>
!k = tensor<?x2x?x4xf32>
!o = tensor<?x4x?x4xf32>
!lse = tensor<?x4x?xf32>
!sr_of_lse = tensor<?x3x?xf32, #tv.view<#m, [did(tp) * _, _, _]>>
func.func @main(%do: !q {tv.dims = ["b", "s"]}, %q: !q {tv.dims = ["b", "s"]},
                %k: !k {tv.dims = ["b", "m"]}, %v: !k {tv.dims = ["b", "m"]},
                %rel: !sr_of_lse {tv.dims = ["m", "s"]})
    -> (!o, !k, !k, !sr_of_lse) attributes {tv.sizes = {b = 4, s = 9, m = 12}} {
  %o, %lse = tv.attention %q, %k, %v scale(0.5) : (!q, !k, !k) -> (!o, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.constant 3 : index
      %d = arith.subi %qi, %ki : index
      %at = arith.addi %d, %c : index
      %r = tv.load %rel[%at, %d, %qi] : !sr_of_lse -> f32
      %t = arith.addf %s, %r : f32
      tv.yield %t : f32
    }
  %dq, %dk, %dv, %dr = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.5)
      captured %rel : (!q, !q, !k, !k, !o, !lse, !sr_of_lse) -> (!o, !k, !k, !sr_of_lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.constant 3 : index
      %d = arith.subi %qi, %ki : index
      %at = arith.addi %d, %c : index
      %r = tv.load %rel[%at, %d, %qi] : !sr_of_lse -> f32
      %t = arith.addf %s, %r : f32
      tv.yield %t : f32
    }
  return %dq, %dk, %dv, %dr : !o, !k, !k, !sr_of_lse
}
