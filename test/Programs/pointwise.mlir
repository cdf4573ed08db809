// Every named pointwise op, split; and on partial values what keeps or turns them.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s %no_other_collective
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels" --interpret=4 -o /dev/null

// Floats: nothing moves.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<5x14xf32, #tv.view<#m, [_, did(tp) * _]>>
!r = tensor<5x14xf32>
func.func @main(%x: !x, %y: !x) -> (!x, !x, !x, !x) {
  %sub = tv.sub %x, %y : (!x, !x) -> !r
  %mul = tv.mul %sub, %y : (!r, !x) -> !r
  %max = tv.max %mul, %x : (!r, !x) -> !r
  %min = tv.min %max, %y : (!r, !x) -> !r
  %tanh = tv.tanh %min : (!r) -> !r
  %neg = tv.neg %tanh : (!r) -> !r
  %exp = tv.exp %neg : (!r) -> !r
  %sqrt = tv.sqrt %exp : (!r) -> !r
  %rsqrt = tv.rsqrt %exp : (!r) -> !r
  %log = tv.log %exp : (!r) -> !r
  %pow = tv.pow %exp, %tanh : (!r, !r) -> !r
  %div = tv.div %x, %exp : (!x, !r) -> !x
  %sigmoid = tv.sigmoid %div : (!x) -> !r
  %silu = tv.silu %sub : (!r) -> !r
  %abs = tv.abs %x : (!x) -> !x
  %a = tv.add %sqrt, %rsqrt : (!r, !r) -> !r
  %b = tv.add %log, %pow : (!r, !r) -> !r
  %c = tv.add %a, %b : (!r, !r) -> !x
  %d = tv.add %sigmoid, %silu : (!r, !r) -> !x
  return %c, %d, %div, %abs : !x, !x, !x, !x
}

// -----

// Choices by floats and by integers.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!x = tensor<5x14xf32, #tv.view<#m, [did(tp) * _, _]>>
!i = tensor<5x14xi32, #tv.view<#m, [did(tp) * _, _]>>
!c = tensor<5x14xi1>
func.func @main(%x: !x, %y: !x, %i: !i {tv.range = [-2, 2]}, %j: !i {tv.range = [-2, 2]})
    -> (!x, !i, !x, !i) {
  %lt = tv.compare lt %x, %y : (!x, !x) -> !c
  %ge = tv.compare ge %x, %y : (!x, !x) -> !c
  %le = tv.compare le %i, %j : (!i, !i) -> !c
  %gt = tv.compare gt %i, %j : (!i, !i) -> !c
  %eq = tv.compare eq %i, %j : (!i, !i) -> !c
  %ne = tv.compare ne %i, %j : (!i, !i) -> !c
  %a = tv.where %lt, %x, %y : (!c, !x, !x) -> !x
  %b = tv.where %ge, %i, %j : (!c, !i, !i) -> !i
  %c = tv.where %le, %a, %y : (!c, !x, !x) -> !x
  %d = tv.where %gt, %b, %j : (!c, !i, !i) -> !i
  %e = tv.where %eq, %x, %c : (!c, !x, !x) -> !x
  %f = tv.where %ne, %d, %i : (!c, !i, !i) -> !i
  return %c, %d, %e, %f : !x, !i, !x, !i
}

// -----

// Integers with and without a sign; some divisors are 0.
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!i = tensor<48xi32, #tv.view<#m, [did(tp) * _]>>
!u = tensor<48xui8, #tv.view<#m, [did(tp) * _]>>
!c = tensor<48xi1>
func.func @main(%i: !i {tv.range = [-9, 9]}, %j: !i {tv.range = [-3, 3]},
                %u: !u {tv.range = [0, 255]}, %v: !u {tv.range = [0, 3]})
    -> (!i, !i, !u, !u) {
  %0 = tv.div %i, %j : (!i, !i) -> !i
  %1 = tv.sub %0, %j : (!i, !i) -> !i
  %2 = tv.mul %1, %i : (!i, !i) -> !i
  %3 = tv.neg %2 : (!i) -> !i
  %4 = tv.max %3, %i : (!i, !i) -> !i
  %5 = tv.abs %3 : (!i) -> !i
  %6 = tv.min %5, %j : (!i, !i) -> !i
  %7 = tv.div %u, %v : (!u, !u) -> !u
  %8 = tv.sub %v, %7 : (!u, !u) -> !u
  %9 = tv.max %8, %u : (!u, !u) -> !u
  %10 = tv.neg %u : (!u) -> !u
  %11 = tv.min %10, %8 : (!u, !u) -> !u
  %12 = tv.compare lt %8, %u : (!u, !u) -> !c
  %13 = tv.where %12, %11, %v : (!c, !u, !u) -> !u
  %14 = tv.abs %9 : (!u) -> !u
  return %4, %6, %14, %13 : !i, !i, !u, !u
}

// -----

// A difference of sums, its contrary, its quotient by what is whole, summed: one
// all-reduce of what is left.
// CHECK: tv.linear
// CHECK: tv.linear
// CHECK: tv.sub
// CHECK: tv.neg
// CHECK: tv.div
// CHECK: tv.reduce
// CHECK: comm.all_reduce {{.*}}tensor<4xf32
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 16 bytes 0 copies
// RAN tp=3: all-reduce 24 bytes 0 copies
// RAN tp=4: all-reduce 24 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<4x8xf32, #tv.view<#m, [_, did(tp) * _]>>
!w = tensor<6x8xf32>
!r = tensor<4x6xf32>
func.func @main(%x: !x, %w: !w, %v: !w, %d: !r) -> tensor<4xf32> {
  %a = tv.linear %x, %w : (!x, !w) -> !r
  %b = tv.linear %x, %v : (!x, !w) -> !r
  %s = tv.sub %a, %b : (!r, !r) -> !r
  %n = tv.neg %s : (!r) -> !r
  %e = tv.exp %d : (!r) -> !r
  %q = tv.div %n, %e : (!r, !r) -> !r
  %y = tv.reduce sum %q dims [1] : (!r) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// The sigmoid of a maximum is the maximum of sigmoids, and less it is a minimum, of
// which the least is taken: what is combined is that.
// CHECK: tv.reduce max
// CHECK: tv.sigmoid
// CHECK: tv.sub
// CHECK: tv.reduce min
// CHECK: comm.all_reduce {{.*}}tensor<4xf32
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 16 bytes 0 copies
// RAN tp=3: all-reduce 24 bytes 0 copies
// RAN tp=4: all-reduce 24 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<4x6x8xf32, #tv.view<#m, [_, _, did(tp) * _]>>
!r = tensor<4x6xf32>
func.func @main(%x: !x, %d: !r) -> tensor<4xf32> {
  %m = tv.reduce max %x dims [2] : (!x) -> !r
  %s = tv.sigmoid %m : (!r) -> !r
  %q = tv.sub %d, %s : (!r, !r) -> !r
  %y = tv.reduce min %q dims [1] : (!r) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
