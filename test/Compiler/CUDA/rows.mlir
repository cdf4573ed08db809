// RUN: split-file %s %t
// RUN: tessera-compile %t/short.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/short -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=SHORT < %t/short/kernels.cu
// RUN: tessera-compile %t/long.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/long -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=LONG < %t/long/kernels.cu
// RUN: tessera-compile %t/columns.mlir --compile-from=local --target=cuda:sm_90a --dump-dir=%t/columns -o %t/module.tsr
// RUN: FileCheck %s --check-prefix=COLUMNS < %t/columns/kernels.cu

// A short row is a warp's. Later stages find it in registers.
// SHORT: struct map_0_Combine0 {
// SHORT: maximumf(a, b)
// SHORT: template <class Group, int V, int U, bool Keep>
// SHORT: for (Row first = group.first(); first < rows; first += group.step())
// SHORT: Vector<float, V> x0_0[U];
// SHORT: load(x0_0[u], p.x0.at(i0,
// SHORT: group.template reduce<map_0_Combine0>(
// SHORT: if (!Keep)
// SHORT-NEXT: load(x0_0[u], p.x0.at(i0,
// SHORT: expf(
// SHORT: group.template reduce<map_0_Combine1>(
// SHORT: expf(
// SHORT: store(p.y0.at(
// SHORT: map_0_rows<WarpRow<128>, 4, 2, true>(p);
// SHORT: map_0_rows<WarpRow<128>, 1, 4, false>(p);

// A long one is a block's.
// LONG: __launch_bounds__(512, resident(2))
// LONG: map_0_rows<BlockRow<512>, 4, 4, true>(p);

// Neighbouring elements of neighbouring rows: neighbouring threads.
// COLUMNS: __launch_bounds__(512)
// COLUMNS: reduce_0_rows<ColumnRow<512>, 1, 8, false>(p);

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
