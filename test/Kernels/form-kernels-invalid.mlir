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
