// RUN: tessera-opt %s -tv-form-kernels -split-input-file -verify-diagnostics

// expected-error @+1 {{a program needs a function '@main'}}
module {
  func.func @other() {
    return
  }
}

// -----

#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [8]>
!x = tensor<8xf32, #tv.local<#x, of [8]>>
func.func @main(%x: !x) -> !x {
  // expected-error @+1 {{'tv.gelu' has no kernel; it should be gone}}
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

// -----

// expected-error @+1 {{tv-form-kernels runs after tv-localize: a value of type 'tensor<4xf32>' is not one device's part}}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

#m = #tv.mesh<tp = 4>
#x = #tv.view<#m, [flat(3) did(tp) * 8]>
#w = #tv.view<#m, [2, 3, 5]>
#y = #tv.view<#m, [2, 4, 5]>
!x = tensor<?xf32, #tv.local<#x, of [2, 4, 3]>>
!w = tensor<2x3x5xf32, #tv.local<#w, of [2, 3, 5]>>
!y = tensor<2x4x5xf32, #tv.local<#y, of [2, 4, 5]>>
func.func @main(%x: !x, %w: !w) -> !y {
  // expected-error @+1 {{multiplies along dimensions that a view merges}}
  %0 = tv.matmul %x, %w : (!x, !w) -> !y
  return %0 : !y
}

// -----

#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [did(tp) * 4]>
!x = tensor<4xf32, #tv.local<#x, of [8]>>
!y = tensor<4xf8E5M2, #tv.local<#x, of [8]>>
func.func @main(%x: !x) -> !y {
  %0 = tv.map %x : (!x) -> !y (%a: f32) {
    // expected-error @+1 {{kernels do not make 8-bit floats yet; convert to bf16}}
    %b = arith.truncf %a : f32 to f8E5M2
    tv.yield %b : f8E5M2
  }
  return %0 : !y
}
