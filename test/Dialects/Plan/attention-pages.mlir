// Pages of keys of attention in a kernel, and tables that do not fit.
// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: sed 's/3x5xi32/3x?xi32/' %s | not tessera-opt 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: sed 's/3x5xi32/3x5xi64/' %s | not tessera-opt 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: sed 's/9x2x8x64/9x2x?x64/' %s | not tessera-opt 2>&1 | FileCheck %s --check-prefix=KEYS

// CHECK: plan.attention {{.*}} pages %{{.*}} : {{.*}} to memref<3x4x1x64xbf16>, memref<3x4x1xf32> pages memref<3x5xi32>
// CHECK: plan.attention {{.*}} pages %{{.*}} : {{.*}} to memref<3x4x1x64xbf16> pages memref<3x5xi32>
// TABLE: error: 'plan.attention' op pages must be [B, M], M static, of i32, not 'memref<{{.*}}>'
// KEYS: error: 'plan.attention' op with pages has a static number of keys in each
!q = memref<3x4x1x64xbf16>
!k = memref<9x2x8x64xbf16>
!l = memref<3x4x1xf32>
!t = memref<3x5xi32>
func.func @attend(%q: !q, %k: !k, %o: !q, %l: !l, %t: !t) {
  plan.attention %q, %k, %k to %o, %l scale(0.125) pages %t : !q, !k, !k to !q, !l pages !t
  plan.attention %q, %k, %k to %o scale(0.125) pages %t : !q, !k, !k to !q pages !t
  return
}
