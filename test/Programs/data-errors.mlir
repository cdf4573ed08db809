// What is wrong with where sequences begin and with their pages, of numbers that are drawn
// around what is right. Rows over an axis tell each of their own; which pages several need
// they find together.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=3 to=local" --interpret=3 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=tp=4 to=kernels target=cuda:sm_90a" --interpret=4 -o /dev/null

// CHECK: func.func @main
// CHECK-NOT: {{comm[.]|tv.sequence_errors}}
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: nothing
// RAN tp=3: nothing
// RAN tp=4: nothing
#m = #tv.mesh<tp = 2>
!begins = tensor<37x5xi32, #tv.view<#m, [did(tp) * _, _]>>
!used = tensor<37x4xi32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%begins: !begins {tv.range = [-1, 9]}, %used: !used {tv.range = [-1, 4]})
    -> (tensor<37x5xi32>, tensor<37x5xi32>) {
  %0 = tv.sequence_errors %begins tokens(7) : (!begins) -> tensor<37x5xi32>
  %1 = tv.sequence_errors %begins used(%used) tokens(7) : (!begins, !used) -> tensor<37x5xi32>
  return %0, %1 : tensor<37x5xi32>, tensor<37x5xi32>
}

// -----

// One row, whose sequences are over the axis.
// CHECK: func.func @main
// CHECK-NOT: tv.sequence_errors
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather of 2 260 bytes 0 copies
// RAN tp=3: all-gather of 2 352 bytes 0 copies
// RAN tp=4: all-gather of 2 396 bytes 0 copies
#m = #tv.mesh<tp = 2>
!begins = tensor<1x65xi32, #tv.view<#m, [_, did(tp) * _]>>
!used = tensor<1x64xi32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%begins: !begins {tv.range = [-1, 9]}, %used: !used {tv.range = [-1, 4]}) -> !begins {
  %0 = tv.sequence_errors %begins used(%used) tokens(7) : (!begins, !used) -> !begins
  return %0 : !begins
}

// -----

// CHECK: func.func @main
// CHECK-NOT: {{comm.[ae]|tv.page_errors}}
// CHECK: comm.all_reduce {{.*}}tensor<97xi32
// CHECK-NOT: {{comm.[ae]|tv.page_errors}}
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 388 bytes 0 copies
// RAN tp=3: all-reduce 520 bytes 0 copies
// RAN tp=4: all-reduce 588 bytes 0 copies
#m = #tv.mesh<tp = 2>
!table = tensor<37x3xi32, #tv.view<#m, [did(tp) * _, _]>>
!each = tensor<37xi32, #tv.view<#m, [did(tp) * _]>>
func.func @main(%table: !table {tv.range = [-1, 98]}, %lengths: !each {tv.range = [-1, 14]}) -> !each {
  %0 = tv.page_errors %table lengths(%lengths) page(4) pages(97) : (!table, !each) -> !each
  return %0 : !each
}

// -----

// What several need is told to all, as a check wants it; the table is over the axis by pages.
// CHECK: func.func @main
// CHECK-NOT: tv.page_errors
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-gather of 2 284 bytes 1 copies, all-gather 20 bytes 0 copies
// RAN tp=3: all-gather of 2 384 bytes 1 copies, all-gather 24 bytes 0 copies
// RAN tp=4: all-gather of 2 468 bytes 1 copies, all-gather 36 bytes 0 copies
#m = #tv.mesh<tp = 2>
!table = tensor<9x7xi32, #tv.view<#m, [_, did(tp) * _]>>
!each = tensor<9xi32, #tv.view<#m, [did(tp) * _]>>
!all = tensor<9xi32, #tv.view<#m, [_]>>
func.func @main(%table: !table {tv.range = [-1, 111]}, %lengths: !each {tv.range = [-1, 10]}) -> !all {
  %0 = tv.page_errors %table lengths(%lengths) page(1) pages(110) : (!table, !each) -> !all
  return %0 : !all
}

// -----

// As many sequences as a run has.
// CHECK: func.func @main
// CHECK-NOT: {{tv.(page|sequence)_errors}}
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 160 bytes 0 copies
// RAN tp=3: all-reduce 216 bytes 0 copies
// RAN tp=4: all-reduce 240 bytes 0 copies
#m = #tv.mesh<tp = 2>
!begins = tensor<?x5xi32, #tv.view<#m, [did(tp) * _, _]>>
!table = tensor<?x3xi32, #tv.view<#m, [did(tp) * _, _]>>
!each = tensor<?xi32>
func.func @main(%begins: !begins {tv.dims = ["b"], tv.range = [-1, 9]}, %table: !table {tv.dims = ["b"], tv.range = [-1, 41]},
                %lengths: !each {tv.dims = ["b"], tv.range = [-1, 14]})
    -> (tensor<?x5xi32>, !each) attributes {tv.sizes = {b = 13}} {
  %0 = tv.sequence_errors %begins tokens(7) : (!begins) -> tensor<?x5xi32>
  %1 = tv.page_errors %table lengths(%lengths) page(4) pages(40) : (!table, !each) -> !each
  return %0, %1 : tensor<?x5xi32>, !each
}

// -----

// Beside a gradient; a batch of no sequence.
// CHECK: func.func @main
// CHECK-NOT: {{tv.(page|sequence)_errors}}
// CHECK: return
// RAN tp=1: nothing
// RAN tp=2: all-reduce 4 bytes 0 copies
// RAN tp=3: all-reduce 8 bytes 0 copies
// RAN tp=4: all-reduce 12 bytes 0 copies
#m = #tv.mesh<tp = 2>
!x = tensor<6x8xf32, #tv.view<#m, [did(tp) * _, _]>>
!begins = tensor<6x1xi32>
!used = tensor<6x0xi32>
!table = tensor<6x2xi32>
!each = tensor<6xi32>
func.func private @loss(%x: !x, %begins: !begins, %used: !used, %table: !table, %lengths: !each) -> (tensor<f32>, !begins, !each) {
  %0 = tv.sequence_errors %begins used(%used) tokens(7) : (!begins, !used) -> !begins
  %1 = tv.page_errors %table lengths(%lengths) page(4) pages(9) : (!table, !each) -> !each
  %2 = tv.mul %x, %x : (!x, !x) -> !x
  %3 = tv.reduce sum %2 dims [0, 1] : (!x) -> tensor<f32>
  return %3, %0, %1 : tensor<f32>, !begins, !each
}
func.func @main(%x: !x, %begins: !begins {tv.range = [-1, 9]}, %used: !used, %table: !table {tv.range = [-1, 10]},
                %lengths: !each {tv.range = [-1, 10]}) -> (tensor<f32>, !begins, !each, !x) {
  %0, %1, %2, %3 = tv.gradient @loss(%x, %begins, %used, %table, %lengths) of [0] to [0]
    : (!x, !begins, !used, !table, !each) -> (tensor<f32>, !begins, !each, !x)
  return %0, %1, %2, %3 : tensor<f32>, !begins, !each, !x
}
