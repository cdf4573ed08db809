// RUN: tessera-opt %s --tv-decompose-composites | FileCheck %s
// RUN: tessera-opt %s --tv-decompose-composites=all | FileCheck %s --check-prefix=ALL
// RUN: tessera-opt %s --tv-decompose-composites=all | FileCheck %s --check-prefix=NONE
// NONE-NOT: tv.{{softmax|layer_norm|rms_norm|rope|cross_entropy|dropout|gelu|silu|add|mul}}

#m = #tv.mesh<x = 2>
#rows = #tv.view<#m, [did(x) * _, _]>
#columns = #tv.view<#m, [_, did(x) * _]>
#whole = #tv.view<#m, [_, _]>
#flat = #tv.view<#m, [flat(2) did(x) * _]>

// The maximum first, then the sum: both may be split. Only the values of the
// program keep a view.
// CHECK-LABEL: func.func @softmax_split(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32, [[V:#tv.view<#mesh, .[^>]*.>]]>
func.func @softmax_split(%x: tensor<4x8xf32, #columns>) -> tensor<4x8xf32, #columns> {
  // CHECK-NEXT: %[[M:.*]] = tv.reduce max %[[X]] dims [1] : (tensor<4x8xf32, [[V]]>) -> tensor<4xf32>
  // CHECK-NEXT: %[[MB:.*]] = tv.broadcast %[[M]] dims [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: %[[E:.*]] = tv.map %[[X]], %[[MB]]
  // CHECK: math.exp
  // CHECK: %[[S:.*]] = tv.reduce sum %[[E]] dims [1]
  // CHECK: %[[SB:.*]] = tv.broadcast %[[S]] dims [0]
  // CHECK: tv.map %[[E]], %[[SB]] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32, [[V]]>
  // CHECK: arith.divf
  %r = tv.softmax %x dim 1 : (tensor<4x8xf32, #columns>) -> tensor<4x8xf32, #columns>
  return %r : tensor<4x8xf32, #columns>
}

// Each device makes the whole result sooner than two sums come together, but not a large one.
// CHECK-LABEL: func.func @softmax_of_whole
// CHECK-NEXT: tv.softmax
func.func @softmax_of_whole(%x: tensor<4x8xf32, #whole>) -> tensor<4x8xf32, #columns> {
  %r = tv.softmax %x dim 1 : (tensor<4x8xf32, #whole>) -> tensor<4x8xf32, #columns>
  return %r : tensor<4x8xf32, #columns>
}
// CHECK-LABEL: func.func @large_softmax_of_whole
// CHECK-NEXT: tv.reduce max
func.func @large_softmax_of_whole(%x: tensor<8192x8192xf32, #whole>) -> tensor<8192x8192xf32, #columns> {
  %r = tv.softmax %x dim 1 : (tensor<8192x8192xf32, #whole>) -> tensor<8192x8192xf32, #columns>
  return %r : tensor<8192x8192xf32, #columns>
}

// CHECK-LABEL: func.func @softmax_whole
func.func @softmax_whole(%x: tensor<4x8xf32, #rows>) -> tensor<4x8xf32, #rows> {
  // CHECK: tv.softmax
  %r = tv.softmax %x dim 1 : (tensor<4x8xf32, #rows>) -> tensor<4x8xf32, #rows>
  return %r : tensor<4x8xf32, #rows>
}

// CHECK-LABEL: func.func @softmax_flat
func.func @softmax_flat(%x: tensor<4x8xf32, #flat>) -> tensor<4x8xf32, #flat> {
  // CHECK-NOT: tv.softmax
  %r = tv.softmax %x dim 1 : (tensor<4x8xf32, #flat>) -> tensor<4x8xf32, #flat>
  // CHECK: return
  return %r : tensor<4x8xf32, #flat>
}

// Sums in f32, rounded once at the end.
// ALL-LABEL: func.func @layer_norm_bf16
func.func @layer_norm_bf16(%x: tensor<4x8xbf16>, %w: tensor<8xbf16>, %b: tensor<8xbf16>) -> tensor<4x8xbf16> {
  // ALL-NEXT: tv.map %{{.*}} : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  // ALL: %[[SUM:.*]] = tv.reduce sum %{{.*}} dims [1] : (tensor<4x8xf32>) -> tensor<4xf32>
  // ALL: tv.map %[[SUM]]
  // ALL: arith.constant 8.0
  // ALL: arith.divf
  // ALL: arith.subf
  // ALL: arith.mulf
  // ALL: tv.reduce sum
  // ALL: math.sqrt
  // ALL-NOT: truncf
  // ALL: tv.map %{{.*}} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16>
  // ALL: arith.truncf %{{.*}} : f32 to bf16
  %r = tv.layer_norm %x, %w, %b epsilon(1.0e-5) : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<8xbf16>) -> tensor<4x8xbf16>
  return %r : tensor<4x8xbf16>
}

// A dynamic extent is a value of the program; shapes come from `like`.
// ALL-LABEL: func.func @rms_norm_dynamic(
// ALL-SAME: %[[X:.*]]: tensor<?x?xf32>
func.func @rms_norm_dynamic(%x: tensor<?x?xf32>, %w: tensor<?xf32>) -> tensor<?x?xf32> {
  // ALL: %[[N:.*]] = tv.size %[[X]] dim 1 : (tensor<?x?xf32>) -> tensor<f32>
  // ALL: tv.broadcast %[[N]] dims [] like %{{.*}} : (tensor<f32>, tensor<?xf32>) -> tensor<?xf32>
  // ALL: tv.broadcast %{{.*}} dims [0] like %[[X]]
  // ALL: tv.broadcast %{{.*}} dims [1] like %[[X]]
  %r = tv.rms_norm %x, %w epsilon(1.0e-5) : (tensor<?x?xf32>, tensor<?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}

// ALL-LABEL: func.func @indices
func.func @indices(%x: tensor<4x8xf32>, %l: tensor<4xi32>, %d: tensor<?x8xf32>) {
  // ALL: tv.slice %{{.*}} offsets [0, 0]
  // ALL: tv.slice %{{.*}} offsets [0, 4]
  // ALL: tv.iota 0 : () -> tensor<4x4xf32>
  // ALL: tv.iota 1 : () -> tensor<4x4xf32>
  // ALL: tv.concat %{{.*}} dim 1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  %0 = tv.rope %x base(10000.0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // ALL: tv.reduce max
  // ALL: tv.iota 1 : () -> tensor<4x8xi32>
  // ALL: tv.broadcast %{{.*}} dims [0] : (tensor<4xi32>) -> tensor<4x8xi32>
  // ALL: arith.cmpi eq
  // ALL: tv.reduce sum
  // ALL: tv.reduce sum
  // ALL: math.log
  %1 = tv.cross_entropy %x, %l : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4xf32>
  // ALL: tv.random seed(1) stream(2) bits(16) like %{{.*}} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // ALL: arith.cmpf oge
  // ALL: arith.select
  %2 = tv.dropout %d rate(0.1) seed(1) stream(2) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return
}

// ALL-LABEL: func.func @pointwise
func.func @pointwise(%x: tensor<4xf32>, %i: tensor<4xui8>) {
  // ALL: arith.constant -0.0713548139
  // ALL: arith.constant -1.59576917
  // ALL: math.exp
  // ALL: arith.divf
  %0 = tv.gelu tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  // ALL: math.erf
  %1 = tv.gelu %x : (tensor<4xf32>) -> tensor<4xf32>
  // ALL: arith.minimumf
  // ALL: arith.maximumf
  // ALL: math.exp
  // ALL: arith.divf
  // ALL-NOT: math.erf
  %5 = tv.gelu_grad tanh %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // ALL: math.erf
  // ALL: math.exp
  %6 = tv.gelu_grad %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // ALL: arith.negf
  // ALL: math.exp
  %2 = tv.silu %x : (tensor<4xf32>) -> tensor<4xf32>
  // ALL: arith.addi %{{.*}} : i8
  %3 = tv.add %i, %i : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  // ALL: arith.mulf
  %4 = tv.mul %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

#l = #tv.view<#m, [did(x) * 3, 8]>
// A reduced local tensor is a part of the reduced tensor.
// ALL-LABEL: func.func @local
func.func @local(%x: tensor<?x8xf32, #tv.local<#l, of [5, 8]>>) {
  // ALL: tv.reduce max %{{.*}} dims [1] : (tensor<?x8xf32, #tv.local<{{.*}}, of [5, 8]>>) -> tensor<?xf32, #tv.local<[[R:.*]], of [5]>>
  // ALL: tv.broadcast %{{.*}} dims [0] : (tensor<?xf32, #tv.local<[[R]], of [5]>>) -> tensor<?x8xf32, #tv.local<{{.*}}, of [5, 8]>>
  %0 = tv.softmax %x dim 1 : (tensor<?x8xf32, #tv.local<#l, of [5, 8]>>) -> tensor<?x8xf32, #tv.local<#l, of [5, 8]>>
  // ALL: tv.slice %{{.*}} offsets [0, 4] : (tensor<?x8xf32, #tv.local<{{.*}}, of [5, 8]>>) -> tensor<?x4xf32, #tv.local<#{{.*}}, of [5, 4]>>
  %1 = tv.rope %x base(10000.0) : (tensor<?x8xf32, #tv.local<#l, of [5, 8]>>) -> tensor<?x8xf32, #tv.local<#l, of [5, 8]>>
  return
}

// A bound beside those next to it, each by a gather whose indices stay in the row.

// CHECK-LABEL: @sequence_errors
func.func @sequence_errors(%begins: tensor<?x5xi32>, %used: tensor<?x4xi32>) -> tensor<?x5xi32> {
  // CHECK: %[[I:.*]] = tv.iota 0 : () -> tensor<5xi32>
  // CHECK: %[[B:.*]] = tv.map %[[I]]
  // CHECK: arith.maxsi
  // CHECK: arith.minsi
  // CHECK: %[[BEFORE:.*]] = tv.gather %arg0, %[[B]] dim 1 : (tensor<?x5xi32>, tensor<5xi32>) -> tensor<?x5xi32>
  // CHECK: %[[NEXT:.*]] = tv.gather %arg0, %{{.*}} dim 1
  // CHECK: %[[USED:.*]] = tv.gather %arg1, %{{.*}} dim 1
  // CHECK: tv.map %arg0, %[[BEFORE]], %[[NEXT]], %[[USED]]
  %0 = tv.sequence_errors %begins used(%used) tokens(7) : (tensor<?x5xi32>, tensor<?x4xi32>) -> tensor<?x5xi32>
  return %0 : tensor<?x5xi32>
}

// How many need each page, and of each entry how many need its page.

// CHECK-LABEL: @page_errors
func.func @page_errors(%table: tensor<?x3xi32>, %lengths: tensor<?xi32>) -> tensor<?xi32> {
  // CHECK: %[[L:.*]] = tv.broadcast %arg1 dims [0] :
  // CHECK: %[[I:.*]] = tv.iota 1 like %arg0
  // CHECK: %[[NEEDED:.*]] = tv.map %[[I]], %[[L]], %arg0
  // CHECK: %[[USES:.*]] = tv.scatter sum %{{.*}}, %[[NEEDED]], %{{.*}} dim 0 : (tensor<16xi32>, tensor<?x3xi32>, tensor<?x3xi32>) -> tensor<16xi32>
  // CHECK: %[[TIMES:.*]] = tv.gather %[[USES]], %[[NEEDED]] dim 0
  // CHECK: %[[FOUND:.*]] = tv.map %[[I]], %[[L]], %[[TIMES]]
  // CHECK: %[[WORST:.*]] = tv.reduce max %[[FOUND]] dims [1]
  // CHECK: tv.map %arg1, %[[WORST]]
  %0 = tv.page_errors %table lengths(%lengths) page(4) pages(16) : (tensor<?x3xi32>, tensor<?xi32>) -> tensor<?xi32>
  return %0 : tensor<?xi32>
}

// The view that the source gives a result is that of what it becomes.

// ALL-LABEL: @keeps_the_view
// ALL: tv.reduce max {{.*}} {tv.user_view = [#tv.view<#mesh{{1?}}, [?, _]>]} : {{.*}} -> tensor<6x4xf32, #tv.view<#mesh{{1?}}, [did(tp) * 3, 4]>>
// ALL-NEXT: return %{{.*}} : tensor<6x4xf32, #tv.view<#mesh{{1?}}, [did(tp) * 3, 4]>>
!pooled = tensor<6x4xf32, #tv.view<#tv.mesh<tp = 2>, [did(tp) * 3, 4]>>
func.func @keeps_the_view(%x: tensor<8x8xf32>) -> !pooled {
  %0 = tv.pool max %x sizes [3, 1] strides [1, 2] low [0, 0] high [0, 0] dilations [1, 1] {tv.user_view = [#tv.view<#tv.mesh<tp = 2>, [?, _]>]} : (tensor<8x8xf32>) -> !pooled
  return %0 : !pooled
}
