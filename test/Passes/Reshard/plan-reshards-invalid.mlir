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
