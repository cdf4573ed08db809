// RUN: tessera-opt %s --split-input-file --verify-diagnostics --tv-warn-idle-ranks -o /dev/null
// RUN: tessera-opt %s --split-input-file --tv-warn-idle-ranks -o /dev/null 2>&1 | FileCheck %s

// Notes are at places; none has the whole function.
// CHECK-NOT: see current operation

// Two heads of keys on four ranks.
#m = #tv.mesh<tp = 4>
!q = tensor<1x4x8x4xf32, #tv.view<#m, [1, did(tp), 8, 4]>>
!k = tensor<1x2x8x4xf32, #tv.view<#m, [1, did(tp), 8, 4]>>
// expected-warning @+2 {{of the work ranks 0 and 1 do 50.0 % each and ranks 2 and 3 do 0.0 % each, where 25.0 % is an even part}}
// expected-note @+1 {{dimension 1 has 2 for 4 parts; did(tp:(1)2) * _ gives each rank a part, which 2 ranks share}}
func.func @few_heads(%k: !k) -> !k {
  %0 = tv.exp %k : (!k) -> !k
  return %0 : !k
}

// -----

// Nothing is split along dp.
#m = #tv.mesh<dp = 2, tp = 2>
!x = tensor<8x16xf32, #tv.view<#m, [8, 16]>>
!w = tensor<12x16xf32, #tv.view<#m, [did(tp) * 6, 16]>>
!y = tensor<8x12xf32, #tv.view<#m, [8, did(tp) * 6]>>
// expected-warning @+2 {{of the work each rank does 50.0 %, where 25.0 % is an even part}}
// expected-note @+1 {{no op is divided by did(dp) * _; written in dimension 0 of this argument it divides its rows}}
func.func @copies(%x: !x, %w: !w) -> !y {
  %0 = tv.linear %x, %w : (!x, !w) -> !y
  return %0 : !y
}

// -----

// Uneven parts, and a small value that all ranks make.
#m = #tv.mesh<tp = 4>
!x = tensor<10x16xf32, #tv.view<#m, [did(tp) * 3, 16]>>
!w = tensor<16x16xf32, #tv.view<#m, [16, 16]>>
!s = tensor<16xf32, #tv.view<#m, [16]>>
func.func @enough(%x: !x, %w: !w, %s: !s) -> (!x, !s) {
  %0 = tv.linear %x, %w : (!x, !w) -> !x
  %1 = tv.exp %s : (!s) -> !s
  return %0, %1 : !x, !s
}

// -----

// The rows of a dynamic batch count at the declared maximum.
#m = #tv.mesh<dp = 2>
!x = tensor<?x16xf32, #tv.view<#m, [_, 16]>>
!s = tensor<16xf32, #tv.view<#m, [16]>>
// expected-warning @+2 {{of the work at the sizes' maximums each rank does 100.0 %, where 50.0 % is an even part}}
// expected-note @+1 {{no op is divided by did(dp) * _; written in dimension 0 of this argument it divides its rows}}
func.func @dynamic(%x: !x {tv.dims = ["b"]}, %s: !s) -> (!x, !s) attributes {tv.sizes = {b = 8}} {
  %0 = tv.exp %x : (!x) -> !x
  %1 = tv.exp %s : (!s) -> !s
  return %0, %1 : !x, !s
}

// -----

// Beside them a small value that all ranks make is little.
#m = #tv.mesh<tp = 4>
!x = tensor<?x16xf32, #tv.view<#m, [did(tp) * _, 16]>>
!s = tensor<16xf32, #tv.view<#m, [16]>>
func.func @dynamic_enough(%x: !x {tv.dims = ["b"]}, %s: !s) -> (!x, !s) attributes {tv.sizes = {b = 64}} {
  %0 = tv.exp %x : (!x) -> !x
  %1 = tv.exp %s : (!s) -> !s
  return %0, %1 : !x, !s
}

// -----

// Where no maximum is declared they count as one.
#m = #tv.mesh<tp = 4>
!x = tensor<?x16xf32, #tv.view<#m, [did(tp) * _, 16]>>
!s = tensor<16xf32, #tv.view<#m, [16]>>
// expected-warning @+1 {{of the work each rank does 62.5 %, where 25.0 % is an even part}}
func.func @no_maximum(%x: !x, %s: !s) -> (!x, !s) {
  %0 = tv.exp %x : (!x) -> !x
  %1 = tv.exp %s : (!s) -> !s
  return %0, %1 : !x, !s
}

// -----

// Ops of one type have the sizes of their own: 1, 1, 0, 0 rows and 2, 2, 2, 0, twice.
#m = #tv.mesh<tp = 4>
!x = tensor<?x16xf32, #tv.view<#m, [did(tp) * _, 16]>>
// expected-warning @+1 {{of the work at the sizes' maximums ranks 0 and 1 do 35.7 % each and rank 3 does 0.0 %, where 25.0 % is an even part}}
func.func @two_sizes(
    // expected-note @+1 {{dimension 0 has 2 for 4 parts; did(tp:(1)2) * _ gives each rank a part, which 2 ranks share}}
    %x: !x {tv.dims = ["b"]},
    // expected-note @+1 {{lies on a part of the ranks; [_, did(tp) * _] gives each a part}}
    %y: !x {tv.dims = ["c"]}) -> (!x, !x) attributes {tv.sizes = {b = 2, c = 6}} {
  %0 = tv.exp %x : (!x) -> !x
  %1 = tv.exp %y : (!x) -> !x
  %2 = tv.exp %1 : (!x) -> !x
  return %0, %2 : !x, !x
}

// -----

// What a value in between leaves out, whose rows are dynamic and whole.
#m = #tv.mesh<tp = 4>
!x = tensor<?x2xf32, #tv.view<#m, [_, did(tp)]>>
!y = tensor<?xf32, #tv.view<#m, [_], partial = [tp : sum]>>
!w = tensor<?x2xf32, #tv.view<#m, [_, 2]>>
// expected-warning @+1 {{of the work at the sizes' maximums ranks 0 and 1 do 75.0 % each and ranks 2 and 3 do 50.0 % each, where 25.0 % is an even part}}
func.func @dynamic_between(%x: !w {tv.dims = ["b"]}) -> (!w, !y) attributes {tv.sizes = {b = 64}} {
  %0 = tv.exp %x : (!w) -> !w
  %1 = tv.reshard %0 : (!w) -> !x
  // expected-note @+1 {{most of this difference is here, where rank 0 does 50.0 % and rank 2 does 0.0 %}}
  %2 = tv.reduce sum %1 dims [1] : (!x) -> !y
  return %0, %2 : !w, !y
}

// -----

// All attend, to heads of keys that two of them lack.
#m = #tv.mesh<tp = 4>
!q = tensor<1x4x8x4xf32, #tv.view<#m, [1, did(tp), 8, 4]>>
!k = tensor<1x2x8x4xf32, #tv.view<#m, [1, did(tp), 8, 4]>>
!all = tensor<1x2x8x4xf32, #tv.view<#m, [1, 2, 8, 4]>>
!lse = tensor<1x4x8xf32, #tv.view<#m, [1, did(tp), 8]>>
func.func @shared_keys(
    %q: !q,
    // expected-warning @+1 {{of the work each rank does 25.0 %, where 25.0 % is an even part, but ranks hold nothing of an argument: dimension 1 has 2 for 4 parts; did(tp:(1)2) * _ gives each rank a part, which 2 ranks share}}
    %k: !k,
    // expected-note @+1 {{dimension 1 has 2 for 4 parts}}
    %v: !k) -> !q {
  %0 = tv.reshard %k : (!k) -> !all
  %1 = tv.reshard %v : (!k) -> !all
  %2, %lse = tv.attention %q, %0, %1 scale(0.5) : (!q, !all, !all) -> (!q, !lse)
  return %2 : !q
}

// -----

// Rows of two heads of keys on four ranks: all work, but two hold none of these. (Of 9 rows
// did(tp) * _ is 3 a rank, too, and what follows from the extent is not meant.)
#m = #tv.mesh<tp = 4>
!x = tensor<8x32xf32, #tv.view<#m, [8, 32]>>
!q = tensor<64x32xf32, #tv.view<#m, [did(tp) * 16, 32]>>
!k = tensor<8x32xf32, #tv.view<#m, [did(tp) * 4, 32]>>
!n = tensor<9xf32, #tv.view<#m, [did(tp) * 3]>>
!yq = tensor<8x64xf32, #tv.view<#m, [8, did(tp) * 16]>>
!yk = tensor<8x8xf32, #tv.view<#m, [8, did(tp) * 4]>>
func.func @rows_of_heads(
    %x: !x, %q: !q,
    // expected-warning @+1 {{of the work ranks 0 and 1 do 27.8 % each and ranks 2 and 3 do 22.2 % each, where 25.0 % is an even part, but ranks hold nothing of an argument: dimension 0 has 2 runs of 4 for 4 parts; did(tp:(1)2) * _ gives each rank a part, which 2 ranks share}}
    %k: !k, %n: !n) -> (!yq, !yk) {
  %0 = tv.linear %x, %q : (!x, !q) -> !yq
  %1 = tv.linear %x, %k : (!x, !k) -> !yk
  return %0, %1 : !yq, !yk
}

// -----

// A stage in the middle: the first rank and the last have nothing.
#m = #tv.mesh<pp = 3>
!x = tensor<1x24x16xf32, #tv.view<#m, [(did(pp) | 1:2), 24, 16]>>
// expected-warning @+2 {{of the work rank 1 does 100.0 % and ranks 0 and 2 do 0.0 % each, where 33.3 % is an even part}}
// expected-note @+1 {{lies on a part of the ranks; [_, did(pp) * _, _] gives each a part}}
func.func @middle(%x: !x) -> !x {
  %0 = tv.exp %x : (!x) -> !x
  return %0 : !x
}

// -----

// Two stages, on ranks of a mesh that lists its devices; both the first place and the
// last have work.
#m = #tv.mesh<pp = 3, devices = [2, 1, 0]>
!first = tensor<1x24xf32, #tv.view<#m, [did(pp), 24]>>
!last = tensor<1x24xf32, #tv.view<#m, [(did(pp) | 2:3), 24]>>
// expected-warning @+1 {{of the work rank 2 does 66.7 % and rank 1 does 0.0 %, where 33.3 % is an even part}}
func.func @stages(
    // expected-note @+1 {{lies on a part of the ranks; [_, did(pp) * _] gives each a part}}
    %x: !first,
    %z: !last) -> (!first, !last) {
  %0 = tv.exp %x : (!first) -> !first
  %1 = tv.exp %0 : (!first) -> !first
  %2 = tv.exp %z : (!last) -> !last
  return %1, %2 : !first, !last
}

// -----

// Three heads on four ranks, which do not divide them; queries are as many.
#m = #tv.mesh<tp = 4>
!k = tensor<1x3x8x4xf32, #tv.view<#m, [1, did(tp), 8, 4]>>
// expected-warning @+2 {{of the work ranks 0 to 2 do 33.3 % each and rank 3 does 0.0 %, where 25.0 % is an even part}}
// expected-note @+1 {{dimension 1 has 3 for 4 parts; [_, _, did(tp) * _, _] gives each rank a part}}
func.func @three_heads(%k: !k) -> !k {
  %0 = tv.exp %k : (!k) -> !k
  return %0 : !k
}

// -----

// Of two axes the inner one is too much.
#m = #tv.mesh<dp = 2, tp = 4>
!k = tensor<4x3xf32, #tv.view<#m, [did(dp) * did(tp), 3]>>
// expected-warning @+2 {{of the work ranks 0 to 3 do 25.0 % each and ranks 4 to 7 do 0.0 % each, where 12.5 % is an even part}}
// expected-note @+1 {{dimension 0 has 4 for 8 parts; did(dp) * did(tp:(1)2) * _ gives each rank a part, which 2 ranks share}}
func.func @two_axes(%k: !k) -> !k {
  %0 = tv.exp %k : (!k) -> !k
  return %0 : !k
}

// -----

// What a value in between leaves out.
#m = #tv.mesh<tp = 4>
!x = tensor<8x8xf32, #tv.view<#m, [8, 8]>>
!row = tensor<1x8xf32, #tv.view<#m, [did(tp), 8]>>
!all = tensor<1x8xf32, #tv.view<#m, [1, 8]>>
// expected-warning @+1 {{of the work rank 0 does 100.0 % and ranks 1 to 3 do 98.5 % each, where 25.0 % is an even part}}
func.func @between(%x: !x, %s: !all) -> (!x, !row) {
  %0 = tv.linear %x, %x : (!x, !x) -> !x
  %1 = tv.reshard %s : (!all) -> !row
  // expected-note @+1 {{most of this difference is here, where rank 0 does 100.0 % and rank 1 does 0.0 %; with a result as [_, did(tp) * _] each has a part}}
  %2 = tv.exp %1 : (!row) -> !row
  return %0, %2 : !x, !row
}

// -----

// Many devices, each counted: rows of 3000 for 3072, of 81 for 8.
#m = #tv.mesh<a = 3072, b = 8>
!x = tensor<3000x81xf32, #tv.view<#m, [did(a), did(b) * 11]>>
// expected-warning @+2 {{of the work rank 0 and 20999 others do 0.0045 % each and ranks 24000 to 24575 do 0.0 % each, where 0.0041 % is an even part}}
// expected-note @+1 {{dimension 0 has 3000 for 3072 parts: 72 of them are empty}}
func.func @many(%x: !x) -> !x {
  %0 = tv.exp %x : (!x) -> !x
  return %0 : !x
}

// -----

// On the first rank, in a dimension that has elements enough for all.
#m = #tv.mesh<pp = 3>
!x = tensor<24x16xf32, #tv.view<#m, [did(pp) * 24, 16]>>
// expected-warning @+2 {{of the work rank 0 does 100.0 % and ranks 1 and 2 do 0.0 % each, where 33.3 % is an even part}}
// expected-note @+1 {{lies on a part of the ranks; [_, did(pp) * _] gives each a part}}
func.func @first(%x: !x) -> !x {
  %0 = tv.exp %x : (!x) -> !x
  return %0 : !x
}
