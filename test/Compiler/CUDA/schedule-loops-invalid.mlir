// A loop, its instances and their vectors: a schedule that was edited by hand is
// legal, or an error at the op.
// RUN: tessera-opt %s --split-input-file --verify-diagnostics --cuda-verify-schedule -o /dev/null

// What is right.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// Threads and items.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{a block has a multiple of 32 threads, at most 1024, not 250}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(250) items(1024) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{a block has a multiple of 32 threads, at most 1024, not 2048}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(2048) items(1024) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_89">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{a multiprocessor has 1536 threads, for 1 resident blocks}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(1024) items(1024) resident(2) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{a block has at least one item}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(0) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{shared memory is for the rows of blocks}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) shared(64) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// Forms.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{rows have parallel loops inside, points and squares have none}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<blocks threads(256) as [<vectors(1) unroll(1)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{a loop in parallel is not one thread's, and another op of a kernel's body is}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      scf.reduce
    } {schedule.loop = #schedule.loop<thread threads(1)>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{squares have 128 threads, a side of 32, 64 or 128 and one of the dimensions before the last across}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<squares threads(128) items(1024) side(33) across(0) as [<vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{squares have tiles, in at most 49152 bytes}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<squares threads(128) items(1024) side(32) across(0) as [<vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{has no schedule; cuda-schedule gives it one}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      scf.reduce
    }
    return
  }
}

// -----

// Instances.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{the last instance, and no other, runs without conditions}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{vectors have 1, 2, 4 or 8 elements, not 3}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [<vectors(3) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{1 to 64 chunks are unrolled, not 0}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(0)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{there is nothing to test for #schedule.condition<aligned 2, 1>}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 2, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{there is nothing to test for #schedule.condition<stage_multiple 0>}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [<vectors(4) unroll(1) if [<stage_multiple 0>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{only rows of warps and blocks are kept, and in shared memory those of blocks}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [<vectors(4) unroll(1) keep(registers) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// Bounds and alignment.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    // expected-error @+1 {{vectors of 4 need an extent that is a multiple of it, by its value or a condition}}
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [<vectors(4) unroll(1) if [<aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      // expected-error @+1 {{vectors of 4 need <aligned 1, 1> of this access among the conditions}}
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// The lane is another index, or there are two, or the memory changes.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      // expected-error @+1 {{is no access of all lanes along dimension 0}}
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 0>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      // expected-error @+1 {{is no access of all lanes along dimension 1: that index, and no other, must be the lane}}
      %e = memref.load %x[%j, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %o = arith.constant 1.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      // expected-error @+1 {{of an argument that nothing else in the loop stores or loads}}
      memref.store %o, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %o, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      // expected-error @+1 {{of an argument that nothing else in the loop stores}}
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %x[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}
