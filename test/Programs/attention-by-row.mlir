// The same attention with the qkv weight split by row. On 2 and 4 devices rows end
// where heads end, and it is the same program: one all-reduce. On 3 devices (32 rows
// are 5 1/3 heads) data must move to bring whole heads together, and the compiler
// says which view would not (36 rows are 6 heads): one exchange of what is at the
// borders, then the same program. With that view nothing but the all-reduce is left.
// RUN: tessera-opt %s --tessera="mesh=tp=2 to=local" --interpret=2 | FileCheck %s --check-prefix=FITS %no_other_collective
// RUN: tessera-opt %s --tessera="mesh=tp=4 to=local" --interpret=4 | FileCheck %s --check-prefix=FITS %no_other_collective
// RUN: tessera-opt %s --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s --check-prefix=MOVES %no_other_collective
// RUN: tessera-opt %s --tessera="mesh=tp=3 to=local explain=true" -o /dev/null 2>&1 | FileCheck %s --check-prefix=EXPLAIN
// RUN: sed 's/did(tp) \* _, _/did(tp) * 36, _/; s/tp = 2/tp = 3/' %s | tessera-opt --tessera="mesh=tp=3 to=local" --interpret=3 | FileCheck %s --check-prefix=FITS %no_other_collective

// FITS: tv.attention
// FITS: tv.linear
// FITS: comm.all_reduce
// FITS-NEXT: return

// MOVES: tv.linear
// MOVES: comm.all_to_all
// MOVES: tv.attention
// MOVES: comm.all_reduce
// MOVES-NEXT: return

// EXPLAIN: remark: 'tv.reshape' in line {{.*}} is split inside of dimensions 2 to 3, as did(tp) * 32, which does not pass 'tv.slice' in line {{.*}}: data moves; it would not if argument 'qkv' had did(tp) * 36 in dimension 0

// RAN tp=1: nothing
// RAN tp=2: all-reduce 768 bytes 0 copies
// RAN tp=3: all-to-all 192 bytes 2 copies, all-reduce 1024 bytes 0 copies
// RAN tp=4: all-reduce 1152 bytes 0 copies
#m = #tv.mesh<tp = 2>
!w = tensor<96x32xf32, #tv.view<#m, [did(tp) * _, _]>>
!x = tensor<2x3x32xf32>
!merged = tensor<2x3x96xf32>
!qkv = tensor<2x3x16x6xf32>
!part = tensor<2x3x16x2xf32>
!head = tensor<2x16x3x2xf32>
!lse = tensor<2x16x3xf32>
func.func @main(%x: !x {tv.name = "x"}, %w: !w {tv.name = "qkv", tv.role = "weight"},
                %o: tensor<32x32xf32> {tv.name = "out", tv.role = "weight"}) -> !x {
  %p = tv.linear %x, %w : (!x, !w) -> !merged
  %qkv = tv.reshape %p : (!merged) -> !qkv
  %q0 = tv.slice %qkv offsets [0, 0, 0, 0] : (!qkv) -> !part
  %k0 = tv.slice %qkv offsets [0, 0, 0, 2] : (!qkv) -> !part
  %v0 = tv.slice %qkv offsets [0, 0, 0, 4] : (!qkv) -> !part
  %q = tv.transpose %q0 perm [0, 2, 1, 3] : (!part) -> !head
  %k = tv.transpose %k0 perm [0, 2, 1, 3] : (!part) -> !head
  %v = tv.transpose %v0 perm [0, 2, 1, 3] : (!part) -> !head
  %a, %lse = tv.attention %q, %k, %v scale(0.5) causal : (!head, !head, !head) -> (!head, !lse)
  %t = tv.transpose %a perm [0, 2, 1, 3] : (!head) -> !part
  %r = tv.reshape %t : (!part) -> !x
  %y = tv.linear %r, %o : (!x, tensor<32x32xf32>) -> !x
  return %y : !x
}
