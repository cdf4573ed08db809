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
