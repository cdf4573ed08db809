// Devices share the keys of an attention: each attends to its own, and what they make is
// joined by (out, log-sum-exp), one all-gather and one sum. On links that are slow, so
// that it pays at such sizes.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels" --interpret=4 -o /dev/null
// RUN: sed '/lse/!s/f32/bf16/g' %s | tessera-opt --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program -o /dev/null

// A decoder's step: groups of two heads.
// CHECK: func.func @main
// CHECK: tv.attention
// CHECK: comm.all_gather
// CHECK: comm.all_reduce
// CHECK-NOT: comm.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather 32 bytes 0 copies, all-reduce 256 bytes 0 copies
// RAN tp=3: all-gather 64 bytes 0 copies, all-reduce 344 bytes 0 copies
// RAN tp=4: all-to-all 24 bytes 2 copies, all-gather 24 bytes 0 copies, all-reduce 384 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<2x4x1x8xf32, #tv.view<#m, [_, _, _, _]>>
!k = tensor<2x2x24x8xf32, #tv.view<#m, [_, _, did(tp) * _, _]>>
!lse = tensor<2x4x1xf32>
module attributes {tv.machine = #tv.machine<latency = 1.0e-7, bandwidth = 1.0e7, copy = 2.0e12, loops = 3.0e14>} {
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.5) : (!q, !k, !k) -> (!q, !lse)
  return %a : !q
}
}

// -----

// Uneven runs (10 keys over 3 and 4 devices), values of other columns; causal, a mask that
// leaves rows without keys, a bias by head and key; the log-sum-exp goes out.
// CHECK: func.func @main
// CHECK: tv.attention
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather 48 bytes 0 copies, all-to-all 192 bytes 0 copies
// RAN tp=3: all-to-all 32 bytes 2 copies, all-to-all 256 bytes 2 copies
// RAN tp=4: all-to-all 36 bytes 0 copies, all-gather 36 bytes 0 copies, all-to-all 288 bytes 2 copies
#m = #tv.mesh<tp = 2>
!q = tensor<1x4x3x4xf32, #tv.view<#m, [_, _, _, _]>>
!k = tensor<1x2x10x4xf32, #tv.view<#m, [_, _, did(tp) * _, _]>>
!v = tensor<1x2x10x8xf32, #tv.view<#m, [_, _, did(tp) * _, _]>>
!bias_of_lse = tensor<4x10xf32>
!o = tensor<1x4x3x8xf32>
!lse = tensor<1x4x3xf32>
module attributes {tv.machine = #tv.machine<latency = 1.0e-7, bandwidth = 1.0e7, copy = 2.0e12, loops = 3.0e14>} {
func.func @main(%q: !q, %k: !k, %v: !v, %bias: !bias_of_lse) -> (!o, !lse) {
  %a, %lse = tv.attention %q, %k, %v scale(-0.5) causal : (!q, !k, !v) -> (!o, !lse)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) { // as the lse
      %x = tv.load %bias[%h, %ki] : !bias_of_lse -> f32 // as the lse
      %y = arith.addf %s, %x : f32 // as the lse
      tv.yield %y : f32 // as the lse
    }
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %one = arith.constant 1 : index
      %is = arith.cmpi ne, %qi, %one : index
      %two = arith.constant 2 : index
      %odd = arith.remui %ki, %two : index
      %first = arith.cmpi eq, %h, %odd : index
      %other = arith.cmpi uge, %h, %two : index
      %some = arith.ori %first, %other : i1
      %kept = arith.andi %is, %some : i1
      tv.yield %kept : i1
    }
  return %a, %lse : !o, !lse
}
}

// -----

// Positions dealt out in turn, two at a time: several runs a device.
// CHECK: func.func @main
// CHECK: tv.attention
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-to-all 144 bytes 2 copies, all-gather 24 bytes 0 copies, all-reduce 384 bytes 0 copies
// RAN tp=3: all-to-all 128 bytes 2 copies, all-gather 32 bytes 0 copies, all-reduce 512 bytes 0 copies
// RAN tp=4: all-to-all 144 bytes 2 copies, all-gather 48 bytes 0 copies, all-reduce 576 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<2x3x2x8xf32, #tv.view<#m, [_, _, _, _]>>
!k = tensor<2x3x24x8xf32, #tv.view<#m, [_, _, _ * did(tp) * 2, _]>>
!lse = tensor<2x3x2xf32>
module attributes {tv.machine = #tv.machine<latency = 1.0e-7, bandwidth = 1.0e7, copy = 2.0e12, loops = 3.0e14>} {
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %a, %lse = tv.attention %q, %k, %v scale(0.5) causal : (!q, !k, !k) -> (!q, !lse)
  return %a : !q
}
}

// -----

// Any number of batches and queries.
// CHECK: func.func @main
// CHECK: tv.attention
// CHECK: comm.all_gather
// CHECK: return

// RAN tp=1: nothing
// RAN tp=2: all-gather 336 bytes 0 copies, all-reduce 2688 bytes 0 copies
// RAN tp=3: all-gather 672 bytes 0 copies, all-reduce 3584 bytes 0 copies
// RAN tp=4: all-to-all 252 bytes 2 copies, all-gather 252 bytes 0 copies, all-reduce 4096 bytes 0 copies
#m = #tv.mesh<tp = 2>
!q = tensor<?x4x?x8xf32, #tv.view<#m, [_, _, _, _]>>
!k = tensor<?x2x24x8xf32, #tv.view<#m, [_, _, did(tp) * _, _]>>
!lse = tensor<?x4x?xf32>
module attributes {tv.machine = #tv.machine<latency = 1.0e-7, bandwidth = 1.0e7, copy = 2.0e12, loops = 3.0e14>} {
func.func @main(%q: !q {tv.dims = ["b", "s"]}, %k: !k {tv.dims = ["b"]}, %v: !k {tv.dims = ["b"]}) -> (!q, !lse) attributes {tv.sizes = {b = 4, s = 8}} {
  %a, %lse = tv.attention %q, %k, %v scale(0.5) : (!q, !k, !k) -> (!q, !lse)
  return %a, %lse : !q, !lse
}
}
