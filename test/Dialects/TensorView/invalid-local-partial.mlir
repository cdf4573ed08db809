// Ops for each device may not run on partial values either, for the reason that the
// planner has where they are written for the whole mesh.
// RUN: tessera-opt --split-input-file --verify-diagnostics %s

#m = #tv.mesh<x = 2>
!x = tensor<8x4xf32, #tv.local<#tv.view<#m, [_, _], partial = [x : sum]>, of [8, 4]>>
func.func @function(%x: !x) -> !x {
  // expected-error@+1 {{'tv.exp' op operand #0 lies as [_, _], partial = [x : sum] on each device: tv.exp may not run on a partial (sum) operand: math.exp is not linear; a 'comm' op moves it before}}
  %y = tv.exp %x : (!x) -> !x
  return %y : !x
}

// -----

#m = #tv.mesh<x = 2>
!v = tensor<8x4xf32, #tv.view<#m, [_, _], partial = [x : sum]>>
!p = tensor<8x4xf32, #tv.local<#tv.view<#m, [_, _], partial = [x : sum]>, of [8, 4]>>
func.func @region(%x: !v) -> !v {
  %s = tv.local_region %x : (!v) -> !v {
  ^bb0(%o: !p):
    // expected-error@+1 {{operand #0 lies as [_, _], partial = [x : sum] on each device: tv.softmax may not run on a partial (sum) operand: it is not linear}}
    %y = tv.softmax %o dim 1 : (!p) -> !p
    tv.yield %y : !p
  }
  return %s : !v
}

// -----

// A whole operand beside it would be added once a device.
#m = #tv.mesh<x = 2>
!p = tensor<8x4xf32, #tv.local<#tv.view<#m, [_, _], partial = [x : sum]>, of [8, 4]>>
!w = tensor<8x4xf32, #tv.local<#tv.view<#m, [_, _]>, of [8, 4]>>
func.func @second(%w: !w, %x: !p) -> !p {
  // expected-error@+1 {{operand #1 lies as [_, _], partial = [x : sum] on each device: tv.add may not run on a partial (sum) operand: arith.addf needs both operands partial by sum}}
  %y = tv.add %w, %x : (!w, !p) -> !p
  return %y : !p
}

// -----

// What it makes is partial, too.
#m = #tv.mesh<x = 2>
!p = tensor<8x4xf32, #tv.local<#tv.view<#m, [_, _], partial = [x : sum]>, of [8, 4]>>
!w = tensor<8xf32, #tv.local<#tv.view<#m, [_]>, of [8]>>
func.func @result(%x: !p) -> !w {
  // expected-error@+1 {{result #0 must be partial (sum) along x, as the operands make it}}
  %y = tv.reduce sum %x dims [1] : (!p) -> !w
  return %y : !w
}

// -----

// Legal: linear in what is partial; and a loop that x divides leaves a sum, to which what
// is added is one. What a device has summed in more bits it may round.
#m = #tv.mesh<x = 2>
!p = tensor<8x4xf32, #tv.local<#tv.view<#m, [_, _], partial = [x : sum]>, of [8, 4]>>
!a = tensor<8x3xf32, #tv.local<#tv.view<#m, [_, did(x) * _]>, of [8, 6]>>
!b = tensor<4x3xf32, #tv.local<#tv.view<#m, [_, did(x) * _]>, of [4, 6]>>
!c = tensor<4xf32, #tv.local<#tv.view<#m, [_], partial = [x : sum]>, of [4]>>
!h = tensor<8x4xbf16, #tv.local<#tv.view<#m, [_, _], partial = [x : sum]>, of [8, 4]>>
func.func @legal(%x: !p, %a: !a, %b: !b, %c: !c) -> (!p, !h) {
  %y = tv.neg %x : (!p) -> !p
  %z = tv.linear %a, %b bias %c : (!a, !b, !c) -> !p
  %r = tv.cast %z : (!p) -> !h
  return %y, %r : !p, !h
}

// Legal, too: one part of an axis divides the loop, along the other the operand is partial.
#m4 = #tv.mesh<x = 4>
!parts = tensor<2x1xf32, #tv.local<#tv.view<#m4, [_, did(x:(1)2) * _], partial = [x:(2)2 : sum]>, of [2, 2]>>
!both = tensor<2xf32, #tv.local<#tv.view<#m4, [_], partial = [x : sum]>, of [2]>>
func.func @parts(%x: !parts) -> !both {
  %y = tv.reduce sum %x dims [1] : (!parts) -> !both
  return %y : !both
}

// -----

// And of the parts of an axis one is not what it must be.
#m = #tv.mesh<x = 4>
!whole = tensor<2xf32, #tv.local<#tv.view<#m, [_], partial = [x : sum]>, of [2]>>
!half = tensor<2xf32, #tv.local<#tv.view<#m, [_], partial = [x:(1)2 : sum]>, of [2]>>
func.func @half(%x: !whole) -> !half {
  // expected-error@+1 {{result #0 must be partial (sum) along x:(2)2, as the operands make it}}
  %y = tv.neg %x : (!whole) -> !half
  return %y : !half
}
