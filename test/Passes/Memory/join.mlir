// What lies side by side in one memory is counted once: 64 rows of 16 floats, 4096 bytes,
// which two launches write.
// RUN: not tessera-compile %s --memory=1 2>&1 | FileCheck %s
// RUN: not tessera-compile %s --memory=4095 2>&1 | FileCheck %s
// RUN: tessera-compile %s --memory=4096 --dump-dir=%t -o %t.tsr
// RUN: FileCheck %s --check-prefix=PLAN < %t/plan.txt
// CHECK: error: between its steps a device holds 4096 bytes in the least way found
// CHECK: note: 4096 of them for this
// PLAN: %[[Y:.*]] = local f32 of [64, 16]
// PLAN-NEXT: alias f32 of [64, 8] {{.*}} is slice of %[[Y]] [0, 0]
// PLAN-NEXT: %[[B:.*]] = alias f32 of [64, 8] {{.*}} is slice of %[[Y]] [0, 8]
// PLAN-NEXT: %[[T:.*]] = alias f32 of [8, 64] {{.*}} is transpose of %[[B]] [1, 0]
#m = #tv.mesh<tp = 1>
!x = tensor<64x8xf32, #tv.view<#m, [_, _], alloc = (0, 1)>>
!t = tensor<8x64xf32, #tv.view<#m, [_, _], alloc = (1, 0)>>
!y = tensor<64x16xf32>
!w = tensor<4x16xf32, #tv.view<#m, [_, _]>>
!r = tensor<64x4xf32>
func.func @main(%x: !x, %w: !w) -> !r {
  %a = tv.cumsum %x dim 0 : (!x) -> !x
  %z = tv.transpose %x perm [1, 0] : (!x) -> !t
  %c = tv.cumsum %z dim 1 : (!t) -> !t
  %b = tv.transpose %c perm [1, 0] : (!t) -> !x
  %y = tv.concat %a, %b dim 1 : (!x, !x) -> !y
  %r = tv.linear %y, %w : (!y, !w) -> !r
  return %r : !r
}
