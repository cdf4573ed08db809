// What is done for all lanes at once: a schedule that was edited by hand is
// legal, or an error at the op.
// RUN: tessera-opt %s --split-input-file --verify-diagnostics --cuda-verify-schedule -o /dev/null

// What is done once.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %e = memref.load %x[%i, %j] : !m
      // expected-error @+1 {{is not the same for all lanes}}
      %s = arith.addf %e, %e {schedule.role = #schedule.role<once>} : f32
      memref.store %s, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
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
      // expected-error @+1 {{is not the same for all lanes}}
      %e = memref.load %y[%i, %i] {schedule.role = #schedule.role<read>} : !m
      memref.store %e, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
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
      // expected-error @+1 {{is not pure, to be done again: it is <read> or <ahead>}}
      %e = memref.load %x[%i, %i] {schedule.role = #schedule.role<once>} : !m
      memref.store %e, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
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
      // expected-error @+1 {{is not the same for all chunks}}
      %e = memref.load %x[%i, %i] {schedule.role = #schedule.role<ahead>} : !m
      memref.store %e, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
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
      %k = arith.addi %i, %c1 {schedule.role = #schedule.role<once>} : index
      // expected-error @+1 {{needs the result of 'arith.addi', which has no role in which it is there before}}
      %e = memref.load %x[%k, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      memref.store %e, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// A division that would trap, an access under a condition of its lane, one in a loop.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %in = arith.cmpi ult, %c1, %i {schedule.role = #schedule.role<once>} : index
      %q = scf.if %in -> index {
        // expected-error @+1 {{is not the same for all lanes}}
        %d = arith.divui %n, %i {schedule.role = #schedule.role<once>} : index
        scf.yield %d : index
      } else {
        scf.yield %c0 : index
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
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
      %in = arith.cmpi ult, %j, %i : index
      scf.if %in {
        // expected-error @+1 {{has a role under a condition that differs by lane, or in a loop}}
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
        memref.store %e, %y[%i, %j] : !m
      }
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
      scf.for %k = %c0 to %n step %c1 {
        // expected-error @+1 {{has a role under a condition that differs by lane, or in a loop}}
        %e = memref.load %x[%k, %j] {schedule.role = #schedule.role<vector along 1>} : !m
        memref.store %e, %y[%i, %j] : !m
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [<vectors(4) unroll(1) if [<multiple 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// Roles of another form.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      // expected-error @+1 {{only loads of stages are late}}
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<late along 1>} : !m
      memref.store %e, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
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
      // expected-error @+1 {{what is kept is loaded in each row: in stages, under no condition, by number}}
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
      memref.store %e, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
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
      // expected-error @+1 {{a tile is of squares, under no condition, of memory whose neighbours lie along the dimension across}}
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<tile along 1 as 0>} : !m
      memref.store %e, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
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
      // expected-error @+1 {{<lanes> is for ops outside of stages}}
      %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<lanes>} : !m
      memref.store %e, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
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
      // expected-error @+1 {{there is nothing to wait for: schedule.sync is for what a row's stages, and stores outside of them, store and load again}}
      memref.store %e, %y[%i, %j] {schedule.sync} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
    return
  }
}

// -----

// Random numbers.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m, %seed: i64) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      // expected-error @+1 {{its number does not grow by 1 each lane}}
      %e = plan.random %i seed %seed stream %seed {schedule.role = #schedule.role<randoms>}
      memref.store %e, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m, %seed: i64) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %k = arith.addi %j, %i : index
      // expected-error @+1 {{needs the result of 'arith.addi' for the first lane, which is <counts ...> or <first ...>}}
      %e = plan.random %k seed %seed stream %seed {schedule.role = #schedule.role<randoms>}
      memref.store %e, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m, %seed: i64) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      %k = arith.index_cast %j : index to i64
      // expected-error @+1 {{its seed or stream differs among lanes}}
      %e = plan.random %j seed %seed stream %k {schedule.role = #schedule.role<randoms>}
      memref.store %e, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
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
      // expected-error @+1 {{is needed for other lanes than the first}}
      %k = arith.addi %j, %i {schedule.role = #schedule.role<first along 0>} : index
      %e = memref.load %x[%i, %k] : !m
      memref.store %e, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
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
      // expected-error @+1 {{does not grow by 1 each lane as its operand 0}}
      %k = arith.muli %j, %j {schedule.role = #schedule.role<counts along 0>} : index
      %e = memref.load %x[%i, %k] : !m
      memref.store %e, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
    return
  }
}

// -----

// Attributes in other places, and of other kinds.
!m = memref<?x?xf32, strided<[?, 1]>>
!v = memref<?xf32, strided<[1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      // expected-error @+1 {{there is no attribute 'schedule.maybe'}}
      %e = memref.load %x[%i, %j] {schedule.maybe} : !m
      memref.store %e, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
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
      // expected-error @+1 {{schedule.role is a #schedule.role, not 3 : i64}}
      %e = memref.load %x[%i, %j] {schedule.role = 3} : !m
      memref.store %e, %y[%i, %j] : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
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
      %e = memref.load %x[%i, %j] : !m
      // expected-error @+1 {{only ops of a kernel's body have a schedule}}
      memref.store %e, %y[%i, %j] {schedule.loop = #schedule.loop<thread threads(1)>} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
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
      %e = memref.load %x[%i, %j] : !m
      // expected-error @+1 {{schedule.at_once is for stages}}
      memref.store %e, %y[%i, %j] {schedule.at_once = 4} : !m
      scf.reduce
    } {schedule.loop = #schedule.loop<points threads(256) items(256) as [<vectors(1) unroll(1)>]>}
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  // expected-error @+1 {{schedule.rounded is for kernels all of whose results have 16 bits}}
  func.func private @k(%y: !m) attributes {plan.kernel, schedule.rounded} {
    %c0 = arith.constant 0 : index
    %o = arith.constant 1.0 : f32
    memref.store %o, %y[%c0, %c0] {schedule.loop = #schedule.loop<thread threads(1)>} : !m
    return
  }
}

// -----

!m = memref<?x?xf32, strided<[?, 1]>>
module {
  // expected-error @+1 {{the program is planned for 'cpu', not for a GPU}}
  func.func private @k(%y: !m) attributes {plan.kernel} {
    return
  }
}
