//===- Passes.td - the phase `scheduled` on GPUs -----------*- tablegen -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_TARGETS_CUDA_PASSES_TD
#define TESSERA_COMPILER_TARGETS_CUDA_PASSES_TD

include "mlir/Pass/PassBase.td"

def CUDASchedule : Pass<"cuda-schedule", "::mlir::func::FuncOp"> {
  let summary = "Says how the threads of a GPU run the loops of a kernel";
  let description = [{
    Each op of a kernel's body that becomes a device function gets a `#schedule.loop`,
    and what is in it roles (dialects/Schedule.md). The text of kernels is a
    transcription of them.

    - A loop without parallel loops inside is `points`, with vectors of up to 16
      bytes and as many chunks at a time as loads have registers for. Where a load's
      neighbours lie along another dimension of the loop, it is `squares`.
    - A loop with stages is over rows: of up to 1024 iterations those are a `warps`
      one, longer ones a `blocks`; where more accesses have their neighbours in
      neighbouring rows it is `columns`. What several stages load is kept in shared
      memory or in registers if there is room, and then the rest is loaded late.
    - A matrix product of our own gets the tiles that leave the fewest multiprocessors
      idle at the end: a `#schedule.product`.
    - An attention or its gradient gets the tiles that there are registers and shared
      memory for, a `#schedule.attention`. What its functions load for a query or a key
      alone is loaded once, and constant factors around a score are the kernel's.
    - A sum of what a `select` leaves of one iteration becomes a `schedule.one_hot`,
      the maximum or minimum of small floats `schedule.pairs`.

    ```mlir
    !x = memref<?x64xf32, strided<[64, 1]>>
    module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
      func.func private @map_0(%x: !x, %y: !x) attributes {plan.kernel} {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c64 = arith.constant 64 : index
        %n = memref.dim %x, %c0 : !x
        scf.parallel (%i, %j) = (%c0, %c0) to (%n, %c64) step (%c1, %c1) {
          %e = memref.load %x[%i, %j] : !x
          %s = arith.mulf %e, %e : f32
          memref.store %s, %y[%i, %j] : !x
          scf.reduce
        }
        return
      }
    }
    ```

    becomes

    ```mlir
    !x = memref<?x64xf32, strided<[64, 1]>>
    module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
      func.func private @map_0(%x: !x, %y: !x) attributes {plan.kernel} {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c64 = arith.constant 64 : index
        %n = memref.dim %x, %c0 : !x
        scf.parallel (%i, %j) = (%c0, %c0) to (%n, %c64) step (%c1, %c1) {
          %e = memref.load %x[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !x
          %s = arith.mulf %e, %e : f32
          memref.store %s, %y[%i, %j] {schedule.role = #schedule.role<vector along 1>} : !x
          scf.reduce
        } {schedule.loop = #schedule.loop<points threads(256) items(4096) as [
            <vectors(4) unroll(4) if [<aligned 0, 1>, <aligned 1, 1>]>,
            <vectors(1) unroll(4)>]>}
        return
      }
    }
    ```

    Loops of kernels go from 0 in steps of 1, and those of the body reduce nothing:

    ```mlir
    // rejected: a reduction outside of a loop has no device function
    module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
      func.func private @map_0(%n: i64) attributes {plan.kernel} {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %zero = arith.constant 0.0 : f32
        %m = arith.index_cast %n : i64 to index
        %r = scf.parallel (%i) = (%c0) to (%m) step (%c1) init (%zero) -> f32 {
          %one = arith.constant 1.0 : f32
          scf.reduce(%one : f32) {
          ^bb0(%a: f32, %b: f32):
            %s = arith.addf %a, %b : f32
            scf.reduce.return %s : f32
          }
        }
        return
      }
    }
    ```
  }];
  let dependentDialects = ["::tessera::schedule::ScheduleDialect"];
}

def CUDAVerifySchedule : Pass<"cuda-verify-schedule", "::mlir::func::FuncOp"> {
  let summary = "Verifies that a schedule keeps what a kernel means";
  let description = [{
    Without trust in who wrote it: that what is done once for all lanes is the same
    for all of them, that vectors lie side by side, aligned and within bounds, by
    conditions or by types, that what is kept is loaded in each row, that no thread
    misses a barrier that others wait at, and that the GPU has the threads and the
    shared memory.

    ```mlir
    // rejected: vectors of 4 need <aligned 0, 0> of this access among the conditions
    !x = memref<64xf32, strided<[1]>>
    module attributes {plan.target = #plan.target<"cuda:sm_90a">} {
      func.func private @map_0(%x: !x, %y: !x) attributes {plan.kernel} {
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c64 = arith.constant 64 : index
        scf.parallel (%i) = (%c0) to (%c64) step (%c1) {
          %e = memref.load %x[%i] {schedule.role = #schedule.role<vector along 0>} : !x
          memref.store %e, %y[%i] : !x
          scf.reduce
        } {schedule.loop = #schedule.loop<points threads(256) items(1024) as [
            <vectors(4) unroll(4) if [<aligned 1, 0>]>, <vectors(1) unroll(4)>]>}
        return
      }
    }
    ```
  }];
}

#endif // TESSERA_COMPILER_TARGETS_CUDA_PASSES_TD
