// RUN: tessera-compile %s --compile-from=local -o %t.tsr
#m = #tv.mesh<tp = 2>
#x = #tv.view<#m, [did(tp) * _]>
#s = #tv.view<#m, [_], partial = [tp : max]>
#w = #tv.view<#m, [4]>
!f16 = tensor<?xf16, #tv.local<#x, of [b]>>
!bf16 = tensor<?xbf16, #tv.local<#x, of [b]>>
!f64 = tensor<?xf64, #tv.local<#x, of [b]>>
!i64 = tensor<?xi64, #tv.local<#x, of [b]>>
!i32 = tensor<?xi32, #tv.local<#x, of [b]>>
!u32 = tensor<?xui32, #tv.local<#x, of [b]>>
!u8 = tensor<?xui8, #tv.local<#x, of [b]>>
!i8 = tensor<?xi8, #tv.local<#x, of [b]>>
!i1 = tensor<?xi1, #tv.local<#x, of [b]>>
func.func @main(%a: !f16 {tv.name = "a", tv.dims = ["b"]},
                %c: !bf16 {tv.name = "c", tv.dims = ["b"]},
                %i: !i32 {tv.name = "i", tv.dims = ["b"], tv.range = [-9, 9]},
                %j: !i8 {tv.name = "j", tv.dims = ["b"], tv.range = [-9, 9]},
                %k: !u8 {tv.name = "k", tv.dims = ["b"], tv.range = [0, 255]},
                %l: !u32 {tv.name = "l", tv.dims = ["b"], tv.range = [0, 255]},
                %m: !i1 {tv.name = "m", tv.dims = ["b"], tv.range = [0, 2]})
    -> (!f16 {tv.name = "half"}, !f64 {tv.name = "double"},
        !bf16 {tv.name = "brain"}, !i64 {tv.name = "long"},
        !u8 {tv.name = "byte"}, !u32 {tv.name = "word"}, !i1 {tv.name = "bit"})
    attributes {tv.sizes = {b = 64}} {
  %0:3 = tv.map %a, %c : (!f16, !bf16) -> (!f16, !f64, !bf16) (%x: f16, %y: bf16) {
    %u = arith.extf %x : f16 to f32
    %v = arith.extf %y : bf16 to f32
    %s = arith.addf %u, %v : f32
    %h = arith.truncf %s : f32 to f16
    %d = arith.extf %s : f32 to f64
    %q = arith.mulf %y, %y : bf16
    tv.yield %h, %d, %q : f16, f64, bf16
  }
  %1:4 = tv.map %i, %j, %k, %l, %m : (!i32, !i8, !u8, !u32, !i1) -> (!i64, !u8, !u32, !i1)
      (%x: i32, %y: i8, %z: i8, %w: i32, %p: i1) {
    %e = arith.extsi %x : i32 to i64
    %f = arith.extsi %y : i8 to i64
    %s = arith.muli %e, %f : i64
    %one = arith.constant 1 : i8
    %g = arith.addi %z, %one : i8
    %t = arith.extui %z : i8 to i32
    %n = arith.addi %w, %t : i32
    %less = arith.cmpi slt, %e, %f : i64
    %r = arith.xori %less, %p : i1
    tv.yield %s, %g, %n, %r : i64, i8, i32, i1
  }
  return %0#0, %0#1, %0#2, %1#0, %1#1, %1#2, %1#3
      : !f16, !f64, !bf16, !i64, !u8, !u32, !i1
}
