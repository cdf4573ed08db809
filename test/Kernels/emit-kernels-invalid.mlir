// RUN: tessera-opt %s -tv-group-ops -tv-emit-kernels -split-input-file -verify-diagnostics

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
  // expected-error @+1 {{'tv.softmax' has no kernel; it should be gone}}
  %0 = tv.softmax %x dim 0 : (!x) -> !x
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

// expected-error @+1 {{tv-group-ops runs after tv-localize: a value of type 'tensor<4xf32>' is not one device's part}}
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

// -----

#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [did(tp) * 4]>
!x = tensor<4xf8E5M2, #tv.local<#x, of [8]>>
func.func @main(%x: !x) -> !x {
  // expected-error @+1 {{kernels do not make 8-bit floats yet; convert to bf16}}
  %0 = tv.map %x : (!x) -> !x (%a: f8E5M2) {
    tv.yield %a : f8E5M2
  }
  return %0 : !x
}

// -----

// Each variant has a group when kernels are emitted.
#m = #tv.mesh<tp = 2>
!x = tensor<16x16xbf16, #tv.local<#tv.view<#m, [did(tp) * 16, 16]>, of [32, 16]>>
!w = tensor<16x16xbf16, #tv.local<#tv.view<#m, [16, 16]>, of [16, 16]>>
func.func @main(%x: !x, %w: !w) -> !x {
  // expected-error @+1 {{has several variants; tv-choose-variants makes each a group}}
  %0 = plan.group of ["own", "cublaslt"] {
    %1 = tv.linear %x, %w : (!x, !w) -> !x
    plan.yield %1 : !x
  } : !x
  return %0 : !x
}

// -----

// A library's product takes no map along.
#m = #tv.mesh<tp = 2>
!x = tensor<16x16xbf16, #tv.local<#tv.view<#m, [did(tp) * 16, 16]>, of [32, 16]>>
!w = tensor<16x16xbf16, #tv.local<#tv.view<#m, [16, 16]>, of [16, 16]>>
func.func @main(%x: !x, %w: !w) -> !x {
  %0 = plan.group {
    %1 = tv.linear %x, %w : (!x, !w) -> !x
    // expected-error @+1 {{is not what a library does with a product}}
    %2 = tv.exp %1 : (!x) -> !x
    plan.yield %2 : !x
  } : !x
  return %0 : !x
}

// -----

// An op whose loops are others.
#m = #tv.mesh<tp = 2>
!x = tensor<16x16xf32, #tv.local<#tv.view<#m, [did(tp) * 16, 16]>, of [32, 16]>>
!t = tensor<8x16xf32, #tv.local<#tv.view<#m, [did(tp) * 8, 16]>, of [16, 16]>>
func.func @main(%x: !x, %y: !t) -> (!x, !t) {
  %0:2 = plan.group {
    %1 = tv.exp %x : (!x) -> !x
    // expected-error @+1 {{does not fit into the loops of its group}}
    %2 = tv.exp %y : (!t) -> !t
    plan.yield %1, %2 : !x, !t
  } : !x, !t
  return %0#0, %0#1 : !x, !t
}
