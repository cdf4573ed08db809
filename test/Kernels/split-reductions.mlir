// RUN: tessera-opt %s --split-input-file --pass-pipeline='builtin.module(tv-set-target{target=cuda:sm_90a},func.func(tv-simplify,tv-split-reductions),cse)' | FileCheck %s

// All elements: parts of f32, of as many rows as make blocks enough.
#m = #tv.mesh<tp = 1>
!x = tensor<1024x1030xbf16, #tv.local<#tv.view<#m, [1024, 1030], alloc = (0, 1)>, of [1024, 1030]>>
!s = tensor<bf16, #tv.local<#tv.view<#m, []>, of []>>
// CHECK-LABEL: func.func @whole
// CHECK-NEXT: %[[R:.*]] = tv.reshape {{.*}} -> tensor<512x2060xbf16,
// CHECK-NEXT: %[[W:.*]] = tv.map %[[R]]
// CHECK: arith.extf
// CHECK: %[[P:.*]] = tv.reduce sum %[[W]] dims [1] : {{.*}} -> tensor<512xf32,
// CHECK: %[[Y:.*]] = tv.reduce sum %[[P]] dims [0] : {{.*}} -> tensor<f32,
// CHECK: %[[N:.*]] = tv.map %[[Y]]
// CHECK: arith.truncf
// CHECK: return %[[N]]
func.func @whole(%x: !x) -> !s {
  %0 = tv.reduce sum %x dims [0, 1] : (!x) -> !s
  return %0 : !s
}

// -----

// Dimensions around those that stay; each device splits what it has. The result is as
// partial as it was; maxima are of the type that they were.
#m = #tv.mesh<tp = 2>
!x = tensor<2x33x16000xf16, #tv.local<#tv.view<#m, [2, 33, did(tp) * 16000], alloc = (0, 1, 2)>, of [2, 33, 32000]>>
!y = tensor<33xf16, #tv.local<#tv.view<#m, [33], alloc = (0), partial = [tp : max]>, of [33]>>
// CHECK-LABEL: func.func @middle
// CHECK-NEXT: %[[R:.*]] = tv.reshape {{.*}} -> tensor<2x33x16x1000xf16, #tv.local<#tv.view<#mesh, [2, 33, did(tp) * 16, 1000]>, of [2, 33, 32, 1000]>>
// CHECK-NEXT: %[[P:.*]] = tv.reduce max %[[R]] dims [0, 3] : {{.*}} -> tensor<33x16xf16, #tv.local<#tv.view<#mesh, [33, did(tp) * 16]>, of [33, 32]>>
// CHECK-NEXT: %[[Y:.*]] = tv.reduce max %[[P]] dims [1] : {{.*}} partial = [tp : max]
// CHECK: return %[[Y]]
func.func @middle(%x: !x) -> !y {
  %0 = tv.reduce max %x dims [0, 2] : (!x) -> !y
  return %0 : !y
}

// -----

// A dimension of a fitting size is no two dimensions.
#m = #tv.mesh<tp = 1>
!x = tensor<8x33x5000xf16, #tv.local<#tv.view<#m, [8, 33, 5000]>, of [8, 33, 5000]>>
!y = tensor<33xf16, #tv.local<#tv.view<#m, [33]>, of [33]>>
// CHECK-LABEL: func.func @alone
// CHECK-NEXT: tv.reduce max %{{.*}} dims [2] : {{.*}} -> tensor<8x33xf16
// CHECK-NEXT: tv.reduce max %{{.*}} dims [0]
func.func @alone(%x: !x) -> !y {
  %0 = tv.reduce max %x dims [0, 2] : (!x) -> !y
  return %0 : !y
}

// -----

// What is computed of the elements is done in the other shape, in the kernel that
// reduces; what a broadcast is part of is stored first.
#m = #tv.mesh<tp = 1>
!x = tensor<4096x512xf32, #tv.local<#tv.view<#m, [4096, 512]>, of [4096, 512]>>
!y = tensor<512xf32, #tv.local<#tv.view<#m, [512]>, of [512]>>
// CHECK-LABEL: func.func @maps
// CHECK: tv.map {{.*}} -> tensor<4096x512xf32
// CHECK: arith.mulf
// CHECK: %[[X:.*]] = tv.reshape %arg0
// CHECK: %[[M:.*]] = tv.map %[[X]], %[[X]] {{.*}} -> tensor<32x128x512xf32
// CHECK: arith.mulf
// CHECK: tv.reduce sum %[[M]] dims [1]
// CHECK: tv.broadcast
// CHECK: %[[P:.*]] = tv.map {{.*}} -> tensor<4096x512xf32
// CHECK: %[[R:.*]] = tv.reshape %[[P]]
// CHECK: tv.reduce max %[[R]] dims [1]
func.func @maps(%x: !x, %w: !y) -> (!x, !y, !y) {
  %0 = tv.map %x, %x : (!x, !x) -> !x (%u: f32, %v: f32) {
    %s = arith.mulf %u, %v : f32
    tv.yield %s : f32
  }
  %1 = tv.reduce sum %0 dims [0] : (!x) -> !y
  %2 = tv.broadcast %w dims [1] : (!y) -> !x
  %3 = tv.map %x, %2 : (!x, !x) -> !x (%u: f32, %v: f32) {
    %s = arith.addf %u, %v : f32
    tv.yield %s : f32
  }
  %4 = tv.reduce max %3 dims [0] : (!x) -> !y
  return %0, %1, %4 : !x, !y, !y
}

// -----

// Not: few elements of a block; blocks enough; a prime number of rows; an extent that is not
// known; what lies elsewhere.
#m = #tv.mesh<tp = 1>
!x = tensor<100x300xf32, #tv.local<#tv.view<#m, [100, 300]>, of [100, 300]>>
!s = tensor<f32, #tv.local<#tv.view<#m, []>, of []>>
!c = tensor<512x4096xf32, #tv.local<#tv.view<#m, [512, 4096]>, of [512, 4096]>>
!d = tensor<4096xf32, #tv.local<#tv.view<#m, [4096]>, of [4096]>>
!p = tensor<1000003x2xf32, #tv.local<#tv.view<#m, [1000003, 2]>, of [1000003, 2]>>
!q = tensor<2xf32, #tv.local<#tv.view<#m, [2]>, of [2]>>
!n = tensor<?x4096xf32, #tv.local<#tv.view<#m, [_, 4096]>, of [n, 4096]>>
!t = tensor<4096x512xf32, #tv.local<#tv.view<#m, [4096, 512]>, of [4096, 512]>>
!u = tensor<512xf32, #tv.local<#tv.view<#m, [512]>, of [512]>>
// CHECK-LABEL: func.func @not
// CHECK-NOT: tv.reshape
func.func @not(%x: !x, %c: !c, %p: !p, %n: !n {tv.dims = ["n"]})
    -> (!s, !d, !q, !s, !u) attributes {tv.sizes = {n = 4096 : i64}} {
  %0 = tv.reduce sum %x dims [0, 1] : (!x) -> !s
  %1 = tv.reduce sum %c dims [0] : (!c) -> !d
  %2 = tv.reduce sum %p dims [0] : (!p) -> !q
  %3 = tv.reduce sum %n dims [0, 1] : (!n) -> !s
  %4 = tv.transpose %c perm [1, 0] : (!c) -> !t
  %5 = tv.reduce sum %4 dims [0] : (!t) -> !u
  return %0, %1, %2, %3, %5 : !s, !d, !q, !s, !u
}

// -----

// Not: the stages of a softmax of few rows, nor what reads their result; the sums of
// what a product reads. Another reduction of the same tensor is.
#m = #tv.mesh<tp = 1>
!x = tensor<32x65536xf32, #tv.local<#tv.view<#m, [32, 65536]>, of [32, 65536]>>
!r = tensor<32xf32, #tv.local<#tv.view<#m, [32]>, of [32]>>
!a = tensor<8192x256xbf16, #tv.local<#tv.view<#m, [8192, 256]>, of [8192, 256]>>
!b = tensor<8192x512xbf16, #tv.local<#tv.view<#m, [8192, 512]>, of [8192, 512]>>
!t = tensor<256x8192xbf16, #tv.local<#tv.view<#m, [256, 8192]>, of [256, 8192]>>
!g = tensor<256x512xbf16, #tv.local<#tv.view<#m, [256, 512]>, of [256, 512]>>
!v = tensor<256xbf16, #tv.local<#tv.view<#m, [256]>, of [256]>>
// CHECK-LABEL: func.func @stages
// CHECK: tv.reduce max %{{.*}} dims [1] : (tensor<32x65536
// CHECK: tv.reduce sum %{{.*}} dims [1] : (tensor<32x65536
// CHECK: tv.reduce sum %{{.*}} dims [0] : (tensor<8192x256
// CHECK: tv.reshape %{{.*}} -> tensor<128x64x256xbf16
func.func @stages(%x: !x, %a: !a, %b: !b) -> (!r, !v, !g, !v) {
  %0 = tv.reduce max %x dims [1] : (!x) -> !r
  %1 = tv.broadcast %0 dims [0] : (!r) -> !x
  %2 = tv.map %x, %1 : (!x, !x) -> !x (%u: f32, %v: f32) {
    %s = arith.subf %u, %v : f32
    %e = math.exp %s : f32
    tv.yield %e : f32
  }
  %3 = tv.reduce sum %2 dims [1] : (!x) -> !r
  %4 = tv.reduce sum %a dims [0] : (!a) -> !v
  %5 = tv.transpose %a perm [1, 0] : (!a) -> !t
  %6 = tv.matmul %5, %b : (!t, !b) -> !g
  %7 = tv.reduce max %a dims [0] : (!a) -> !v
  return %3, %4, %6, %7 : !r, !v, !g, !v
}

// -----

// Fewer than 2^20 elements, of one block. Rows that no block can keep are read again in
// any case: a stage, too.
#m = #tv.mesh<tp = 1>
!w = tensor<256x512xf32, #tv.local<#tv.view<#m, [256, 512]>, of [256, 512]>>
!s = tensor<f32, #tv.local<#tv.view<#m, []>, of []>>
!x = tensor<16x131072xf32, #tv.local<#tv.view<#m, [16, 131072]>, of [16, 131072]>>
!r = tensor<16xf32, #tv.local<#tv.view<#m, [16]>, of [16]>>
// CHECK-LABEL: func.func @long
// CHECK: tv.reduce sum %{{.*}} dims [1] : (tensor<256x512xf32{{.*}}-> tensor<256xf32
// CHECK: tv.reshape %{{.*}} -> tensor<16x32x4096xf32
// CHECK: tv.reduce max %{{.*}} dims [2]
// CHECK: tv.reduce max %{{.*}} dims [1]
func.func @long(%w: !w, %x: !x) -> (!s, !x) {
  %0 = tv.reduce sum %w dims [0, 1] : (!w) -> !s
  %1 = tv.reduce max %x dims [1] : (!x) -> !r
  %2 = tv.broadcast %1 dims [0] : (!r) -> !x
  %3 = tv.sub %x, %2 : (!x, !x) -> !x
  return %0, %3 : !s, !x
}
