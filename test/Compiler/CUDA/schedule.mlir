// How loops are scheduled, and that what is scheduled computes the same.
// RUN: tessera-opt %s --cuda-schedule --cuda-verify-schedule | FileCheck %s
// RUN: tessera-opt %s --cuda-schedule | tessera-opt --cuda-schedule --cuda-verify-schedule | FileCheck %s
// RUN: tessera-opt %s --cuda-schedule | tessera-opt --emit-bytecode | tessera-opt | FileCheck %s

!v = memref<?xf32, strided<[1]>>
!m = memref<?x?xf32, strided<[?, 1]>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  // What holds for all lanes is done once: again before the loads whose addresses
  // need it. In a branch that all lanes take, accesses are vectors, too.
  // CHECK-LABEL: @once
  func.func private @once(%x: !m, %t: memref<?xindex, strided<[1]>>, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i, %j) = (%c0, %c0) to (%n, %m) step (%c1, %c1) {
      // CHECK: arith.addi %{{.*}} {schedule.role = #schedule.role<address>}
      %k = arith.addi %i, %c1 : index
      // CHECK-NEXT: memref.load %{{.*}} {schedule.role = #schedule.role<read>}
      %row = memref.load %t[%k] : memref<?xindex, strided<[1]>>
      // CHECK-NEXT: arith.cmpi ult, %{{.*}} {schedule.role = #schedule.role<address>}
      %in = arith.cmpi ult, %row, %n : index
      // CHECK-NEXT: arith.uitofp %{{.*}} {schedule.role = #schedule.role<once>}
      %b = arith.uitofp %in : i1 to f32
      // CHECK-NEXT: memref.load %{{.*}} {schedule.role = #schedule.role<ahead>}
      %a = memref.load %t[%c8] : memref<?xindex, strided<[1]>>
      // CHECK-NEXT: scf.if
      %e = scf.if %in -> f32 {
        // CHECK-NEXT: memref.load %{{.*}} {schedule.role = #schedule.role<vector along 1>}
        %l = memref.load %x[%row, %j] : !m
        // CHECK-NEXT: scf.yield
        scf.yield %l : f32
      } else {
        scf.yield %b : f32
      }
      // A division that the branch guards may trap: it stays there.
      // CHECK: scf.if
      %q = scf.if %in -> index {
        // CHECK-NEXT: arith.divui %{{[^{]*}} : index
        %d = arith.divui %n, %row : index
        scf.yield %d : index
      } else {
        scf.yield %a : index
      }
      %f = arith.index_cast %q : index to i32
      %g = arith.sitofp %f : i32 to f32
      %s = arith.mulf %e, %g : f32
      // CHECK: memref.store %{{.*}} {schedule.role = #schedule.role<vector along 1>}
      memref.store %s, %y[%i, %j] : !m
      scf.reduce
    // CHECK: #schedule.loop<points threads(256) items(4096) as [<vectors(4) unroll(4) if [<multiple 1>, <aligned 0, 1>, <aligned 2, 1>]>, <vectors(1) unroll(4)>]>
    }
    return
  }

  // Random numbers of neighbours follow each other. The first of `%m` is needed for
  // them alone, that of `%k` for each lane, too.
  // CHECK-LABEL: @randoms
  func.func private @randoms(%y: !v, %seed: i64, %stream: i64) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
      // CHECK: arith.addi %{{.*}} {schedule.role = #schedule.role<counts along 0>}
      %k = arith.addi %i, %c64 : index
      // CHECK-NEXT: arith.addi %{{.*}} {schedule.role = #schedule.role<first along 1>}
      %m = arith.addi %c1, %k : index
      // CHECK-NEXT: plan.random %{{.*}} {schedule.role = #schedule.role<randoms>}
      %r = plan.random %m seed %seed stream %stream
      %w = arith.index_cast %k : index to i32
      %f = arith.sitofp %w : i32 to f32
      %s = arith.mulf %r, %f : f32
      memref.store %s, %y[%i] : !v
      scf.reduce
    }
    return
  }

  // What goes in order is one thread's.
  // CHECK-LABEL: @thread
  func.func private @thread(%y: !v) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = memref.dim %y, %c0 : !v
    %zero = arith.constant 0.0 : f32
    // CHECK: memref.store %{{.*}} {schedule.loop = #schedule.loop<thread threads(1)>}
    memref.store %zero, %y[%c0] : !v
    // CHECK: scf.for
    scf.for %i = %c0 to %n step %c1 {
      memref.store %zero, %y[%i] : !v
    // CHECK: } {schedule.loop = #schedule.loop<thread threads(1)>}
    }
    return
  }

  // What a row stores and loads again goes by turns. A dynamic row is kept if it
  // is short, and then what is not kept is loaded late.
  // CHECK-LABEL: @turns
  func.func private @turns(%x: !m, %w: !m, %s: !v, %y: !m) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : !m
    %m = memref.dim %x, %c1 : !m
    scf.parallel (%i) = (%c0) to (%n) step (%c1) {
      %sum = scf.parallel (%j) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
        // CHECK: memref.load %{{.*}} {schedule.role = #schedule.role<kept along 1 as 0>}
        %e = memref.load %x[%i, %j] : !m
        scf.reduce(%e : f32) {
        ^bb0(%a: f32, %b: f32):
          %c = arith.addf %a, %b : f32
          scf.reduce.return %c : f32
        }
      }
      // CHECK: memref.store %{{.*}} {schedule.sync}
      memref.store %sum, %s[%i] : !v
      %again = memref.load %s[%i] : !v
      scf.parallel (%j) = (%c0) to (%m) step (%c1) {
        // CHECK: memref.load %{{.*}} {schedule.role = #schedule.role<kept along 1 as 0>}
        %e = memref.load %x[%i, %j] : !m
        // CHECK-NEXT: memref.load %{{.*}} {schedule.role = #schedule.role<late along 1>}
        %f = memref.load %w[%i, %j] : !m
        %g = arith.mulf %e, %f : f32
        %h = arith.mulf %g, %again : f32
        memref.store %h, %y[%i, %j] : !m
        scf.reduce
      }
      scf.reduce
    // CHECK: #schedule.loop<blocks threads(256) shared(16384) resident(6) as [<vectors(4) unroll(4) keep(shared) if [<stage_multiple 0>, <aligned 0, 1>, <aligned 1, 1>, <aligned 3, 1>, <stage_at_most 0, 4096>]>, <vectors(1) unroll(4)>]>
    }
    return
  }
}
