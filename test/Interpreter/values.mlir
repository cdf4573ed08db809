// Elements that can be worked out by hand, whole and on each rank.
// RUN: split-file %s %t
// RUN: tessera-opt %t/shards.mlir --interpret=2 --interpret-against=none --interpret-print -o /dev/null | FileCheck %s --check-prefix=WHOLE
// RUN: tessera-opt %t/shards.mlir --interpret=2 --interpret-against=none --interpret-print=shards -o /dev/null | FileCheck %s --check-prefix=SHARDS
// RUN: tessera-opt %t/integers.mlir --interpret=1 --interpret-against=none --interpret-print -o /dev/null | FileCheck %s --check-prefix=INTEGERS
// RUN: tessera-opt %t/casts.mlir --interpret=1 --interpret-against=none --interpret-print -o /dev/null | FileCheck %s --check-prefix=CASTS
// RUN: tessera-opt %t/random.mlir --interpret=1 --interpret-against=none --interpret-print -o /dev/null | FileCheck %s --check-prefix=RANDOM

// WHOLE: result #0: [0, 1, 2, 3, 4]
// WHOLE: result #1: [10, 10, 10, 10, 10]

// Blocks of 2 dealt out in turn; coordinate 0 keeps a value that becomes partial.
// SHARDS: result #0 on rank 0: [0, 1, 4]
// SHARDS: result #0 on rank 1: [2, 3]
// SHARDS: result #1 on rank 0: [10, 10, 10, 10, 10]
// SHARDS: result #1 on rank 1: [0, 0, 0, 0, 0]

//--- shards.mlir
#m = #tv.mesh<x = 2>
#dealt = #tv.view<#m, [2 * did(x) * 2]>
#whole = #tv.view<#m, [5]>
#sum = #tv.view<#m, [5], partial = [x : sum]>
func.func @main() -> (tensor<5xi32, #dealt>, tensor<5xf32, #sum>) {
  %i = tv.iota 0 : () -> tensor<5xi32, #dealt>
  %c = tv.constant dense<10.0> : tensor<f32> : () -> tensor<5xf32, #whole>
  %p = tv.reshard %c : (tensor<5xf32, #whole>) -> tensor<5xf32, #sum>
  return %i, %p : tensor<5xi32, #dealt>, tensor<5xf32, #sum>
}

// 64 bits are exact; 8 bits wrap; the quotient is rounded down.
// INTEGERS: result #0: [9007199254740993]
// INTEGERS: result #1: [-56]
// INTEGERS: result #2: [-4]
//--- integers.mlir
func.func @main() -> (tensor<1xi64>, tensor<1xi8>, tensor<1xi32>) {
  %a = tv.constant dense<9007199254740992> : tensor<i64> : () -> tensor<1xi64>
  %b = tv.constant dense<100> : tensor<i8> : () -> tensor<1xi8>
  %c = tv.constant dense<-7> : tensor<i32> : () -> tensor<1xi32>
  %x, %y, %z = tv.map %a, %b, %c : (tensor<1xi64>, tensor<1xi8>, tensor<1xi32>)
      -> (tensor<1xi64>, tensor<1xi8>, tensor<1xi32>)
    (%i: i64, %j: i8, %k: i32) {
      %one = arith.constant 1 : i64
      %two = arith.constant 2 : i32
      %r = arith.addi %i, %one : i64
      %s = arith.addi %j, %j : i8
      %t = arith.floordivsi %k, %two : i32
      tv.yield %r, %s, %t : i64, i8, i32
    }
  return %x, %y, %z : tensor<1xi64>, tensor<1xi8>, tensor<1xi32>
}

// Floats beyond the type, a NaN, and what is compared with it.
// CASTS: result #0: [127, -128, 0, 1]
// CASTS: result #1: [255, 0, 0, 1]
// CASTS: result #2: [1, 1, 1, 1]
// CASTS: result #3: [0, 0, 1, 0]
// CASTS: result #4: [0, 0, 0, 0]
// CASTS: result #5: [{{-?}}nan, inf, -1.5, 1.5]
//--- casts.mlir
func.func @main() -> (tensor<4xi8>, tensor<4xui8>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>,
                      tensor<4xf32>) {
  %x = tv.constant dense<[1000.0, -1000.0, 0x7FC00000, 1.9]> : tensor<4xf32>
     : () -> tensor<4xf32>
  %y = tv.constant dense<[0x7FC00000, 0x7F800000, -1.5, 1.5]> : tensor<4xf32>
     : () -> tensor<4xf32>
  %0 = tv.cast %x : (tensor<4xf32>) -> tensor<4xi8>
  %1 = tv.cast %x : (tensor<4xf32>) -> tensor<4xui8>
  %2 = tv.cast %x : (tensor<4xf32>) -> tensor<4xi1>
  %3 = tv.compare ne %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %4 = tv.compare lt %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %w = tv.constant dense<[2.0, 1.0, -2.0, -3.0]> : tensor<4xf32> : () -> tensor<4xf32>
  %5 = tv.max %w, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<4xi8>, tensor<4xui8>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xf32>
}

// The known answer of Philox 4x32-10 for key 0, counter 0 is 6627e8d5 e169c58d
// bc57ac4c 9b00dbd8; of each word the upper 24 bits.
// RANDOM: result #0: [0.399046421, 0.880520165, 0.735712767, 0.60548
// Of 4x32-7 it is 5f6fb709 0d893f64 4f121f81 4f730a48; both halves, the low one first.
// RANDOM: result #1: [0.714981079, 0.372787476, 0.247619629, 0.0528717041, 0.12306
//--- random.mlir
func.func @main() -> (tensor<4xf32>, tensor<8xf32>) {
  %r = tv.random seed(0) stream(0) : () -> tensor<4xf32>
  %h = tv.random seed(0) stream(0) bits(16) : () -> tensor<8xf32>
  return %r, %h : tensor<4xf32>, tensor<8xf32>
}
