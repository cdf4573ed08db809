// Each op of a scalar region has a result for all operands, the same everywhere: zero
// divisors, the least number by -1, shifts by the width and more, floats that are no
// integers of the type.
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=2 to=local" --interpret=2 -o /dev/null
// RUN: tessera-opt %s --split-input-file --tessera="mesh=x=3 to=kernels" --interpret=3 -o /dev/null

// With a sign. The operands meet in all pairs, each also with the least number.
#m = #tv.mesh<x = 2>
!x = tensor<4x48xi32, #tv.view<#m, [_, did(x) * _]>>
func.func @main(%x: !x {tv.range = [-9, 9]}, %y: tensor<4x48xi32> {tv.range = [-3, 3]})
    -> (tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>) {
  %d, %r, %f, %c = tv.map %x, %y : (!x, tensor<4x48xi32>)
      -> (tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>)
    (%a: i32, %b: i32) {
      %least = arith.constant -2147483648 : i32
      %five = arith.constant 5 : i32
      %is = arith.cmpi sgt, %a, %five : i32
      %n = arith.select %is, %least, %a : i32
      %d = arith.divsi %n, %b : i32
      %r = arith.remsi %n, %b : i32
      %f = arith.floordivsi %n, %b : i32
      %c = arith.ceildivsi %n, %b : i32
      tv.yield %d, %r, %f, %c : i32, i32, i32, i32
    }
  return %d, %r, %f, %c : tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>
}

// -----

// Without, and by constants.
#m = #tv.mesh<x = 2>
!x = tensor<4x48xi32, #tv.view<#m, [_, did(x) * _]>>
func.func @main(%x: !x {tv.range = [-9, 9]}, %y: tensor<4x48xi32> {tv.range = [-1, 3]})
    -> (tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>) {
  %d, %r, %c, %k = tv.map %x, %y : (!x, tensor<4x48xi32>)
      -> (tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>)
    (%a: i32, %b: i32) {
      %zero = arith.constant 0 : i32
      %three = arith.constant 3 : i32
      %minus = arith.constant -1 : i32
      %d = arith.divui %a, %b : i32
      %r = arith.remui %a, %b : i32
      %c = arith.ceildivui %a, %b : i32
      %k0 = arith.divsi %a, %zero : i32
      %k1 = arith.remsi %a, %zero : i32
      %k2 = arith.divsi %a, %minus : i32
      %k3 = arith.divsi %a, %three : i32
      %k4 = arith.remui %b, %three : i32
      %s0 = arith.addi %k0, %k1 : i32
      %s1 = arith.addi %s0, %k2 : i32
      %s2 = arith.addi %s1, %k3 : i32
      %k = arith.addi %s2, %k4 : i32
      tv.yield %d, %r, %c, %k : i32, i32, i32, i32
    }
  return %d, %r, %c, %k : tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>
}

// -----

// 8 and 64 bits.
#m = #tv.mesh<x = 2>
!x = tensor<4x48xi32, #tv.view<#m, [_, did(x) * _]>>
func.func @main(%x: !x {tv.range = [-128, 127]}, %y: tensor<4x48xi32> {tv.range = [-2, 2]})
    -> (tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>) {
  %d, %r, %l, %u = tv.map %x, %y : (!x, tensor<4x48xi32>)
      -> (tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>)
    (%a: i32, %b: i32) {
      %a8 = arith.trunci %a : i32 to i8
      %b8 = arith.trunci %b : i32 to i8
      %d8 = arith.divsi %a8, %b8 : i8
      %r8 = arith.remsi %a8, %b8 : i8
      %d = arith.extsi %d8 : i8 to i32
      %r = arith.extsi %r8 : i8 to i32
      %shift = arith.constant 56 : i64
      %a64 = arith.extsi %a : i32 to i64
      %big = arith.shli %a64, %shift : i64
      %b64 = arith.extsi %b : i32 to i64
      %l64 = arith.floordivsi %big, %b64 : i64
      %l0 = arith.shrsi %l64, %shift : i64
      %l = arith.trunci %l0 : i64 to i32
      %u64 = arith.remui %big, %b64 : i64
      %u0 = arith.shrui %u64, %shift : i64
      %u = arith.trunci %u0 : i64 to i32
      tv.yield %d, %r, %l, %u : i32, i32, i32, i32
    }
  return %d, %r, %l, %u : tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>
}

// -----

// Indices, which may be below 0 in a region, by what is known at run time; beside a
// branch.
#m = #tv.mesh<x = 2>
!x = tensor<4x48xi32, #tv.view<#m, [_, did(x) * _]>>
func.func @main(%x: !x {tv.range = [-90, 90]}, %y: tensor<3xi32> {tv.range = [0, 5]}, %c: tensor<7xi32>)
    -> (tensor<4x48xi32>, tensor<4x48xi32>) {
  %q, %r = tv.map %x : (!x) -> (tensor<4x48xi32>, tensor<4x48xi32>)
    (%a: i32) {
      %one = arith.constant 1 : index
      %mask = arith.constant 1023 : index
      %i = arith.index_cast %a : i32 to index
      %n = tv.load %y[%one] : tensor<3xi32> -> i32
      %by = arith.index_cast %n : i32 to index
      %q0 = arith.divui %i, %by : index
      %r0 = arith.remui %i, %by : index
      %s0 = arith.divsi %i, %by : index
      %k = tv.load %c[%s0] : tensor<7xi32> -> i32
      %q1 = arith.andi %q0, %mask : index
      %q = arith.index_cast %q1 : index to i32
      %r1 = arith.andi %r0, %mask : index
      %r2 = arith.index_cast %r1 : index to i32
      %r = arith.addi %r2, %k : i32
      tv.yield %q, %r : i32, i32
    }
  return %q, %r : tensor<4x48xi32>, tensor<4x48xi32>
}

// -----

// Shifts; an amount below 0 is a large one.
#m = #tv.mesh<x = 2>
!x = tensor<4x48xi32, #tv.view<#m, [_, did(x) * _]>>
func.func @main(%x: !x {tv.range = [-9000, 9000]}, %y: tensor<4x48xi32> {tv.range = [-2, 40]})
    -> (tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>) {
  %l, %s, %u, %k = tv.map %x, %y : (!x, tensor<4x48xi32>)
      -> (tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>)
    (%a: i32, %b: i32) {
      %width = arith.constant 32 : i32
      %two = arith.constant 2 : i32
      %l = arith.shli %a, %b : i32
      %s = arith.shrsi %a, %b : i32
      %u = arith.shrui %a, %b : i32
      %k0 = arith.shrsi %a, %width : i32
      %k1 = arith.shli %a, %width : i32
      %k2 = arith.shrui %a, %two : i32
      %k3 = arith.addi %k0, %k1 : i32
      %k = arith.addi %k2, %k3 : i32
      tv.yield %l, %s, %u, %k : i32, i32, i32, i32
    }
  return %l, %s, %u, %k : tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>
}

// -----

// Floats to integers. (What says lse stays f32 where all else has another type.)
#m = #tv.mesh<x = 2>
!x = tensor<4x48xf32, #tv.view<#m, [_, did(x) * _]>> // as an lse
func.func @main(%x: !x) -> (tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>) {
  %s, %u, %n, %w = tv.map %x : (!x)
      -> (tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>)
    (%a: f32) { // as an lse
      %scale = arith.constant 4294967296.0 : f32 // as an lse
      %scale8 = arith.constant 128.0 : f32 // as an lse
      %zero = arith.constant 0.0 : f32 // as an lse
      %b = arith.mulf %a, %scale : f32 // as an lse
      %s = arith.fptosi %b : f32 to i32 // as an lse
      %u = arith.fptoui %b : f32 to i32 // as an lse
      %c = arith.mulf %a, %scale8 : f32 // as an lse
      %n8 = arith.fptosi %c : f32 to i8 // as an lse
      %n = arith.extsi %n8 : i8 to i32
      %inf = arith.divf %a, %zero : f32 // as an lse
      %is = arith.cmpf olt, %a, %zero : f32 // as an lse
      %nan = arith.subf %inf, %inf : f32 // as an lse
      %both = arith.select %is, %inf, %nan : f32 // as an lse
      %w = arith.fptosi %both : f32 to i32 // as an lse
      tv.yield %s, %u, %n, %w : i32, i32, i32, i32
    }
  return %s, %u, %n, %w : tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>, tensor<4x48xi32>
}

// -----

// Single bits, of which the one that is set is -1 where there is a sign.
#m = #tv.mesh<x = 2>
!x = tensor<4x12xi32, #tv.view<#m, [_, did(x) * _]>>
func.func @main(%x: !x {tv.range = [-2, 2]}, %y: tensor<4x12xi32> {tv.range = [-2, 2]}) -> tensor<4x12xi32> {
  %r = tv.map %x, %y : (!x, tensor<4x12xi32>) -> tensor<4x12xi32>
    (%a: i32, %b: i32) {
      %zero = arith.constant 0 : i32
      %two = arith.constant 2 : i32
      %p = arith.cmpi sgt, %a, %zero : i32
      %q = arith.cmpi sgt, %b, %zero : i32
      %0 = arith.divsi %p, %q : i1
      %1 = arith.remsi %p, %q : i1
      %2 = arith.divui %p, %q : i1
      %3 = arith.shrsi %p, %q : i1
      %4 = arith.shli %p, %q : i1
      %5 = arith.maxsi %p, %q : i1
      %f = arith.sitofp %a : i32 to f32
      %6 = arith.fptosi %f : f32 to i1
      %7 = arith.fptoui %f : f32 to i1
      %n0 = arith.extui %0 : i1 to i32
      %n1 = arith.extui %1 : i1 to i32
      %n2 = arith.extui %2 : i1 to i32
      %n3 = arith.extui %3 : i1 to i32
      %n4 = arith.extui %4 : i1 to i32
      %n5 = arith.extui %5 : i1 to i32
      %n6 = arith.extui %6 : i1 to i32
      %n7 = arith.extui %7 : i1 to i32
      %s0 = arith.muli %n0, %two : i32
      %t0 = arith.addi %s0, %n1 : i32
      %s1 = arith.muli %t0, %two : i32
      %t1 = arith.addi %s1, %n2 : i32
      %s2 = arith.muli %t1, %two : i32
      %t2 = arith.addi %s2, %n3 : i32
      %s3 = arith.muli %t2, %two : i32
      %t3 = arith.addi %s3, %n4 : i32
      %s4 = arith.muli %t3, %two : i32
      %t4 = arith.addi %s4, %n5 : i32
      %s5 = arith.muli %t4, %two : i32
      %t5 = arith.addi %s5, %n6 : i32
      %s6 = arith.muli %t5, %two : i32
      %t6 = arith.addi %s6, %n7 : i32
      tv.yield %t6 : i32
    }
  return %r : tensor<4x12xi32>
}
