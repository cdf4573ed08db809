// A comparison bounds keys only where nothing in it may wrap: in its own type, or, of a value
// that is loaded, in the sum that is the bound.
// RUN: tessera-compile %s --target=cuda:sm_90a --attention=flash --compile-to=scheduled | FileCheck %s
// RUN: tessera-compile %s --target=cuda:sm_90a --attention=flash --dump-dir=%t -o %t.tsr
// RUN: FileCheck %s --check-prefix=TEXT < %t/kernels.cu

// Always true, as 2^63 - 1 is the largest; narrow numbers of 300 positions, and wide ones
// that come to 2^63.
// CHECK-LABEL: @attention_0
// CHECK-NOT: schedule.bound
// CHECK-LABEL: @attention_1
// CHECK-NOT: schedule.bound
// CHECK-LABEL: @attention_2
// CHECK-NOT: schedule.bound
// CHECK-LABEL: @attention_3
// CHECK-NOT: schedule.bound
// CHECK-LABEL: @attention_4
// CHECK-NOT: schedule.bound
// Positions in 32 bits, and a window of any 64 that is loaded: "no limit" is far, no wrap.
// CHECK-LABEL: @attention_5
// CHECK: arith.cmpi sle, {{.*}} {schedule.bound} : index
// CHECK: arith.cmpi sge, {{.*}} {schedule.bound} : i32
// A loaded number of 32 bits with others beside it comes to no 64.
// CHECK-LABEL: @attention_6
// CHECK: arith.cmpi sge, {{.*}} {schedule.bound} : index
// Blocks of 16 queries and of 24 keys: what is rounded down rises. What falls inside of each
// block is no bound.
// CHECK-LABEL: @attention_7
// CHECK: arith.cmpi sle, {{.*}} {schedule.bound} : index
// CHECK-NOT: schedule.bound
// CHECK: tv.yield
// TEXT: struct attention_5_Mods
// TEXT: static __device__ KeyRange keys(
// TEXT: end = min(end, int64(1) + 1 * last + 1 * max(-int64(1152921504606846976), min(int64(1152921504606846976), int64({{.*}}))));
// TEXT: begin = max(begin, int64(-40) + 1 * first);
// TEXT: struct attention_7_Mods
// TEXT: static __device__ KeyRange keys(
// TEXT: end = min(end, keys_below<1, 24, 0>(int64(1) + 1 * (int64(last) / 16)));
#m = #tv.mesh<tp = 2>
!q = tensor<1x2x300x64xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!lse = tensor<1x2x300xf32>
func.func @main(%q: !q, %k: !q, %v: !q, %w: tensor<2xi64>, %narrow: tensor<2xi32>) -> (!q, !q, !q, !q, !q, !q, !q, !q) {
  %0, %l0 = tv.attention %q, %k, %v scale(0.125) : (!q, !q, !q) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.constant 9223372036854775807 : index
      %d = arith.subi %ki, %qi : index
      %m = arith.cmpi sle, %d, %c : index
      tv.yield %m : i1
    }
  %1, %l1 = tv.attention %q, %k, %v scale(0.125) : (!q, !q, !q) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %x = arith.index_cast %qi : index to i8
      %y = arith.index_cast %ki : index to i8
      %m = arith.cmpi sle, %y, %x : i8
      tv.yield %m : i1
    }
  %2, %l2 = tv.attention %q, %k, %v scale(0.125) : (!q, !q, !q) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.constant 32700 : i16
      %x = arith.index_cast %qi : index to i16
      %y = arith.index_cast %ki : index to i16
      %z = arith.addi %x, %c : i16
      %m = arith.cmpi sge, %z, %y : i16
      tv.yield %m : i1
    }
  %3, %l3 = tv.attention %q, %k, %v scale(0.125) : (!q, !q, !q) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c = arith.constant 9223372036854775800 : index
      %z = arith.addi %qi, %c : index
      %m = arith.cmpi sge, %z, %ki : index
      tv.yield %m : i1
    }
  %4, %l4 = tv.attention %q, %k, %v scale(0.125) : (!q, !q, !q) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %n = tv.load %w[%h] : tensor<2xi64> -> i64
      %i = arith.index_cast %n : i64 to index
      %z = arith.addi %qi, %i : index
      %m = arith.cmpi sle, %ki, %z : index
      tv.yield %m : i1
    }
  %5, %l5 = tv.attention %q, %k, %v scale(0.125) : (!q, !q, !q) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %n = tv.load %w[%h] : tensor<2xi64> -> i64
      %i = arith.index_cast %n : i64 to index
      %d = arith.subi %ki, %qi : index
      %far = arith.cmpi sle, %d, %i : index
      %c = arith.constant 40 : i32
      %x = arith.index_cast %qi : index to i32
      %y = arith.index_cast %ki : index to i32
      %z = arith.addi %y, %c : i32
      %near = arith.cmpi sge, %z, %x : i32
      %m = arith.andi %far, %near : i1
      tv.yield %m : i1
    }
  %6, %l6 = tv.attention %q, %k, %v scale(0.125) : (!q, !q, !q) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %one = arith.constant 1 : index
      %w0 = tv.load %narrow[%h] : tensor<2xi32> -> i32
      %w1 = arith.index_cast %w0 : i32 to index
      %w2 = arith.maxsi %w1, %one : index
      %w3 = arith.subi %w2, %one : index
      %first = arith.subi %qi, %w3 : index
      %m = arith.cmpi sge, %ki, %first : index
      tv.yield %m : i1
    }
  %7, %l7 = tv.attention %q, %k, %v scale(0.125) : (!q, !q, !q) -> (!q, !lse)
    mask_mod (%b: index, %h: index, %qi: index, %ki: index) {
      %c16 = arith.constant 16 : index
      %c24 = arith.constant 24 : index
      %x = arith.divui %qi, %c16 : index
      %y = arith.divui %ki, %c24 : index
      %m = arith.cmpi sle, %y, %x : index
      %z = arith.remui %qi, %c16 : index
      %n = arith.cmpi sge, %ki, %z : index
      %all = arith.andi %m, %n : i1
      tv.yield %all : i1
    }
  return %0, %1, %2, %3, %4, %5, %6, %7 : !q, !q, !q, !q, !q, !q, !q, !q
}
