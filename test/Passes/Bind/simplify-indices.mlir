// RUN: tessera-opt %s --split-input-file --tv-simplify-indices | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera=to=local --interpret=2 -o /dev/null

#m = #tv.mesh<tp = 2>
!x = tensor<4x6x8xf32, #tv.view<#m, [did(tp) * 2, 6, 8]>>
// CHECK-LABEL: @main
// CHECK-NEXT: %[[T:.*]] = tv.transpose %arg0 perm [1, 2, 0]
// CHECK-NEXT: %[[B:.*]] = tv.exp %arg0
// CHECK-NEXT: return %[[T]], %[[B]]
func.func @main(%x: !x) -> (tensor<6x8x4xf32>, tensor<4x6x8xf32>) {
  %0 = tv.transpose %x perm [2, 0, 1] : (!x) -> tensor<8x4x6xf32>
  %1 = tv.transpose %0 perm [2, 0, 1] : (tensor<8x4x6xf32>) -> tensor<6x8x4xf32>
  %2 = tv.transpose %1 perm [2, 0, 1] : (tensor<6x8x4xf32>) -> tensor<4x6x8xf32>
  %3 = tv.exp %2 : (tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %1, %3 : tensor<6x8x4xf32>, tensor<4x6x8xf32>
}

// -----

#m = #tv.mesh<tp = 2>
!x = tensor<4x6xf32, #tv.view<#m, [did(tp) * 2, 6]>>
// CHECK-LABEL: @main
// CHECK-NEXT: %[[R:.*]] = tv.reshape %arg0 {{.*}} -> tensor<24xf32>
// CHECK-NEXT: %[[E:.*]] = tv.exp %arg0
// CHECK-NEXT: %[[S:.*]] = tv.reshape %[[R]] {{.*}} -> tensor<6x4xf32>
// CHECK-NEXT: return %[[E]], %[[S]]
func.func @main(%x: !x) -> (tensor<4x6xf32>, tensor<6x4xf32>) {
  %0 = tv.reshape %x : (!x) -> tensor<24xf32>
  %1 = tv.reshape %0 : (tensor<24xf32>) -> tensor<4x6xf32>
  %2 = tv.exp %1 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %3 = tv.reshape %0 : (tensor<24xf32>) -> tensor<6x4xf32>
  return %2, %3 : tensor<4x6xf32>, tensor<6x4xf32>
}

// -----

// Through pointwise ops to a product, on both of its sides.
#m = #tv.mesh<tp = 2>
!a = tensor<4x6xf32, #tv.view<#m, [did(tp) * 2, 6]>>
!b = tensor<8x6xf32>
// CHECK-LABEL: @main
// CHECK-NEXT: %[[E:.*]] = tv.exp %arg0
// CHECK-NEXT: %[[S:.*]] = tv.add %[[E]], %arg2
// CHECK-NEXT: %[[P:.*]] = tv.contract %[[S]] [0, 1], %arg1 [2, 1] to [0, 2]
// CHECK-NEXT: %[[Y:.*]] = tv.exp %[[P]] : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: return %[[Y]]
func.func @main(%a: !a, %b: !b, %c: !a) -> tensor<4x8xf32> {
  %0 = tv.transpose %a perm [1, 0] : (!a) -> tensor<6x4xf32>
  %1 = tv.exp %0 : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %2 = tv.transpose %c perm [1, 0] : (!a) -> tensor<6x4xf32>
  %3 = tv.add %1, %2 : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  %4 = tv.matmul %b, %3 : (!b, tensor<6x4xf32>) -> tensor<8x4xf32>
  %5 = tv.exp %4 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = tv.transpose %5 perm [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  return %6 : tensor<4x8xf32>
}

// -----

// What the user gives a view, what others read, a bias, and what each device does stay.
#m = #tv.mesh<tp = 2>
!x = tensor<4x6xf32, #tv.view<#m, [did(tp) * 2, 6]>>
!t = tensor<6x4xf32, #tv.view<#m, [6, did(tp) * 2]>>
// CHECK-LABEL: @main
// CHECK-NEXT: tv.transpose
// CHECK-NEXT: tv.transpose
// CHECK-NEXT: tv.linear
// CHECK-NEXT: tv.transpose
// CHECK-NEXT: tv.matmul
// CHECK-NEXT: tv.transpose
// CHECK-NEXT: tv.transpose {{.*}} {tv.local}
// CHECK-NEXT: tv.transpose
// CHECK-NEXT: return
func.func @main(%x: !x, %w: tensor<4x6xf32>, %b: tensor<4xf32>)
    -> (!x, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x6xf32>) {
  %0 = tv.transpose %x perm [1, 0] : (!x) -> !t
  %1 = tv.transpose %0 perm [1, 0] : (!t) -> !x
  %2 = tv.linear %x, %w bias %b : (!x, tensor<4x6xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %3 = tv.transpose %2 perm [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = tv.matmul %x, %0 : (!x, !t) -> tensor<4x4xf32>
  %5 = tv.transpose %4 perm [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %6 = tv.transpose %w perm [1, 0] {tv.local} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %7 = tv.transpose %6 perm [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  return %1, %3, %4, %5, %7 : !x, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x6xf32>
}

// -----

// What is returned has the type that the function says.
#m = #tv.mesh<tp = 2>
!x = tensor<4x6xf32, #tv.view<#m, [did(tp) * 2, 6]>>
// CHECK-LABEL: @main
// CHECK-COUNT-2: tv.transpose
// CHECK-NEXT: return
func.func @main(%x: !x) -> tensor<4x6xf32> {
  %0 = tv.transpose %x perm [1, 0] : (!x) -> tensor<6x4xf32>
  %1 = tv.transpose %0 perm [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %2 = tv.transpose %1 perm [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %3 = tv.transpose %2 perm [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}

// -----

// What is dropped, an element's index decides.
#m = #tv.mesh<tp = 2>
!a = tensor<4x6xf32, #tv.view<#m, [did(tp) * 2, 6]>>
!b = tensor<8x6xf32>
// CHECK-LABEL: @main
// CHECK-NEXT: %[[P:.*]] = tv.linear
// CHECK-NEXT: %[[D:.*]] = tv.dropout %[[P]]
// CHECK-NEXT: tv.transpose %[[D]]
// CHECK-NEXT: tv.linear
// CHECK-NEXT: %[[S:.*]] = tv.dropout %{{.*}} step %arg2
// CHECK-NEXT: tv.transpose %[[S]]
func.func @main(%a: !a, %b: !b, %t: tensor<i64>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = tv.linear %a, %b : (!a, !b) -> tensor<4x8xf32>
  %1 = tv.dropout %0 rate(0.5) seed(1) stream(2) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = tv.transpose %1 perm [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %s = tv.linear %a, %b : (!a, !b) -> tensor<4x8xf32>
  %3 = tv.dropout %s rate(0.5) seed(1) stream(3) step %t : (tensor<4x8xf32>, tensor<i64>) -> tensor<4x8xf32>
  %4 = tv.transpose %3 perm [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  return %2, %4 : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// Two that undo each other, of which the second has a view, are a view of what comes in
// alone; and one that is left has the view of what it was made of.
#m = #tv.mesh<tp = 2>
!x = tensor<2x4x6xf32, #tv.view<#m, [2, 4, did(tp) * 3]>>
!y = tensor<6x2x4xf32, #tv.view<#m, [did(tp) * 3, 2, 4]>>
// CHECK-LABEL: @main
// CHECK-NEXT: %[[E:.*]] = tv.exp %arg0 {tv.user_view = {{.*}} -> tensor<2x4x6xf32, #tv.view<
// CHECK-NEXT: %[[F:.*]] = tv.neg %arg0
// CHECK-NEXT: %[[T:.*]] = tv.transpose %[[F]] perm [2, 0, 1] {tv.user_view
// CHECK-NEXT: return %[[E]], %[[T]]
func.func @main(%x: tensor<2x4x6xf32>) -> (!x, !y) {
  %0 = tv.exp %x : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %1 = tv.reshape %0 : (tensor<2x4x6xf32>) -> tensor<48xf32>
  %2 = tv.reshape %1 {tv.user_view = [#tv.view<#m, [_, _, did(tp) * _]>]} : (tensor<48xf32>) -> !x
  %3 = tv.neg %x : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %4 = tv.transpose %3 perm [1, 0, 2] : (tensor<2x4x6xf32>) -> tensor<4x2x6xf32>
  %5 = tv.transpose %4 perm [2, 1, 0] {tv.user_view = [#tv.view<#m, [did(tp) * _, _, _]>]}
    : (tensor<4x2x6xf32>) -> !y
  return %2, %5 : !x, !y
}

// -----

// What comes in is read twice, or lies as it says: it may lie in another way there.
#m = #tv.mesh<tp = 2>
!x = tensor<4x6xf32, #tv.view<#m, [4, did(tp) * 3]>>
// CHECK-LABEL: @main
// CHECK-NEXT: tv.exp
// CHECK-NEXT: tv.transpose
// CHECK-NEXT: tv.transpose
// CHECK-NEXT: tv.neg
// CHECK-NEXT: tv.constrain {{.*}} -> tensor<4x6xf32> to
// CHECK-NEXT: tv.transpose
// CHECK-NEXT: tv.transpose
func.func @main(%x: tensor<4x6xf32>) -> (!x, tensor<4x6xf32>, !x) {
  %0 = tv.exp %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = tv.transpose %0 perm [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %2 = tv.transpose %1 perm [1, 0] : (tensor<6x4xf32>) -> !x
  %3 = tv.neg %0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %4 = tv.constrain %3 : (tensor<4x6xf32>) -> tensor<4x6xf32> to #tv.view<#m, [did(tp) * 2, 6]>
  %5 = tv.transpose %4 perm [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %6 = tv.transpose %5 perm [1, 0] : (tensor<6x4xf32>) -> !x
  return %2, %3, %6 : !x, tensor<4x6xf32>, !x
}

// -----

// The transpose of a product of transposes, for a product, is the product that it is
// without them: factors come in the order of the result's dimensions, and where a product
// alone reads one, as in a product of matrices.
#m = #tv.mesh<tp = 2>
!a = tensor<4x6xf32, #tv.view<#m, [did(tp) * 2, 6]>>
// CHECK-LABEL: @main
// CHECK-NEXT: %[[P:.*]] = tv.contract %arg0 [0, 1], %arg1 [1, 2] to [0, 2]
// CHECK-NEXT: %[[E:.*]] = tv.exp %[[P]]
// CHECK-NEXT: %[[Y:.*]] = tv.contract %[[E]] [0, 1], %arg2 [1, 2] to [0, 2]
// CHECK-NEXT: return %[[Y]]
func.func @main(%a: !a, %b: tensor<6x8xf32>, %c: tensor<8x5xf32>) -> tensor<4x5xf32> {
  %0 = tv.transpose %a perm [1, 0] : (!a) -> tensor<6x4xf32>
  %1 = tv.transpose %b perm [1, 0] : (tensor<6x8xf32>) -> tensor<8x6xf32>
  %2 = tv.matmul %1, %0 : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  %3 = tv.exp %2 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = tv.transpose %c perm [1, 0] : (tensor<8x5xf32>) -> tensor<5x8xf32>
  %5 = tv.matmul %4, %3 : (tensor<5x8xf32>, tensor<8x4xf32>) -> tensor<5x4xf32>
  %6 = tv.transpose %5 perm [1, 0] : (tensor<5x4xf32>) -> tensor<4x5xf32>
  return %6 : tensor<4x5xf32>
}

// -----

// A product beside a transpose comes in what order that likes, and one that all read
// transposed is computed so.
#m = #tv.mesh<tp = 2>
!a = tensor<4x6xf32, #tv.view<#m, [did(tp) * 2, 6]>>
// CHECK-LABEL: @main
// CHECK-NEXT: %[[P:.*]] = tv.contract %arg1 [0, 1], %arg0 [2, 0] to [1, 2]
// CHECK-NEXT: %[[S:.*]] = tv.mul %[[P]], %arg2
// CHECK-NEXT: %[[Y:.*]] = tv.contract %[[S]] [0, 1], %arg3 [0, 2] to [1, 2]
// CHECK-NEXT: %[[Q:.*]] = tv.contract %arg1 [0, 1], %arg0 [2, 0] to [1, 2]
// CHECK-NEXT: %[[Z:.*]] = tv.add %[[Q]], %[[Q]]
// CHECK-NEXT: return %[[Y]], %[[Z]]
func.func @main(%a: !a, %b: tensor<6x8xf32>, %c: tensor<8x4xf32>, %d: tensor<8x5xf32>)
    -> (tensor<4x5xf32>, tensor<8x4xf32>) {
  %0 = tv.matmul %a, %b : (!a, tensor<6x8xf32>) -> tensor<4x8xf32>
  %1 = tv.transpose %c perm [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %2 = tv.mul %0, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = tv.matmul %2, %d : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  %4 = tv.matmul %a, %b : (!a, tensor<6x8xf32>) -> tensor<4x8xf32>
  %5 = tv.transpose %4 perm [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %6 = tv.transpose %4 perm [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %7 = tv.add %5, %6 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %3, %7 : tensor<4x5xf32>, tensor<8x4xf32>
}

// -----

// A broadcast that has two uses then has a copy for each.
#m = #tv.mesh<tp = 2>
!x = tensor<4xf32, #tv.view<#m, [did(tp) * 2]>>
// CHECK-LABEL: @main
// CHECK-NEXT: %[[A:.*]] = tv.broadcast %arg0
// CHECK-NEXT: %[[B:.*]] = tv.broadcast %arg0
// CHECK-NEXT: tv.matmul %[[A]], %[[B]]
func.func @main(%x: !x) -> tensor<4x4xf32> {
  %0 = tv.broadcast %x dims [0] : (!x) -> tensor<4x4xf32>
  %1 = tv.reshape %0 : (tensor<4x4xf32>) -> tensor<16xf32>
  %2 = tv.reshape %1 : (tensor<16xf32>) -> tensor<4x4xf32>
  %3 = tv.matmul %2, %2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %3 : tensor<4x4xf32>
}

// -----

// Who reads a product transposed, and is none, says in what order it comes.
#m = #tv.mesh<tp = 2>
!a = tensor<4x6xf32, #tv.view<#m, [did(tp) * 2, 6]>>
// CHECK-LABEL: @main
// CHECK-NEXT: %[[P:.*]] = tv.contract %arg1 [0, 1], %arg0 [2, 0] to [1, 2]
// CHECK-NEXT: %[[E:.*]] = tv.exp %[[P]] : (tensor<8x4xf32>)
// CHECK-NEXT: %[[Y:.*]] = tv.contract %[[P]] [0, 1], %arg2 [0, 2] to [1, 2]
// CHECK-NEXT: return %[[E]], %[[Y]]
func.func @main(%a: !a, %b: tensor<6x8xf32>, %c: tensor<8x5xf32>)
    -> (tensor<8x4xf32>, tensor<4x5xf32>) {
  %0 = tv.matmul %a, %b : (!a, tensor<6x8xf32>) -> tensor<4x8xf32>
  %1 = tv.transpose %0 perm [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = tv.exp %1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = tv.matmul %0, %c : (tensor<4x8xf32>, tensor<8x5xf32>) -> tensor<4x5xf32>
  return %2, %3 : tensor<8x4xf32>, tensor<4x5xf32>
}
