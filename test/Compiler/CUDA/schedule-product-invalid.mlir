// The tiles of a product: a schedule that was edited by hand is legal, or an error at the
// op.
// RUN: tessera-opt %s --split-input-file --verify-diagnostics --cuda-verify-schedule -o /dev/null

// What is right.
!m = memref<512x512xbf16, strided<[512, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%a: !m, %b: !m, %y0: !m) attributes {plan.kernel} {
    plan.product %a, %b to %y0 {schedule.product = #schedule.product<columns(192) stages(5) cluster(2)>} : !m, !m to !m
    return
  }
}

// -----

// None.
!m = memref<512x512xbf16, strided<[512, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%a: !m, %b: !m, %y0: !m) attributes {plan.kernel} {
    // expected-error @+1 {{has no schedule; cuda-schedule gives it one}}
    plan.product %a, %b to %y0 : !m, !m to !m
    return
  }
}

// -----

// Columns.
!m = memref<512x512xbf16, strided<[512, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%a: !m, %b: !m, %y0: !m) attributes {plan.kernel} {
    // expected-error @+1 {{tiles have 128, 192 or 256 columns, not 160}}
    plan.product %a, %b to %y0 {schedule.product = #schedule.product<columns(160) stages(5) cluster(2)>} : !m, !m to !m
    return
  }
}

// -----

// Stages.
!m = memref<512x512xbf16, strided<[512, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%a: !m, %b: !m, %y0: !m) attributes {plan.kernel} {
    // expected-error @+1 {{there are 2 to 8 stages, not 1}}
    plan.product %a, %b to %y0 {schedule.product = #schedule.product<columns(128) stages(1) cluster(2)>} : !m, !m to !m
    return
  }
}

// -----

// Clusters.
!m = memref<512x512xbf16, strided<[512, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%a: !m, %b: !m, %y0: !m) attributes {plan.kernel} {
    // expected-error @+1 {{a cluster has 1 or 2 blocks, not 3}}
    plan.product %a, %b to %y0 {schedule.product = #schedule.product<columns(128) stages(4) cluster(3)>} : !m, !m to !m
    return
  }
}

// -----

// Room.
!m = memref<512x512xbf16, strided<[512, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%a: !m, %b: !m, %y0: !m) attributes {plan.kernel} {
    // expected-error @+1 {{takes 263168 bytes of shared memory; a block has 232448}}
    plan.product %a, %b to %y0 {schedule.product = #schedule.product<columns(256) stages(5) cluster(2)>} : !m, !m to !m
    return
  }
}

// -----

// Panels that are stored in turns.
!m = memref<512x512xbf16, strided<[512, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%a: !m, %b: !m, %y0: !m) attributes {plan.kernel} {
    // expected-error @+1 {{beside 4 stages a warp group stores 2 panels at a time, of which the 3 of a tile are no multiple}}
    plan.product %a, %b to %y0 {schedule.product = #schedule.product<columns(192) stages(4) cluster(2)>} : !m, !m to !m
    return
  }
}

// -----

// On what is no product.
!m = memref<512x512xbf16, strided<[512, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%a: !m) attributes {plan.kernel} {
    // expected-error @+1 {{is no product or attention of a kernel's body, to have tiles}}
    %c0 = arith.constant {schedule.product = #schedule.product<columns(128) stages(4) cluster(1)>} 0 : index
    return
  }
}

// -----

// The attribute's kind.
!m = memref<512x512xbf16, strided<[512, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%a: !m, %b: !m, %y: !m) attributes {plan.kernel} {
    // expected-error @+1 {{schedule.product is a #schedule.product, not 3}}
    plan.product %a, %b to %y {schedule.product = 3} : !m, !m to !m
    return
  }
}
