// RUN: tessera-opt --tv-bind --split-input-file %s | FileCheck %s
// RUN: tessera-opt --tv-bind="mesh=tp=3" --split-input-file %s | FileCheck %s --check-prefix=THREE

// The ceiling of what the group still needs; what the user wrote is kept.

// CHECK-LABEL: @canonical_and_user_view
// CHECK-SAME: tensor<8x4xf32, #tv.view<#mesh, [did(tp) * 4, 4]>> {tv.user_view = #tv.view<#mesh, [did(tp) * _, _]>}
// THREE-LABEL: @canonical_and_user_view
// THREE-SAME: tensor<8x4xf32, #tv.view<#mesh, [did(tp) * 3, 4]>>
#m = #tv.mesh<tp = 2>
func.func @canonical_and_user_view(%x: tensor<8x4xf32, #tv.view<#m, [did(tp) * _, _]>>) {
  return
}

// -----

// Sixteen heads of nine rows on three devices: 6, 6 and 4 heads, 54, 54 and 36 rows.

// THREE-LABEL: @uneven_heads
// THREE-SAME: #tv.view<#mesh, [did(tp) * 54, 4]>
#m = #tv.mesh<tp = 2>
func.func @uneven_heads(%w: tensor<144x4xf32, #tv.view<#m, [(did(tp) * _ | 16) * 9, _]>>) {
  return
}

// -----

// A dynamic extent keeps its `_`.

// CHECK-LABEL: @dynamic_extent
// CHECK-SAME: #tv.view<#mesh, [did(tp) * _, 4]>
#m = #tv.mesh<tp = 2>
func.func @dynamic_extent(%x: tensor<?x4xf32, #tv.view<#m, [did(tp) * _, _]>> {tv.dims = ["b"]})
    attributes {tv.sizes = {b = 8}} {
  return
}

// -----

// A constant is made anew for each use, so that each may lie differently.

// CHECK-LABEL: @one_copy_a_use
// CHECK-COUNT-2: tv.constant
#m = #tv.mesh<tp = 2>
func.func @one_copy_a_use(%x: tensor<4xf32, #tv.view<#m, [_]>>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = tv.constant dense<1.0> : tensor<4xf32> : () -> tensor<4xf32>
  %0 = tv.add %x, %c : (tensor<4xf32, #tv.view<#m, [_]>>, tensor<4xf32>) -> tensor<4xf32>
  %1 = tv.mul %x, %c : (tensor<4xf32, #tv.view<#m, [_]>>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A concat of many operands becomes one of concats.
// CHECK-LABEL: @many_operands
// CHECK: %[[A:.+]] = tv.concat {{.*}} -> tensor<64x8xf32>
// CHECK: %[[B:.+]] = tv.concat {{.*}} -> tensor<6x8xf32>
// CHECK: tv.concat %[[A]], %[[B]] dim 0
#m = #tv.mesh<tp = 2>
func.func @many_operands(%x: tensor<2x8xf32>, %t: tensor<8xf32, #tv.view<#m, [_]>>) -> tensor<70x8xf32> {
  %0 = tv.concat %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x dim 0 : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<70x8xf32>
  return %0 : tensor<70x8xf32>
}

// -----

// A state has the view of its next value.

// CHECK-LABEL: @state
// CHECK-SAME: (%arg0: tensor<4x6xf32, #tv.view<#mesh, [did(tp) * 2, 6]>> {tv.name = "s", tv.role = "state", tv.user_view = #tv.view<#mesh, [did(tp) * _, _]>})
#m = #tv.mesh<tp = 2>
!s = tensor<4x6xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @state(%s: tensor<4x6xf32> {tv.name = "s", tv.role = "state"}) -> (!s {tv.name = "s"}) {
  %0 = tv.neg %s : (tensor<4x6xf32>) -> !s
  return %0 : !s
}

// -----

// ... also where it is returned as it was.

// CHECK-LABEL: @old_state
// CHECK-SAME: -> (tensor<4x6xf32, #tv.view<#mesh, [did(tp) * 2, 6]>> {tv.name = "s",{{.*}} tensor<4x6xf32, #tv.view<#mesh, [did(tp) * 2, 6]>> {tv.name = "old"})
#m = #tv.mesh<tp = 2>
!s = tensor<4x6xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @old_state(%s: tensor<4x6xf32> {tv.name = "s", tv.role = "state"}) -> (!s {tv.name = "s"}, tensor<4x6xf32> {tv.name = "old"}) {
  %0 = tv.neg %s : (tensor<4x6xf32>) -> !s
  return %0, %s : !s, tensor<4x6xf32>
}

// -----

// Views beside the types.

// CHECK-LABEL: @attributes
// CHECK-SAME: (%arg0: tensor<8x4xf32, #tv.view<#mesh, [did(tp) * 4, 4]>> {tv.user_view = #tv.view<#mesh, [did(tp) * _, _]>}) -> tensor<8x4xf32>
// CHECK: %[[N:.*]] = tv.neg %arg0
// CHECK: %[[R:.*]] = tv.constrain %[[N]] {{.*}} to #tv.view<#mesh, [8, did(tp) * 2]>
// CHECK: return %[[R]]
#m = #tv.mesh<tp = 2>
!x = tensor<8x4xf32>
func.func @attributes(%x: !x {tv.user_view = #tv.view<#m, [did(tp) * _, _]>})
    -> (!x {tv.user_view = #tv.view<#m, [_, did(tp) * _]>}) {
  %0 = tv.neg %x : (!x) -> !x
  return %0 : !x
}
