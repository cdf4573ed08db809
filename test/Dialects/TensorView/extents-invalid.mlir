// RUN: tessera-opt %s --tv-print-rules="rules=false extents=true" -split-input-file -verify-diagnostics

// expected-error@+1 {{'func.func' op argument #0 has dynamic extents without names; write tv.dims = ["b", ...] on it, and tv.sizes = {b = MAXIMUM, ...} on the function}}
func.func @no_name(%x: tensor<?xf32>) {
  return
}

// -----

func.func @differ(%x: tensor<?xf32> {tv.dims = ["b"]}, %y: tensor<?xf32> {tv.dims = ["s"]}) attributes {tv.sizes = {b = 2, s = 3}} {
  // expected-error@+1 {{'tv.add' op operand #1's dimension 0 has extent s; it must be b, as operand #0's dimension 0 has}}
  %0 = tv.add %x, %y : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @static_differs(%x: tensor<?xf32> {tv.dims = ["b"]}) attributes {tv.sizes = {b = 2}} {
  // expected-error@+1 {{'tv.silu' op result #0's dimension 0 has extent 2; it must be b}}
  %0 = tv.silu %x : (tensor<?xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @concat_differs(%x: tensor<?x?xf32> {tv.dims = ["b", "s"]}) attributes {tv.sizes = {b = 2, s = 3}} {
  %0 = tv.transpose %x perm [1, 0] : (tensor<?x?xf32>) -> tensor<?x?xf32>
  // expected-error@+1 {{'tv.concat' op operand #1's dimension 1 has extent b; it must be s, as operand #0's has}}
  %1 = tv.concat %x, %0 dim 0 : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @reshape_does_not_divide(%x: tensor<?x?xf32> {tv.dims = ["b", "s"]}) attributes {tv.sizes = {b = 2, s = 3}} {
  // expected-error@+1 {{'tv.reshape' op the operand's b * s elements are not a multiple of 4}}
  %0 = tv.reshape %x : (tensor<?x?xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func private @g(tensor<?xf32>) -> tensor<?xf32>
func.func @opaque(%x: tensor<?xf32> {tv.dims = ["b"]}) attributes {tv.sizes = {b = 2}} {
  // expected-error@+1 {{'func.call' op cannot tell the extent of result #0's dimension 0}}
  %0 = call @g(%x) : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

// expected-error@+1 {{a size in extent 3 * b has no maximum; declare it in 'tv.sizes' of the function}}
func.func @no_maximum(%x: tensor<?xf32, #tv.local<#tv.view<#tv.mesh<x = 2>, [did(x) * _]>, of [3 * b]>>) {
  return
}

// -----

// expected-error@+1 {{has a tensor of more than 2^56 elements at the sizes' maximums}}
func.func @too_large(%x: tensor<?x?x?xf32> {tv.dims = ["b", "b", "b"]}) attributes {tv.sizes = {b = 9223372036854775807}} {
  return
}

// -----

func.func @sequences(%t: tensor<?x3xi32> {tv.dims = ["b"]}, %l: tensor<?xi32> {tv.dims = ["c"]})
    attributes {tv.sizes = {b = 8, c = 8}} {
  // expected-error@+1 {{'tv.page_errors' op has a table of b sequences and lengths of c}}
  %e = tv.page_errors %t lengths(%l) page(4) pages(16) : (tensor<?x3xi32>, tensor<?xi32>) -> tensor<?xi32>
  return
}
