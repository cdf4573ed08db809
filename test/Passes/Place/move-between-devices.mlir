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

// -----

// Through pointwise ops and transposes. There and back is no move: they run there.

#m = #tv.mesh<x = 4>
#n = #tv.mesh<x = 4, devices = [3, 2, 1, 0]>
#o = #tv.mesh<x = 4, devices = [1, 2, 3, 0]>
!x = tensor<8x8xf32, #tv.view<#m, [did(x) * 2, 8]>>
!t = tensor<8x8xf32, #tv.view<#m, [8, did(x) * 2]>>
!half = tensor<8x8xbf16, #tv.view<#m, [did(x) * 2, 8]>>
!columns = tensor<8x8xbf16, #tv.view<#m, [8, did(x) * 2]>>
!w = tensor<8x8xf32, #tv.view<#m, [8, 8]>>
!s = tensor<8xf32, #tv.view<#m, [8]>>
// CHECK-DAG: #[[N:.*]] = #tv.mesh<x = 4, devices = [3, 2, 1, 0]>
// CHECK-DAG: #[[M:.*]] = #tv.mesh<x = 4>
// CHECK-DAG: #[[O:.*]] = #tv.mesh<x = 4, devices = [1, 2, 3, 0]>
// CHECK-LABEL: @there_and_back
// CHECK-NEXT: %[[E:.*]] = tv.exp %arg0 : (tensor<8x8xf32, #tv.view<#[[N]], [did(x) * 2, 8]>>) -> tensor<8x8xf32, #tv.view<#[[N]], [did(x) * 2, 8]>>
// CHECK-NEXT: %[[T:.*]] = tv.transpose %[[E]] {{.*}} -> tensor<8x8xf32, #tv.view<#[[N]], [8, did(x) * 2]>>
// CHECK-NEXT: return %[[T]]
func.func @there_and_back(%x: !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>})
    -> (!t {tv.user_view = #tv.view<#n, [_, did(x) * _]>}) {
  %0 = tv.exp %x : (!x) -> !x
  %1 = tv.transpose %0 perm [1, 0] : (!x) -> !t
  return %1 : !t
}

// What others need stays for them; two results have one op there.
// CHECK-LABEL: @shared
// CHECK: %[[IN:.*]] = tv.reshard %arg0 : (tensor<8x8xf32, #tv.view<#[[N]], {{.*}}) -> tensor<8x8xf32, #tv.view<#[[M]],
// CHECK: %[[THERE:.*]] = tv.exp %arg0 : (tensor<8x8xf32, #tv.view<#[[N]]
// CHECK: %[[HERE:.*]] = tv.exp %[[IN]] : (tensor<8x8xf32, #tv.view<#[[M]]
// CHECK: %[[SUM:.*]] = tv.add %[[IN]], %[[HERE]]
// CHECK: %[[A:.*]] = tv.neg %[[THERE]] : (tensor<8x8xf32, #tv.view<#[[N]]
// CHECK: %[[B:.*]] = tv.abs %[[THERE]] : (tensor<8x8xf32, #tv.view<#[[N]]
// CHECK: return %[[SUM]], %[[A]], %[[B]]
func.func @shared(%x: !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>})
    -> (!x, !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>}, !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>}) {
  %0 = tv.exp %x : (!x) -> !x
  %1 = tv.add %x, %0 : (!x, !x) -> !x
  %2 = tv.neg %0 : (!x) -> !x
  %3 = tv.abs %0 : (!x) -> !x
  return %1, %2, %3 : !x, !x, !x
}

// One exchange, of what has fewer bytes; of a result, too.
// CHECK-LABEL: @narrow
// CHECK-NEXT: %[[X:.*]] = tv.cast %arg0 : (tensor<8x8xf32, #tv.view<#[[N]], [did(x) * 2, 8]>>) -> tensor<8x8xbf16, #tv.view<#[[N]], [did(x) * 2, 8]>>
// CHECK-NEXT: %[[MOVED:.*]] = tv.reshard %[[X]] : {{.*}} -> tensor<8x8xbf16, #tv.view<#[[M]], [8, did(x) * 2]>>
// CHECK-NEXT: %[[Z:.*]] = tv.cast %arg1 : (tensor<8x8xf32, #tv.view<#[[M]], [did(x) * 2, 8]>>) -> tensor<8x8xbf16, #tv.view<#[[M]], [did(x) * 2, 8]>>
// CHECK-NEXT: %[[R:.*]] = tv.reshard %[[Z]] : {{.*}} -> tensor<8x8xbf16, #tv.view<#[[N]], [8, did(x) * 2]>>
// CHECK-NEXT: return %[[MOVED]], %[[R]]
func.func @narrow(%x: !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>}, %z: !x)
    -> (!columns, !columns {tv.user_view = #tv.view<#n, [_, did(x) * _]>}) {
  %0 = tv.cast %x : (!x) -> !half
  %1 = tv.reshard %0 : (!half) -> !columns
  %2 = tv.reshard %z : (!x) -> !t
  %3 = tv.cast %2 : (!t) -> !columns
  return %1, %3 : !columns, !columns
}

// Operands of several devices, two of them those of the result: one move, not three.
// CHECK-LABEL: @operands
// CHECK-NEXT: %[[MOVED:.*]] = tv.reshard %arg2 : {{.*}} -> tensor<8x8xf32, #tv.view<#[[N]], [did(x) * 2, 8]>>
// CHECK-NEXT: %[[W:.*]] = tv.neg %[[MOVED]]
// CHECK-NEXT: %[[A:.*]] = tv.add %arg0, %arg1 : (tensor<8x8xf32, #tv.view<#[[N]],
// CHECK-NEXT: %[[B:.*]] = tv.mul %[[A]], %[[W]] : (tensor<8x8xf32, #tv.view<#[[N]],
// CHECK-NEXT: return %[[B]]
func.func @operands(%x: !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>},
                    %y: !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>}, %w: !x)
    -> (!x {tv.user_view = #tv.view<#n, [did(x) * _, _]>}) {
  %0 = tv.neg %w : (!x) -> !x
  %1 = tv.add %x, %y : (!x, !x) -> !x
  %2 = tv.mul %1, %0 : (!x, !x) -> !x
  return %2 : !x
}

// From two to a third, which takes one step; but not through a sum that the program needs,
// too, which takes one more.
// CHECK-LABEL: @third
// CHECK-DAG: %[[X:.*]] = tv.reshard %arg0 {{.*}} -> tensor<8x8xf32, #tv.view<#[[O]]
// CHECK-DAG: %[[Y:.*]] = tv.reshard %arg1 {{.*}} -> tensor<8x8xf32, #tv.view<#[[O]]
// CHECK: %[[SUM:.*]] = tv.add %[[X]], %[[Y]]
// CHECK: return %[[SUM]]
func.func @third(%x: !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>}, %y: !x)
    -> (!x {tv.user_view = #tv.view<#o, [did(x) * _, _]>}) {
  %0 = tv.add %x, %y : (!x, !x) -> !x
  return %0 : !x
}

// CHECK-LABEL: @needed_here
// CHECK: %[[X:.*]] = tv.reshard %arg0 {{.*}} -> tensor<8x8xf32, #tv.view<#[[M]]
// CHECK: %[[SUM:.*]] = tv.add %[[X]], %arg1
// CHECK: %[[OUT:.*]] = tv.reshard %[[SUM]] {{.*}} -> tensor<8x8xf32, #tv.view<#[[O]]
// CHECK: return %[[OUT]], %[[SUM]]
func.func @needed_here(%x: !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>}, %y: !x)
    -> (!x {tv.user_view = #tv.view<#o, [did(x) * _, _]>}, !x) {
  %0 = tv.add %x, %y : (!x, !x) -> !x
  return %0, %0 : !x, !x
}

// Not through an op that is not pointwise, or reads another value inside; nor does an op
// before a reshard that the source has lie as the one behind.
// CHECK-LABEL: @not_through
// CHECK-COUNT-4: tv.reshard %arg{{[0-9]}} : {{.*}}#tv.view<#[[N]], {{.*}}) -> {{.*}}#tv.view<#[[M]], [did(x) * 2, 8]>>
// CHECK: tv.linear
// CHECK: tv.map
// CHECK: tv.cumsum
// CHECK: tv.exp %{{.*}} -> tensor<8x8xf32, #tv.view<#[[M]], [did(x) * 2, 8]>>
// CHECK-NEXT: tv.reshard %{{.*}} {tv.user_move} : {{.*}} -> tensor<8x8xf32, #tv.view<#[[M]], [8, did(x) * 2]>>
// CHECK-COUNT-3: tv.reshard %{{.*}} -> tensor<8x8xf32, #tv.view<#[[N]],
func.func @not_through(%x: !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>},
                       %y: !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>},
                       %z: !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>},
                       %u: !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>}, %w: !w, %s: !s)
    -> (!x {tv.user_view = #tv.view<#n, [did(x) * _, _]>},
        !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>},
        !x {tv.user_view = #tv.view<#n, [did(x) * _, _]>}, !t) {
  %0 = tv.linear %x, %w : (!x, !w) -> !x
  %1 = tv.map %y : (!x) -> !x (%e: f32) {
    %c = arith.constant 0 : index
    %l = tv.load %s[%c] : !s -> f32
    %a = arith.addf %e, %l : f32
    tv.yield %a : f32
  }
  %2 = tv.cumsum %z dim 1 : (!x) -> !x
  %3 = tv.exp %u : (!x) -> !x
  %4 = tv.reshard %3 {tv.user_move} : (!x) -> !t
  return %0, %1, %2, %4 : !x, !x, !x, !t
}
