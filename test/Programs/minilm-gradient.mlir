// MiniLM's encoder (examples/minilm), two layers of it and small, with a loss of its
// embeddings, and the gradients of all parameters: heads and hidden layers are split, and
// each half of a layer has one all-reduce there and one back.
// RUN: tessera-opt %s --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s %no_other_collective
// RUN: tessera-opt %t --tessera="mesh=tp=3 to=kernels" --interpret=3 -o /dev/null

// CHECK-COUNT-8: comm.all_reduce
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 640 bytes 0 copies, all-reduce 640 bytes 0 copies, all-reduce 640 bytes 0 copies, all-reduce 640 bytes 0 copies, all-reduce 640 bytes 0 copies, all-reduce 640 bytes 0 copies, all-reduce 640 bytes 0 copies, all-reduce 640 bytes 0 copies
// RAN tp=3: all-reduce 856 bytes 0 copies, all-reduce 856 bytes 0 copies, all-reduce 856 bytes 0 copies, all-reduce 856 bytes 0 copies, all-reduce 856 bytes 0 copies, all-reduce 856 bytes 0 copies, all-reduce 856 bytes 0 copies, all-reduce 856 bytes 0 copies
// RAN tp=4: all-reduce 960 bytes 0 copies, all-reduce 960 bytes 0 copies, all-reduce 960 bytes 0 copies, all-reduce 960 bytes 0 copies, all-reduce 960 bytes 0 copies, all-reduce 960 bytes 0 copies, all-reduce 960 bytes 0 copies, all-reduce 960 bytes 0 copies
#m = #tv.mesh<tp = 2>
!ids = tensor<2x5xi32, #tv.view<#m, [_, _]>>
!mask = tensor<2x5xi32, #tv.view<#m, [_, _]>>
!words = tensor<24x16xf32, #tv.view<#m, [_, _]>>
!positions = tensor<8x16xf32, #tv.view<#m, [_, _]>>
!types = tensor<2x16xf32, #tv.view<#m, [_, _]>>
!vec = tensor<16xf32, #tv.view<#m, [_]>>
!heads_w = tensor<16x16xf32, #tv.view<#m, [(did(tp) * _ | 4) * 4, _]>>
!heads_b = tensor<16xf32, #tv.view<#m, [(did(tp) * _ | 4) * 4]>>
!out_w = tensor<16x16xf32, #tv.view<#m, [_, (did(tp) * _ | 4) * 4]>>
!up_w = tensor<32x16xf32, #tv.view<#m, [did(tp) * _, _]>>
!up_b = tensor<32xf32, #tv.view<#m, [did(tp) * _]>>
!down_w = tensor<16x32xf32, #tv.view<#m, [_, did(tp) * _]>>
!target = tensor<2x16xf32, #tv.view<#m, [_, _]>>
!loss = tensor<f32, #tv.view<#m, []>>

!x = tensor<2x5x16xf32>
!split = tensor<2x5x4x4xf32>
!head = tensor<2x4x5x4xf32>
!up = tensor<2x5x32xf32>
!keep = tensor<2x5xf32>
!e = tensor<2x16xf32>
!b = tensor<2xf32>

func.func private @heads(%x: !x, %w: !heads_w, %bias: !heads_b) -> !head {
  %0 = tv.linear %x, %w bias %bias : (!x, !heads_w, !heads_b) -> !x
  %1 = tv.reshape %0 : (!x) -> !split
  %2 = tv.transpose %1 perm [0, 2, 1, 3] : (!split) -> !head
  return %2 : !head
}
func.func private @layer(%x: !x, %mask: !mask,
                         %qw: !heads_w, %qb: !heads_b, %kw: !heads_w, %kb: !heads_b, %vw: !heads_w, %vb: !heads_b, %ow: !out_w,
                         %ob: !vec, %g1: !vec, %b1: !vec, %uw: !up_w, %ub: !up_b, %dw: !down_w, %db: !vec, %g2: !vec, %b2: !vec) -> !x {
  %q = call @heads(%x, %qw, %qb) : (!x, !heads_w, !heads_b) -> !head
  %k = call @heads(%x, %kw, %kb) : (!x, !heads_w, !heads_b) -> !head
  %v = call @heads(%x, %vw, %vb) : (!x, !heads_w, !heads_b) -> !head
  %a, %lse = tv.attention %q, %k, %v scale(0.5) : (!head, !head, !head) -> (!head, tensor<2x4x5xf32>)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %keep = tv.load %mask[%b, %ki] : !mask -> i32
      %zero = arith.constant 0 : i32
      %m = arith.cmpi ne, %keep, %zero : i32
      tv.yield %m : i1
    }
  %t = tv.transpose %a perm [0, 2, 1, 3] : (!head) -> !split
  %r = tv.reshape %t : (!split) -> !x
  %o = tv.linear %r, %ow bias %ob : (!x, !out_w, !vec) -> !x
  %s1 = tv.add %o, %x : (!x, !x) -> !x
  %n1 = tv.layer_norm %s1, %g1, %b1 epsilon(1.0e-5) : (!x, !vec, !vec) -> !x
  %u = tv.linear %n1, %uw bias %ub : (!x, !up_w, !up_b) -> !up
  %g = tv.gelu %u : (!up) -> !up
  %d = tv.linear %g, %dw bias %db : (!up, !down_w, !vec) -> !x
  %s2 = tv.add %d, %n1 : (!x, !x) -> !x
  %n2 = tv.layer_norm %s2, %g2, %b2 epsilon(1.0e-5) : (!x, !vec, !vec) -> !x
  return %n2 : !x
}

// The mean over the tokens that the mask keeps, scaled to length 1, times a target.
func.func private @loss(%ids: !ids, %mask: !mask, %target: !target,
                        %words: !words, %positions: !positions, %types: !types, %eg: !vec, %eb: !vec, %qw0: !heads_w, %qb0: !heads_b,
                        %kw0: !heads_w, %kb0: !heads_b, %vw0: !heads_w, %vb0: !heads_b, %ow0: !out_w, %ob0: !vec, %g10: !vec,
                        %b10: !vec, %uw0: !up_w, %ub0: !up_b, %dw0: !down_w, %db0: !vec, %g20: !vec, %b20: !vec, %qw1: !heads_w,
                        %qb1: !heads_b, %kw1: !heads_w, %kb1: !heads_b, %vw1: !heads_w, %vb1: !heads_b, %ow1: !out_w, %ob1: !vec,
                        %g11: !vec, %b11: !vec, %uw1: !up_w, %ub1: !up_b, %dw1: !down_w, %db1: !vec, %g21: !vec, %b21: !vec) -> !loss {
  %word = tv.gather %words, %ids dim 0 : (!words, !ids) -> !x
  %at = tv.iota 1 : () -> tensor<2x5xi32>
  %place = tv.gather %positions, %at dim 0 : (!positions, tensor<2x5xi32>) -> !x
  %type0 = tv.slice %types offsets [0, 0] : (!types) -> tensor<1x16xf32>
  %type = tv.reshape %type0 : (tensor<1x16xf32>) -> tensor<16xf32>
  %kind = tv.broadcast %type dims [2] : (tensor<16xf32>) -> !x
  %fixed = tv.add %place, %kind : (!x, !x) -> !x
  %sum0 = tv.add %word, %fixed : (!x, !x) -> !x
  %x0 = tv.layer_norm %sum0, %eg, %eb epsilon(1.0e-5) : (!x, !vec, !vec) -> !x
  %x1 = call @layer(%x0, %mask, %qw0, %qb0, %kw0, %kb0, %vw0, %vb0, %ow0, %ob0, %g10, %b10, %uw0, %ub0, %dw0, %db0, %g20, %b20)
      : (!x, !mask, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w, !heads_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec) -> !x
  %x2 = call @layer(%x1, %mask, %qw1, %qb1, %kw1, %kb1, %vw1, %vb1, %ow1, %ob1, %g11, %b11, %uw1, %ub1, %dw1, %db1, %g21, %b21)
      : (!x, !mask, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w, !heads_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec) -> !x
  %keep = tv.cast %mask : (!mask) -> !keep
  %wide = tv.broadcast %keep dims [0, 1] : (!keep) -> !x
  %kept = tv.mul %x2, %wide : (!x, !x) -> !x
  %sum = tv.reduce sum %kept dims [1] : (!x) -> !e
  %count = tv.reduce sum %keep dims [1] : (!keep) -> !b
  %one = tv.constant dense<1.0> : tensor<f32> : () -> !b
  %least = tv.max %count, %one : (!b, !b) -> !b
  %counts = tv.broadcast %least dims [0] : (!b) -> !e
  %mean = tv.div %sum, %counts : (!e, !e) -> !e
  %squares = tv.mul %mean, %mean : (!e, !e) -> !e
  %square = tv.reduce sum %squares dims [1] : (!e) -> !b
  %small = tv.constant dense<1.0e-6> : tensor<f32> : () -> !b
  %more = tv.add %square, %small : (!b, !b) -> !b
  %inverse = tv.rsqrt %more : (!b) -> !b
  %lengths = tv.broadcast %inverse dims [0] : (!b) -> !e
  %unit = tv.mul %mean, %lengths : (!e, !e) -> !e
  %near = tv.mul %unit, %target : (!e, !target) -> !e
  %loss = tv.reduce sum %near dims [0, 1] : (!e) -> !loss
  return %loss : !loss
}
func.func @main(%ids: !ids {tv.range = [0, 23]}, %mask: !mask {tv.range = [0, 2]}, %target: !target,
                %words: !words {tv.role = "weight"}, %positions: !positions {tv.role = "weight"},
                %types: !types {tv.role = "weight"}, %eg: !vec {tv.role = "weight"}, %eb: !vec {tv.role = "weight"},
                %qw0: !heads_w {tv.role = "weight"}, %qb0: !heads_b {tv.role = "weight"}, %kw0: !heads_w {tv.role = "weight"},
                %kb0: !heads_b {tv.role = "weight"}, %vw0: !heads_w {tv.role = "weight"}, %vb0: !heads_b {tv.role = "weight"},
                %ow0: !out_w {tv.role = "weight"}, %ob0: !vec {tv.role = "weight"}, %g10: !vec {tv.role = "weight"},
                %b10: !vec {tv.role = "weight"}, %uw0: !up_w {tv.role = "weight"}, %ub0: !up_b {tv.role = "weight"},
                %dw0: !down_w {tv.role = "weight"}, %db0: !vec {tv.role = "weight"}, %g20: !vec {tv.role = "weight"},
                %b20: !vec {tv.role = "weight"}, %qw1: !heads_w {tv.role = "weight"}, %qb1: !heads_b {tv.role = "weight"},
                %kw1: !heads_w {tv.role = "weight"}, %kb1: !heads_b {tv.role = "weight"}, %vw1: !heads_w {tv.role = "weight"},
                %vb1: !heads_b {tv.role = "weight"}, %ow1: !out_w {tv.role = "weight"}, %ob1: !vec {tv.role = "weight"},
                %g11: !vec {tv.role = "weight"}, %b11: !vec {tv.role = "weight"}, %uw1: !up_w {tv.role = "weight"},
                %ub1: !up_b {tv.role = "weight"}, %dw1: !down_w {tv.role = "weight"}, %db1: !vec {tv.role = "weight"},
                %g21: !vec {tv.role = "weight"}, %b21: !vec {tv.role = "weight"})
    -> (!loss,
        !words, !positions, !types, !vec, !vec, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w, !heads_b, !out_w,
        !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w,
        !heads_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec) {
  %loss, %d_words, %d_positions, %d_types, %d_eg, %d_eb, %d_qw0, %d_qb0, %d_kw0, %d_kb0, %d_vw0, %d_vb0, %d_ow0, %d_ob0,
    %d_g10, %d_b10, %d_uw0, %d_ub0, %d_dw0, %d_db0, %d_g20, %d_b20, %d_qw1, %d_qb1, %d_kw1, %d_kb1, %d_vw1, %d_vb1,
    %d_ow1, %d_ob1, %d_g11, %d_b11, %d_uw1, %d_ub1, %d_dw1, %d_db1, %d_g21, %d_b21
    = tv.gradient @loss(%ids, %mask, %target, %words, %positions, %types, %eg, %eb, %qw0, %qb0, %kw0, %kb0, %vw0, %vb0, %ow0, %ob0, %g10, %b10, %uw0, %ub0,
        %dw0, %db0, %g20, %b20, %qw1, %qb1, %kw1, %kb1, %vw1, %vb1, %ow1, %ob1, %g11, %b11, %uw1, %ub1, %dw1, %db1,
        %g21, %b21) of [0]
      to [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
        32, 33, 34, 35, 36, 37, 38, 39]
    : (!ids, !mask, !target, !words, !positions, !types, !vec, !vec, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w, !heads_b, !out_w,
       !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w,
       !heads_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec)
   -> (!loss, !words, !positions, !types, !vec, !vec, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w, !heads_b, !out_w,
        !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w,
        !heads_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec)
  return %loss, %d_words, %d_positions, %d_types, %d_eg, %d_eb, %d_qw0, %d_qb0, %d_kw0, %d_kb0, %d_vw0, %d_vb0, %d_ow0, %d_ob0,
    %d_g10, %d_b10, %d_uw0, %d_ub0, %d_dw0, %d_db0, %d_g20, %d_b20, %d_qw1, %d_qb1, %d_kw1, %d_kb1, %d_vw1, %d_vb1,
    %d_ow1, %d_ob1, %d_g11, %d_b11, %d_uw1, %d_ub1, %d_dw1, %d_db1, %d_g21, %d_b21
    : !loss, !words, !positions, !types, !vec, !vec, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w, !heads_b, !out_w,
      !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec, !heads_w, !heads_b, !heads_w, !heads_b, !heads_w,
      !heads_b, !out_w, !vec, !vec, !vec, !up_w, !up_b, !down_w, !vec, !vec, !vec
}
