// Rows, and what threads wait for: a schedule that was edited by hand is
// legal, or an error at the op.
// RUN: tessera-opt %s --split-input-file --verify-diagnostics --cuda-verify-schedule -o /dev/null

// Rows: what is right.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(16384) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// A row that is longer than what its threads keep.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      // expected-error @+1 {{a kept row has at most 4096 iterations, by its extents or a condition}}
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(16384) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <stage_at_most 0, 8192>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// Without memory.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{what is kept needs 16384 bytes of shared memory, not 8192}}
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(8192) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{a block has at most 232448 bytes of shared memory, not 262144}}
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(262144) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{only rows of warps and blocks are kept, and in shared memory those of blocks}}
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<warps threads(256) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <stage_at_most 0, 512>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// Another element under the same number.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        // expected-error @+1 {{is not what is kept as number 0}}
        %e = memref.load %w[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(16384) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <aligned 1, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        // expected-error @+1 {{what is kept is loaded in each row: in stages, under no condition, by number}}
        %e = memref.load %w[%i, %j] {schedule.role = #schedule.role<kept along 1 as 9223372036854775807>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(16384) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <aligned 1, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// Kept in a branch.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      %in = arith.cmpi ult, %i, %c1 : index
      scf.if %in {
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        // expected-error @+1 {{what is kept is loaded in each row: in stages, under no condition, by number}}
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(16384) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// Without the wait for what a row stores and loads again.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      // expected-error @+1 {{the row's threads must wait for what this stores, which is loaded again: schedule.sync}}
      memref.store %sum, %s[%i] : !v
      %f = memref.load %s[%i] : !v
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(16384) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      // expected-error @+1 {{the row's threads must wait for what this stores, which is loaded again: schedule.sync}}
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %l = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %l, %w[%i, %j] : !m
        %e = memref.load %w[%i, %j] : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(16384) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// Outside of stages.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      // expected-error @+1 {{has the role of a stage's op outside of stages}}
      %f = arith.addf %sum, %sum {schedule.role = #schedule.role<once>} : f32
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(16384) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      // expected-error @+1 {{does not differ by row}}
      %f = arith.addf %sum, %sum {schedule.role = #schedule.role<lanes>} : f32
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(16384) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// By columns, what differs by row is for each lane, and no barrier is under a
// condition that differs by thread.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %e = memref.load %x[%j, %i] : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      // expected-error @+1 {{differs by row, and is <lanes>}}
      memref.store %sum, %s[%i] : !v
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %f = memref.load %x[%j, %i] : !m
        memref.store %f, %y[%j, %i] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<columns threads(512) items(32) as [<vectors(1) unroll(8)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %e = memref.load %x[%j, %i] : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      %in = arith.cmpi ult, %i, %c1 {schedule.role = #schedule.role<lanes>} : index
      scf.if %in {
      // expected-error @+1 {{is a barrier under a condition that differs by thread: by columns, stages are under none}}
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %f = memref.load %x[%j, %i] : !m
        memref.store %f, %y[%j, %i] : !m
        scf.reduce
      }
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<columns threads(512) items(32) as [<vectors(1) unroll(8)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %e = memref.load %x[%j, %i] : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      %in = arith.cmpi ult, %i, %c1 {schedule.role = #schedule.role<lanes>} : index
      scf.if %in {
        // expected-error @+1 {{is a barrier under a condition that differs by thread}}
        memref.store %sum, %s[%i] {schedule.sync} : !v
      } {schedule.role = #schedule.role<lanes>}
      %g = memref.load %s[%i] {schedule.role = #schedule.role<lanes>} : !v
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %f = memref.load %x[%j, %i] : !m
        memref.store %f, %y[%j, %i] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<columns threads(512) items(32) as [<vectors(1) unroll(8)>]>}
    return
  }
}

// -----

// One-hots and pairs.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %l = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        // expected-error @+1 {{its number does not grow by 1 each lane}}
        %e = schedule.one_hot %l where %i is %c1 : f32, index, index
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(16384) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %l = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        // expected-error @+1 {{compares with what is not the same for all lanes}}
        %e = schedule.one_hot %l where %j is %j : f32, index, index
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(16384) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %l = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        // expected-error @+1 {{is what a stage sums, and nothing else}}
        %e = schedule.one_hot %l where %j is %i : f32, index, index
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.maximumf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(16384) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xbf16, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %l = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        // expected-error @+1 {{is what a stage takes the minimum of, and nothing else}}
        %e = schedule.pairs minimum %l : bf16
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.maximumf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(8192) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xbf16, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        %l = memref.load %x[%i, %j] : !m
        // expected-error @+1 {{compares elements of 16 bits of a load of all lanes of a row, under no condition}}
        %e = schedule.pairs maximum %l : bf16
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.maximumf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
        memref.store %e, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) shared(8192) resident(2) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

func.func @narrow(%x: f32, %i: i8) {
  // expected-error @+1 {{compares numbers of at least 32 bits, not}}
  %a = schedule.one_hot %x where %i is %i : f32, i8, i8
  return
}
