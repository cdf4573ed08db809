// Runs of rows: a schedule that was edited by hand is legal, or an error at the op.
// RUN: tessera-opt %s --split-input-file --verify-diagnostics --cuda-verify-schedule -o /dev/null

// What is right.
!m = memref<400x256xf32, strided<[?, 1], offset: ?>>
!p = memref<134x256xf32, strided<[?, 1], offset: ?>>
!t = memref<400xindex, strided<[1], offset: ?>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m, %sum: !p, %more: !p, %t: !t) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %runs = arith.constant 134 : index
    %rows = arith.constant 400 : index
    %columns = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    scf.parallel (%run) = (%c0) to (%runs) step (%c1) {
      scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
        memref.store %zero, %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
        memref.store %zero, %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
        scf.reduce
      }
      %first = arith.muli %run, %c3 : index
      %left = arith.subi %rows, %first : index
      %count = arith.minui %c3, %left : index
      scf.for %i = %c0 to %count step %c1 {
        %r = arith.addi %first, %i : index
        %total = scf.parallel (%j) = (%c0) to (%columns) step (%c1) init (%zero) -> f32 {
          %e = memref.load %x[%r, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
          %a = memref.load %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          %b = arith.addf %a, %e : f32
          memref.store %b, %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          scf.reduce(%e : f32) {
          ^bb0(%u: f32, %v: f32):
            %w = arith.addf %u, %v : f32
            scf.reduce.return %w : f32
          }
        }
        scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
          %e = memref.load %x[%r, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
          %f = arith.subf %e, %total : f32
          memref.store %f, %y[%r, %j] {schedule.role = #schedule.role<vector along 1>} : !m
          %a = memref.load %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
          %b = arith.maximumf %a, %f : f32
          memref.store %b, %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
          scf.reduce
        }
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<warps threads(128) items(4) shared(8192) as [<vectors(4) unroll(2) keep(ahead) if [<aligned 2, 1>, <aligned 3, 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// Two rows do not fit.
!m = memref<400x256xf32, strided<[?, 1], offset: ?>>
!p = memref<134x256xf32, strided<[?, 1], offset: ?>>
!t = memref<400xindex, strided<[1], offset: ?>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m, %sum: !p, %more: !p, %t: !t) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %runs = arith.constant 134 : index
    %rows = arith.constant 400 : index
    %columns = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
// expected-error @+1 {{what is kept needs 8192 bytes of shared memory, not 4096}}
    scf.parallel (%run) = (%c0) to (%runs) step (%c1) {
      scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
        memref.store %zero, %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
        memref.store %zero, %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
        scf.reduce
      }
      %first = arith.muli %run, %c3 : index
      %left = arith.subi %rows, %first : index
      %count = arith.minui %c3, %left : index
      scf.for %i = %c0 to %count step %c1 {
        %r = arith.addi %first, %i : index
        %total = scf.parallel (%j) = (%c0) to (%columns) step (%c1) init (%zero) -> f32 {
          %e = memref.load %x[%r, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
          %a = memref.load %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          %b = arith.addf %a, %e : f32
          memref.store %b, %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          scf.reduce(%e : f32) {
          ^bb0(%u: f32, %v: f32):
            %w = arith.addf %u, %v : f32
            scf.reduce.return %w : f32
          }
        }
        scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
          %e = memref.load %x[%r, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
          %f = arith.subf %e, %total : f32
          memref.store %f, %y[%r, %j] {schedule.role = #schedule.role<vector along 1>} : !m
          %a = memref.load %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
          %b = arith.maximumf %a, %f : f32
          memref.store %b, %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
          scf.reduce
        }
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<warps threads(128) items(4) shared(4096) as [<vectors(4) unroll(2) keep(ahead) if [<aligned 2, 1>, <aligned 3, 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// Where a row is, is known when it begins.
!m = memref<400x256xf32, strided<[?, 1], offset: ?>>
!p = memref<134x256xf32, strided<[?, 1], offset: ?>>
!t = memref<400xindex, strided<[1], offset: ?>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m, %sum: !p, %more: !p, %t: !t) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %runs = arith.constant 134 : index
    %rows = arith.constant 400 : index
    %columns = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    scf.parallel (%run) = (%c0) to (%runs) step (%c1) {
      scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
        memref.store %zero, %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
        memref.store %zero, %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
        scf.reduce
      }
      %first = arith.muli %run, %c3 : index
      %left = arith.subi %rows, %first : index
      %count = arith.minui %c3, %left : index
      scf.for %i = %c0 to %count step %c1 {
        %r = arith.addi %first, %i : index
      %at = memref.load %t[%r] : !t
        %total = scf.parallel (%j) = (%c0) to (%columns) step (%c1) init (%zero) -> f32 {
// expected-error @+1 {{is not known before the row begins, to be loaded ahead}}
          %e = memref.load %x[%at, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
          %a = memref.load %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          %b = arith.addf %a, %e : f32
          memref.store %b, %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          scf.reduce(%e : f32) {
          ^bb0(%u: f32, %v: f32):
            %w = arith.addf %u, %v : f32
            scf.reduce.return %w : f32
          }
        }
        scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
          %e = memref.load %x[%at, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
          %f = arith.subf %e, %total : f32
          memref.store %f, %y[%r, %j] {schedule.role = #schedule.role<vector along 1>} : !m
          %a = memref.load %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
          %b = arith.maximumf %a, %f : f32
          memref.store %b, %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
          scf.reduce
        }
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<warps threads(128) items(4) shared(8192) as [<vectors(4) unroll(2) keep(ahead) if [<aligned 2, 1>, <aligned 3, 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// Two sums of one number.
!m = memref<400x256xf32, strided<[?, 1], offset: ?>>
!p = memref<134x256xf32, strided<[?, 1], offset: ?>>
!t = memref<400xindex, strided<[1], offset: ?>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m, %sum: !p, %more: !p, %t: !t) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %runs = arith.constant 134 : index
    %rows = arith.constant 400 : index
    %columns = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    scf.parallel (%run) = (%c0) to (%runs) step (%c1) {
      scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
        memref.store %zero, %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
// expected-error @+1 {{is summed along dimension 1, by a number of its own}}
        memref.store %zero, %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
        scf.reduce
      }
      %first = arith.muli %run, %c3 : index
      %left = arith.subi %rows, %first : index
      %count = arith.minui %c3, %left : index
      scf.for %i = %c0 to %count step %c1 {
        %r = arith.addi %first, %i : index
        %total = scf.parallel (%j) = (%c0) to (%columns) step (%c1) init (%zero) -> f32 {
          %e = memref.load %x[%r, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
          %a = memref.load %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          %b = arith.addf %a, %e : f32
          memref.store %b, %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          scf.reduce(%e : f32) {
          ^bb0(%u: f32, %v: f32):
            %w = arith.addf %u, %v : f32
            scf.reduce.return %w : f32
          }
        }
        scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
          %e = memref.load %x[%r, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
          %f = arith.subf %e, %total : f32
          memref.store %f, %y[%r, %j] {schedule.role = #schedule.role<vector along 1>} : !m
          %a = memref.load %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          %b = arith.maximumf %a, %f : f32
          memref.store %b, %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          scf.reduce
        }
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<warps threads(128) items(4) shared(8192) as [<vectors(4) unroll(2) keep(ahead) if [<aligned 2, 1>, <aligned 3, 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// An access without the role.
!m = memref<400x256xf32, strided<[?, 1], offset: ?>>
!p = memref<134x256xf32, strided<[?, 1], offset: ?>>
!t = memref<400xindex, strided<[1], offset: ?>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m, %sum: !p, %more: !p, %t: !t) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %runs = arith.constant 134 : index
    %rows = arith.constant 400 : index
    %columns = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    scf.parallel (%run) = (%c0) to (%runs) step (%c1) {
      scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
        memref.store %zero, %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
        memref.store %zero, %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
        scf.reduce
      }
      %first = arith.muli %run, %c3 : index
      %left = arith.subi %rows, %first : index
      %count = arith.minui %c3, %left : index
      scf.for %i = %c0 to %count step %c1 {
        %r = arith.addi %first, %i : index
        %total = scf.parallel (%j) = (%c0) to (%columns) step (%c1) init (%zero) -> f32 {
          %e = memref.load %x[%r, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
          %a = memref.load %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          %b = arith.addf %a, %e : f32
          memref.store %b, %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          scf.reduce(%e : f32) {
          ^bb0(%u: f32, %v: f32):
            %w = arith.addf %u, %v : f32
            scf.reduce.return %w : f32
          }
        }
        scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
          %e = memref.load %x[%r, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
          %f = arith.subf %e, %total : f32
          memref.store %f, %y[%r, %j] {schedule.role = #schedule.role<vector along 1>} : !m
// expected-error @+1 {{accesses what another op has as #schedule.role<summed along 1 as 1>}}
          %a = memref.load %more[%run, %j] : !p
          %b = arith.maximumf %a, %f : f32
          memref.store %b, %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
          scf.reduce
        }
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<warps threads(128) items(4) shared(8192) as [<vectors(4) unroll(2) keep(ahead) if [<aligned 2, 1>, <aligned 3, 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// Memory that is loaded outside of stages, too.
!m = memref<400x256xf32, strided<[?, 1], offset: ?>>
!p = memref<134x256xf32, strided<[?, 1], offset: ?>>
!t = memref<400xindex, strided<[1], offset: ?>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m, %sum: !p, %more: !p, %t: !t) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %runs = arith.constant 134 : index
    %rows = arith.constant 400 : index
    %columns = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    scf.parallel (%run) = (%c0) to (%runs) step (%c1) {
      scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
// expected-error @+1 {{is no sum of columns over a run of rows: what stages alone access, in each iteration the same element, and one before the rows sets}}
        memref.store %zero, %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
        memref.store %zero, %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
        scf.reduce
      }
      %first = arith.muli %run, %c3 : index
      %left = arith.subi %rows, %first : index
      %count = arith.minui %c3, %left : index
      scf.for %i = %c0 to %count step %c1 {
        %r = arith.addi %first, %i : index
        %total = scf.parallel (%j) = (%c0) to (%columns) step (%c1) init (%zero) -> f32 {
          %e = memref.load %x[%r, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
          %a = memref.load %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          %b = arith.addf %a, %e : f32
          memref.store %b, %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          scf.reduce(%e : f32) {
          ^bb0(%u: f32, %v: f32):
            %w = arith.addf %u, %v : f32
            scf.reduce.return %w : f32
          }
        }
        scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
          %e = memref.load %x[%r, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
          %f = arith.subf %e, %total : f32
          memref.store %f, %y[%r, %j] {schedule.role = #schedule.role<vector along 1>} : !m
          %a = memref.load %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
          %b = arith.maximumf %a, %f : f32
          memref.store %b, %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
          scf.reduce
        }
        %o = memref.load %sum[%run, %i] : !p
        memref.store %o, %y[%i, %i] : !m
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<warps threads(128) items(4) shared(8192) as [<vectors(4) unroll(2) keep(ahead) if [<aligned 2, 1>, <aligned 3, 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// What is summed without registers may lie anywhere; in vectors it is aligned.
!m = memref<400x256xf32, strided<[?, 1], offset: ?>>
!p = memref<134x256xf32, strided<[?, 1], offset: ?>>
!t = memref<400xindex, strided<[1], offset: ?>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !m, %sum: !p, %more: !p, %t: !t) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %runs = arith.constant 134 : index
    %rows = arith.constant 400 : index
    %columns = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    scf.parallel (%run) = (%c0) to (%runs) step (%c1) {
      scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
        memref.store %zero, %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
// expected-error @+1 {{vectors of 4 need <aligned 3, 1> of this access among the conditions}}
        memref.store %zero, %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
        scf.reduce
      }
      %first = arith.muli %run, %c3 : index
      %left = arith.subi %rows, %first : index
      %count = arith.minui %c3, %left : index
      scf.for %i = %c0 to %count step %c1 {
        %r = arith.addi %first, %i : index
        %total = scf.parallel (%j) = (%c0) to (%columns) step (%c1) init (%zero) -> f32 {
          %e = memref.load %x[%r, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
          %a = memref.load %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          %b = arith.addf %a, %e : f32
          memref.store %b, %sum[%run, %j] {schedule.role = #schedule.role<summed along 1 as 0>} : !p
          scf.reduce(%e : f32) {
          ^bb0(%u: f32, %v: f32):
            %w = arith.addf %u, %v : f32
            scf.reduce.return %w : f32
          }
        }
        scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
          %e = memref.load %x[%r, %j] {schedule.role = #schedule.role<kept along 1 as 0>} : !m
          %f = arith.subf %e, %total : f32
          memref.store %f, %y[%r, %j] {schedule.role = #schedule.role<vector along 1>} : !m
          %a = memref.load %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
          %b = arith.maximumf %a, %f : f32
          memref.store %b, %more[%run, %j] {schedule.role = #schedule.role<summed along 1 as 1>} : !p
          scf.reduce
        }
      }
      scf.reduce
    } {schedule.loop = #schedule.loop<warps threads(128) items(4) shared(8192) as [<vectors(4) unroll(2) keep(ahead) if [<aligned 2, 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}

// -----

// Rows that are no run have no row before.
!m = memref<400x256xf32, strided<[?, 1], offset: ?>>
!v = memref<400xf32, strided<[1], offset: ?>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  func.func private @k(%x: !m, %y: !v) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %rows = arith.constant 400 : index
    %columns = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    // expected-error @+1 {{only runs of rows are kept ahead}}
    scf.parallel (%i) = (%c0) to (%rows) step (%c1) {
      %s = scf.parallel (%j) = (%c0) to (%columns) step (%c1) init (%zero) -> f32 {
        %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !m
        scf.reduce(%e : f32) {
        ^bb0(%u: f32, %v: f32):
          %w = arith.addf %u, %v : f32
          scf.reduce.return %w : f32
        }
      }
      memref.store %s, %y[%i] : !v
      scf.reduce
    } {schedule.loop = #schedule.loop<warps threads(128) items(4) as [<vectors(4) unroll(2) keep(ahead) if [<aligned 0, 1>]>, <vectors(1) unroll(4)>]>}
    return
  }
}
