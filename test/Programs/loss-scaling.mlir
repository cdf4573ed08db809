// A step in f16 of masters in f32: the loss is scaled, and where a gradient is not finite
// nothing is kept but half the scale; after each 4 steps that are, it doubles. All devices
// agree on that: those of tp, which have parts of the gradients, by the least of one number;
// those of dp, which have their sums, without a move.
// RUN: tessera-opt %s --tv-inline --tv-differentiate -o %t
// RUN: tessera-opt %t --tessera="mesh=dp=2,tp=1 to=local" --interpret=2 | FileCheck %s --check-prefix=DP %no_other_collective
// RUN: tessera-opt %t --tessera="mesh=dp=1,tp=2 to=local" --interpret=2 | FileCheck %s --check-prefix=TP %no_other_collective
// RUN: tessera-opt %t --tessera="mesh=dp=2,tp=2 to=kernels" --interpret=4 -o /dev/null

// DP: :3 = comm.all_reduce
// DP: return
// TP: comm.all_reduce {{.*}}8x6xf16
// TP: comm.all_reduce {{.*}}tensor<i32{{.*}}[tp : min]
// TP: return
// RAN here: all-reduce 48 bytes 0 copies, all-reduce of 3 148 bytes 0 copies, all-reduce 4 bytes 0 copies
#m = #tv.mesh<dp = 2, tp = 2>
!x = tensor<8x6xf16, #tv.view<#m, [did(dp) * _, _]>>
!h = tensor<8x12xf16>
!y = tensor<8x6xf16>
!wide = tensor<8x6xf32>
!up = tensor<12x6xf32, #tv.view<#m, [did(tp) * _, _]>>
!down = tensor<6x12xf32, #tv.view<#m, [_, did(tp) * _]>>
!up16 = tensor<12x6xf16>
!down16 = tensor<6x12xf16>
!f = tensor<f32, #tv.view<#m, []>>
!n = tensor<i64, #tv.view<#m, []>>
!is = tensor<i32>
func.func private @loss(%x: !x, %up: !up, %down: !down) -> !f {
  %u = tv.cast %up : (!up) -> !up16
  %d = tv.cast %down : (!down) -> !down16
  %h = tv.linear %x, %u : (!x, !up16) -> !h
  %g = tv.gelu tanh %h : (!h) -> !h
  %y = tv.linear %g, %d : (!h, !down16) -> !y
  %w = tv.cast %y : (!y) -> !wide
  %s = tv.mul %w, %w : (!wide, !wide) -> !wide
  %loss = tv.reduce sum %s dims [0, 1] : (!wide) -> !f
  return %loss : !f
}
func.func @main(%x: !x, %up: !up {tv.role = "parameter", tv.name = "up"}, %down: !down {tv.role = "parameter", tv.name = "down"},
                %scale: !f {tv.role = "state", tv.name = "scale"}, %good: !n {tv.role = "state", tv.name = "good", tv.range = [0, 3]})
    -> (!f {tv.name = "loss"}, !up {tv.name = "up"}, !down {tv.name = "down"}, !f {tv.name = "scale"}, !n {tv.name = "good"}) {
  %loss, %dup, %ddown = tv.gradient @loss(%x, %up, %down) of [0] with (%scale) to [1, 2] : (!x, !up, !down, !f) -> (!f, !up, !down)
  %is_up = tv.map %dup : (!up) -> tensor<12x6xi32> (%g: f32) {
    %0 = arith.subf %g, %g : f32
    %zero = arith.constant 0.0 : f32
    %1 = arith.cmpf oeq, %0, %zero : f32
    %2 = arith.extui %1 : i1 to i32
    tv.yield %2 : i32
  }
  %is_down = tv.map %ddown : (!down) -> tensor<6x12xi32> (%g: f32) {
    %0 = arith.subf %g, %g : f32
    %zero = arith.constant 0.0 : f32
    %1 = arith.cmpf oeq, %0, %zero : f32
    %2 = arith.extui %1 : i1 to i32
    tv.yield %2 : i32
  }
  %least_up = tv.reduce min %is_up dims [0, 1] : (tensor<12x6xi32>) -> !is
  %least_down = tv.reduce min %is_down dims [0, 1] : (tensor<6x12xi32>) -> !is
  %finite = tv.map %least_up, %least_down : (!is, !is) -> !is (%a: i32, %b: i32) {
    %0 = arith.minsi %a, %b : i32
    tv.yield %0 : i32
  }
  %new_up = tv.map %up, %dup : (!up, !up) -> !up (%w: f32, %g: f32) {
    %f = tv.load %finite[] : !is -> i32
    %s = tv.load %scale[] : !f -> f32
    %rate = arith.constant 0.01 : f32
    %0 = arith.divf %g, %s : f32
    %1 = arith.mulf %0, %rate : f32
    %2 = arith.subf %w, %1 : f32
    %one = arith.constant 1 : i32
    %is = arith.cmpi eq, %f, %one : i32
    %3 = arith.select %is, %2, %w : f32
    tv.yield %3 : f32
  }
  %new_down = tv.map %down, %ddown : (!down, !down) -> !down (%w: f32, %g: f32) {
    %f = tv.load %finite[] : !is -> i32
    %s = tv.load %scale[] : !f -> f32
    %rate = arith.constant 0.01 : f32
    %0 = arith.divf %g, %s : f32
    %1 = arith.mulf %0, %rate : f32
    %2 = arith.subf %w, %1 : f32
    %one = arith.constant 1 : i32
    %is = arith.cmpi eq, %f, %one : i32
    %3 = arith.select %is, %2, %w : f32
    tv.yield %3 : f32
  }
  %new_good = tv.map %good, %finite : (!n, !is) -> !n (%g: i64, %f: i32) {
    %is = arith.extsi %f : i32 to i64
    %one = arith.constant 1 : i64
    %0 = arith.addi %g, %one : i64
    %1 = arith.muli %0, %is : i64
    tv.yield %1 : i64
  }
  %new_scale = tv.map %scale, %new_good : (!f, !n) -> !f (%s: f32, %g: i64) {
    %half = arith.constant 0.5 : f32
    %less = arith.mulf %s, %half : f32
    %more = arith.addf %s, %s : f32
    %zero = arith.constant 0 : i64
    %enough = arith.constant 4 : i64
    %left = arith.remsi %g, %enough : i64
    %grows = arith.cmpi eq, %left, %zero : i64
    %0 = arith.select %grows, %more, %s : f32
    %wrong = arith.cmpi eq, %g, %zero : i64
    %1 = arith.select %wrong, %less, %0 : f32
    tv.yield %1 : f32
  }
  return %loss, %new_up, %new_down, %new_scale, %new_good : !f, !up, !down, !f, !n
}
