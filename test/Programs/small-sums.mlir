// Squares of 32 small tensors, added by fours and summed: four kernels side by side are one,
// whose threads load chunks of 16 tensors at a time, without spills.
// RUN: tessera-opt %s --tessera="mesh=x=1 to=scheduled target=cuda:sm_90a" | FileCheck %s %no_other_collective

// CHECK-COUNT-16: memref.load
// CHECK: schedule.loop = #schedule.loop<blocks threads(256) resident(6) as [<vectors(8) unroll(3) keep(registers) if {{.*}}, <vectors(1) unroll(2)>]>
// CHECK-NOT: schedule.loop
// CHECK-COUNT-2: plan.launch
// RAN x=1: nothing
// RAN x=2: nothing
#m = #tv.mesh<x = 2>
!g = tensor<4608xbf16, #tv.view<#m, [_]>>
!w = tensor<4608xf32>
!f = tensor<f32>
func.func @main(%g0: !g, %g1: !g, %g2: !g, %g3: !g, %g4: !g, %g5: !g, %g6: !g, %g7: !g, %g8: !g,
    %g9: !g, %g10: !g, %g11: !g, %g12: !g, %g13: !g, %g14: !g, %g15: !g, %g16: !g, %g17: !g,
    %g18: !g, %g19: !g, %g20: !g, %g21: !g, %g22: !g, %g23: !g, %g24: !g, %g25: !g, %g26: !g,
    %g27: !g, %g28: !g, %g29: !g, %g30: !g, %g31: !g)
    -> (!f, !f, !f, !f, !f, !f, !f, !f) {
  %c0 = tv.cast %g0 : (!g) -> !w
  %q0 = tv.mul %c0, %c0 : (!w, !w) -> !w
  %c1 = tv.cast %g1 : (!g) -> !w
  %q1 = tv.mul %c1, %c1 : (!w, !w) -> !w
  %a1 = tv.add %q0, %q1 : (!w, !w) -> !w
  %c2 = tv.cast %g2 : (!g) -> !w
  %q2 = tv.mul %c2, %c2 : (!w, !w) -> !w
  %a2 = tv.add %a1, %q2 : (!w, !w) -> !w
  %c3 = tv.cast %g3 : (!g) -> !w
  %q3 = tv.mul %c3, %c3 : (!w, !w) -> !w
  %a3 = tv.add %a2, %q3 : (!w, !w) -> !w
  %s0 = tv.reduce sum %a3 dims [0] : (!w) -> !f
  %c4 = tv.cast %g4 : (!g) -> !w
  %q4 = tv.mul %c4, %c4 : (!w, !w) -> !w
  %c5 = tv.cast %g5 : (!g) -> !w
  %q5 = tv.mul %c5, %c5 : (!w, !w) -> !w
  %a5 = tv.add %q4, %q5 : (!w, !w) -> !w
  %c6 = tv.cast %g6 : (!g) -> !w
  %q6 = tv.mul %c6, %c6 : (!w, !w) -> !w
  %a6 = tv.add %a5, %q6 : (!w, !w) -> !w
  %c7 = tv.cast %g7 : (!g) -> !w
  %q7 = tv.mul %c7, %c7 : (!w, !w) -> !w
  %a7 = tv.add %a6, %q7 : (!w, !w) -> !w
  %s1 = tv.reduce sum %a7 dims [0] : (!w) -> !f
  %c8 = tv.cast %g8 : (!g) -> !w
  %q8 = tv.mul %c8, %c8 : (!w, !w) -> !w
  %c9 = tv.cast %g9 : (!g) -> !w
  %q9 = tv.mul %c9, %c9 : (!w, !w) -> !w
  %a9 = tv.add %q8, %q9 : (!w, !w) -> !w
  %c10 = tv.cast %g10 : (!g) -> !w
  %q10 = tv.mul %c10, %c10 : (!w, !w) -> !w
  %a10 = tv.add %a9, %q10 : (!w, !w) -> !w
  %c11 = tv.cast %g11 : (!g) -> !w
  %q11 = tv.mul %c11, %c11 : (!w, !w) -> !w
  %a11 = tv.add %a10, %q11 : (!w, !w) -> !w
  %s2 = tv.reduce sum %a11 dims [0] : (!w) -> !f
  %c12 = tv.cast %g12 : (!g) -> !w
  %q12 = tv.mul %c12, %c12 : (!w, !w) -> !w
  %c13 = tv.cast %g13 : (!g) -> !w
  %q13 = tv.mul %c13, %c13 : (!w, !w) -> !w
  %a13 = tv.add %q12, %q13 : (!w, !w) -> !w
  %c14 = tv.cast %g14 : (!g) -> !w
  %q14 = tv.mul %c14, %c14 : (!w, !w) -> !w
  %a14 = tv.add %a13, %q14 : (!w, !w) -> !w
  %c15 = tv.cast %g15 : (!g) -> !w
  %q15 = tv.mul %c15, %c15 : (!w, !w) -> !w
  %a15 = tv.add %a14, %q15 : (!w, !w) -> !w
  %s3 = tv.reduce sum %a15 dims [0] : (!w) -> !f
  %c16 = tv.cast %g16 : (!g) -> !w
  %q16 = tv.mul %c16, %c16 : (!w, !w) -> !w
  %c17 = tv.cast %g17 : (!g) -> !w
  %q17 = tv.mul %c17, %c17 : (!w, !w) -> !w
  %a17 = tv.add %q16, %q17 : (!w, !w) -> !w
  %c18 = tv.cast %g18 : (!g) -> !w
  %q18 = tv.mul %c18, %c18 : (!w, !w) -> !w
  %a18 = tv.add %a17, %q18 : (!w, !w) -> !w
  %c19 = tv.cast %g19 : (!g) -> !w
  %q19 = tv.mul %c19, %c19 : (!w, !w) -> !w
  %a19 = tv.add %a18, %q19 : (!w, !w) -> !w
  %s4 = tv.reduce sum %a19 dims [0] : (!w) -> !f
  %c20 = tv.cast %g20 : (!g) -> !w
  %q20 = tv.mul %c20, %c20 : (!w, !w) -> !w
  %c21 = tv.cast %g21 : (!g) -> !w
  %q21 = tv.mul %c21, %c21 : (!w, !w) -> !w
  %a21 = tv.add %q20, %q21 : (!w, !w) -> !w
  %c22 = tv.cast %g22 : (!g) -> !w
  %q22 = tv.mul %c22, %c22 : (!w, !w) -> !w
  %a22 = tv.add %a21, %q22 : (!w, !w) -> !w
  %c23 = tv.cast %g23 : (!g) -> !w
  %q23 = tv.mul %c23, %c23 : (!w, !w) -> !w
  %a23 = tv.add %a22, %q23 : (!w, !w) -> !w
  %s5 = tv.reduce sum %a23 dims [0] : (!w) -> !f
  %c24 = tv.cast %g24 : (!g) -> !w
  %q24 = tv.mul %c24, %c24 : (!w, !w) -> !w
  %c25 = tv.cast %g25 : (!g) -> !w
  %q25 = tv.mul %c25, %c25 : (!w, !w) -> !w
  %a25 = tv.add %q24, %q25 : (!w, !w) -> !w
  %c26 = tv.cast %g26 : (!g) -> !w
  %q26 = tv.mul %c26, %c26 : (!w, !w) -> !w
  %a26 = tv.add %a25, %q26 : (!w, !w) -> !w
  %c27 = tv.cast %g27 : (!g) -> !w
  %q27 = tv.mul %c27, %c27 : (!w, !w) -> !w
  %a27 = tv.add %a26, %q27 : (!w, !w) -> !w
  %s6 = tv.reduce sum %a27 dims [0] : (!w) -> !f
  %c28 = tv.cast %g28 : (!g) -> !w
  %q28 = tv.mul %c28, %c28 : (!w, !w) -> !w
  %c29 = tv.cast %g29 : (!g) -> !w
  %q29 = tv.mul %c29, %c29 : (!w, !w) -> !w
  %a29 = tv.add %q28, %q29 : (!w, !w) -> !w
  %c30 = tv.cast %g30 : (!g) -> !w
  %q30 = tv.mul %c30, %c30 : (!w, !w) -> !w
  %a30 = tv.add %a29, %q30 : (!w, !w) -> !w
  %c31 = tv.cast %g31 : (!g) -> !w
  %q31 = tv.mul %c31, %c31 : (!w, !w) -> !w
  %a31 = tv.add %a30, %q31 : (!w, !w) -> !w
  %s7 = tv.reduce sum %a31 dims [0] : (!w) -> !f
  return %s0, %s1, %s2, %s3, %s4, %s5, %s6, %s7
    : !f, !f, !f, !f, !f, !f, !f, !f
}
