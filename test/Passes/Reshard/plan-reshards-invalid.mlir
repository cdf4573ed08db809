// RUN: tessera-opt --tv-plan-reshards --split-input-file --verify-diagnostics %s

// Uneven shards of single elements: there are too many pieces to look at.
#m = #tv.mesh<tp = 3>
#cyclic = #tv.view<#m, [366503875926 * did(tp)]>
#whole = #tv.view<#m, [1099511627776]>
func.func @pieces(%x: tensor<1099511627776xf32, #cyclic>) {
  // expected-error@+1 {{may take more than 4194304 contiguous pieces; write a view with longer blocks}}
  %y = tv.reshard %x : (tensor<1099511627776xf32, #cyclic>) -> tensor<1099511627776xf32, #whole>
  return
}

// -----

// One step of a kind that the move is not, or that would take several.

#m = #tv.mesh<tp = 2>
#rows = #tv.view<#m, [did(tp) * 4, 8]>
#columns = #tv.view<#m, [8, did(tp) * 4]>
func.func @other_step(%x: tensor<8x8xf32, #rows>) {
  // expected-error@+1 {{from [did(tp) * 4, 8] to [8, did(tp) * 4] is no all-gather, but all-to-all over [tp] or exchange}}
  %y = tv.reshard %x {tv.step = "all_gather"} : (tensor<8x8xf32, #rows>) -> tensor<8x8xf32, #columns>
  return
}

// -----

#m = #tv.mesh<tp = 2>
#partial = #tv.view<#m, [8], partial = [tp : sum]>
#half = #tv.view<#m, [did(tp) * 4]>
func.func @reduces_all(%x: tensor<8xf32, #partial>) {
  // expected-error@+1 {{from [8], partial = [tp : sum] to [did(tp) * 4] is no all-reduce, but reduce-scatter over [tp]}}
  %y = tv.reshard %x {tv.step = "all_reduce"} : (tensor<8xf32, #partial>) -> tensor<8xf32, #half>
  return
}

// -----

#m = #tv.mesh<tp = 2>
#half = #tv.view<#m, [did(tp) * 4]>
#whole = #tv.view<#m, [8]>
func.func @no_step(%x: tensor<8xf32, #half>) {
  // expected-error@+1 {{'tv.step' is of a tv.reshard, and names the kind of a step, such as "all_gather"}}
  %y = tv.reshard %x {tv.step = "gather"} : (tensor<8xf32, #half>) -> tensor<8xf32, #whole>
  return
}
