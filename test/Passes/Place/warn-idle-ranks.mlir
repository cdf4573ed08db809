// RUN: tessera-opt %s --split-input-file --verify-diagnostics --tv-warn-idle-ranks -o /dev/null

// Two heads of keys on four ranks.
#m = #tv.mesh<tp = 4>
!q = tensor<1x4x8x4xf32, #tv.view<#m, [1, did(tp), 8, 4]>>
!k = tensor<1x2x8x4xf32, #tv.view<#m, [1, did(tp), 8, 4]>>
// expected-warning @+2 {{of the work the first rank does 50.0 % and the last 0.0 %, where 25.0 % is an even part}}
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
// expected-warning @+2 {{of the work the first rank does 50.0 % and the last 50.0 %, where 25.0 % is an even part}}
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

// The rows of a dynamic batch are not counted; nor is it known whether they suffice.
#m = #tv.mesh<dp = 2>
!x = tensor<?x16xf32, #tv.view<#m, [_, 16]>>
!s = tensor<16xf32, #tv.view<#m, [16]>>
// expected-warning @+2 {{of the work the first rank does 100.0 % and the last 100.0 %, where 50.0 % is an even part}}
// expected-note @+1 {{no op is divided by did(dp) * _; written in dimension 0 of this argument it divides its rows}}
func.func @dynamic(%x: !x {tv.dims = ["b"]}, %s: !s) -> (!x, !s) attributes {tv.sizes = {b = 8}} {
  %0 = tv.exp %x : (!x) -> !x
  %1 = tv.exp %s : (!s) -> !s
  return %0, %1 : !x, !s
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
    // expected-warning @+1 {{ranks hold nothing of an argument: dimension 1 has 2 for 4 parts; did(tp:(1)2) * _ gives each rank a part, which 2 ranks share}}
    %k: !k,
    // expected-note @+1 {{dimension 1 has 2 for 4 parts}}
    %v: !k) -> !q {
  %0 = tv.reshard %k : (!k) -> !all
  %1 = tv.reshard %v : (!k) -> !all
  %2, %lse = tv.attention %q, %0, %1 scale(0.5) : (!q, !all, !all) -> (!q, !lse)
  return %2 : !q
}
