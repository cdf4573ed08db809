// The tiles of an attention and the roles in its functions: a schedule that was edited by
// hand is legal, or an error at the op.
// RUN: tessera-opt %s --split-input-file --verify-diagnostics --cuda-verify-schedule -o /dev/null

// What is right, and other tiles that there are kernels for.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q) attributes {plan.kernel} {
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(192) keys(128) stages(2)>} : !q, !q, !q to !q
    return
  }
}

// -----

// Smaller ones.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q) attributes {plan.kernel} {
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(80) stages(2)>} : !q, !q, !q to !q
    return
  }
}

// -----

// None.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q) attributes {plan.kernel} {
    // expected-error @+1 {{has no schedule; cuda-schedule gives it one}}
    plan.attention %q, %q, %q to %o scale(0.125) : !q, !q, !q to !q
    return
  }
}

// -----

// Queries.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q) attributes {plan.kernel} {
    // expected-error @+1 {{a block takes 128 queries or 192, not 96}}
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(96) keys(128) stages(2)>} : !q, !q, !q to !q
    return
  }
}

// -----

// All queries of a key head, of which there are few.
!q = memref<2x4x16x64xbf16, strided<[4096, 1024, 64, 1]>>
!k = memref<2x1x96x64xbf16, strided<[6144, 6144, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %k: !k, %o: !q) attributes {plan.kernel} {
    plan.attention %q, %k, %k to %o scale(0.125) {schedule.attention = #schedule.attention<rows(64) keys(32) stages(6)>} : !q, !k, !k to !q
    return
  }
}

// -----

// There, keys.
!q = memref<2x4x16x64xbf16, strided<[4096, 1024, 64, 1]>>
!k = memref<2x1x96x64xbf16, strided<[6144, 6144, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %k: !k, %o: !q) attributes {plan.kernel} {
    // expected-error @+1 {{beside at most 64 rows a block takes 32, 64 or 128 keys at a time, not 80}}
    plan.attention %q, %k, %k to %o scale(0.125) {schedule.attention = #schedule.attention<rows(64) keys(80) stages(3)>} : !q, !k, !k to !q
    return
  }
}

// -----

// There, stages.
!q = memref<2x4x16x64xbf16, strided<[4096, 1024, 64, 1]>>
!k = memref<2x1x96x64xbf16, strided<[6144, 6144, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %k: !k, %o: !q) attributes {plan.kernel} {
    // expected-error @+1 {{there are 1 to 6 stages of keys and values, not 7}}
    plan.attention %q, %k, %k to %o scale(0.125) {schedule.attention = #schedule.attention<rows(64) keys(32) stages(7)>} : !q, !k, !k to !q
    return
  }
}

// -----

// More queries than a tile has are right, part of a head's group is not.
!q = memref<2x4x17x64xbf16, strided<[4352, 1088, 64, 1]>>
!k = memref<2x1x96x64xbf16, strided<[6144, 6144, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %k: !k, %o: !q) attributes {plan.kernel} {
    plan.attention %q, %k, %k to %o scale(0.125) {schedule.attention = #schedule.attention<rows(64) keys(128) stages(3)>} : !q, !k, !k to !q
    // expected-error @+1 {{a tile of at most 64 rows has as many of each head that reads a key head, 4 of them, not 17}}
    plan.attention %q, %k, %k to %o scale(0.125) {schedule.attention = #schedule.attention<rows(17) keys(128) stages(3)>} : !q, !k, !k to !q
    return
  }
}

// -----

// Queries of wide heads.
!q = memref<2x4x64x128xbf16, strided<[32768, 8192, 128, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q) attributes {plan.kernel} {
    // expected-error @+1 {{a block takes 128 queries, not 192}}
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(192) keys(128) stages(2)>} : !q, !q, !q to !q
    return
  }
}

// -----

// Keys.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q) attributes {plan.kernel} {
    // expected-error @+1 {{a block takes 64, 80, 96, 112 or 128 keys at a time, not 100}}
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(100) stages(2)>} : !q, !q, !q to !q
    return
  }
}

// -----

// Stages.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q) attributes {plan.kernel} {
    // expected-error @+1 {{there are 2 to 4 stages of keys and values, not 5}}
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(5)>} : !q, !q, !q to !q
    return
  }
}

// -----

// Shared memory.
!q = memref<2x4x64x256xbf16, strided<[65536, 16384, 256, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q) attributes {plan.kernel} {
    // expected-error @+1 {{takes 329728 bytes of shared memory; a block has 232448}}
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2)>} : !q, !q, !q to !q
    return
  }
}

// -----

// What is right, with a function.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q, %t: memref<64xf32, strided<[1]>>) attributes {plan.kernel} {
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2)>} : !q, !q, !q to !q
      score_mod (%s: f32, %b: index, %h: index, %i: index, %j: index) {
        %c = arith.constant 2.0 : f32
        %0 = arith.mulf %s, %c {schedule.role = #schedule.role<inner_scale>} : f32
        %1 = memref.load %t[%i] {schedule.role = #schedule.role<query>} : memref<64xf32, strided<[1]>>
        %2 = arith.addf %0, %1 : f32
        %3 = arith.mulf %2, %c {schedule.role = #schedule.role<outer_scale>} : f32
        tv.yield %3 : f32
      }
    return
  }
}

// -----

// Of a query what keys say.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q, %t: memref<64xf32, strided<[1]>>) attributes {plan.kernel} {
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2)>} : !q, !q, !q to !q
      score_mod (%s: f32, %b: index, %h: index, %i: index, %j: index) {
        // expected-error @+1 {{is not the same for all keys of a query}}
        %1 = memref.load %t[%j] {schedule.role = #schedule.role<query>} : memref<64xf32, strided<[1]>>
        %2 = arith.addf %s, %1 : f32
        tv.yield %2 : f32
      }
    return
  }
}

// -----

// Of a key what queries say.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q, %t: memref<64xf32, strided<[1]>>) attributes {plan.kernel} {
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2)>} : !q, !q, !q to !q
      score_mod (%s: f32, %b: index, %h: index, %i: index, %j: index) {
        // expected-error @+1 {{is not the same for all queries of a key}}
        %1 = memref.load %t[%i] {schedule.role = #schedule.role<key>} : memref<64xf32, strided<[1]>>
        %2 = arith.addf %s, %1 : f32
        tv.yield %2 : f32
      }
    return
  }
}

// -----

// A head is no key's.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q, %t: memref<64xf32, strided<[1]>>) attributes {plan.kernel} {
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2)>} : !q, !q, !q to !q
      score_mod (%s: f32, %b: index, %h: index, %i: index, %j: index) {
        // expected-error @+1 {{is not the same for all queries of a key}}
        %1 = memref.load %t[%h] {schedule.role = #schedule.role<key>} : memref<64xf32, strided<[1]>>
        %2 = arith.addf %s, %1 : f32
        tv.yield %2 : f32
      }
    return
  }
}

// -----

// Too much for a query.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q, %t: memref<64xf32, strided<[1]>>) attributes {plan.kernel} {
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2)>} : !q, !q, !q to !q
      score_mod (%s: f32, %b: index, %h: index, %i: index, %j: index) {
        %n = arith.addi %b, %i {schedule.role = #schedule.role<query>} : index
        %m = arith.addi %h, %i {schedule.role = #schedule.role<query>} : index
        // expected-error @+1 {{is more than the 16 bytes that are kept for a query}}
        %1 = memref.load %t[%i] {schedule.role = #schedule.role<query>} : memref<64xf32, strided<[1]>>
        %2 = arith.addf %s, %1 : f32
        tv.yield %2 : f32
      }
    return
  }
}

// -----

// An inner scale that is not all.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q, %t: memref<64xf32, strided<[1]>>) attributes {plan.kernel} {
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2)>} : !q, !q, !q to !q
      score_mod (%s: f32, %b: index, %h: index, %i: index, %j: index) {
        %c = arith.constant 2.0 : f32
        // expected-error @+1 {{is not all that the functions do with the score at first, by one constant}}
        %0 = arith.mulf %s, %c {schedule.role = #schedule.role<inner_scale>} : f32
        %2 = arith.addf %s, %0 : f32
        tv.yield %2 : f32
      }
    return
  }
}

// -----

// An outer scale that is negative.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q, %t: memref<64xf32, strided<[1]>>) attributes {plan.kernel} {
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2)>} : !q, !q, !q to !q
      score_mod (%s: f32, %b: index, %h: index, %i: index, %j: index) {
        %c = arith.constant -2.0 : f32
        %0 = arith.addf %s, %s : f32
        // expected-error @+1 {{is not what score_mod yields, by a positive constant}}
        %2 = arith.mulf %0, %c {schedule.role = #schedule.role<outer_scale>} : f32
        tv.yield %2 : f32
      }
    return
  }
}

// -----

// A role of loops.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q, %t: memref<64xf32, strided<[1]>>) attributes {plan.kernel} {
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2)>} : !q, !q, !q to !q
      score_mod (%s: f32, %b: index, %h: index, %i: index, %j: index) {
        // expected-error @+1 {{has the role of an op in a loop}}
        %2 = arith.addf %s, %s {schedule.role = #schedule.role<once>} : f32
        tv.yield %2 : f32
      }
    return
  }
}

// -----

// A bound that need not hold.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q) attributes {plan.kernel} {
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2)>} : !q, !q, !q to !q
      mask_mod (%b: index, %h: index, %i: index, %j: index) {
        // expected-error @+1 {{is no comparison that must hold and bounds a query's keys}}
        %0 = arith.cmpi sle, %j, %i {schedule.bound} : index
        %1 = arith.cmpi slt, %j, %h : index
        %2 = arith.ori %0, %1 : i1
        tv.yield %2 : i1
      }
    return
  }
}

// -----

// Such tiles are for a number of queries that is known, and shared anyway.
!q = memref<2x4x?x64xbf16, strided<[?, ?, 64, 1]>>
!k = memref<2x1x96x64xbf16, strided<[6144, 6144, 64, 1]>>
!few = memref<2x4x1x64xbf16, strided<[256, 64, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %k: !k, %o: !q) attributes {plan.kernel} {
    // expected-error @+1 {{tiles of at most 64 rows are for a number of queries that is known}}
    plan.attention %q, %k, %k to %o scale(0.125) {schedule.attention = #schedule.attention<rows(4) keys(128) stages(2)>} : !q, !k, !k to !q
    return
  }
  func.func private @few(%q: !few, %k: !k, %o: !few) attributes {plan.kernel} {
    // expected-error @+1 {{tiles of at most 64 rows are shared without saying so}}
    plan.attention %q, %k, %k to %o scale(0.125) {schedule.attention = #schedule.attention<rows(4) keys(128) stages(2) shared(true)>} : !few, !k, !k to !few
    return
  }
}

// -----

// What blocks share has two groups of queries.
!q = memref<2x4x256x64xbf16, strided<[65536, 16384, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q) attributes {plan.kernel} {
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2) shared(true)>} : !q, !q, !q to !q
    // expected-error @+1 {{a block takes 128 queries, not 192}}
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(192) keys(128) stages(2) shared(true)>} : !q, !q, !q to !q
    return
  }
}

// -----

// A gradient: what is right.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
!l = memref<2x4x64xf32, strided<[256, 64, 1]>>
!w = memref<2x4x192x67xf32, strided<[51456, 12864, 67, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %l: !l, %dq: !q, %dk: !q, %dv: !q, %w: !w) attributes {plan.kernel} {
    plan.attention_grad %q, %q, %q, %q, %q, %l to %dq, %dk, %dv by %w scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2) finish(true)>}
        : !q, !q, !q, !q, !q, !l, !q, !q, !q, !w
    return
  }
}

// -----

// Blocks share no tiles of it.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
!l = memref<2x4x64xf32, strided<[256, 64, 1]>>
!w = memref<2x4x192x67xf32, strided<[51456, 12864, 67, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %l: !l, %dq: !q, %dk: !q, %dv: !q, %w: !w) attributes {plan.kernel} {
    // expected-error @+1 {{blocks share no tiles of a gradient}}
    plan.attention_grad %q, %q, %q, %q, %q, %l to %dq, %dk, %dv by %w scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2) shared(true) finish(true)>}
        : !q, !q, !q, !q, !q, !l, !q, !q, !q, !w
    return
  }
}

// -----

// Fewer queries.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
!l = memref<2x4x64xf32, strided<[256, 64, 1]>>
!w = memref<2x4x192x67xf32, strided<[51456, 12864, 67, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %l: !l, %dq: !q, %dk: !q, %dv: !q, %w: !w) attributes {plan.kernel} {
    plan.attention_grad %q, %q, %q, %q, %q, %l to %dq, %dk, %dv by %w scale(0.125) {schedule.attention = #schedule.attention<rows(64) keys(128) stages(3) finish(true)>}
        : !q, !q, !q, !q, !q, !l, !q, !q, !q, !w
    return
  }
}

// -----

// Queries.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
!l = memref<2x4x64xf32, strided<[256, 64, 1]>>
!w = memref<2x4x192x67xf32, strided<[51456, 12864, 67, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %l: !l, %dq: !q, %dk: !q, %dv: !q, %w: !w) attributes {plan.kernel} {
    // expected-error @+1 {{a block takes 64 queries or 128 at a time, not 192}}
    plan.attention_grad %q, %q, %q, %q, %q, %l to %dq, %dk, %dv by %w scale(0.125) {schedule.attention = #schedule.attention<rows(192) keys(128) stages(2) finish(true)>}
        : !q, !q, !q, !q, !q, !l, !q, !q, !q, !w
    return
  }
}

// -----

// Queries of wide heads.
!q = memref<2x4x64x128xbf16, strided<[32768, 8192, 128, 1]>>
!l = memref<2x4x64xf32, strided<[256, 64, 1]>>
!w = memref<2x4x192x131xf32, strided<[100608, 25152, 131, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %l: !l, %dq: !q, %dk: !q, %dv: !q, %w: !w) attributes {plan.kernel} {
    // expected-error @+1 {{a block takes 64 queries at a time, not 128}}
    plan.attention_grad %q, %q, %q, %q, %q, %l to %dq, %dk, %dv by %w scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2) finish(true)>}
        : !q, !q, !q, !q, !q, !l, !q, !q, !q, !w
    return
  }
}

// -----

// Keys.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
!l = memref<2x4x64xf32, strided<[256, 64, 1]>>
!w = memref<2x4x192x67xf32, strided<[51456, 12864, 67, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %l: !l, %dq: !q, %dk: !q, %dv: !q, %w: !w) attributes {plan.kernel} {
    // expected-error @+1 {{a block takes 128 keys, not 64}}
    plan.attention_grad %q, %q, %q, %q, %q, %l to %dq, %dk, %dv by %w scale(0.125) {schedule.attention = #schedule.attention<rows(64) keys(64) stages(2) finish(true)>}
        : !q, !q, !q, !q, !q, !l, !q, !q, !q, !w
    return
  }
}

// -----

// Stages.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
!l = memref<2x4x64xf32, strided<[256, 64, 1]>>
!w = memref<2x4x192x67xf32, strided<[51456, 12864, 67, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %l: !l, %dq: !q, %dk: !q, %dv: !q, %w: !w) attributes {plan.kernel} {
    // expected-error @+1 {{there are 2 or 3 stages of queries and gradients, not 4}}
    plan.attention_grad %q, %q, %q, %q, %q, %l to %dq, %dk, %dv by %w scale(0.125) {schedule.attention = #schedule.attention<rows(64) keys(128) stages(4) finish(true)>}
        : !q, !q, !q, !q, !q, !l, !q, !q, !q, !w
    return
  }
}

// -----

// What blocks leave to a kernel behind them.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
!l = memref<2x4x64xf32, strided<[256, 64, 1]>>
!w = memref<2x4x192x67xf32, strided<[51456, 12864, 67, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %l: !l, %dq: !q, %dk: !q, %dv: !q, %w: !w) attributes {plan.kernel} {
    // expected-error @+1 {{a kernel must finish what its blocks sum}}
    plan.attention_grad %q, %q, %q, %q, %q, %l to %dq, %dk, %dv by %w scale(0.125) {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2)>}
        : !q, !q, !q, !q, !q, !l, !q, !q, !q, !w
    return
  }
}

// -----

// Of a causal one the last tile of keys writes the gradient of queries.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
!l = memref<2x4x64xf32, strided<[256, 64, 1]>>
!w = memref<2x4x192x67xf32, strided<[51456, 12864, 67, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %l: !l, %dq: !q, %dk: !q, %dv: !q, %w: !w) attributes {plan.kernel} {
    // expected-error @+1 {{its blocks leave nothing to finish}}
    plan.attention_grad %q, %q, %q, %q, %q, %l to %dq, %dk, %dv by %w scale(0.125) causal {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2) finish(true)>}
        : !q, !q, !q, !q, !q, !l, !q, !q, !q, !w
    return
  }
}

// -----

// Not so of 96 columns.
!q = memref<2x4x64x96xbf16, strided<[24576, 6144, 96, 1]>>
!l = memref<2x4x64xf32, strided<[256, 64, 1]>>
!w = memref<2x4x192x67xf32, strided<[51456, 12864, 67, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %l: !l, %dq: !q, %dk: !q, %dv: !q, %w: !w) attributes {plan.kernel} {
    // expected-error @+1 {{a kernel must finish what its blocks sum}}
    plan.attention_grad %q, %q, %q, %q, %q, %l to %dq, %dk, %dv by %w scale(0.125) causal {schedule.attention = #schedule.attention<rows(64) keys(128) stages(3)>}
        : !q, !q, !q, !q, !q, !l, !q, !q, !q, !w
    return
  }
}

// -----

// Forward there is none.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %o: !q) attributes {plan.kernel} {
    // expected-error @+1 {{a kernel finishes gradients alone}}
    plan.attention %q, %q, %q to %o scale(0.125) {schedule.attention = #schedule.attention<rows(192) keys(128) stages(2) finish(true)>} : !q, !q, !q to !q
    return
  }
}

// -----

// Functions that agree.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
!l = memref<2x4x64xf32, strided<[256, 64, 1]>>
!w = memref<2x4x192x71xf32, strided<[54528, 13632, 71, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %l: !l, %dq: !q, %dk: !q, %dv: !q, %w: !w) attributes {plan.kernel} {
    plan.attention_grad %q, %q, %q, %q, %q, %l to %dq, %dk, %dv by %w scale(0.125) {schedule.attention = #schedule.attention<rows(64) keys(128) stages(3) finish(true)>}
        : !q, !q, !q, !q, !q, !l, !q, !q, !q, !w
      score_mod (%s: f32, %b: index, %h: index, %i: index, %j: index) {
        %c = arith.constant 2.0 : f32
        %0 = arith.mulf %s, %c {schedule.role = #schedule.role<inner_scale>} : f32
        %1 = math.tanh %0 : f32
        tv.yield %1 : f32
      }
      score_grad (%s: f32, %dy: f32, %b: index, %h: index, %i: index, %j: index) {
        %c = arith.constant 2.0 : f32
        %0 = arith.mulf %s, %c {schedule.role = #schedule.role<inner_scale>} : f32
        %1 = math.tanh %0 : f32
        %2 = arith.mulf %dy, %1 : f32
        tv.yield %2 : f32
      }
    return
  }
}

// -----

// An inner scale of one function alone.
!q = memref<2x4x64x64xbf16, strided<[16384, 4096, 64, 1]>>
!l = memref<2x4x64xf32, strided<[256, 64, 1]>>
!w = memref<2x4x192x71xf32, strided<[54528, 13632, 71, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %l: !l, %dq: !q, %dk: !q, %dv: !q, %w: !w) attributes {plan.kernel} {
    // expected-error @+1 {{has an inner scale in one of its functions alone}}
    plan.attention_grad %q, %q, %q, %q, %q, %l to %dq, %dk, %dv by %w scale(0.125) {schedule.attention = #schedule.attention<rows(64) keys(128) stages(3) finish(true)>}
        : !q, !q, !q, !q, !q, !l, !q, !q, !q, !w
      score_mod (%s: f32, %b: index, %h: index, %i: index, %j: index) {
        %c = arith.constant 2.0 : f32
        %0 = arith.mulf %s, %c {schedule.role = #schedule.role<inner_scale>} : f32
        %1 = math.tanh %0 : f32
        tv.yield %1 : f32
      }
      score_grad (%s: f32, %dy: f32, %b: index, %h: index, %i: index, %j: index) {
        %c = arith.constant 2.0 : f32
        %0 = arith.mulf %s, %c : f32
        %1 = math.tanh %0 : f32
        %2 = arith.mulf %dy, %1 : f32
        tv.yield %2 : f32
      }
    return
  }
}

// -----

// On what is no attention.
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k() attributes {plan.kernel} {
    // expected-error @+1 {{is no product or attention of a kernel's body, to have tiles}}
    %c0 = arith.constant {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2)>} 0 : index
    return
  }
}

// -----

// Tiles that do not divide the blocks of a block mask.
!q = memref<2x4x256x128xbf16, strided<[131072, 32768, 128, 1]>>
!bm = memref<2x3xi8>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %bm: !bm, %o: !q) attributes {plan.kernel} {
    // expected-error@+1 {{tiles of 80 keys do not divide the block mask's blocks of 128}}
    plan.attention %q, %q, %q to %o scale(0.125) blocks [128, 128] {schedule.attention = #schedule.attention<rows(128) keys(80) stages(2)>} : !q, !q, !q to !q
      block_mod (%b: index, %h: index, %qi: index, %ki: index) {
        %k = memref.load %bm[%b, %h] : !bm
        tv.yield %k : i8
      }
    return
  }
}

// -----

// Walks have steps of 64 queries.
!q = memref<2x4x256x64xbf16, strided<[65536, 16384, 64, 1]>>
!l = memref<2x4x256xf32>
!s = memref<2x4x384x67xf32>
!w = memref<1x1x2x26xi32>
!bm = memref<2x2xi8>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%q: !q, %l: !l, %s: !s, %w: !w, %bm: !bm, %o: !q) attributes {plan.kernel} {
    // expected-error@+1 {{a block takes 64 queries at a time, not 128}}
    plan.attention_grad %q, %q, %q, %q, %q, %l to %o, %o, %o by %s scale(0.125) blocks [128, 128] walks %w {schedule.attention = #schedule.attention<rows(128) keys(128) stages(2) finish(true)>} : !q, !q, !q, !q, !q, !l, !q, !q, !q, !s, !w
      block_mod (%b: index, %h: index, %qi: index, %ki: index) {
        %k = memref.load %bm[%b, %h] : !bm
        tv.yield %k : i8
      }
      walk_mod (%b: index, %h: index, %qi: index, %ki: index) {
        tv.yield %b : index
      }
    return
  }
}
