// A decode step: the new key is turned by its position and set at its row of the cache, of
// which each device has its heads; nothing moves.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels" --interpret=4 -o /dev/null
// RUN: sed s/f32/bf16/g %s | tessera-opt --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 --interpret-precision=program -o /dev/null

// CHECK-NOT: comm.
// CHECK: tv.rope {{.*}} at
// CHECK: tv.scatter set
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!k = tensor<2x3x1x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!cache = tensor<2x3x6x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!pos = tensor<1xi32>
func.func @main(%k: !k, %pos: !pos {tv.range = [0, 6]}, %keys: !cache {tv.name = "keys", tv.role = "state"}) -> (!cache {tv.name = "keys"}) {
  %turned = tv.rope %k at %pos base(100.0) : (!k, !pos) -> !k
  %next = tv.scatter set %keys, %pos, %turned dim 2 : (!cache, !pos, !k) -> !cache
  return %next : !cache
}

// -----

// Rows of the cache over an axis: each device sets the rows that it has. Of rows that are
// set twice the last one stays; some indices are outside.
// CHECK-NOT: comm.
// CHECK: tv.scatter set
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!cache = tensor<7x3xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%rows: tensor<2x5xi32> {tv.range = [-1, 8]}, %x: tensor<2x5x3xf32>, %keys: !cache) -> !cache {
  %next = tv.scatter set %keys, %rows, %x dim 0 : (!cache, tensor<2x5xi32>, tensor<2x5x3xf32>) -> !cache
  return %next : !cache
}

// -----

// Positions of a batch, which is split, and of rows, which are: each device reads its own.
// CHECK-NOT: comm.
// CHECK: tv.rope {{.*}} at
// CHECK: tv.rope {{.*}} at
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!q = tensor<5x2x3x4xf32, #tv.view<#m, [did(tp) * _, _, _, _]>>
!p = tensor<5x3xi32>
!r = tensor<5x6xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%q: !q, %p: !p {tv.range = [0, 50]}, %r: !r, %at: tensor<5xi32> {tv.range = [0, 50]}) -> (!q, !r) {
  %0 = tv.rope %q at %p base(100.0) : (!q, !p) -> !q
  %1 = tv.rope %r at %at base(100.0) : (!r, tensor<5xi32>) -> !r
  return %0, %1 : !q, !r
}

// -----

// So many rows that a GPU sorts them first.
// CHECK-NOT: comm.
// CHECK: tv.scatter set
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!cache = tensor<7x3xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%rows: tensor<1100xi32> {tv.range = [-1, 9]}, %x: tensor<1100x3xf32>, %keys: !cache) -> !cache {
  %next = tv.scatter set %keys, %rows, %x dim 0 : (!cache, tensor<1100xi32>, tensor<1100x3xf32>) -> !cache
  return %next : !cache
}

// -----

// Rows of pages, heads over the axis, written where they lie; then the pages of a table are
// read, of which some are not there.
// CHECK-NOT: comm.
// CHECK: tv.scatter set
// CHECK: tv.gather
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!pages = tensor<6x2x3x4xf32, #tv.view<#m, [_, _, did(tp) * _, _]>>
!rows = tensor<12x3x4xf32>
!k = tensor<5x3x4xf32, #tv.view<#m, [_, did(tp) * _, _]>>
!i = tensor<5xi32>
func.func @main(%k: !k, %at: !i {tv.range = [-1, 12]}, %table: tensor<2x2xi32> {tv.range = [-1, 6]}, %keys: !pages {tv.name = "keys", tv.role = "state"})
    -> (!pages {tv.name = "keys"}, tensor<2x2x2x3x4xf32>) {
  %rows = tv.reshape %keys : (!pages) -> !rows
  %new = tv.scatter set %rows, %at, %k dim 0 : (!rows, !i, !k) -> !rows
  %next = tv.reshape %new : (!rows) -> !pages
  %read = tv.gather %next, %table dim 0 : (!pages, tensor<2x2xi32>) -> tensor<2x2x2x3x4xf32>
  return %next, %read : !pages, tensor<2x2x2x3x4xf32>
}

// -----

// Rows of a state that go to others of its rows, as they were; and what the state was.
// CHECK-NOT: comm.
// CHECK: tv.scatter sum
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!w = tensor<6x7xf32, #tv.view<#m, [_, did(tp) * _]>>
!u = tensor<4x7xf32>
!i = tensor<4xi32>
func.func @main(%w: !w {tv.name = "w", tv.role = "state"}, %v: !w {tv.name = "v", tv.role = "state"}, %at: !i {tv.range = [0, 5]}, %from: !i {tv.range = [0, 5]})
    -> (!w {tv.name = "w"}, !w {tv.name = "v"}, !u) {
  %u = tv.slice %w offsets [2, 0] : (!w) -> !u
  %0 = tv.scatter sum %w, %at, %u dim 0 : (!w, !i, !u) -> !w
  %moved = tv.gather %v, %from dim 0 : (!w, !i) -> !u
  %1 = tv.scatter sum %v, %at, %moved dim 0 : (!w, !i, !u) -> !w
  return %0, %1, %moved : !w, !w, !u
}
