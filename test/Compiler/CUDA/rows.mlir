// RUN: split-file %s %t
// RUN: tessera-compile %t/short.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/short -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=SHORT < %t/short/kernels.cu
// RUN: tessera-compile %t/long.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/long -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=LONG < %t/long/kernels.cu
// RUN: tessera-compile %t/columns.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/columns -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=COLUMNS < %t/columns/kernels.cu
// RUN: tessera-compile %t/longer.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/longer -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=LONGER < %t/longer/kernels.cu
// RUN: tessera-compile %t/once.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/once -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=ONCE < %t/once/kernels.cu
// RUN: tessera-compile %t/labels.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/labels -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=LABELS < %t/labels/kernels.cu
// RUN: sed 's/50304/12288/g' %t/vocabulary.mlir > %t/hidden.mlir
// RUN: tessera-compile %t/hidden.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/hidden -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=HIDDEN < %t/hidden/kernels.cu
// RUN: tessera-compile %t/vocabulary.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/vocabulary -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=VOCABULARY < %t/vocabulary/kernels.cu
// RUN: tessera-compile %t/pairs.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/pairs -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=PAIRS < %t/pairs/kernels.cu
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
// SHORT: struct map_0_Combine0 {
// SHORT: maximumf(a, b)
// SHORT: template <class Group, int V, int U, Keep How>
// SHORT: for (Row first = group.first(); first < rows; first += group.step())
// SHORT: Kept<How, float, V, U, Group::kThreads> x0_0(0);
// SHORT: if (u > 0) x0_0.leave();
// SHORT: if (chunks0 % (U * group.size()) != 0 && number >= chunks0)
// SHORT-NEXT: continue;
// SHORT: x0_0.load(u, p.x0.at(i0,
// SHORT: x0_0.arrive(u);
// SHORT: const auto &x0_1 = x0_0[u];
// SHORT: group.template reduce<map_0_Combine0>(
// SHORT: x0_0.again();
// SHORT: if (How == Keep::No)
// SHORT-NEXT: x0_0.load(u, p.x0.at(i0,
// SHORT: expf(
// SHORT: group.template reduce<map_0_Combine1>(
// SHORT: expf(
// SHORT: store(p.y0.at(
// SHORT: map_0_rows<WarpRow<128>, 4, 2, Keep::Registers>(p);
// SHORT: map_0_rows<WarpRow<128>, 1, 4, Keep::No>(p);
// SHORT-PLAN: as map_0 of 128 threads over %{{.*}}.0 by 16

// A long one is a block's, and kept in shared memory.
// LONG: __launch_bounds__(512, resident(3))
// LONG: map_0_rows<BlockRow<512>, 4, 4, Keep::Shared>(p);
// LONG-PLAN: as map_0 of 512 threads and 32768 bytes of shared memory over %{{.*}}.0 by 1

// One that a thread's share of is more than it can keep is loaded in each stage.
// LONGER: map_0_rows<BlockRow<1024>, 4, {{.*}}, Keep::No>(p);

// One that is loaded but once leaves registers to more chunks, and blocks.
// ONCE: __launch_bounds__(256, resident(4))
// ONCE: reduce_0_rows<BlockRow<256>, 8, 8, Keep::No>(p);

// Neighbouring elements of neighbouring rows: neighbouring threads, of which each
// takes rows for 4 bytes. What is outside of the stages is done for each of them.
// COLUMNS: __launch_bounds__(1024)
// COLUMNS: reduce_0_rows<ColumnRow<1024>, 1, 8, Keep::No>(p);
// COLUMNS-PLAN: as reduce_0 of 1024 threads over 256 by 32
// PAIRS: const Row rows = Row(256 / V);
// PAIRS: const int64 i0 = int64(row) * V;
// PAIRS: load(x0_0[u], p.x0.at(i1, i0));
// PAIRS: lanes0[v] = reduce_0_Combine0::of(lanes0[v], {{.*}});
// PAIRS: sum0[v] = group.template reduce<reduce_0_Combine0>(lanes0[v], {{.*}});
// PAIRS: bf16 lanes1[V];
// PAIRS: const bf16 trunc0 = narrow<bf16>(sum0[v]);
// PAIRS-NEXT: lanes1[v] = trunc0;
// PAIRS: if (group.leads()) *p.y0.at((i0 + v)) = lanes1[v];
// PAIRS: reduce_0_rows<ColumnRow<1024>, 2, 8, Keep::No>(p);
// PAIRS: reduce_0_rows<ColumnRow<1024>, 1, 8, Keep::No>(p);

// Small floats are compared two at a time, before they are widened. Where a block
// keeps little, there are more blocks; of a long row, threads are so many that few
// of them go without a last chunk.
// LABELS: combinePairs<map_0_Combine0, maximumPairs<bf16>>(lanes0, x0_1);
// LABELS-NOT: for (int v
// LABELS: break;
// HIDDEN: __launch_bounds__(384, resident(4))
// HIDDEN: map_0_rows<BlockRow<384>, 8, 4, Keep::Shared>(p);
// VOCABULARY: __launch_bounds__(704, resident(2))

// The sum that only the label's element adds to looks at that one.
// LABELS: const int32 element0 = *p.x1.at(i0);
// LABELS: const auto hot0 = unsign(element0) - unsign(int32(i{{[0-9]+}}));
// LABELS-NEXT: float picked0[V];
// LABELS: picked0[v] = sub0;
// LABELS-NOT: cmpi
// LABELS: if (hot0 < uint32(V))
// LABELS: if (hot0 == uint32(v))
// LABELS-NEXT: lanes2[0] = lanes2[0] + picked0[v];

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
