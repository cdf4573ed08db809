// RUN: tessera-opt %s -tv-form-kernels -split-input-file -verify-diagnostics

// expected-error @+1 {{a program needs a function '@main'}}
module {
  func.func private @other()
}

// -----

#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [8]>
!x = tensor<8xf32, #tv.local<#x, of [8]>>
func.func @main(%x: !x) -> !x {
  // expected-error @+1 {{'tv.gelu' has no kernel for the cpu backend}}
  %0 = tv.gelu %x : (!x) -> !x
  return %0 : !x
}

// -----

#m = #tv.mesh<tp = 4>
#x = #tv.view<#m, [flat(2) did(tp) * 8]>
#y = #tv.view<#m, [3], partial = [tp : sum]>
!x = tensor<?xf32, #tv.local<#x, of [3, 10]>>
!y = tensor<3xf32, #tv.local<#y, of [3]>>
func.func @main(%x: !x) -> !y {
  // expected-error @+1 {{reduces a part of dimensions that the view of its operand merges}}
  %0 = tv.reduce sum %x dims [1] : (!x) -> !y
  return %0 : !y
}
