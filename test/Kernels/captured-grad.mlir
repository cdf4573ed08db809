// What the index of a captured tensor's gradient depends on, where numbers wrap and where
// positions cancel; and extents that are not known, of a part of a sum.

// RUN: split-file %s %t
// RUN: tessera-opt %t/wraps.mlir --tessera="to=kernels target=cuda:sm_90a attention=flash" --interpret=1 -o %t/wraps | FileCheck %s --check-prefix=EQUAL
// RUN: FileCheck %s --check-prefix=WRAPS < %t/wraps
// RUN: tessera-opt %t/cancels.mlir --tessera="to=kernels target=cuda:sm_90a attention=flash" --interpret=1 -o %t/cancels | FileCheck %s --check-prefix=EQUAL
// RUN: FileCheck %s --check-prefix=CANCELS < %t/cancels
// RUN: tessera-opt %t/unknown.mlir --tv-differentiate -o %t/unknown
// RUN: tessera-opt %t/unknown --tessera="to=kernels mesh=tp=3" --interpret=3 --interpret-sizes=s=5 -o /dev/null | FileCheck %s --check-prefix=EQUAL
// EQUAL: interpret: @main equals the source on

//--- wraps.mlir
// Differences of the same distance that are not the same number, after casts and to an
// unsigned comparison; then some that are.
// WRAPS: plan.attention_grad {{.*}} ["score", "score", "score", "distance", "distance", "distance"]
#m = #tv.mesh<tp = 1>
!q = tensor<1x1x9x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!l = tensor<1x1x9xf32>
!c = tensor<24xf32>
func.func @main(%do: !q, %q: !q, %k: !q, %v: !q, %o: !q, %lse: !l, %c: !c) -> !c {
  %dq, %dk, %dv, %dc = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) captured %c
      : (!q, !q, !q, !q, !q, !l, !c) -> (!q, !q, !q, !c)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %c[%qi] : !c -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
    score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %twelve = arith.constant 12 : index
      %q4 = arith.index_cast %qi : index to i4
      %k4 = arith.index_cast %ki : index to i4
      %qw = arith.index_cast %q4 : i4 to index
      %kw = arith.index_cast %k4 : i4 to index
      %d = arith.subi %qw, %kw : index
      %at0 = arith.addi %d, %twelve : index
      tv.accumulate 0[%at0], %dy : f32

      %five = arith.constant 5 : index
      %q5 = arith.subi %qi, %five : index
      %k5 = arith.subi %ki, %five : index
      %less = arith.cmpi ult, %q5, %k5 : index
      %at1 = arith.select %less, %five, %twelve : index
      tv.accumulate 0[%at1], %dy : f32
      %less4 = arith.cmpi slt, %q4, %k4 : i4
      %at2 = arith.select %less4, %five, %twelve : index
      tv.accumulate 0[%at2], %dy : f32

      %d4 = arith.subi %q4, %k4 : i4
      %dw = arith.index_cast %d4 : i4 to index
      %at3 = arith.addi %dw, %twelve : index
      tv.accumulate 0[%at3], %dy : f32
      %q32 = arith.index_cast %qi : index to i32
      %k64 = arith.index_cast %ki : index to i64
      %q64 = arith.extsi %q32 : i32 to i64
      %d64 = arith.subi %q64, %k64 : i64
      %di = arith.index_cast %d64 : i64 to index
      %at4 = arith.addi %di, %twelve : index
      tv.accumulate 0[%at4], %dy : f32
      %k32 = arith.trunci %k64 : i64 to i32
      %before = arith.cmpi sge, %q32, %k32 : i32
      %at5 = arith.select %before, %five, %twelve : index
      tv.accumulate 0[%at5], %dy : f32
      tv.yield %dy : f32
    }
  return %dc : !c
}

//--- cancels.mlir
// An index that is written with both positions and depends on one, or on none.
// CANCELS: plan.attention_grad {{.*}} ["query", "key", "query"]
#m = #tv.mesh<tp = 1>
!q = tensor<1x1x9x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!l = tensor<1x1x9xf32>
!c = tensor<24xf32>
func.func @main(%do: !q, %q: !q, %k: !q, %v: !q, %o: !q, %lse: !l, %c: !c) -> !c {
  %dq, %dk, %dv, %dc = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) captured %c
      : (!q, !q, !q, !q, !q, !l, !c) -> (!q, !q, !q, !c)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %c[%qi] : !c -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
    score_grad (%s: f32, %dy: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %sum = arith.addi %qi, %ki : index
      %q0 = arith.subi %sum, %ki : index
      tv.accumulate 0[%q0], %dy : f32
      %k0 = arith.subi %sum, %qi : index
      tv.accumulate 0[%k0], %dy : f32
      %none = arith.subi %ki, %ki : index
      tv.accumulate 0[%none], %dy : f32
      tv.yield %dy : f32
    }
  return %dc : !c
}

//--- unknown.mlir
#m = #tv.mesh<tp = 2>
!q = tensor<2x4x?x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<2x4x5x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
!l = tensor<2x4x?xf32, #tv.view<#m, [_, did(tp) * _, _]>>
!c = tensor<2x3xf32, #tv.view<#m, [_, _]>>
func.func @main(%do: !q {tv.dims = ["s"]}, %q: !q {tv.dims = ["s"]}, %k: !k, %v: !k,
                %o: !q {tv.dims = ["s"]}, %lse: !l {tv.dims = ["s"]}, %c: !c) -> !c
    attributes {tv.sizes = {s = 8}} {
  %dq, %dk, %dv, %dc = tv.attention_grad %do, %q, %k, %v, %o, %lse scale(0.125) captured %c
      : (!q, !q, !k, !k, !q, !l, !c) -> (!q, !k, !k, !c)
    score_mod (%s: f32, %b: index, %h: index, %qi: index, %ki: index) {
      %x = tv.load %c[%b, %qi] : !c -> f32
      %y = arith.addf %s, %x : f32
      tv.yield %y : f32
    }
  return %dc : !c
}
