// Named pointwise ops: their text, the map that each is, which partial operands they
// take.
// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: tessera-opt %s --tv-decompose-composites=all | FileCheck %s --check-prefix=MAP
// RUN: tessera-opt %s --tv-print-rules="rules=false partial=true" -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATES --implicit-check-not="remark: partial"

// Floats of two signs, and integers with and without one. One op is computed in the
// element type: it rounds but once.
// CHECK-LABEL: func.func @arithmetic
// MAP-LABEL: func.func @arithmetic
func.func @arithmetic(%x: tensor<4xbf16>, %i: tensor<4xi32>, %u: tensor<4xui8>) {
  // CHECK: tv.add %{{.*}}, %{{.*}} : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  // MAP: tv.map
  // MAP-NEXT: arith.addf %{{.*}} : bf16
  // MAP-NEXT: tv.yield
  // STATES: partial (sum, sum) -> (sum)
  // STATES: partial (max, -) -> (max)
  // STATES: partial (-, max) -> (max)
  // STATES: partial (min, -) -> (min)
  // STATES: partial (-, min) -> (min)
  %add = tv.add %x, %x : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  // CHECK: tv.sub
  // MAP: arith.subf %{{.*}} : bf16
  // STATES: partial (sum, sum) -> (sum)
  // STATES: partial (max, -) -> (max)
  // STATES: partial (-, max) -> (min)
  // STATES: partial (min, -) -> (min)
  // STATES: partial (-, min) -> (max)
  %sub = tv.sub %x, %x : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  // CHECK: tv.mul
  // MAP: arith.mulf %{{.*}} : bf16
  // STATES: partial (sum, -) -> (sum)
  // STATES: partial (-, sum) -> (sum)
  %mul = tv.mul %x, %x : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  // CHECK: tv.div
  // MAP: arith.divf %{{.*}} : bf16
  // STATES: partial (sum, -) -> (sum)
  %div = tv.div %x, %x : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  // CHECK: tv.max
  // MAP: arith.maximumf %{{.*}} : bf16
  // STATES: partial (max, -) -> (max)
  // STATES: partial (-, max) -> (max)
  // STATES: partial (max, max) -> (max)
  %max = tv.max %x, %x : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  // CHECK: tv.min
  // MAP: arith.minimumf %{{.*}} : bf16
  // STATES: partial (min, -) -> (min)
  // STATES: partial (-, min) -> (min)
  // STATES: partial (min, min) -> (min)
  %min = tv.min %x, %x : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  // CHECK: tv.neg %{{.*}} : (tensor<4xbf16>) -> tensor<4xbf16>
  // MAP: arith.negf %{{.*}} : bf16
  // STATES: partial (sum) -> (sum)
  // STATES: partial (max) -> (min)
  // STATES: partial (min) -> (max)
  %neg = tv.neg %x : (tensor<4xbf16>) -> tensor<4xbf16>
  // CHECK: tv.abs
  // MAP: math.absf %{{.*}} : bf16
  %abs = tv.abs %x : (tensor<4xbf16>) -> tensor<4xbf16>

  // MAP: arith.subi %{{.*}} : i32
  // STATES: partial (sum, sum) -> (sum)
  %subi = tv.sub %i, %i : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // MAP: arith.divsi %{{.*}} : i32
  %divi = tv.div %i, %i : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // MAP: arith.maxsi %{{.*}} : i32
  // STATES: partial (max, -) -> (max)
  // STATES: partial (-, max) -> (max)
  // STATES: partial (max, max) -> (max)
  %maxi = tv.max %i, %i : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // MAP: %[[C0:.*]] = arith.constant 0 : i32
  // MAP: arith.subi %[[C0]], %{{.*}} : i32
  %negi = tv.neg %i : (tensor<4xi32>) -> tensor<4xi32>
  // MAP: math.absi %{{.*}} : i32
  %absi = tv.abs %i : (tensor<4xi32>) -> tensor<4xi32>

  // MAP: arith.divui %{{.*}} : i8
  %divu = tv.div %u, %u : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  // MAP: arith.minui %{{.*}} : i8
  // STATES: partial (min, -) -> (min)
  // STATES: partial (-, min) -> (min)
  // STATES: partial (min, min) -> (min)
  %minu = tv.min %u, %u : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  // MAP: tv.map
  // MAP-NEXT: tv.yield
  // STATES: partial (sum) -> (sum)
  // STATES: partial (max) -> (max)
  // STATES: partial (min) -> (min)
  %absu = tv.abs %u : (tensor<4xui8>) -> tensor<4xui8>
  return
}

// CHECK-LABEL: func.func @functions
// MAP-LABEL: func.func @functions
func.func @functions(%x: tensor<4xf32>, %h: tensor<4xbf16>) {
  // CHECK: tv.exp
  // MAP: math.exp
  // STATES: partial (max) -> (max)
  // STATES: partial (min) -> (min)
  %exp = tv.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  // What is partial may be below 0, where these are not defined.
  // CHECK: tv.log
  // MAP: math.log
  %log = tv.log %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: tv.sqrt
  // MAP: math.sqrt
  %sqrt = tv.sqrt %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: tv.rsqrt
  // MAP: math.rsqrt
  %rsqrt = tv.rsqrt %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: tv.pow
  // MAP: math.powf
  %pow = tv.pow %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: tv.tanh
  // MAP: math.tanh
  // STATES: partial (max) -> (max)
  // STATES: partial (min) -> (min)
  %tanh = tv.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  // Falls twice. Several ops are computed in f32 and rounded once.
  // CHECK: tv.sigmoid
  // MAP: tv.map
  // MAP-NEXT: arith.extf %{{.*}} : bf16 to f32
  // MAP-NEXT: arith.negf
  // MAP-NEXT: math.exp
  // MAP-NEXT: arith.constant 1.0{{.*}} : f32
  // MAP-NEXT: arith.addf
  // MAP-NEXT: arith.constant 1.0{{.*}} : f32
  // MAP-NEXT: arith.divf
  // MAP-NEXT: arith.truncf %{{.*}} : f32 to bf16
  // STATES: partial (max) -> (max)
  // STATES: partial (min) -> (min)
  %sigmoid = tv.sigmoid %h : (tensor<4xbf16>) -> tensor<4xbf16>
  // CHECK: tv.silu
  // MAP: arith.divf
  %silu = tv.silu %x : (tensor<4xf32>) -> tensor<4xf32>
  // Linear in the gradient, also where it is rounded.
  // CHECK: tv.gelu_grad tanh
  // MAP: arith.truncf %{{.*}} : f32 to bf16
  // STATES: partial (sum, -) -> (sum)
  %grad = tv.gelu_grad tanh %h, %h : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  return
}

// CHECK-LABEL: func.func @choices
// MAP-LABEL: func.func @choices
func.func @choices(%x: tensor<4xf32>, %i: tensor<4xi64>, %u: tensor<4xui32>,
                   %f: tensor<4xf8E5M2>) {
  // CHECK: tv.compare eq %{{.*}}, %{{.*}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  // MAP: arith.cmpf oeq
  %eq = tv.compare eq %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  // CHECK: tv.compare ne
  // MAP: arith.cmpf une
  %ne = tv.compare ne %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  // CHECK: tv.compare lt
  // MAP: arith.cmpf olt
  %lt = tv.compare lt %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  // CHECK: tv.compare le
  // MAP: arith.cmpi sle
  %le = tv.compare le %i, %i : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
  // CHECK: tv.compare gt
  // MAP: arith.cmpi ugt
  %gt = tv.compare gt %u, %u : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xi1>
  // CHECK: tv.compare ge
  // MAP: arith.cmpi uge
  %ge = tv.compare ge %u, %u : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xi1>
  // CHECK: tv.where %{{.*}}, %{{.*}}, %{{.*}} : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // MAP: arith.select %{{.*}} : f32
  // STATES: partial (-, sum, sum) -> (sum)
  // STATES: partial (-, max, max) -> (max)
  // STATES: partial (-, min, min) -> (min)
  %where = tv.where %lt, %x, %x : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: tv.where
  // MAP: arith.select %{{.*}} : f8E5M2
  // STATES: partial (-, sum, sum) -> (sum)
  // STATES: partial (-, max, max) -> (max)
  // STATES: partial (-, min, min) -> (min)
  %any = tv.where %lt, %f, %f : (tensor<4xi1>, tensor<4xf8E5M2>, tensor<4xf8E5M2>) -> tensor<4xf8E5M2>
  return
}

// CHECK-LABEL: func.func @casts
// MAP-LABEL: func.func @casts
func.func @casts(%x: tensor<4xf32>, %h: tensor<4xbf16>, %d: tensor<4xf64>, %b: tensor<4xi8>,
                 %u: tensor<4xui8>, %c: tensor<4xi1>, %l: tensor<4xi64>) {
  // Widening is exact, rounding only keeps order.
  // CHECK: tv.cast %{{.*}} : (tensor<4xbf16>) -> tensor<4xf32>
  // MAP: arith.extf %{{.*}} : bf16 to f32
  // STATES: partial (sum) -> (sum)
  // STATES: partial (max) -> (max)
  // STATES: partial (min) -> (min)
  %0 = tv.cast %h : (tensor<4xbf16>) -> tensor<4xf32>
  // MAP: arith.truncf %{{.*}} : f32 to bf16
  // STATES: partial (max) -> (max)
  // STATES: partial (min) -> (min)
  %1 = tv.cast %x : (tensor<4xf32>) -> tensor<4xbf16>
  // Through f32.
  // MAP: arith.truncf %{{.*}} : f64 to f32
  // MAP-NEXT: arith.truncf %{{.*}} : f32 to f8E4M3FN
  // STATES: partial (max) -> (max)
  // STATES: partial (min) -> (min)
  %2 = tv.cast %d : (tensor<4xf64>) -> tensor<4xf8E4M3FN>
  // MAP: arith.extf %{{.*}} : bf16 to f32
  // MAP-NEXT: arith.fptoui %{{.*}} : f32 to i32
  %3 = tv.cast %h : (tensor<4xbf16>) -> tensor<4xui32>
  // MAP: arith.fptosi %{{.*}} : f64 to i8
  %4 = tv.cast %d : (tensor<4xf64>) -> tensor<4xi8>
  // By the sign of what is cast.
  // MAP: arith.extsi %{{.*}} : i8 to i32
  %5 = tv.cast %b : (tensor<4xi8>) -> tensor<4xui32>
  // MAP: arith.extui %{{.*}} : i8 to i64
  %6 = tv.cast %u : (tensor<4xui8>) -> tensor<4xi64>
  // MAP: arith.trunci %{{.*}} : i64 to i8
  %7 = tv.cast %l : (tensor<4xi64>) -> tensor<4xui8>
  // MAP: arith.sitofp %{{.*}} : i64 to f32
  // MAP-NEXT: arith.truncf %{{.*}} : f32 to f16
  %8 = tv.cast %l : (tensor<4xi64>) -> tensor<4xf16>
  // The same bits, in another order.
  // MAP: tv.map
  // MAP-NEXT: tv.yield
  // STATES: partial (sum) -> (sum)
  %11 = tv.cast %b : (tensor<4xi8>) -> tensor<4xui8>
  // Not 0, as a NaN is.
  // MAP: arith.constant 0.0
  // MAP-NEXT: arith.cmpf une
  %9 = tv.cast %x : (tensor<4xf32>) -> tensor<4xi1>
  // MAP: arith.uitofp %{{.*}} : i1 to f32
  %10 = tv.cast %c : (tensor<4xi1>) -> tensor<4xf32>
  return
}
