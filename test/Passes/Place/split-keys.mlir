// RUN: tessera-opt %s --split-input-file --tv-split-keys=explain=1 --type-aliases 2> %t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: tessera-opt %s --split-input-file --tessera="to=propagated explain" -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: each device attends to its own keys, and what these give is joined: 4752 bytes, 10.54 us; otherwise 6291456 bytes, 33.07 us
// REMARK: remark: devices gather the keys that they share: 196608 bytes, 5.721 us; otherwise 3168 bytes, 10.03 us

// Four million bytes of keys for the last three tokens: a run of each device is a head.
// CHECK: [[ALL:!t1x8x4x3xf32]] = tensor<1x8x4x3xf32, #tv.view<#mesh, [1, did(tp) * 4, 4, 3]>>
// CHECK-LABEL: @decode
// CHECK-NEXT: tv.reshape %{{.*}} -> tensor<1x2x4x3x64xbf16>
// CHECK-NEXT: tv.broadcast %{{.*}} dims [0, 1, 3, 4, 5] {{.*}} -> tensor<1x2x4x4x3x64xbf16>
// CHECK-NEXT: %[[Q:.*]] = tv.reshape %{{.*}} -> tensor<1x32x3x64xbf16>
// CHECK-NEXT: tv.reshape %{{.*}} -> tensor<1x2x4x8192x64xbf16>
// CHECK-NEXT: %[[K:.*]] = tv.reshape %{{.*}} -> tensor<1x8x8192x64xbf16>
// CHECK-NEXT: tv.reshape
// CHECK-NEXT: %[[V:.*]] = tv.reshape
// CHECK-NEXT: tv.attention %[[Q]], %[[K]], %[[V]] scale({{[^ ]*}}) :
// CHECK-NOT: score_mod
// CHECK: mask_mod (%{{.*}}: index, %[[H:.*]]: index, %[[QI:.*]]: index, %[[KI:.*]]: index)
// CHECK: %[[PAIR:.*]] = arith.divui %[[H]], %{{.*}}
// CHECK: arith.remui %[[PAIR]]
// CHECK: arith.addi %{{.*}}, %[[KI]]
// CHECK: arith.cmpi sle
// CHECK: tv.reshape %{{.*}} -> [[ALL]]
// CHECK: tv.reduce max %{{.*}} dims [2]
// CHECK: tv.reduce sum %{{.*}} dims [2]
// CHECK: tv.reduce sum %{{.*}} dims [2] : (tensor<1x2x4x4x3x64xf32>)
// CHECK: tv.cast
#m = #tv.mesh<tp = 2, cp = 4>
!q = tensor<1x8x3x64xbf16, #tv.view<#m, [1, did(tp) * 4, 3, 64]>>
!k = tensor<1x2x32768x64xbf16, #tv.view<#m, [1, did(tp) * 1, did(cp) * 8192, 64]>>
!l = tensor<1x8x3xf32, #tv.view<#m, [1, did(tp) * 4, 3]>>
func.func @decode(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %l = tv.attention %q, %k, %v scale(0.125) causal : (!q, !k, !k) -> (!q, !l)
  return %o, %l : !q, !l
}

// -----

// What stays: few keys, whose gather takes one latency; results that are more than the
// keys; queries over the same axis; keys and values that lie otherwise;
// dropout; keys that devices do not share; what is written for each device; and what says its
// variants, which may not have the mask that it would get.
// CHECK-LABEL: @stay
// CHECK-COUNT-8: tv.attention {{.*}} : (!t1x8x{{[0-9]+}}x64xbf16
// CHECK-NOT: tv.reshape
// CHECK: return
#m = #tv.mesh<cp = 4>
!q = tensor<1x8x1x64xbf16, #tv.view<#m, [1, 8, 1, 64]>>
!l = tensor<1x8x1xf32, #tv.view<#m, [1, 8, 1]>>
!few = tensor<1x8x128x64xbf16, #tv.view<#m, [1, 8, did(cp) * 32, 64]>>
!many = tensor<1x8x32768x64xbf16, #tv.view<#m, [1, 8, did(cp) * 8192, 64]>>
!other = tensor<1x8x32768x64xbf16, #tv.view<#m, [1, 8, 8192 * did(cp), 64]>>
!whole = tensor<1x8x32768x64xbf16, #tv.view<#m, [1, 8, 32768, 64]>>
!lse = tensor<1x8x32768xf32, #tv.view<#m, [1, 8, 32768]>>
!split = tensor<1x8x4x64xbf16, #tv.view<#m, [1, 8, did(cp) * 1, 64]>>
!two = tensor<1x8x2x64xbf16, #tv.view<#m, [1, 8, 2, 64]>>
!two_lse = tensor<1x8x2xf32, #tv.view<#m, [1, 8, 2]>>
!split_lse = tensor<1x8x4xf32, #tv.view<#m, [1, 8, did(cp) * 1]>>
func.func @stay(%q: !q, %few: !few, %many: !many, %other: !other, %whole: !whole, %split: !split, %two: !two) {
  %0, %l0 = tv.attention %q, %few, %few scale(0.125) : (!q, !few, !few) -> (!q, !l)
  %1, %l1 = tv.attention %whole, %few, %few scale(0.125) : (!whole, !few, !few) -> (!whole, !lse)
  %2, %l2 = tv.attention %split, %many, %many scale(0.125) : (!split, !many, !many) -> (!split, !split_lse)
  %3, %l3 = tv.attention %q, %many, %other scale(0.125) : (!q, !many, !other) -> (!q, !l)
  %4, %l4 = tv.attention %q, %many, %many scale(0.125) dropout(0.5) seed(1) stream(2) : (!q, !many, !many) -> (!q, !l)
  %5, %l5 = tv.attention %q, %whole, %whole scale(0.125) : (!q, !whole, !whole) -> (!q, !l)
  %6, %l6 = tv.attention %q, %whole, %whole scale(0.125) {tv.local} : (!q, !whole, !whole) -> (!q, !l)
  %7, %l7 = tv.attention %two, %many, %many scale(0.125) causal {tv.variants = ["cudnn"]} : (!two, !many, !many) -> (!two, !two_lse)
  return
}
