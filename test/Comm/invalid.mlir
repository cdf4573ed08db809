// RUN: tessera-opt %s -split-input-file -verify-diagnostics

#m = #tv.mesh<dp = 2, tp = 2>
#whole = #tv.view<#m, [8]>
#partial = #tv.view<#m, [8], partial = [tp : sum]>

func.func @wrong_axis(%x: tensor<8xf32, #tv.local<#partial, of [8]>>) {
  // expected-error @+1 {{must combine operand #0 along exactly the axes it names}}
  %r = comm.all_reduce %x over #m [dp] id 0
     : (tensor<8xf32, #tv.local<#partial, of [8]>>) -> tensor<8xf32, #tv.local<#whole, of [8]>>
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>
#whole = #tv.view<#m, [8]>
#partial = #tv.view<#m, [8], partial = [tp : sum]>

func.func @gather_reduces(%x: tensor<8xf32, #tv.local<#partial, of [8]>>) {
  // expected-error @+1 {{may not change the partial state of operand #0}}
  %r = comm.all_gather %x over #m [tp] id 0
     : (tensor<8xf32, #tv.local<#partial, of [8]>>) -> tensor<8xf32, #tv.local<#whole, of [8]>>
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>
#whole = #tv.view<#m, [8]>
#long = #tv.view<#m, [16]>

func.func @other_tensor(%x: tensor<8xf32, #tv.local<#whole, of [8]>>) {
  // expected-error @+1 {{operand and result #0 must be parts of one tensor}}
  %r = comm.all_gather %x over #m [tp] id 0
     : (tensor<8xf32, #tv.local<#whole, of [8]>>) -> tensor<16xf32, #tv.local<#long, of [16]>>
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>

func.func @global(%x: tensor<8xf32>) {
  // expected-error @+1 {{needs tensors with a #tv.local encoding, but operand #0 has type}}
  %r = comm.all_gather %x over #m [tp] id 0 : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>
!whole = tensor<8xf32, #tv.local<#tv.view<#m, [8]>, of [8]>>
!sum = tensor<8xf32, #tv.local<#tv.view<#m, [8], partial = [tp : sum]>, of [8]>>
!max = tensor<8xf32, #tv.local<#tv.view<#m, [8], partial = [tp : max]>, of [8]>>

func.func @combiners(%x: !sum, %y: !max) {
  // expected-error @+1 {{has operands #0 and #1 of different combiners}}
  %r:2 = comm.all_reduce %x, %y over #m [tp] id 0 : (!sum, !max) -> (!whole, !whole)
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>
#whole = #tv.view<#m, [8]>

func.func @unpaired(%x: tensor<8xf32, #tv.local<#whole, of [8]>>) {
  // expected-error @+1 {{has 1 operands and 0 results; each operand needs its result}}
  comm.all_gather %x over #m [tp] id 0 : (tensor<8xf32, #tv.local<#whole, of [8]>>) -> ()
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>

// expected-error @+1 {{'x'}}
func.func private @unknown_axis() attributes {a = #comm.axes<#m [x]>}
