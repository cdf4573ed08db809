// What is wrong of each kind, to the ends of i32, as it must be: a run is an error else.
// RUN: tessera-opt %s --tessera="to=local mesh=tp=3" --interpret=3 -o /dev/null
// RUN: tessera-compile %s -o %t.tsr && tessera-run %t.tsr --ranks 2
// RUN: tessera-compile %s --mesh=tp=1 -o %t.tsr && tessera-run %t.tsr
// RUN: sed 's/tokens(300)/tokens(299)/; s/pages(16)/pages(15)/' %s > %t.mlir
// RUN: tessera-compile %t.mlir -o %t.tsr && not tessera-run %t.tsr --ranks 2 2>&1 | FileCheck %s
// CHECK: tessera: run 1: {{.*}}: bounds: 'off' is 2 at [0, 4]
#m = #tv.mesh<tp = 2>
!begins = tensor<7x5xi32, #tv.view<#m, [did(tp) * _, _]>>
!used = tensor<7x4xi32>
!bounds = tensor<7x5xi32>
!table = tensor<17x3xi32, #tv.view<#m, [did(tp) * _, _]>>
!each = tensor<17xi32>
!all_bounds = tensor<7x5xi32, #tv.view<#m, [_, _]>>
!all_each = tensor<17xi32, #tv.view<#m, [_]>>
func.func @main() -> (!all_bounds {tv.name = "off", tv.check = "bounds"},
                      !all_bounds {tv.name = "off_used", tv.check = "bounds and used lengths"},
                      !all_each {tv.name = "off_pages", tv.check = "pages"}) {
  %begins = tv.constant dense<[[0, 120, 120, 121, 300], [0, 120, 90, 121, 301], [-1, -2147483648, 2147483647, 5, 5], [0, 10, 20, 30, 40], [0, 2147483647, -2147483648, 0, 300], [300, 300, 300, 300, 300], [-2147483648, 0, 0, 0, 2147483647]]> : !bounds : () -> !begins
  %used = tv.constant dense<[[120, 0, 1, 179], [50, 10, 0, 180], [0, 0, 0, -1], [-1, 11, 10, -2147483648], [2147483647, 1, 1, 300], [0, 1, 0, 0], [5, 0, 0, 2147483647]]> : !used : () -> !used
  %found = tv.sequence_errors %begins tokens(300) : (!begins) -> !bounds
  %right = tv.constant dense<[[0, 0, 0, 0, 0], [0, 0, 1, 0, 2], [2, 1, 2, 1, 0], [0, 0, 0, 0, 0], [0, 2, 1, 0, 0], [0, 0, 0, 0, 0], [2, 0, 0, 0, 2]]> : !bounds : () -> !bounds
  %off = tv.sub %found, %right : (!bounds, !bounds) -> !all_bounds
  %found_used = tv.sequence_errors %begins used(%used) tokens(300) : (!begins, !used) -> !bounds
  %right_used = tv.constant dense<[[0, 0, 0, 0, 0], [0, 3, 1, 0, 2], [2, 1, 2, 1, 0], [3, 3, 0, 3, 0], [0, 2, 1, 0, 0], [0, 3, 0, 0, 0], [2, 0, 0, 0, 2]]> : !bounds : () -> !bounds
  %off_used = tv.sub %found_used, %right_used : (!bounds, !bounds) -> !all_bounds

  %table = tv.constant dense<[[3, 9, 2], [7, 5, 99], [1, -1, -1], [0, 1, 8], [4, -1, 4], [4, 16, 3], [6, 6, 0], [10, 16, -2147483648], [11, 12, 12], [12, 2147483647, 12], [-2147483648, 3, 3], [13, 14, 15], [13, 0, 0], [11, 11, 11], [11, 0, 0], [2147483647, 8, 8], [-2147483648, 8, 8]]> : tensor<17x3xi32> : () -> !table
  %lengths = tv.constant dense<[12, 8, 13, 5, 12, 4, 5, 8, -1, 4, 0, 2147483647, 1, -2147483648, 4, 1, 1]> : !each : () -> !each
  %found_pages = tv.page_errors %table lengths(%lengths) page(4) pages(16) : (!table, !each) -> !each
  %right_pages = tv.constant dense<[0, 0, 1, 3, 2, 3, 3, 2, 1, 0, 0, 1, 3, 1, 0, 2, 2]> : !each : () -> !each
  %off_pages = tv.sub %found_pages, %right_pages : (!each, !each) -> !all_each
  return %off, %off_used, %off_pages : !all_bounds, !all_bounds, !all_each
}
