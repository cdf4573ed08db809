// RUN: tessera-opt %s --split-input-file --verify-diagnostics

func.func @rank(%x: tensor<4x8xf32>, %w: tensor<4x8xf32>) {
  // expected-error@+1 {{'tv.conv' op input has rank 2; it must be at least 3}}
  %y = tv.conv %x, %w : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @integers(%x: tensor<1x2x8xi32>, %w: tensor<4x2x3xi32>) {
  // expected-error@+1 {{'tv.conv' op input has element type 'i32'; it must be f64, f32, bf16 or f16}}
  %y = tv.conv %x, %w : (tensor<1x2x8xi32>, tensor<4x2x3xi32>) -> tensor<1x4x6xi32>
  return
}

// -----

func.func @channels(%x: tensor<1x2x8xf32>, %w: tensor<4x3x3xf32>) {
  // expected-error@+1 {{'tv.conv' op input has 2 channels; the weight needs 3}}
  %y = tv.conv %x, %w : (tensor<1x2x8xf32>, tensor<4x3x3xf32>) -> tensor<1x4x6xf32>
  return
}

// -----

func.func @groups(%x: tensor<1x6x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{'tv.conv' op has 3 groups, which do not divide the weight's 4 results}}
  %y = tv.conv %x, %w groups(3) : (tensor<1x6x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  return
}

// -----

func.func @windows(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{'tv.conv' op result's dimension 2 has extent 8; it must be 6, the number of windows}}
  %y = tv.conv %x, %w : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x8xf32>
  return
}

// -----

func.func @large(%x: tensor<1x2x8xf32>, %w: tensor<4x2x5xf32>) {
  // expected-error@+1 {{'tv.conv' op has a window of 13 values in dimension 2, which has 9 with its borders}}
  %y = tv.conv %x, %w low [1] dilations [3] : (tensor<1x2x8xf32>, tensor<4x2x5xf32>) -> tensor<1x4x1xf32>
  return
}

// -----

func.func @lists(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3x3xf32>) {
  // expected-error@+1 {{'tv.conv' op 'strides' has 1 numbers; it must have 2}}
  %y = tv.conv %x, %w strides [2] : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x3x3xf32>
  return
}

// -----

func.func @stride(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{'tv.conv' op 'strides' must be in [1, 2^31): 0}}
  %y = tv.conv %x, %w strides [0] : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  return
}

// -----

func.func @dynamic(%x: tensor<1x2x?xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{'tv.conv' op input's dimension 2 is dynamic; only a batch may be}}
  %y = tv.conv %x, %w : (tensor<1x2x?xf32>, tensor<4x2x3xf32>) -> tensor<1x4x?xf32>
  return
}

// -----

func.func @batch(%x: tensor<2x2x8xf32>, %w: tensor<4x2x3xf32>) {
  // expected-error@+1 {{'tv.conv' op result's dimension 0 has extent 1; it must be 2, the batch}}
  %y = tv.conv %x, %w : (tensor<2x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  return
}

// -----

func.func @bias(%x: tensor<2x2x8xf32>, %w: tensor<4x2x3xf32>, %b: tensor<2xf32>) {
  // expected-error@+1 {{'tv.conv' op bias's dimension 0 has extent 2; it must be 4, as the weight's dimension 0 has}}
  %y = tv.conv %x, %w bias %b : (tensor<2x2x8xf32>, tensor<4x2x3xf32>, tensor<2xf32>) -> tensor<2x4x6xf32>
  return
}

// -----

func.func @pool_sizes(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'tv.pool' op 'sizes' must have a number for each dimension that windows move over}}
  %y = tv.pool max %x sizes [] : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @pool_size(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'tv.pool' op 'sizes' must be in [1, 2^31): 0}}
  %y = tv.pool max %x sizes [0] : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @pool_others(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'tv.pool' op result's dimension 0 has extent 3; it must be 2, as the input's has}}
  %y = tv.pool mean %x sizes [2] : (tensor<2x8xf32>) -> tensor<3x7xf32>
  return
}

// -----

func.func @pool_dynamic(%x: tensor<2x?xf32>) {
  // expected-error@+1 {{'tv.pool' op moves windows over dimension 1, which must be static}}
  %y = tv.pool mean %x sizes [2] : (tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}
