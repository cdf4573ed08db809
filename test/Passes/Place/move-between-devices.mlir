// RUN: tessera-opt %s --split-input-file --tv-move-between-devices | FileCheck %s

#m = #tv.mesh<x = 4>
#n = #tv.mesh<x = 4, devices = [3, 2, 1, 0]>
!x = tensor<8x8xf32, #tv.view<#m, [did(x) * 2, 8]>>
!y = tensor<8x8xf32, #tv.view<#m, [8, did(x) * 2]>>
!w = tensor<8x8xf32, #tv.view<#m, [8, 8]>>

// Before uses and the end; whether the source has it is noted. What all have stays.

// CHECK-DAG: #[[N:.*]] = #tv.mesh<x = 4, devices = [3, 2, 1, 0]>
// CHECK-DAG: #[[M:.*]] = #tv.mesh<x = 4>
// CHECK-LABEL: @ends
// CHECK-SAME: %[[X:.*]]: tensor<8x8xf32, #tv.view<#[[N]], [did(x) * 2, 8]>> {tv.user_view = #tv.view<#[[N]], [did(x) * _, _]>}
// CHECK-SAME: %{{.*}}: tensor<8x8xf32, #tv.view<#[[M]], [8, 8]>>
// CHECK-SAME: -> (tensor<8x8xf32, #tv.view<#[[N]], [8, did(x) * 2]>> {tv.user_view
// CHECK-NEXT: %[[IN:.*]] = tv.reshard %[[X]] : (tensor<8x8xf32, #tv.view<#[[N]], [did(x) * 2, 8]>>) -> tensor<8x8xf32, #tv.view<#[[M]], [did(x) * 2, 8]>>
// CHECK: tv.add %[[IN]], %{{.*}}
// CHECK: %[[Y:.*]] = tv.exp
// CHECK: %[[OUT:.*]] = tv.reshard %[[Y]] {tv.user_move} : {{.*}} -> tensor<8x8xf32, #tv.view<#[[N]], [8, did(x) * 2]>>
// CHECK: return %[[OUT]], %{{.*}} : tensor<8x8xf32, #tv.view<#[[N]], {{.*}}, tensor<8x8xf32, #tv.view<#[[M]]
func.func @ends(%x: !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>},
                %w: !w {tv.user_view = #tv.view<#n, [_, _]>}, %u: !x, %v: !y)
    -> (!y {tv.user_move, tv.user_view = #tv.view<#n, [_, did(x) * _]>}, !x) {
  %0 = tv.add %x, %u : (!x, !x) -> !x
  %1 = tv.exp %v : (!y) -> !y
  return %1, %0 : !y, !x
}

// -----

// As it lies; one exchange with what moves next to it, which is the source's if both are.

#m = #tv.mesh<x = 4>
#n = #tv.mesh<x = 4, devices = [3, 2, 1, 0]>
!x = tensor<8x8xf32, #tv.view<#m, [did(x) * 2, 8]>>
!y = tensor<8x8xf32, #tv.view<#m, [8, did(x) * 2]>>
// CHECK-DAG: #[[N:.*]] = #tv.mesh<x = 4, devices = [3, 2, 1, 0]>
// CHECK-DAG: #[[M:.*]] = #tv.mesh<x = 4>
// CHECK-LABEL: @joined
// CHECK-SAME: (%[[X:.*]]: tensor<{{.*}}, %[[Z:.*]]: tensor<8x8xf32, #tv.view<#[[M]],
// CHECK-NEXT: %[[Y:.*]] = tv.reshard %[[X]] {tv.user_move} : (tensor<8x8xf32, #tv.view<#[[N]], [did(x) * 2, 8]>>) -> tensor<8x8xf32, #tv.view<#[[M]], [8, did(x) * 2]>>
// CHECK-NEXT: %[[R:.*]] = tv.reshard %[[Z]] : (tensor<8x8xf32, #tv.view<#[[M]], [did(x) * 2, 8]>>) -> tensor<8x8xf32, #tv.view<#[[N]], [8, did(x) * 2]>>
// CHECK-NEXT: return %[[Y]], %[[R]]
func.func @joined(%x: !x {tv.user_move, tv.user_view = #tv.view<#n, [did(x) * _, _]>}, %z: !x)
    -> (!y, !y {tv.user_view = #tv.view<#n, [_, did(x) * _]>}) {
  %0 = tv.reshard %x {tv.user_move} : (!x) -> !y
  %1 = tv.reshard %z {tv.user_move} : (!x) -> !y
  return %0, %1 : !y, !y
}

// CHECK-LABEL: @as_it_lies
// CHECK-NEXT: return %arg0 : tensor<8x8xf32, #tv.view<#[[N]], [did(x) * 2, 8]>>
func.func @as_it_lies(%x: !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>})
    -> (!x {tv.user_view = #tv.view<#n, [did(x) * _, _]>}) {
  return %x : !x
}
