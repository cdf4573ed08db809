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

// -----

#m = #tv.mesh<dp = 2, tp = 2>
!rows = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 8]>, of [8, 8]>>
!at = tensor<5xi32, #tv.local<#tv.view<#m, [5]>, of [5]>>
!y = tensor<5x8xf32, #tv.local<#tv.view<#m, [5, 8]>, of [5, 8]>>
func.func @no_index(%rows: !rows) {
  // expected-error @+1 {{needs the indices of the table}}
  %r = comm.fetch %rows at over #m [tp] id 0 : (!rows) -> !y
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>
!rows = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 8]>, of [8, 8]>>
!at = tensor<5xi32, #tv.local<#tv.view<#m, [5]>, of [5]>>
!y = tensor<5x8xf32, #tv.local<#tv.view<#m, [5, 8]>, of [5, 8]>>
func.func @global_index(%rows: !rows, %i: tensor<5xi32>) {
  // expected-error @+1 {{needs tensors with a #tv.local encoding}}
  %r = comm.fetch %rows at %i over #m [tp] id 0 : (!rows, tensor<5xi32>) -> !y
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>
!rows = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 8]>, of [8, 8]>>
!at = tensor<5xi32, #tv.local<#tv.view<#m, [5]>, of [5]>>
!y = tensor<5x8xf32, #tv.local<#tv.view<#m, [5, 8]>, of [5, 8]>>
func.func @types(%rows: !rows, %i: !at, %j: tensor<5xi64, #tv.local<#tv.view<#m, [5]>, of [5]>>) {
  // expected-error @+1 {{needs indices of one type}}
  %r = comm.fetch %rows at %i, %j over #m [tp] id 0 : (!rows, !at, tensor<5xi64, #tv.local<#tv.view<#m, [5]>, of [5]>>) -> !y
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>
!rows = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 8]>, of [8, 8]>>
!at = tensor<5xi32, #tv.local<#tv.view<#m, [5]>, of [5]>>
!y = tensor<5x8xf32, #tv.local<#tv.view<#m, [5, 8]>, of [5, 8]>>
func.func @too_many(%rows: !rows, %i: !at) {
  // expected-error @+1 {{has 3 indices for a table of 2 dimensions}}
  %r = comm.fetch %rows at %i, %i, %i over #m [tp] id 0 : (!rows, !at, !at, !at) -> !y
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>
!rows = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 8]>, of [8, 8]>>
!at = tensor<5xi32, #tv.local<#tv.view<#m, [5]>, of [5]>>
!y = tensor<5x8xf32, #tv.local<#tv.view<#m, [5, 8]>, of [5, 8]>>
func.func @shape(%rows: !rows, %i: !at) {
  // expected-error @+1 {{must give rows of the table at each index}}
  %r = comm.fetch %rows at %i over #m [tp] id 0 : (!rows, !at) -> !at
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>
!rows = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 8]>, of [8, 8]>>
!at = tensor<5xi32, #tv.local<#tv.view<#m, [5]>, of [5]>>
!y = tensor<5x8xf32, #tv.local<#tv.view<#m, [5, 8]>, of [5, 8]>>
func.func @other_axes(%rows: !rows, %i: !at) {
  // expected-error @+1 {{must be split by blocks over the axes that the op names}}
  %r = comm.fetch %rows at %i over #m [dp] id 0 : (!rows, !at) -> !y
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>
!rows = tensor<4x8xf32, #tv.local<#tv.view<#m, [did(tp) * 4, 8]>, of [8, 8]>>
!at = tensor<5xi32, #tv.local<#tv.view<#m, [5]>, of [5]>>
!split = tensor<5x4xf32, #tv.local<#tv.view<#m, [5, did(dp) * 4]>, of [5, 8]>>
!sum = tensor<5x8xf32, #tv.local<#tv.view<#m, [5, 8], partial = [dp : sum]>, of [5, 8]>>
func.func @lies_otherwise(%rows: !rows, %i: !at) {
  // expected-error @+1 {{result must lie as the indices and the rows do}}
  %r = comm.fetch %rows at %i over #m [tp] id 0 : (!rows, !at) -> !split
  return
}
func.func @partial(%rows: !rows, %i: !at) {
  // expected-error @+1 {{moves no partial values}}
  %r = comm.fetch %rows at %i over #m [tp] id 0 : (!rows, !at) -> !sum
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>
#split = #tv.view<#m, [did(tp) * 4]>
#whole = #tv.view<#m, [8]>
func.func @no_plan(%x: tensor<8xf32, #split>) {
  // expected-error @+1 {{moves whole tensors, which no fetch does}}
  %y = tv.reshard %x plan <fetch over #m [tp]> : (tensor<8xf32, #split>) -> tensor<8xf32, #whole>
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>
#parts = #tv.view<#m, [did(tp) * 4]>
#whole = #tv.view<#m, [8]>
func.func @gathered_over_another(%x: tensor<4xf32, #tv.local<#parts, of [8]>>) {
  // expected-error @+1 {{must join the parts of operand #0 along exactly the axes it names}}
  %0 = comm.all_gather %x over #m [dp] id 0
    : (tensor<4xf32, #tv.local<#parts, of [8]>>) -> tensor<8xf32, #tv.local<#whole, of [8]>>
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 2>
#parts = #tv.view<#m, [did(tp) * 4]>
#others = #tv.view<#m, [did(dp) * 4]>
func.func @sent_over_another(%x: tensor<4xf32, #tv.local<#parts, of [8]>>) {
  // expected-error @+1 {{must join the parts of operand #0 along the axes it names}}
  %0 = comm.exchange %x over #m [dp] id 0
    : (tensor<4xf32, #tv.local<#parts, of [8]>>) -> tensor<4xf32, #tv.local<#others, of [8]>>
  return
}

// -----

// What splits, or becomes a part of a sum, does so along what is named.
#m = #tv.mesh<dp = 2, tp = 2>
!whole = tensor<8xf32, #tv.local<#tv.view<#m, [8]>, of [8]>>
!parts = tensor<4xf32, #tv.local<#tv.view<#m, [did(tp) * 4]>, of [8]>>
!sum = tensor<8xf32, #tv.local<#tv.view<#m, [8], partial = [tp : sum]>, of [8]>>
func.func @split_over_another(%x: !whole) {
  // expected-error @+1 {{must split operand #0 along exactly the axes it names}}
  %0 = comm.slice %x over #m [dp] id 0 : (!whole) -> !parts
  return
}
func.func @split_over_more(%x: !whole) {
  // expected-error @+1 {{must split operand #0 along exactly the axes it names}}
  %0 = comm.slice %x over #m [dp, tp] id 0 : (!whole) -> !parts
  return
}
func.func @split_over_none(%x: !whole) {
  // expected-error @+1 {{must split operand #0 along exactly the axes it names}}
  %0 = comm.slice %x over #m [] id 0 : (!whole) -> !parts
  return
}
func.func @addends_over_another(%x: !whole) {
  // expected-error @+1 {{must split operand #0 along exactly the axes it names}}
  %0 = comm.slice %x over #m [dp] id 0 : (!whole) -> !sum
  return
}
func.func @told_over_more(%x: !parts) {
  // expected-error @+1 {{must join the parts of operand #0 along exactly the axes it names}}
  %0 = comm.broadcast %x over #m [dp, tp] id 0 : (!parts) -> !whole
  return
}

// -----

// What goes from peer to peer names all axes that leave a dimension.
#m = #tv.mesh<dp = 2, tp = 2>
!rows = tensor<4x4xf32, #tv.local<#tv.view<#m, [did(dp) * 4, did(tp) * 4]>, of [8, 8]>>
!both = tensor<2x8xf32, #tv.local<#tv.view<#m, [did(dp) * did(tp) * 2, 8]>, of [8, 8]>>
!turned = tensor<2x8xf32, #tv.local<#tv.view<#m, [did(tp) * did(dp) * 2, 8]>, of [8, 8]>>
!columns = tensor<8x2xf32, #tv.local<#tv.view<#m, [8, did(dp) * did(tp) * 2]>, of [8, 8]>>
func.func @another(%x: !rows) {
  // expected-error @+1 {{must join the parts of operand #0 along the axes it names}}
  %0 = comm.all_to_all %x over #m [dp] id 0 : (!rows) -> !both
  return
}
func.func @none(%x: !rows) {
  // expected-error @+1 {{must join the parts of operand #0 along the axes it names}}
  %0 = comm.exchange %x over #m [] id 0 : (!rows) -> !columns
  return
}
func.func @legal(%x: !rows, %y: !both) {
  %0 = comm.all_to_all %x over #m [tp] id 0 : (!rows) -> !both
  %1 = comm.permute %y over #m [dp, tp] id 1 : (!both) -> !turned
  %2, %3 = comm.exchange %x, %x over #m [dp, tp] id 2 : (!rows, !rows) -> (!both, !columns)
  return
}
