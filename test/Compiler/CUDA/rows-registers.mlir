// A stage of rows that loads chunks of 32 tensors at once has as many threads, and takes as few
// chunks at a time, as there are registers for.
// RUN: tessera-opt %s --tessera="to=scheduled target=cuda:sm_90a" | FileCheck %s
// CHECK-COUNT-32: memref.load
// CHECK: schedule.loop = #schedule.loop<blocks threads(256) resident(1) as [<vectors(8) unroll(1) if {{.*}}, <vectors(1) unroll(1)>]>
#m = #tv.mesh<x = 1>
!g = tensor<64x4608xbf16, #tv.view<#m, [_, _]>>
!w = tensor<64x4608xf32>
!f = tensor<64xf32>
func.func @main(%g0: !g, %g1: !g, %g2: !g, %g3: !g, %g4: !g, %g5: !g, %g6: !g, %g7: !g, %g8: !g,
    %g9: !g, %g10: !g, %g11: !g, %g12: !g, %g13: !g, %g14: !g, %g15: !g, %g16: !g, %g17: !g, %g18:
    !g, %g19: !g, %g20: !g, %g21: !g, %g22: !g, %g23: !g, %g24: !g, %g25: !g, %g26: !g, %g27: !g,
    %g28: !g, %g29: !g, %g30: !g, %g31: !g) -> (!f, !w) {
  %a = tv.map %g0, %g1, %g2, %g3, %g4, %g5, %g6, %g7, %g8, %g9, %g10, %g11, %g12, %g13, %g14,
    %g15, %g16, %g17, %g18, %g19, %g20, %g21, %g22, %g23, %g24, %g25, %g26, %g27, %g28, %g29,
    %g30, %g31 : (!g, !g, !g, !g, !g, !g, !g, !g, !g, !g, !g, !g, !g, !g, !g, !g, !g, !g, !g, !g,
    !g, !g, !g, !g, !g, !g, !g, !g, !g, !g, !g, !g) -> !w (%x0: bf16, %x1: bf16, %x2: bf16, %x3:
    bf16, %x4: bf16, %x5: bf16, %x6: bf16, %x7: bf16, %x8: bf16, %x9: bf16, %x10: bf16, %x11:
    bf16, %x12: bf16, %x13: bf16, %x14: bf16, %x15: bf16, %x16: bf16, %x17: bf16, %x18: bf16,
    %x19: bf16, %x20: bf16, %x21: bf16, %x22: bf16, %x23: bf16, %x24: bf16, %x25: bf16, %x26:
    bf16, %x27: bf16, %x28: bf16, %x29: bf16, %x30: bf16, %x31: bf16) {
    %e0 = arith.extf %x0 : bf16 to f32
    %e1 = arith.extf %x1 : bf16 to f32
    %e2 = arith.extf %x2 : bf16 to f32
    %e3 = arith.extf %x3 : bf16 to f32
    %e4 = arith.extf %x4 : bf16 to f32
    %e5 = arith.extf %x5 : bf16 to f32
    %e6 = arith.extf %x6 : bf16 to f32
    %e7 = arith.extf %x7 : bf16 to f32
    %e8 = arith.extf %x8 : bf16 to f32
    %e9 = arith.extf %x9 : bf16 to f32
    %e10 = arith.extf %x10 : bf16 to f32
    %e11 = arith.extf %x11 : bf16 to f32
    %e12 = arith.extf %x12 : bf16 to f32
    %e13 = arith.extf %x13 : bf16 to f32
    %e14 = arith.extf %x14 : bf16 to f32
    %e15 = arith.extf %x15 : bf16 to f32
    %e16 = arith.extf %x16 : bf16 to f32
    %e17 = arith.extf %x17 : bf16 to f32
    %e18 = arith.extf %x18 : bf16 to f32
    %e19 = arith.extf %x19 : bf16 to f32
    %e20 = arith.extf %x20 : bf16 to f32
    %e21 = arith.extf %x21 : bf16 to f32
    %e22 = arith.extf %x22 : bf16 to f32
    %e23 = arith.extf %x23 : bf16 to f32
    %e24 = arith.extf %x24 : bf16 to f32
    %e25 = arith.extf %x25 : bf16 to f32
    %e26 = arith.extf %x26 : bf16 to f32
    %e27 = arith.extf %x27 : bf16 to f32
    %e28 = arith.extf %x28 : bf16 to f32
    %e29 = arith.extf %x29 : bf16 to f32
    %e30 = arith.extf %x30 : bf16 to f32
    %e31 = arith.extf %x31 : bf16 to f32
    %s1 = arith.addf %e0, %e1 : f32
    %s2 = arith.addf %s1, %e2 : f32
    %s3 = arith.addf %s2, %e3 : f32
    %s4 = arith.addf %s3, %e4 : f32
    %s5 = arith.addf %s4, %e5 : f32
    %s6 = arith.addf %s5, %e6 : f32
    %s7 = arith.addf %s6, %e7 : f32
    %s8 = arith.addf %s7, %e8 : f32
    %s9 = arith.addf %s8, %e9 : f32
    %s10 = arith.addf %s9, %e10 : f32
    %s11 = arith.addf %s10, %e11 : f32
    %s12 = arith.addf %s11, %e12 : f32
    %s13 = arith.addf %s12, %e13 : f32
    %s14 = arith.addf %s13, %e14 : f32
    %s15 = arith.addf %s14, %e15 : f32
    %s16 = arith.addf %s15, %e16 : f32
    %s17 = arith.addf %s16, %e17 : f32
    %s18 = arith.addf %s17, %e18 : f32
    %s19 = arith.addf %s18, %e19 : f32
    %s20 = arith.addf %s19, %e20 : f32
    %s21 = arith.addf %s20, %e21 : f32
    %s22 = arith.addf %s21, %e22 : f32
    %s23 = arith.addf %s22, %e23 : f32
    %s24 = arith.addf %s23, %e24 : f32
    %s25 = arith.addf %s24, %e25 : f32
    %s26 = arith.addf %s25, %e26 : f32
    %s27 = arith.addf %s26, %e27 : f32
    %s28 = arith.addf %s27, %e28 : f32
    %s29 = arith.addf %s28, %e29 : f32
    %s30 = arith.addf %s29, %e30 : f32
    %s31 = arith.addf %s30, %e31 : f32
    tv.yield %s31 : f32
  }
  %s = tv.reduce sum %a dims [1] : (!w) -> !f
  return %s, %a : !f, !w
}
