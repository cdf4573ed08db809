// RUN: tessera-opt --tv-bind="mesh=tp=3" --split-input-file --verify-diagnostics %s

// Sub-axes keep their sizes, so they may not fit another mesh.

#m = #tv.mesh<tp = 4>
// expected-error @+1 {{argument #0}}
func.func @sub_axis_does_not_fit(%x: tensor<8xf32, #tv.view<#m, [did(tp:(1)2) * _]>>) {
  return
}

// -----

#m = #tv.mesh<tp = 2, devices = [1, 0]>
// expected-error @+1 {{the mesh lists its devices, so its axes cannot get other sizes}}
func.func @listed_devices(%x: tensor<8xf32, #tv.view<#m, [did(tp) * _]>>) {
  return
}

// -----

// expected-error @unknown {{--mesh tp=3: no view of the program has this axis; they have dp}}
module {
  func.func @unknown_axis(%x: tensor<8xf32, #tv.view<#tv.mesh<dp = 2>, [did(dp) * _]>>) {
    return
  }
}

// -----

#m = #tv.mesh<tp = 2>
func.func private @f(%x: tensor<f32>, %t: tensor<4xf32, #tv.view<#m, [_]>>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func @call(%x: tensor<f32>, %t: tensor<4xf32, #tv.view<#m, [_]>>) -> tensor<f32> {
  // expected-error @+1 {{'func.call' should be gone; tv-inline runs before tv-bind}}
  %0 = call @f(%x, %t) : (tensor<f32>, tensor<4xf32, #tv.view<#m, [_]>>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

#m = #tv.mesh<tp = 2>
func.func private @f(%x: tensor<f32>, %t: tensor<4xf32, #tv.view<#m, [_]>>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func @gradient(%x: tensor<f32>, %t: tensor<4xf32, #tv.view<#m, [_]>>) -> tensor<f32> {
  // expected-error @+1 {{'tv.gradient' should be gone; tv-differentiate runs before tv-bind}}
  %0, %1 = tv.gradient @f(%x, %t) of [0] to [0]
      : (tensor<f32>, tensor<4xf32, #tv.view<#m, [_]>>) -> (tensor<f32>, tensor<f32>)
  return %1 : tensor<f32>
}

// -----

#m = #tv.mesh<tp = 2>
func.func @arith_on_sharded(%x: tensor<4xf32, #tv.view<#m, [_]>>) {
  // expected-error @+1 {{'arith.addf' on the tensors of a sharded program; only tv and func ops}}
  %0 = arith.addf %x, %x : tensor<4xf32, #tv.view<#m, [_]>>
  return
}

// -----

#m = #tv.mesh<tp = 2>
func.func @control_flow(%x: tensor<4xf32, #tv.view<#m, [_]>>, %c: i1) -> tensor<4xf32> {
  // expected-error @+1 {{'scf.if' on the tensors of a sharded program}}
  %0 = scf.if %c -> (tensor<4xf32>) {
    %1 = tv.add %x, %x : (tensor<4xf32, #tv.view<#m, [_]>>, tensor<4xf32, #tv.view<#m, [_]>>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  } else {
    %1 = tv.mul %x, %x : (tensor<4xf32, #tv.view<#m, [_]>>, tensor<4xf32, #tv.view<#m, [_]>>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

// Copies of what each of them reads twice.

#m = #tv.mesh<tp = 2>
func.func @copies(%x: tensor<2xf32>, %t: tensor<4xf32, #tv.view<#m, [_]>>) -> tensor<2xf32> {
  %0 = tv.broadcast %x dims [0] like %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %1 = tv.broadcast %0 dims [0] like %0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  // expected-error @+1 {{has 131072 uses, each with a copy of its own, and 'copies' becomes more than 262144 ops}}
  %2 = tv.broadcast %1 dims [0] like %1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %3 = tv.broadcast %2 dims [0] like %2 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %4 = tv.broadcast %3 dims [0] like %3 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %5 = tv.broadcast %4 dims [0] like %4 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %6 = tv.broadcast %5 dims [0] like %5 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %7 = tv.broadcast %6 dims [0] like %6 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %8 = tv.broadcast %7 dims [0] like %7 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %9 = tv.broadcast %8 dims [0] like %8 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %10 = tv.broadcast %9 dims [0] like %9 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %11 = tv.broadcast %10 dims [0] like %10 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %12 = tv.broadcast %11 dims [0] like %11 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %13 = tv.broadcast %12 dims [0] like %12 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %14 = tv.broadcast %13 dims [0] like %13 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %15 = tv.broadcast %14 dims [0] like %14 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %16 = tv.broadcast %15 dims [0] like %15 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %17 = tv.broadcast %16 dims [0] like %16 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %18 = tv.broadcast %17 dims [0] like %17 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %19 = tv.broadcast %18 dims [0] like %18 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %19 : tensor<2xf32>
}

// -----

#m = #tv.mesh<tp = 2>
// expected-error @+1 {{argument #1: a tensor may have 16 dimensions, not 17}}
func.func @rank_of_argument(%t: tensor<4xf32, #tv.view<#m, [_]>>, %x: tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>) {
  return
}

// -----

#m = #tv.mesh<tp = 2>
func.func @rank_of_result(%t: tensor<4xf32, #tv.view<#m, [_]>>, %x: tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>) {
  // expected-error @+1 {{result #0: a tensor may have 16 dimensions, not 17}}
  %0 = tv.reshape %x : (tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>) -> tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>
  return
}

// -----

#m = #tv.mesh<tp = 2>
#n = #tv.mesh<tp = 2, dp = 2>
func.func @two_meshes(%x: tensor<4xf32, #tv.view<#m, [_]>>,
                      // expected-error @+1 {{argument #1: has a view on mesh #tv.mesh<tp = 3, dp = 2>, of 6 devices, but others are on #tv.mesh<tp = 3>, of 3; meshes of one program name the same devices, and 'mesh' sets the axes of each}}
                      %y: tensor<4xf32, #tv.view<#n, [_]>>) {
  return
}

// -----

#m = #tv.mesh<tp = 2>
!s = tensor<4x6xf32, #tv.view<#m, [did(tp) * _, _]>>
// expected-error @+1 {{state "s" is 'tensor<4x6xf32, #tv.view<#tv.mesh<tp = 2>, [did(tp) * _, _]>>', but its next value, result #0, is 'tensor<6x4xf32>'; write one type for both}}
func.func @state_shape(%s: !s {tv.name = "s", tv.role = "state"}) -> (tensor<6x4xf32> {tv.name = "s"}) {
  %0 = tv.transpose %s perm [1, 0] : (!s) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}

// -----

!s = tensor<4xf32, #tv.view<#tv.mesh<tp = 2>, [did(tp) * _]>>
// expected-error @+1 {{but its next value, result #1, is 'tensor<4xbf16>'}}
func.func @state_element(%s: !s {tv.name = "s", tv.role = "parameter"}) -> (!s {tv.name = "old"}, tensor<4xbf16> {tv.name = "s"}) {
  %0 = tv.cast %s : (!s) -> tensor<4xbf16>
  return %s, %0 : !s, tensor<4xbf16>
}

// -----

#m = #tv.mesh<tp = 2>
!s = tensor<4x6xf32, #tv.view<#m, [did(tp) * _, _]>>
!t = tensor<4x6xf32, #tv.view<#m, [_, did(tp) * _]>>
// expected-error @+1 {{state "s" lies as #tv.view<#tv.mesh<tp = 3>, [did(tp) * 2, 6]>, but its next value, result #0, as #tv.view<#tv.mesh<tp = 3>, [4, did(tp) * 2]>; write one view, and the other follows}}
func.func @state_view(%s: !s {tv.name = "s", tv.role = "state"}) -> (!t {tv.name = "s"}) {
  %0 = tv.neg %s : (!s) -> !t
  return %0 : !t
}

// -----

// expected-error @+1 {{'tv.user_view' of argument #0 must be a #tv.view of a tensor}}
func.func @no_view(%x: tensor<4xf32> {tv.user_view = "rows"}, %y: tensor<4xf32, #tv.view<#tv.mesh<tp = 3>, [_]>>) {
  return
}

// -----

// expected-error @+1 {{argument #0: the view describes 2 dimensions, but the tensor has rank 1}}
func.func @wrong_rank(%x: tensor<4xf32> {tv.user_view = #tv.view<#tv.mesh<tp = 3>, [did(tp) * _, _]>}) {
  return
}

// -----

// A state and its next value on others' devices; other numbers of devices.
#m = #tv.mesh<tp = 3>
#n = #tv.mesh<tp = 3, devices = [0, 2, 1]>
!x = tensor<12xf32, #tv.view<#m, [did(tp) * _]>>
!y = tensor<12xf32, #tv.view<#n, [did(tp) * _]>>
func.func @state_elsewhere(
    // expected-error @+1 {{state "s" lies on #tv.mesh<tp = 3, devices = [0, 2, 1]>, but its next value, result #0, on #tv.mesh<tp = 3>; write one mesh for both}}
    %s: !y {tv.name = "s", tv.role = "state"}, %x: !x, %y: !x) -> (!x {tv.name = "s"}, !x) {
  return %x, %y : !x, !x
}

// -----

#m = #tv.mesh<a = 2, tp = 3>
#n = #tv.mesh<tp = 3, devices = [2, 1, 0]>
func.func @fewer(%x: tensor<12xf32, #tv.view<#m, [did(tp) * _]>>,
                 // expected-error @+1 {{argument #1: has a view on mesh #tv.mesh<tp = 3, devices = [2, 1, 0]>, of 3 devices, but others are on #tv.mesh<a = 2, tp = 3>, of 6}}
                 %y: tensor<12xf32, #tv.view<#n, [did(tp) * _]>>) {
  return
}

// -----

#m = #tv.mesh<tp = 3>
!rows = tensor<9x3xf32, #tv.view<#m, [did(tp) * _, _]>>
!columns = tensor<9x3xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @same_view_in_two_views(%x: tensor<9x3xf32>) {
  // expected-error@+1 {{'tv.same_view' op results lie alike, but their types have views #tv.view<#tv.mesh<tp = 3>, [did(tp) * 3, 3]> and #tv.view<#tv.mesh<tp = 3>, [9, did(tp)]>}}
  %r:3 = tv.same_view %x, %x, %x : (tensor<9x3xf32>, tensor<9x3xf32>, tensor<9x3xf32>) -> (!rows, tensor<9x3xf32>, !columns)
  return
}
