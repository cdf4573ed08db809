// Views and meshes that are not legal.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{unknown mesh axis 'ep'; the mesh has dp, tp}}
func.func @unknown_axis(%x: tensor<8x4xf32, #tv.view<#m, [did(ep) * _, _]>>) { return }

// -----

#m = #tv.mesh<pp = 3>
// expected-error@+1 {{a value on a part of the mesh has a dimension of 1 that lies there: {pp = 1} is `(did(pp) * 1 | 1:2)`, as in `[(did(pp) * 1 | 1:2), _, _]`}}
func.func @part_of_mesh(%x: tensor<24x16xf32, #tv.view<#m, [_, _], axes = {pp = 1}>>) { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{tp and tp:(2)2 overlap; sub-axes of one view are disjoint}}
func.func @sub_axes_not_disjoint(%x: tensor<8x8xf32, #tv.view<#m, [did(tp) * _, did(tp:(2)2) * _]>>) { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{axis tp is used twice; sub-axes of one view are disjoint}}
func.func @split_and_partial(%x: tensor<8x8xf32, #tv.view<#m, [did(tp) * _, _], partial = [tp : sum]>>) { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{dimension 0: tp:(3)2 is no part of axis tp of size 4; 3 * 2 must divide it}}
func.func @sub_axis_does_not_divide(%x: tensor<8xf32, #tv.view<#m, [did(tp:(3)2) * _]>>) { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{dimension 0: did(tp) * 2 reaches 8 values, fewer than the extent 9; write `_` for one of the factors}}
func.func @product_too_small(%x: tensor<9x4xf32, #tv.view<#m, [did(tp) * 2, 4]>>) { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{dimension 0: empty bound 4:4; a group keeps lo <= v < hi}}
func.func @empty_bound(%x: tensor<8xf32, #tv.view<#m, [(did(tp) * 2 | 4:4) * 8]>>) { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{two `_` in one group of dimension 0; write a number for one of them}}
func.func @two_rests(%x: tensor<8xf32, #tv.view<#m, [_ * did(tp) * _]>>) { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{two `_` in one group of dimension 0; write a number for one of them}}
func.func @two_rests_in_a_group(%x: tensor<16xf32, #tv.view<#m, [(_ * did(tp) * _ | 8) * 2]>>) { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{the view describes 1 dimensions, but the tensor has rank 2}}
func.func @rank(%x: tensor<8x4xf32, #tv.view<#m, [did(tp) * _]>>) { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{alloc names each of the 2 local dimensions once, outermost in memory first}}
func.func @alloc_is_no_permutation(%x: tensor<8x4xf32, #tv.view<#m, [_, _], alloc = (0, 0)>>) { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{flat(3) does not fit a tensor of rank 2}}
func.func @flat_spans_too_much(%x: tensor<8x4xf32, #tv.view<#m, [flat(3) did(tp) * _]>>) { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{the mesh names axis x twice; names are distinct}}
#twice = #tv.mesh<x = 2, x = 3>
func.func @axis_twice() { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{rank 1 in `devices` is out of range or there twice; each rank from 0 to 3 stands once in `devices`}}
#devices = #tv.mesh<x = 4, devices = [0, 1, 1, 3]>
func.func @device_twice() { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{mesh axis x has size 0; a size is at least 1}}
#zero = #tv.mesh<x = 0>
func.func @no_devices() { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{local shape must be 2x4xf32}}
func.func @local_shape(%x: tensor<4x4xf32, #tv.local<#tv.view<#m, [did(tp) * 2, 4]>, of [8, 4]>>) { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{local shape must be ?xf32}}
func.func @local_extent_differs(%x: tensor<3xf32, #tv.local<#tv.view<#m, [did(tp) * 3]>, of [10]>>) { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
#n = #tv.mesh<x = 2>
func.func @meshes(%x: tensor<8xf32, #tv.view<#m, [did(tp) * _]>>, %y: tensor<8xf32, #tv.view<#n, [did(x) * _]>>) {
  // expected-error@+1 {{'tv.add' op operand #1 lies on mesh #tv.mesh<x = 2>, but operand #0 on #tv.mesh<dp = 2, tp = 4>; all tensors of one op must lie on the same devices}}
  %r = tv.add %x, %y : (tensor<8xf32, #tv.view<#m, [did(tp) * _]>>, tensor<8xf32, #tv.view<#n, [did(x) * _]>>) -> tensor<8xf32>
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 4>
#n = #tv.mesh<x = 2>
func.func @captured_on_another_mesh(%x: tensor<8xf32, #tv.view<#m, [did(tp) * _]>>, %y: tensor<f32, #tv.view<#n, []>>) {
  // expected-error@+1 {{'tv.map' op a captured tensor lies on mesh #tv.mesh<x = 2>, but operand #0 on #tv.mesh<dp = 2, tp = 4>; all tensors of one op must lie on the same devices}}
  %r = tv.map %x : (tensor<8xf32, #tv.view<#m, [did(tp) * _]>>) -> tensor<8xf32> (%a: f32) {
    %l = tv.load %y[] : tensor<f32, #tv.view<#n, []>> -> f32
    tv.yield %l : f32
  }
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 4>
#n = #tv.mesh<x = 2>
func.func @reshard_to_another_mesh(%x: tensor<8xf32, #tv.view<#m, [did(tp) * _]>>) {
  // expected-error@+1 {{'tv.reshard' op result #0 lies on mesh #tv.mesh<x = 2>, but operand #0 on #tv.mesh<dp = 2, tp = 4>; all tensors of one op must lie on the same devices}}
  %r = tv.reshard %x : (tensor<8xf32, #tv.view<#m, [did(tp) * _]>>) -> tensor<8xf32, #tv.view<#n, [did(x) * _]>>
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 4>
func.func @local_with_global(%x: tensor<2xf32, #tv.local<#tv.view<#m, [did(tp) * 2]>, of [8]>>, %y: tensor<8xf32>) {
  // expected-error@+1 {{'tv.add' op mixes #tv.local tensors with global ones}}
  %r = tv.add %x, %y : (tensor<2xf32, #tv.local<#tv.view<#m, [did(tp) * 2]>, of [8]>>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @same_view_of_nothing() {
  // expected-error@+1 {{'tv.same_view' op must have as many results as operands, at least one}}
  "tv.same_view"() : () -> ()
  return
}

// -----

func.func @same_view_of_two_shapes(%x: tensor<9xf32>, %y: tensor<3x3xf32>) {
  // expected-error@+1 {{'tv.same_view' op is of tensors of one shape; that of operand #1 differs from that of operand #0}}
  %r:2 = tv.same_view %x, %y : (tensor<9xf32>, tensor<3x3xf32>) -> (tensor<9xf32>, tensor<3x3xf32>)
  return
}

// -----

func.func @barrier_of_another_shape(%x: tensor<9xf32>) {
  // expected-error@+1 {{'tv.barrier' op result must have the shape and element type of its operand}}
  %r = tv.barrier none %x : (tensor<9xf32>) -> tensor<8xf32>
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 4>
func.func @constraint_does_not_fit(%x: tensor<9xf32>) {
  // expected-error@+1 {{'tv.constrain' op view does not fit: dimension 0: did(tp) * 2 reaches 8 values, fewer than the extent 9; write `_` for one of the factors}}
  %r = tv.constrain %x : (tensor<9xf32>) -> tensor<9xf32> to #tv.view<#m, [did(tp) * 2]>
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 4>
func.func @foreign_encoding(%x: tensor<9xf32, "mine">) {
  // expected-error@+1 {{'tv.silu' op operand #0 has an encoding that is neither #tv.view nor #tv.local}}
  %r = tv.silu %x : (tensor<9xf32, "mine">) -> tensor<9xf32, "mine">
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 4>
func.func @reshard_of_another_shape(%x: tensor<8xf32>) {
  // expected-error@+1 {{'tv.reshard' op result must have the shape and element type of its operand}}
  %r = tv.reshard %x : (tensor<8xf32>) -> tensor<9xf32>
  return
}

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{'func.func' op dynamic size 'b' must be its maximum, or [maximum, multiple], both positive}}
func.func @sizes() attributes {tv.sizes = {b = 0}} { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{'func.func' op dynamic size 'b' of argument #0 has no maximum; declare it in 'tv.sizes'}}
func.func @dims(%x: tensor<?xf32> {tv.dims = ["b"]}) { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{'func.func' op 'tv.dims' of argument #0 must name each of its dynamic extents, in order}}
func.func @dims_count(%x: tensor<?x?xf32> {tv.dims = ["b"]}) attributes {tv.sizes = {b = 2}} { return }

// -----

#m = #tv.mesh<dp = 2, tp = 4>
// expected-error@+1 {{'func.func' op 'tv.role' of argument #0 must be "input", "weight", "state" or "parameter"}}
func.func @role(%x: tensor<2xf32> {tv.role = "fish"}) { return }

// -----

// expected-error@+1 {{'func.func' op 'tv.init' of argument #0 must be "zero", and its 'tv.role' "state"}}
func.func @init_of_an_input(%x: tensor<2xf32> {tv.init = "zero"}) { return }

// -----

// expected-error@+1 {{'func.func' op 'tv.init' of argument #0 must be "zero", and its 'tv.role' "state"}}
func.func @init_of_ones(%x: tensor<2xf32> {tv.init = "one", tv.name = "s", tv.role = "state"}) -> (tensor<2xf32> {tv.name = "s"}) { return %x : tensor<2xf32> }

// -----

// Weights come from somewhere.
// expected-error@+1 {{'func.func' op 'tv.init' of argument #0 must be "zero", and its 'tv.role' "state"}}
func.func @init_of_a_parameter(%x: tensor<2xf32> {tv.init = "zero", tv.name = "s", tv.role = "parameter"}) -> (tensor<2xf32> {tv.name = "s"}) { return %x : tensor<2xf32> }

// -----

// expected-error@+1 {{'func.func' op 'tv.name' of argument #0 must be a string that is not empty}}
func.func @argument_name(%x: tensor<2xf32> {tv.name = ""}) { return }

// -----

// expected-error@+1 {{'func.func' op 'tv.name' of result #0 must be a string that is not empty}}
func.func @result_name(%x: tensor<2xf32>) -> (tensor<2xf32> {tv.name = 3}) { return %x : tensor<2xf32> }

// -----

// expected-error@+1 {{'func.func' op has no meaning for "tv.nam" on argument #0; there are tv.name, tv.role, tv.init, tv.dims, tv.range and tv.user_view}}
func.func @argument_attribute(%x: tensor<2xf32> {tv.nam = "x"}) { return }

// -----

// expected-error@+1 {{'func.func' op has no meaning for "tv.role" on result #0; there are tv.name, tv.check and tv.user_view}}
func.func @result_attribute(%x: tensor<2xf32>) -> (tensor<2xf32> {tv.role = "state"}) { return %x : tensor<2xf32> }

// -----

// expected-error@+1 {{'func.func' op 'tv.check' of result #0 must be a string that is not empty: what it means where one is not 0}}
func.func @check_says_nothing(%x: tensor<2xi32>) -> (tensor<2xi32> {tv.check = ""}) { return %x : tensor<2xi32> }

// -----

// expected-error@+1 {{'func.func' op 'tv.check' of result #0 is for a tensor of integers, not 'tensor<2xf32>'}}
func.func @check_of_floats(%x: tensor<2xf32>) -> (tensor<2xf32> {tv.check = "x"}) { return %x : tensor<2xf32> }

// -----

// expected-error@+1 {{'func.func' op 'tv.check' of result #0 is for a result that is no state, and "s" is one}}
func.func @check_of_state(%x: tensor<2xi32> {tv.name = "s", tv.role = "state"}) -> (tensor<2xi32> {tv.name = "s", tv.check = "x"}) { return %x : tensor<2xi32> }

// -----

#m = #tv.mesh<tp = 2>
#v = #tv.view<#m, [did(tp) * _]>
// expected-error@+1 {{'func.func' op 'tv.check' of result #0 is for one of which each device has all, not}}
func.func @check_of_parts(%x: tensor<2xi32, #v>) -> (tensor<2xi32, #v> {tv.check = "x"}) { return %x : tensor<2xi32, #v> }

// -----

// expected-error@+1 {{'func.func' op argument #0 is "parameter" and needs a 'tv.name', that of the result which replaces it}}
func.func @parameter_without_name(%x: tensor<2xf32> {tv.role = "parameter"}) { return }

// -----

// expected-error@+1 {{'func.func' op state "w" needs one result with its name, its next value, and has 0}}
func.func @parameter_without_result(%x: tensor<2xf32> {tv.name = "w", tv.role = "parameter"}) -> (tensor<2xf32> {tv.name = "v"}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error@+1 {{'func.func' op state "w" needs one result with its name, its next value, and has 2}}
func.func @state_with_two_results(%x: tensor<2xf32> {tv.name = "w", tv.role = "state"})
    -> (tensor<2xf32> {tv.name = "w"}, tensor<2xf32> {tv.name = "w"}) {
  return %x, %x : tensor<2xf32>, tensor<2xf32>
}

// -----

// expected-error@+1 {{`iota` lists at most 65536 devices}}
#m = #tv.mesh<dp = 2, tp = 2147483648, devices = iota(tp, dp)>

// -----

// expected-error@+1 {{a mesh has at most 65536 devices}}
#m = #tv.mesh<dp = 64, tp = 1025>
func.func private @mesh_too_large(tensor<8xf32, #tv.view<#m, [_]>>)
// -----

// A value on a part of the mesh, in two ways that are almost right.
#m = #tv.mesh<pp = 2>
// expected-error@+1 {{dimension 0: (did(pp) * 1 | 1:2) reaches 1 value, fewer than the extent 2; write `* _` behind}}
func.func @part_of_the_mesh(%x: tensor<2x4xf32, #tv.view<#m, [(did(pp) * 1 | 1:2), _]>>) { return }

// -----

#m = #tv.mesh<pp = 2>
// expected-error@+1 {{dimension 0: did(pp) * 1 reaches 2 values, fewer than the bound 3; write a bound of 2 or less, or `_` for one of the factors}}
func.func @no_such_part(%x: tensor<1x4xf32, #tv.view<#m, [(did(pp) * 1 | 2:3), _]>>) { return }

// -----

#m = #tv.mesh<tp = 4>
// expected-error@+1 {{expected an integer below 2^63}}
func.func @priority_beyond(%x: tensor<8xf32, #tv.view<#m, [did(tp) * _], priority = [99999999999999999999]>>) { return }

// -----

// expected-error@+1 {{the mesh has 4 positions, but `devices` lists 3 ranks; each rank from 0 to 3 stands once in `devices`}}
#m = #tv.mesh<tp = 4, devices = [0, 1, 2]>
func.func @few_devices(%x: tensor<8xf32, #tv.view<#m, [did(tp) * _]>>) { return }
