// Attention goes by tiles that were made of as many positions, sequences and rows.
// RUN: split-file %s %t
// RUN: tessera-opt %t/main.mlir | tessera-opt | FileCheck %s
// RUN: sed 's/i64: 300, 4, 128, 1/i64: 308, 3, 128, 1/' %t/main.mlir > %t/positions.mlir
// RUN: not tessera-opt %t/positions.mlir 2>&1 | FileCheck %s --check-prefix=POSITIONS
// RUN: sed 's/i64: 300, 4, 128, 1/i64: 300, 4, 64, 0/' %t/main.mlir > %t/rows.mlir
// RUN: not tessera-opt %t/rows.mlir 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: sed 's/ causal tiles/ tiles/' %t/main.mlir > %t/not-causal.mlir
// RUN: not tessera-opt %t/not-causal.mlir 2>&1 | FileCheck %s --check-prefix=NOT-CAUSAL
// RUN: sed 's/%v, %list)/%v, %given)/' %t/main.mlir > %t/given.mlir
// RUN: not tessera-opt %t/given.mlir 2>&1 | FileCheck %s --check-prefix=GIVEN
// RUN: sed 's/%v, %list)/%v, %copied)/' %t/main.mlir > %t/copied.mlir
// RUN: not tessera-opt %t/copied.mlir 2>&1 | FileCheck %s --check-prefix=COPIED
// RUN: sed 's/array<i64: 300, 4, 128, 1>/300/' %t/main.mlir > %t/kind.mlir
// RUN: not tessera-opt %t/kind.mlir 2>&1 | FileCheck %s --check-prefix=KIND

// CHECK: plan.launch @attend(
// POSITIONS: error: 'plan.launch' op reads tiles of 308 positions in 3 sequences by 128 rows, causal; its own are of 300 positions in 4 sequences by 128 rows, causal
// POSITIONS: note: they are made here
// ROWS: error: 'plan.launch' op reads tiles of 300 positions in 4 sequences by 64 rows, not causal; its own
// NOT-CAUSAL: rows, causal; its own are of 300 positions in 4 sequences by 128 rows, not causal
// GIVEN: error: 'plan.launch' op reads tiles that no kernel with 'plan.packed_tiles' makes
// COPIED: error: 'plan.launch' op reads tiles that no kernel with 'plan.packed_tiles' makes
// COPIED: note: they are result 0 of 'plan.launch' @copy
// KIND: error: plan.packed_tiles has four numbers: of positions, sequences and rows, and 1 if it is causal, else 0

//--- main.mlir
!q = memref<1x2x300x64xbf16>
!b = memref<1x5xi32>
!t = memref<1x336xi32>
!tq = tensor<1x2x300x64xbf16>
!tb = tensor<1x5xi32>
!tt = tensor<1x336xi32>
func.func @tiles(%b: !b, %to: !t) attributes {plan.kernel, plan.packed_tiles = array<i64: 300, 4, 128, 1>} {
  return
}
func.func @copy(%from: !t, %to: !t) attributes {plan.kernel} {
  return
}
func.func @attend(%q: !q, %k: !q, %v: !q, %t: !t, %o: !q) attributes {plan.kernel} {
  plan.attention %q, %k, %v to %o scale(0.125) causal tiles %t : !q, !q, !q to !q tiles !t
  return
}
func.func @main(%q: !tq, %k: !tq, %v: !tq, %b: !tb, %given: !tt) -> !tq {
  %list = plan.launch @tiles(%b) scalars [] from "tv.attention" : (!tb) -> !tt
  %copied = plan.launch @copy(%list) scalars [] from "tv.map" : (!tt) -> !tt
  %r = plan.launch @attend(%q, %k, %v, %list) scalars [] from "tv.attention" : (!tq, !tq, !tq, !tt) -> !tq
  return %r : !tq
}
