// What a kernel's attention knows of a block mask.
// RUN: split-file %s %t
// RUN: tessera-opt %t/blocks.mlir | tessera-opt | FileCheck %s
// RUN: sed 's/ blocks \[128, 64\]//' %t/blocks.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/\[128, 64\]/[128]/' %t/blocks.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/xi8/xi32/; s/ : i8/ : i32/' %t/blocks.mlir | not tessera-opt 2>&1 | FileCheck %s --check-prefix=TYPE

// CHECK: plan.attention {{.*}} causal blocks [128, 64] : {{.*}} block_mod (%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index) {
// NONE: error: 'plan.attention' op needs the numbers of queries and keys of a block for a block_mod, and for no other
// TYPE: error: 'plan.attention' op block_mod must have arguments ({{.*}}) and tv.yield 'i8'

//--- blocks.mlir
!x = memref<1x2x3x64xbf16>
!bm = memref<1x2xi8>
func.func @kernel(%q: !x, %k: !x, %v: !x, %o: !x, %bm: !bm) {
  plan.attention %q, %k, %v to %o scale(0.125) causal blocks [128, 64] : !x, !x, !x to !x
    block_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %kind = memref.load %bm[%b, %h] : !bm
      tv.yield %kind : i8
    }
  return
}
