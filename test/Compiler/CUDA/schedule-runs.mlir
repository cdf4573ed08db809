// Runs of rows: sums of columns in registers, and each row loaded ahead.
// RUN: tessera-opt %s --cuda-schedule --cuda-verify-schedule | FileCheck %s
// RUN: tessera-opt %s --cuda-schedule | tessera-opt --cuda-schedule --cuda-verify-schedule | FileCheck %s

!m = memref<400x256xf32, strided<[?, 1], offset: ?>>
!p = memref<134x256xf32, strided<[?, 1], offset: ?>>
!t = memref<400xindex, strided<[1], offset: ?>>
module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
  // Rows that lie one behind another, in a warp's shared memory.
  // CHECK-LABEL: @runs
  func.func private @runs(%x: !m, %y: !m, %sum: !p, %more: !p, %t: !t) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %runs = arith.constant 134 : index
    %rows = arith.constant 400 : index
    %columns = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    // CHECK: scf.parallel
    // CHECK: scf.parallel
    // CHECK-NEXT: memref.store {{.*}} {schedule.role = #schedule.role<summed along 1 as 0>}
    // CHECK-NEXT: memref.store {{.*}} {schedule.role = #schedule.role<summed along 1 as 1>}
    // CHECK: scf.for
    // CHECK: memref.load %arg0{{.*}} {schedule.role = #schedule.role<kept along 1 as 0>}
    // CHECK-NEXT: memref.load %arg2{{.*}} {schedule.role = #schedule.role<summed along 1 as 0>}
    // CHECK-NEXT: arith.addf
    // CHECK-NEXT: memref.store %{{.*}}, %arg2{{.*}} {schedule.role = #schedule.role<summed along 1 as 0>}
    // CHECK: memref.load %arg0{{.*}} {schedule.role = #schedule.role<kept along 1 as 0>}
    // CHECK: memref.load %arg3{{.*}} {schedule.role = #schedule.role<summed along 1 as 1>}
    scf.parallel (%run) = (%c0) to (%runs) step (%c1) {
      scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
        memref.store %zero, %sum[%run, %j] : !p
        memref.store %zero, %more[%run, %j] : !p
        scf.reduce
      }
      %first = arith.muli %run, %c3 : index
      %left = arith.subi %rows, %first : index
      %count = arith.minui %c3, %left : index
      scf.for %i = %c0 to %count step %c1 {
        %r = arith.addi %first, %i : index
        %total = scf.parallel (%j) = (%c0) to (%columns) step (%c1) init (%zero) -> f32 {
          %e = memref.load %x[%r, %j] : !m
          %a = memref.load %sum[%run, %j] : !p
          %b = arith.addf %a, %e : f32
          memref.store %b, %sum[%run, %j] : !p
          scf.reduce(%e : f32) {
          ^bb0(%u: f32, %v: f32):
            %w = arith.addf %u, %v : f32
            scf.reduce.return %w : f32
          }
        }
        scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
          %e = memref.load %x[%r, %j] : !m
          %f = arith.subf %e, %total : f32
          memref.store %f, %y[%r, %j] : !m
          %a = memref.load %more[%run, %j] : !p
          %b = arith.maximumf %a, %f : f32
          memref.store %b, %more[%run, %j] : !p
          scf.reduce
        }
      }
      scf.reduce
    // CHECK: #schedule.loop<warps threads(128) items(4) shared(8192) as {{\[}}<vectors(4) unroll(2) keep(ahead) if {{\[}}<aligned 2, 1>, <aligned 3, 1>, <aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>
    }
    return
  }

  // Where a row is, is in memory itself: it is loaded when the row before is done.
  // CHECK-LABEL: @loaded
  func.func private @loaded(%x: !m, %y: !m, %sum: !p, %more: !p, %t: !t) attributes {plan.kernel} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %runs = arith.constant 134 : index
    %rows = arith.constant 400 : index
    %columns = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    // CHECK: scf.for
    // CHECK: memref.load %arg0{{.*}} {schedule.role = #schedule.role<kept along 1 as 0>}
    // CHECK-NEXT: memref.load %arg2{{.*}} {schedule.role = #schedule.role<summed along 1 as 0>}
    scf.parallel (%run) = (%c0) to (%runs) step (%c1) {
      scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
        memref.store %zero, %sum[%run, %j] : !p
        memref.store %zero, %more[%run, %j] : !p
        scf.reduce
      }
      %first = arith.muli %run, %c3 : index
      %left = arith.subi %rows, %first : index
      %count = arith.minui %c3, %left : index
      scf.for %i = %c0 to %count step %c1 {
        %r = arith.addi %first, %i : index
      %at = memref.load %t[%r] : !t
        %total = scf.parallel (%j) = (%c0) to (%columns) step (%c1) init (%zero) -> f32 {
          %e = memref.load %x[%at, %j] : !m
          %a = memref.load %sum[%run, %j] : !p
          %b = arith.addf %a, %e : f32
          memref.store %b, %sum[%run, %j] : !p
          scf.reduce(%e : f32) {
          ^bb0(%u: f32, %v: f32):
            %w = arith.addf %u, %v : f32
            scf.reduce.return %w : f32
          }
        }
        scf.parallel (%j) = (%c0) to (%columns) step (%c1) {
          %e = memref.load %x[%at, %j] : !m
          %f = arith.subf %e, %total : f32
          memref.store %f, %y[%r, %j] : !m
          %a = memref.load %more[%run, %j] : !p
          %b = arith.maximumf %a, %f : f32
          memref.store %b, %more[%run, %j] : !p
          scf.reduce
        }
      }
      scf.reduce
    // CHECK: #schedule.loop<warps threads(128) items(4) as {{.*}} keep(registers)
    }
    return
  }
}
