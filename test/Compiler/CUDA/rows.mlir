// RUN: split-file %s %t
// RUN: tessera-compile %t/short.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/short -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=SHORT < %t/short/7-scheduled.mlir
// RUN: FileCheck %s --check-prefix=SHORT-TEXT < %t/short/kernels.cu
// RUN: tessera-compile %t/long.mlir --compile-from=local --target=cuda:sm_90a --compile-to=scheduled | FileCheck %s --check-prefix=LONG
// RUN: tessera-compile %t/columns.mlir --compile-from=local --target=cuda:sm_90a --compile-to=scheduled | FileCheck %s --check-prefix=COLUMNS
// RUN: tessera-compile %t/few.mlir --compile-from=local --target=cuda:sm_90a --compile-to=scheduled | FileCheck %s --check-prefix=FEW
// RUN: sed 's/8448/8480/g' %t/few.mlir > %t/wider.mlir
// RUN: tessera-compile %t/wider.mlir --compile-from=local --target=cuda:sm_90a --compile-to=scheduled | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/2048/2047/g' %t/few.mlir > %t/lower.mlir
// RUN: tessera-compile %t/lower.mlir --compile-from=local --target=cuda:sm_90a --compile-to=scheduled | FileCheck %s --check-prefix=OTHER
// RUN: tessera-compile %t/longer.mlir --compile-from=local --target=cuda:sm_90a --compile-to=scheduled | FileCheck %s --check-prefix=LONGER
// RUN: tessera-compile %t/once.mlir --compile-from=local --target=cuda:sm_90a --compile-to=scheduled | FileCheck %s --check-prefix=ONCE
// RUN: tessera-compile %t/labels.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/labels -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=LABELS < %t/labels/7-scheduled.mlir
// RUN: FileCheck %s --check-prefix=LABELS-TEXT < %t/labels/kernels.cu
// RUN: sed 's/50304/12288/g' %t/vocabulary.mlir > %t/hidden.mlir
// RUN: tessera-compile %t/hidden.mlir --compile-from=local --target=cuda:sm_90a --compile-to=scheduled | FileCheck %s --check-prefix=HIDDEN
// RUN: tessera-compile %t/vocabulary.mlir --compile-from=local --target=cuda:sm_90a --compile-to=scheduled | FileCheck %s --check-prefix=VOCABULARY
// RUN: tessera-compile %t/pairs.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/pairs -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=PAIRS < %t/pairs/7-scheduled.mlir
// RUN: FileCheck %s --check-prefix=PAIRS-TEXT < %t/pairs/kernels.cu
// RUN: tessera-compile %t/weighted.mlir --compile-from=local --target=cuda:sm_90a --compile-to=scheduled | FileCheck %s --check-prefix=WEIGHTED
// RUN: tessera-compile %t/spills.mlir --compile-from=local --target=cuda:sm_90a --dump-kernels=%t/spills -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=SPILLS < %t/spills/map_0.cu
// RUN: %python %t/many.py > %t/many.mlir
// RUN: tessera-compile %t/many.mlir --compile-from=local --target=cuda:sm_90a --dump-kernels=%t/many -o %t/module.tsr 2>&1 | FileCheck %s --check-prefix=WARNING
// RUN: FileCheck %s --check-prefix=MANY < %t/many/map_0.cu
// RUN: tessera-compile %t/short.mlir --compile-from=local --target=cuda:sm_90a --compile-to=plan | FileCheck %s --check-prefix=SHORT-PLAN
// RUN: tessera-compile %t/long.mlir --compile-from=local --target=cuda:sm_90a --compile-to=plan | FileCheck %s --check-prefix=LONG-PLAN
// RUN: tessera-compile %t/columns.mlir --compile-from=local --target=cuda:sm_90a --compile-to=plan | FileCheck %s --check-prefix=COLUMNS-PLAN

// A short row is a warp's. Later stages find it in registers. A block takes rows
// enough to be worth its begin.
// SHORT-COUNT-3: memref.load %arg0[%{{.*}}] {schedule.role = #schedule.role<kept along 1 as 0>}
// SHORT: memref.store %{{.*}}, %arg1[%{{.*}}] {schedule.role = #schedule.role<vector along 1>}
// SHORT: #schedule.loop<warps threads(128) items(16) as [<vectors(4) unroll(2) keep(registers) if [<aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>
// SHORT-TEXT: template <class Group, int V, int U, Keep How>
// SHORT-TEXT: for (Row first = group.first(); first < rows; first += group.step())
// SHORT-TEXT: group.template reduce<map_0_Combine0>(
// SHORT-TEXT: .again();
// SHORT-TEXT: if (How == Keep::No)
// SHORT-TEXT: group.template reduce<map_0_Combine1>(
// SHORT-TEXT: __launch_bounds__(128)
// SHORT-TEXT: if (p.x0.fits<4>(1) && p.y0.fits<4>(1))
// SHORT-TEXT-NEXT: map_0_rows<WarpRow<128>, 4, 2, Keep::Registers>(p);
// SHORT-TEXT-NEXT: else
// SHORT-TEXT-NEXT: map_0_rows<WarpRow<128>, 1, 4, Keep::No>(p);
// SHORT-PLAN: as map_0 of 128 threads over %{{.*}}.0 by 16

// A long one is a block's, and kept in shared memory; of that not all is in
// registers at once.
// LONG-COUNT-2: {schedule.at_once = 4 : i64}
// LONG: #schedule.loop<blocks threads(512) shared(32768) resident(3) as [<vectors(4) unroll(4) keep(shared) if [
// LONG-PLAN: as map_0 of 512 threads and 32768 bytes of shared memory over %{{.*}}.0 by 1

// One that a thread's share of is more than it can keep is loaded in each stage.
// LONGER: #schedule.loop<blocks threads(1024) resident(1) as [<vectors(4) unroll(4) if [<aligned 0, 1>, <aligned 1, 1>]>, <vectors(1) unroll(4)>]>

// One that is loaded but once leaves registers to more chunks, and blocks.
// ONCE: #schedule.loop<blocks threads(256) resident(4) as [<vectors(8) unroll(8) if [<aligned 0, 1>]>, <vectors(1) unroll(4)>]>

// Neighbouring elements of neighbouring rows: neighbouring threads, of which each
// takes rows for 4 bytes. What is outside of the stages is done for each of them.
// COLUMNS: #schedule.loop<columns threads(1024) items(32) as [<vectors(1) unroll(8)>]>
// COLUMNS-PLAN: as reduce_0 of 1024 threads over 256 by 32
// So many blocks of 1024 threads a device holds at once; of more, or of fewer rows, 512.
// FEW: #schedule.loop<columns threads(1024) items(32)
// OTHER: #schedule.loop<columns threads(512) items(32)
// So are sums that neighbouring rows weigh alike, by few warps where few are added.
// WEIGHTED: #schedule.loop<columns threads(64) items(64) as [<vectors(2) unroll(8)
// PAIRS: memref.load %arg0[%[[J:.*]], %[[I:.*]]] {schedule.role = #schedule.role<vector along 1>}
// PAIRS: arith.truncf %{{.*}} {schedule.role = #schedule.role<lanes>} : f32 to bf16
// PAIRS: memref.store %{{.*}}, %arg1[%[[I]]] {schedule.role = #schedule.role<lanes>}
// PAIRS: #schedule.loop<columns threads(1024) items(64) as [<vectors(2) unroll(8) if [<aligned 0, 1>]>, <vectors(1) unroll(8)>]>
// PAIRS-TEXT: const Row rows = Row(256 / V);
// PAIRS-TEXT: if (group.leads()) *p.y0.at(
// PAIRS-TEXT: reduce_0_rows<ColumnRow<1024>, 2, 8, Keep::No>(p);
// PAIRS-TEXT: reduce_0_rows<ColumnRow<1024>, 1, 8, Keep::No>(p);

// Small floats are compared two at a time, before they are widened. Where a block
// keeps little, there are more blocks; of a long row, threads are so many that few
// of them go without a last chunk.
// LABELS: %[[X:.*]] = memref.load %arg0{{.*}} {schedule.role = #schedule.role<kept along 1 as 0>}
// LABELS-NEXT: schedule.pairs maximum %[[X]] : bf16
// LABELS-NEXT: scf.reduce
// HIDDEN: #schedule.loop<blocks threads(384) shared(24576) resident(4) as [<vectors(8) unroll(4) keep(shared) if [
// VOCABULARY: #schedule.loop<blocks threads(704) shared(101376) resident(2) as [<vectors(8) unroll(9) keep(shared) if [

// The sum that only the label's element adds to looks at that one. The label is
// the same for all chunks.
// LABELS: %[[LABEL:.*]] = memref.load %arg1{{.*}} {schedule.role = #schedule.role<ahead>}
// LABELS-NOT: arith.cmpi
// LABELS-NOT: arith.select
// LABELS: schedule.one_hot %{{.*}} where %{{.*}} is %[[LABEL]] : f32, index, i32
// LABELS-TEXT: combinePairs<map_0_Combine0, maximumPairs<bf16>>(
// LABELS-TEXT-NOT: for (int v
// LABELS-TEXT: break;
// LABELS-TEXT: const auto [[HOT:hot[0-9]+]] = unsign(
// LABELS-TEXT: if ([[HOT]] < uint32(V))
// LABELS-TEXT: if ([[HOT]] == uint32(v))

// What spills is compiled again with less in registers, which its program says, in
// front of what asks for it.
// SPILLS: // map_0: {{.*}} bytes of spills
// SPILLS-NEXT: #define TESSERA_{{FEWER_BLOCKS|ANY_SIZE|KEEP_PACKED}}
// SPILLS: #ifdef TESSERA_FEWER_BLOCKS

// If that does not help, the first that spills least is taken.
// WARNING: warning: device function 'map_0' has {{[1-9][0-9]*}} bytes of spills and {{[0-9]+}} bytes of stack; it will be slow
// MANY: // map_0: {{.*}} {{[1-9][0-9]*}} bytes of spills
// MANY-NOT: #define TESSERA_
// MANY: #ifdef TESSERA_FEWER_BLOCKS

//--- short.mlir
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [_, 256]>
!x = tensor<?x256xf32, #tv.local<#x, of [n, 256]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["n"]})
    -> (!x {tv.name = "y"}) attributes {tv.sizes = {n = 64 : i64}} {
  %0 = tv.softmax %x dim 1 : (!x) -> !x
  return %0 : !x
}

//--- long.mlir
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [_, 8192]>
!x = tensor<?x8192xf32, #tv.local<#x, of [n, 8192]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["n"]})
    -> (!x {tv.name = "y"}) attributes {tv.sizes = {n = 64 : i64}} {
  %0 = tv.softmax %x dim 1 : (!x) -> !x
  return %0 : !x
}

//--- labels.mlir
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [_, 4096]>
#l = #tv.view<#m, [_]>
!x = tensor<?x4096xbf16, #tv.local<#x, of [n, 4096]>>
!l = tensor<?xi32, #tv.local<#l, of [n]>>
!y = tensor<?xbf16, #tv.local<#l, of [n]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["n"]}, %l: !l {tv.name = "l", tv.dims = ["n"]})
    -> (!y {tv.name = "y"}) attributes {tv.sizes = {n = 64 : i64}} {
  %0 = tv.cross_entropy %x, %l : (!x, !l) -> !y
  return %0 : !y
}

//--- vocabulary.mlir
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [_, 50304]>
!x = tensor<?x50304xbf16, #tv.local<#x, of [n, 50304]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["n"]})
    -> (!x {tv.name = "y"}) attributes {tv.sizes = {n = 64 : i64}} {
  %0 = tv.softmax %x dim 1 : (!x) -> !x
  return %0 : !x
}

//--- longer.mlir
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [_, 65536]>
!x = tensor<?x65536xf32, #tv.local<#x, of [n, 65536]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["n"]})
    -> (!x {tv.name = "y"}) attributes {tv.sizes = {n = 64 : i64}} {
  %0 = tv.softmax %x dim 1 : (!x) -> !x
  return %0 : !x
}

//--- once.mlir
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [_, 131072]>
!x = tensor<?x131072xbf16, #tv.local<#x, of [n, 131072]>>
!y = tensor<?xbf16, #tv.local<#tv.view<#m, [_]>, of [n]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["n"]})
    -> (!y {tv.name = "y"}) attributes {tv.sizes = {n = 64 : i64}} {
  %0 = tv.reduce sum %x dims [1] : (!x) -> !y
  return %0 : !y
}

//--- weighted.mlir
#m = #tv.mesh<tp = 1>
!b = tensor<64x2x256xbf16, #tv.local<#tv.view<#m, [64, 2, 256]>, of [64, 2, 256]>>
!w = tensor<64x2xbf16, #tv.local<#tv.view<#m, [64, 2]>, of [64, 2]>>
!y = tensor<64x256xbf16, #tv.local<#tv.view<#m, [64, 256]>, of [64, 256]>>
func.func @main(%b: !b {tv.name = "b"}, %w: !w {tv.name = "w"}) -> (!y {tv.name = "y"}) {
  %0 = tv.broadcast %w dims [0, 1] : (!w) -> !b
  %1 = tv.mul %b, %0 : (!b, !b) -> !b
  %2 = tv.reduce sum %1 dims [1] : (!b) -> !y
  return %2 : !y
}

//--- pairs.mlir
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [_, 256]>
!x = tensor<?x256xbf16, #tv.local<#x, of [n, 256]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["n"]})
    -> (!x {tv.name = "y"}) attributes {tv.sizes = {n = 64 : i64}} {
  %0 = tv.softmax %x dim 0 : (!x) -> !x
  return %0 : !x
}

//--- columns.mlir
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [_, 256]>
#y = #tv.view<#m, [256]>
!x = tensor<?x256xf32, #tv.local<#x, of [n, 256]>>
!y = tensor<256xf32, #tv.local<#y, of [256]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["n"]})
    -> (!y {tv.name = "y"}) attributes {tv.sizes = {n = 64 : i64}} {
  %0 = tv.reduce sum %x dims [0] : (!x) -> !y
  return %0 : !y
}

//--- few.mlir
#m = #tv.mesh<tp = 1>
!x = tensor<2048x8448xf32, #tv.local<#tv.view<#m, [2048, 8448]>, of [2048, 8448]>>
!y = tensor<8448xf32, #tv.local<#tv.view<#m, [8448]>, of [8448]>>
func.func @main(%x: !x {tv.name = "x"}) -> (!y {tv.name = "y"}) {
  %0 = tv.reduce sum %x dims [0] : (!x) -> !y
  return %0 : !y
}

//--- spills.mlir
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [_, 131072]>
!x = tensor<?x131072xf64, #tv.local<#x, of [n, 131072]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["n"]})
    -> (!x {tv.name = "y"}) attributes {tv.sizes = {n = 64 : i64}} {
  %0 = tv.softmax %x dim 1 : (!x) -> !x
  return %0 : !x
}

//--- many.py
# More values at a time than there are registers.
many = range(40)
print("""#m = #tv.mesh<tp = 1>
!x = tensor<4096xf64, #tv.local<#tv.view<#m, [4096]>, of [4096]>>""")
arguments = ", ".join(f'%x{i}: !x {{tv.name = "x{i}"}}' for i in many)
operands = ", ".join(f"%x{i}" for i in many)
types = ", ".join("!x" for i in many)
elements = ", ".join(f"%e{i}: f64" for i in many)
print(f"""func.func @main({arguments}) -> (!x {{tv.name = "y"}}) {{
  %y = tv.map {operands} : ({types}) -> !x ({elements}) {{
    %s0 = arith.constant 0.0 : f64""")
for i in many:
    print(f"""    %exp{i} = math.exp %e{i} : f64
    %s{i + 1} = arith.addf %s{i}, %exp{i} : f64""")
for i in many:
    sum = len(many) + i
    print(f"""    %q{i} = arith.divf %exp{i}, %s{sum} : f64
    %s{sum + 1} = arith.addf %s{sum}, %q{i} : f64""")
print(f"""    tv.yield %s{2 * len(many)} : f64
  }}
  return %y : !x
}}""")
