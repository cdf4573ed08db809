// RUN: tessera-opt %s --split-input-file --verify-diagnostics -o /dev/null
// RUN: tessera-opt %s --split-input-file --verify-diagnostics | tessera-opt --split-input-file | FileCheck %s

// CHECK: plan.product %{{.*}}, %{{.*}} to %{{.*}} : memref<5x8xbf16>, memref<?x8xbf16> to memref<5x16xbf16>
// CHECK-NEXT: plan.product %{{.*}}, %{{.*}} to %{{.*}}, %{{.*}} : memref<2x5x8xbf16>, memref<?x8xbf16> to memref<?x5x16xbf16>, memref<?x5x16xbf16> epilogue (%[[S:.*]]: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index) {
// CHECK-NEXT: %[[T:.*]] = math.tanh %[[S]] : f32
// CHECK-NEXT: tv.yield %[[T]], %[[S]] : f32, f32
func.func @right(%a: memref<5x8xbf16>, %b: memref<?x8xbf16>, %c: memref<5x16xbf16>,
                 %many: memref<2x5x8xbf16>, %y: memref<?x5x16xbf16>, %h: memref<?x5x16xbf16>) {
  plan.product %a, %b to %c : memref<5x8xbf16>, memref<?x8xbf16> to memref<5x16xbf16>
  plan.product %many, %b to %y, %h
      : memref<2x5x8xbf16>, memref<?x8xbf16> to memref<?x5x16xbf16>, memref<?x5x16xbf16>
      epilogue (%sum: f32, %batch: index, %row: index, %column: index) {
    %t = math.tanh %sum : f32
    tv.yield %t, %sum : f32, f32
  }
  return
}

// -----

func.func @rank(%a: memref<2x2x5x8xbf16>, %b: memref<16x8xbf16>, %c: memref<2x2x5x16xbf16>) {
  // expected-error @+1 {{multiplies matrices, or a batch of them with one or with as many, not 'memref<2x2x5x8xbf16>' and 'memref<16x8xbf16>'}}
  plan.product %a, %b to %c : memref<2x2x5x8xbf16>, memref<16x8xbf16> to memref<2x2x5x16xbf16>
  return
}

// -----

func.func @rank_of_right(%a: memref<5x8xbf16>, %b: memref<2x16x8xbf16>, %c: memref<5x16xbf16>) {
  // expected-error @+1 {{multiplies matrices, or a batch of them with one or with as many}}
  plan.product %a, %b to %c : memref<5x8xbf16>, memref<2x16x8xbf16> to memref<5x16xbf16>
  return
}

// -----

func.func @terms(%a: memref<5x8xbf16>, %b: memref<16x9xbf16>, %c: memref<5x16xbf16>) {
  // expected-error @+1 {{a and b must have one type of floats, rows of one length and one batch, not 'memref<5x8xbf16>' and 'memref<16x9xbf16>'}}
  plan.product %a, %b to %c : memref<5x8xbf16>, memref<16x9xbf16> to memref<5x16xbf16>
  return
}

// -----

func.func @batch(%a: memref<2x5x8xbf16>, %b: memref<3x16x8xbf16>, %c: memref<2x5x16xbf16>) {
  // expected-error @+1 {{rows of one length and one batch}}
  plan.product %a, %b to %c : memref<2x5x8xbf16>, memref<3x16x8xbf16> to memref<2x5x16xbf16>
  return
}

// -----

func.func @types(%a: memref<5x8xi32>, %b: memref<16x8xi32>, %c: memref<5x16xi32>) {
  // expected-error @+1 {{a and b must have one type of floats}}
  plan.product %a, %b to %c : memref<5x8xi32>, memref<16x8xi32> to memref<5x16xi32>
  return
}

// -----

func.func @columns(%a: memref<5x8xbf16>, %b: memref<16x8xbf16>, %c: memref<5x17xbf16>) {
  // expected-error @+1 {{results must have a row for each one of a, a column for each row of b, and their elements, not 'memref<5x17xbf16>'}}
  plan.product %a, %b to %c : memref<5x8xbf16>, memref<16x8xbf16> to memref<5x17xbf16>
  return
}

// -----

func.func @element(%a: memref<5x8xbf16>, %b: memref<16x8xbf16>, %c: memref<5x16xf32>) {
  // expected-error @+1 {{and their elements, not 'memref<5x16xf32>'}}
  plan.product %a, %b to %c : memref<5x8xbf16>, memref<16x8xbf16> to memref<5x16xf32>
  return
}

// -----

func.func @several(%a: memref<5x8xbf16>, %b: memref<16x8xbf16>, %c: memref<5x16xbf16>) {
  // expected-error @+1 {{has 2 results; only an epilogue gives several}}
  plan.product %a, %b to %c, %c : memref<5x8xbf16>, memref<16x8xbf16> to memref<5x16xbf16>, memref<5x16xbf16>
  return
}

// -----

func.func @arguments(%a: memref<5x8xbf16>, %b: memref<16x8xbf16>, %c: memref<5x16xbf16>) {
  // expected-error @+1 {{the epilogue must have arguments ('f32', 'index', 'index') and tv.yield 'f32'}}
  plan.product %a, %b to %c : memref<5x8xbf16>, memref<16x8xbf16> to memref<5x16xbf16>
      epilogue (%sum: f32, %column: index) {
    tv.yield %sum : f32
  }
  return
}

// -----

func.func @yields(%a: memref<5x8xbf16>, %b: memref<16x8xbf16>, %c: memref<5x16xbf16>) {
  // expected-error @+1 {{and tv.yield 'f32'}}
  plan.product %a, %b to %c : memref<5x8xbf16>, memref<16x8xbf16> to memref<5x16xbf16>
      epilogue (%sum: f32, %row: index, %column: index) {
    tv.yield %sum, %sum : f32, f32
  }
  return
}
