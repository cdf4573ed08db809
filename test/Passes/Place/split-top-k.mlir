// RUN: tessera-opt %s --split-input-file --tv-split-top-k=explain=1 --type-aliases 2> %t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: tessera-opt %s --split-input-file --tessera="to=propagated explain" -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: sends candidates of each run to all devices: 360 bytes, 5.001 us; otherwise 1512 bytes, 5.005 us
// REMARK: remark: sends all elements to all devices: 384 bytes, 5.001 us; otherwise 576 bytes, 5.002 us
// REMARK: remark: sends all elements to all devices: 384 bytes, 5.002 us; otherwise 288 bytes, 30 us
// REMARK: remark: combines one maximum after the other: 15750000 bytes, 62.5 us; otherwise

// 5 of a vocabulary over tp and rows over dp: of each device's 63 tokens, and what fills
// up the last one's, 5 go to all of a row's devices. Any number of rows, and i64.
// CHECK: [[ALL:!tnx20xf32]] = tensor<?x20xf32, #tv.view<#mesh, [did(dp) * _, 20]>>
// CHECK-LABEL: @candidates
// CHECK-NEXT: %[[P:.*]] = tv.pad %{{.*}} low [0, 0] high [0, 1] value 0xFF800000
// CHECK-NEXT: %[[R:.*]] = tv.reshape %[[P]] : {{.*}} -> tensor<?x4x63xf32>
// CHECK-NEXT: %[[V:.*]], %[[I:.*]] = tv.top_k %[[R]] dim 2 : {{.*}} -> (tensor<?x4x5xf32>, tensor<?x4x5xi64>)
// CHECK-NEXT: %[[PLACE:.*]] = tv.iota 1
// CHECK-NEXT: %[[AT:.*]] = tv.map %[[I]], %[[PLACE]]
// CHECK: tv.reshape %[[V]] : {{.*}} -> [[ALL]]
// CHECK: tv.reshape %[[AT]]
// CHECK: tv.top_k %{{.*}} dim 1 : ([[ALL]])
// CHECK: tv.reduce sum
#m = #tv.mesh<dp = 2, tp = 4>
!x = tensor<?x251xf32, #tv.view<#m, [did(dp) * _, did(tp) * 63]>>
!v = tensor<?x5xf32, #tv.view<#m, [did(dp) * _, 5]>>
!i = tensor<?x5xi64, #tv.view<#m, [did(dp) * _, 5]>>
func.func @candidates(%x: !x {tv.dims = ["b"]}) -> (!v, !i) attributes {tv.sizes = {b = 8}} {
  %v, %i = tv.top_k %x dim 1 : (!x) -> (!v, !i)
  return %v, %i : !v, !i
}

// -----

// All of few elements are fewer bytes than candidates with indices, or as many as these.
// CHECK: [[ALL:!t8x16xf32_2]] = tensor<8x16xf32, #tv.view<#mesh, [8, 16]>>
// CHECK-LABEL: @whole
// CHECK-COUNT-2: tv.reshard {{.*}} -> [[ALL]]
// CHECK-NOT: tv.reshape
#m = #tv.mesh<ep = 4>
!x = tensor<8x16xf32, #tv.view<#m, [8, did(ep) * 4]>>
!in_turn = tensor<8x16xf32, #tv.view<#m, [8, 4 * did(ep)]>>
!v = tensor<8x3xf32, #tv.view<#m, [8, 3]>>
!i = tensor<8x3xi32, #tv.view<#m, [8, 3]>>
func.func @whole(%x: !x, %y: !in_turn) -> (!v, !i, !v, !i) {
  %v, %i = tv.top_k %x dim 1 : (!x) -> (!v, !i)
  %w, %j = tv.top_k %y dim 1 : (!in_turn) -> (!v, !i)
  return %v, %i, %w, %j : !v, !i, !v, !i
}

// -----

// What stays: the largest of very many rows over many devices, where one sum of a row
// is less than a candidate of each device; a dimension that devices do not share; partial
// values; bounded groups.
// CHECK-LABEL: @stay
// CHECK-NEXT: tv.top_k
// CHECK-NEXT: tv.top_k
// CHECK-NEXT: tv.top_k
// CHECK-NEXT: tv.top_k
// CHECK-NEXT: return
#m = #tv.mesh<tp = 64>
!x = tensor<1000000x640xf32, #tv.view<#m, [1000000, did(tp) * 10]>>
!w = tensor<640x640xf32, #tv.view<#m, [did(tp) * 10, 640]>>
!p = tensor<640x640xf32, #tv.view<#m, [640, 640], partial = [tp : max]>>
!g = tensor<2x640xf32, #tv.view<#m, [2, (did(tp) * 2 | 80) * 8]>>
func.func @stay(%x: !x, %w: !w, %p: !p, %g: !g) {
  %0, %1 = tv.top_k %x dim 1 : (!x) -> (tensor<1000000x1xf32>, tensor<1000000x1xi32>)
  %2, %3 = tv.top_k %w dim 1 : (!w) -> (tensor<640x2xf32>, tensor<640x2xi32>)
  %4, %5 = tv.top_k %p dim 1 : (!p) -> (tensor<640x2xf32>, tensor<640x2xi32>)
  %6, %7 = tv.top_k %g dim 1 : (!g) -> (tensor<2x2xf32>, tensor<2x2xi32>)
  return
}
