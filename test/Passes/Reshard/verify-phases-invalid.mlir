// What each phase verifier rejects.
//
// RUN: tessera-opt %s --split-input-file --verify-diagnostics \
// RUN:   --tv-verify-decomposed --tv-verify-planned --tv-verify-allocated

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [did(tp) * 4]>
#w = #tv.view<#m, []>
func.func @not_partial(%x: tensor<8xf32, #s>) -> tensor<f32, #w> {
  // expected-error @+1 {{needs data of other devices: result #0 lies as [], but must lie as [], partial = [tp : sum] beside the others; run tv-decompose-reshardings}}
  %y = tv.reduce sum %x dims [0] : (tensor<8xf32, #s>) -> tensor<f32, #w>
  return %y : tensor<f32, #w>
}

// -----

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [did(tp) * 4]>
#w = #tv.view<#m, [8]>
func.func @views_differ(%x: tensor<8xf32, #s>, %y: tensor<8xf32, #w>) -> tensor<8xf32, #s> {
  // expected-error @+1 {{operand #1 lies as [8], but must lie as [did(tp) * 4]}}
  %z = tv.add %x, %y : (tensor<8xf32, #s>, tensor<8xf32, #w>) -> tensor<8xf32, #s>
  return %z : tensor<8xf32, #s>
}

// -----

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [did(tp) * 4, 2]>
#w = #tv.view<#m, [16]>
func.func @reshape_moves(%x: tensor<8x2xf32, #s>) -> tensor<16xf32, #w> {
  // expected-error @+1 {{its result must lie as [did(tp) * 8] where its operand lies}}
  %z = tv.reshape %x : (tensor<8x2xf32, #s>) -> tensor<16xf32, #w>
  return %z : tensor<16xf32, #w>
}

// -----

#m = #tv.mesh<tp = 2>
#p = #tv.view<#m, [8], partial = [tp : sum]>
func.func @gelu_of_partial(%x: tensor<8xf32, #p>) -> tensor<8xf32, #p> {
  // expected-error @+1 {{operand #0 lies as [8], partial = [tp : sum], but must lie as [8] beside the others: tv.gelu may not run on a partial (sum) operand: math.erf is not linear}}
  %z = tv.gelu %x : (tensor<8xf32, #p>) -> tensor<8xf32, #p>
  return %z : tensor<8xf32, #p>
}

// -----

#m = #tv.mesh<tp = 2>
#p = #tv.view<#m, [8], partial = [tp : sum]>
#w = #tv.view<#m, [8]>
func.func @whole_beside_partial(%x: tensor<8xf32, #p>, %y: tensor<8xf32, #w>) -> tensor<8xf32, #p> {
  // expected-error @+1 {{operand #1 lies as [8], but must lie as [8], partial = [tp : sum] beside the others: tv.add may not run on a partial (sum) operand: arith.addf needs both operands partial by sum: a whole one would be added once a device}}
  %z = tv.add %x, %y : (tensor<8xf32, #p>, tensor<8xf32, #w>) -> tensor<8xf32, #p>
  return %z : tensor<8xf32, #p>
}

// -----

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [did(tp) * 4]>
#w = #tv.view<#m, [8]>
func.func @no_plan(%x: tensor<8xf32, #s>) -> tensor<8xf32, #w> {
  // expected-error @+1 {{has no plan; run tv-plan-reshards}}
  %z = tv.reshard %x : (tensor<8xf32, #s>) -> tensor<8xf32, #w>
  return %z : tensor<8xf32, #w>
}

// -----

#m = #tv.mesh<tp = 2>
#p = #tv.view<#m, [8], partial = [tp : sum]>
#w = #tv.view<#m, [8]>
func.func @plan_combines_nothing(%x: tensor<8xf32, #p>) -> tensor<8xf32, #w> {
  // expected-error @+1 {{has a plan that does not combine exactly the partial states that vanish}}
  %z = tv.reshard %x plan <all_gather over #m [tp]> : (tensor<8xf32, #p>) -> tensor<8xf32, #w>
  return %z : tensor<8xf32, #w>
}

// -----

#m = #tv.mesh<tp = 2>
#w = #tv.view<#m, [8], alloc = (0)>
#n = #tv.view<#m, [8]>
func.func @no_alloc(%x: tensor<8xf32, #w>) -> tensor<8xf32, #n> {
  // expected-error @+1 {{has a result without 'alloc'; run tv-make-resharding-contiguous}}
  %z = tv.gelu %x : (tensor<8xf32, #w>) -> tensor<8xf32, #n>
  return %z : tensor<8xf32, #n>
}

// -----

#m = #tv.mesh<tp = 2>
#s = #tv.view<#m, [4, did(tp) * 4], alloc = (0, 1)>
#w = #tv.view<#m, [4, 8], alloc = (1, 0)>
func.func @no_chunk(%x: tensor<4x8xf32, #s>) -> tensor<4x8xf32, #w> {
  // expected-error @+1 {{has a shard that is no chunk of the whole}}
  %z = tv.reshard %x plan <all_gather over #m [tp]> : (tensor<4x8xf32, #s>) -> tensor<4x8xf32, #w>
  return %z : tensor<4x8xf32, #w>
}
