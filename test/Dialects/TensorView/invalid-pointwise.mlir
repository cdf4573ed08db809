// Maps, their regions, reductions and broadcasts that are not legal.
// RUN: tessera-opt %s -split-input-file -verify-diagnostics

func.func @shapes(%x: tensor<4x8xf32>, %y: tensor<4x9xf32>) {
  // expected-error@+1 {{'tv.map' op operand #1's dimension 1 has extent 9; it must be 8, as operand #0's dimension 1 has}}
  %r = tv.map %x, %y : (tensor<4x8xf32>, tensor<4x9xf32>) -> tensor<4x8xf32> (%a: f32, %b: f32) {
    tv.yield %a : f32
  }
  return
}

// -----

func.func @ranks(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'tv.map' op result #0 has rank 1; it must be 2}}
  %r = tv.map %x : (tensor<4x8xf32>) -> tensor<4xf32> (%a: f32) {
    tv.yield %a : f32
  }
  return
}

// -----

func.func @arguments(%x: tensor<4xbf16>) {
  // expected-error@+1 {{'tv.map' op the region must have arguments ('bf16'), not ('f32')}}
  %r = tv.map %x : (tensor<4xbf16>) -> tensor<4xf32> (%a: f32) {
    tv.yield %a : f32
  }
  return
}

// -----

func.func @yielded(%x: tensor<4xbf16>) {
  %r = tv.map %x : (tensor<4xbf16>) -> tensor<4xf32> (%a: bf16) {
    // expected-error@+1 {{'tv.yield' op must yield ('f32'), not ('bf16')}}
    tv.yield %a : bf16
  }
  return
}

// -----

func.func @no_yield(%x: tensor<4xf32>) {
  %r = tv.map %x : (tensor<4xf32>) -> tensor<4xf32> (%a: f32) {
    // expected-error@+1 {{block with no terminator}}
    %b = arith.addf %a, %a : f32
  }
  return
}

// -----

func.func @foreign_op(%x: tensor<4xf32>) {
  %r = tv.map %x : (tensor<4xf32>) -> tensor<4xf32> (%a: f32) {
    // expected-error@+1 {{'tv.silu' op is not allowed in a scalar region of tv.map, which holds scalar arith and math ops, tv.load and tv.yield}}
    %y = tv.silu %x : (tensor<4xf32>) -> tensor<4xf32>
    tv.yield %a : f32
  }
  return
}

// -----

func.func @captured_scalar(%x: tensor<4xf32>, %s: f32) {
  %r = tv.map %x : (tensor<4xf32>) -> tensor<4xf32> (%a: f32) {
    // expected-error@+1 {{'arith.addf' op uses a value from outside of the scalar region; only tv.load may, to read a tensor}}
    %y = arith.addf %a, %s : f32
    tv.yield %y : f32
  }
  return
}

// -----

func.func @vector(%x: tensor<4xf32>) {
  %r = tv.map %x : (tensor<4xf32>) -> tensor<4xf32> (%a: f32) {
    // expected-error@+1 {{'arith.constant' op is not allowed in a scalar region of tv.map, which holds scalar arith and math ops, tv.load and tv.yield}}
    %y = arith.constant dense<1.0> : vector<4xf32>
    tv.yield %a : f32
  }
  return
}

// -----

func.func @load_rank(%x: tensor<4xf32>, %t: tensor<4x8xf32>) {
  %r = tv.map %x : (tensor<4xf32>) -> tensor<4xf32> (%a: f32) {
    %i = arith.constant 0 : index
    // expected-error@+1 {{'tv.load' op has 1 indices; the tensor has rank 2}}
    %y = tv.load %t[%i] : tensor<4x8xf32> -> f32
    tv.yield %y : f32
  }
  return
}

// -----

func.func @load_type(%x: tensor<4xf32>, %t: tensor<4xf32>) {
  %r = tv.map %x : (tensor<4xf32>) -> tensor<4xf32> (%a: f32) {
    %i = arith.constant 0 : index
    // expected-error@+1 {{'tv.load' op result must be 'f32'}}
    %y = tv.load %t[%i] : tensor<4xf32> -> f64
    tv.yield %a : f32
  }
  return
}

// -----

func.func @load_outside(%t: tensor<f32>) {
  // expected-error@+1 {{'tv.load' op belongs in a scalar region of a tv op}}
  %y = tv.load %t[] : tensor<f32> -> f32
  return
}

// -----

#v = #tv.view<#tv.mesh<x = 2>, [did(x) * 2]>
func.func @load_of_a_part(%x: tensor<2xf32, #tv.local<#v, of [4]>>) {
  %r = tv.map %x : (tensor<2xf32, #tv.local<#v, of [4]>>) -> tensor<2xf32, #tv.local<#v, of [4]>> (%a: f32) {
    %i = arith.constant 0 : index
    // expected-error@+1 {{'tv.load' op reads a tensor that is not whole on each device}}
    %y = tv.load %x[%i] : tensor<2xf32, #tv.local<#v, of [4]>> -> f32
    tv.yield %y : f32
  }
  return
}

// -----

func.func @element_type(%x: tensor<4xi16>) {
  // expected-error@+1 {{'tv.map' op operand #0 has element type 'i16'; it must be one of f64, f32, bf16, f16, f8E4M3FN, f8E5M2, i64, i32, ui32, i8, ui8, i1}}
  %r = tv.map %x : (tensor<4xi16>) -> tensor<4xi16> (%a: i16) {
    tv.yield %a : i16
  }
  return
}

// -----

func.func @reduce_order(%x: tensor<2x3x4xf32>) {
  // expected-error@+1 {{'tv.reduce' op 'dims' must ascend and be in [0, 3)}}
  %r = tv.reduce sum %x dims [2, 0] : (tensor<2x3x4xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @reduce_range(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'tv.reduce' op 'dims' must ascend and be in [0, 2)}}
  %r = tv.reduce sum %x dims [2] : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @reduce_shape(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'tv.reduce' op result #0's dimension 0 has extent 2; it must be 3, as operand #0's dimension 1 has}}
  %r = tv.reduce sum %x dims [0] : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @reduce_f8(%x: tensor<2xf8E4M3FN>) {
  // expected-error@+1 {{'tv.reduce' op input has element type 'f8E4M3FN'; it must be a number, not f8 or i1}}
  %r = tv.reduce sum %x dims [0] : (tensor<2xf8E4M3FN>) -> tensor<f8E4M3FN>
  return
}

// -----

func.func @broadcast_dims(%x: tensor<3xf32>) {
  // expected-error@+1 {{'tv.broadcast' op 'dims' has 2 numbers; it must have 1}}
  %r = tv.broadcast %x dims [0, 1] : (tensor<3xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @broadcast_extent(%x: tensor<3xf32>) {
  // expected-error@+1 {{'tv.broadcast' op result #0's dimension 1 has extent 4; it must be 3, as operand #0's dimension 0 has}}
  %r = tv.broadcast %x dims [1] : (tensor<3xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @broadcast_needs_like(%x: tensor<3xf32>) {
  // expected-error@+1 {{'tv.broadcast' op result's dimension 0 is dynamic; 'like' must give its extent}}
  %r = tv.broadcast %x dims [1] : (tensor<3xf32>) -> tensor<?x3xf32>
  return
}

// -----

func.func @broadcast_like(%x: tensor<3xf32>, %t: tensor<5x3xf32>) {
  // expected-error@+1 {{'tv.broadcast' op 'like' must have the shape of the result}}
  %r = tv.broadcast %x dims [1] like %t : (tensor<3xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @softmax_dim(%x: tensor<3xf32>) {
  // expected-error@+1 {{'tv.softmax' op dim 1 is not in [0, 1)}}
  %r = tv.softmax %x dim 1 : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @norm_weight(%x: tensor<2x3xf32>, %w: tensor<2xf32>) {
  // expected-error@+1 {{'tv.rms_norm' op operand #1's dimension 0 has extent 2; it must be 3, as operand #0's dimension 1 has}}
  %r = tv.rms_norm %x, %w epsilon(1.0e-5) : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @norm_epsilon(%x: tensor<2x3xf32>, %w: tensor<3xf32>) {
  // expected-error@+1 {{'tv.layer_norm' op epsilon must not be negative}}
  %r = tv.layer_norm %x, %w, %w epsilon(-1.0) : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @adamw_elements(%w: tensor<3xf32>, %g: tensor<3xf64>, %c: tensor<f32>, %t: tensor<i64>) {
  // expected-error@+1 {{'tv.adamw' op operand #3 is of 'f64', the weight of 'f32'; all must be f64, or none}}
  %r:3 = tv.adamw %w, %w, %w, %g scale %c rate %c step %t betas(0.9, 0.95) epsilon(1.0e-8) decay(0.1)
    : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf64>, tensor<f32>, tensor<f32>, tensor<i64>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @adamw_results(%w: tensor<3xf32>, %c: tensor<f32>, %t: tensor<i64>) {
  // expected-error@+1 {{'tv.adamw' op}}
  %r:3 = tv.adamw %w, %w, %w, %w scale %c rate %c step %t betas(0.9, 0.95) epsilon(1.0e-8) decay(0.1)
    : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>, tensor<i64>) -> (tensor<3xf32>, tensor<3xbf16>, tensor<3xf32>)
  return
}

// -----

func.func @adamw_scalars(%w: tensor<3xf32>, %c: tensor<f32>, %t: tensor<i64>) {
  // expected-error@+1 {{'tv.adamw' op operand #5 has rank 1; it must be 0}}
  %r:3 = tv.adamw %w, %w, %w, %w scale %c rate %w step %t betas(0.9, 0.95) epsilon(1.0e-8) decay(0.1)
    : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<3xf32>, tensor<i64>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @adamw_step(%w: tensor<3xf32>, %c: tensor<f32>) {
  // expected-error@+1 {{'tv.adamw' op step has element type 'f32'; it must be i32 or i64}}
  %r:3 = tv.adamw %w, %w, %w, %w scale %c rate %c step %c betas(0.9, 0.95) epsilon(1.0e-8) decay(0.1)
    : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @adamw_betas(%w: tensor<3xf32>, %c: tensor<f32>, %t: tensor<i64>) {
  // expected-error@+1 {{'tv.adamw' op betas must be in [0, 1)}}
  %r:3 = tv.adamw %w, %w, %w, %w scale %c rate %c step %t betas(0.9, 1.0) epsilon(1.0e-8) decay(0.1)
    : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<f32>, tensor<i64>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @adamw_shapes(%w: tensor<3xf32>, %g: tensor<4xf32>, %c: tensor<f32>, %t: tensor<i64>) {
  // expected-error@+1 {{'tv.adamw' op operand #3's dimension 0 has extent 4; it must be 3, as operand #0's dimension 0 has}}
  %r:3 = tv.adamw %w, %w, %w, %g scale %c rate %c step %t betas(0.9, 0.95) epsilon(1.0e-8) decay(0.1)
    : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<i64>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @rope_positions(%x: tensor<2x3x4xf32>, %p: tensor<2x3x4xi32>) {
  // expected-error@+1 {{'tv.rope' op positions have rank 3; it must be 1, [S], or up to 2, the input's first dimensions and S}}
  %r = tv.rope %x at %p base(10000.0) : (tensor<2x3x4xf32>, tensor<2x3x4xi32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @rope_extent(%x: tensor<2x3x4xf32>, %p: tensor<2xi32>) {
  // expected-error@+1 {{'tv.rope' op operand #1's dimension 0 has extent 2; it must be 3, as operand #0's dimension 1 has}}
  %r = tv.rope %x at %p base(10000.0) : (tensor<2x3x4xf32>, tensor<2xi32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @rope_elements(%x: tensor<2x4xf32>, %p: tensor<2xf32>) {
  // expected-error@+1 {{'tv.rope' op positions has element type 'f32'; it must be i32 or i64}}
  %r = tv.rope %x at %p base(10000.0) : (tensor<2x4xf32>, tensor<2xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @rope_odd(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'tv.rope' op the last dimension must be static and even}}
  %r = tv.rope %x base(10000.0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dropout_rate(%x: tensor<2x3xf32>) {
  // expected-error@+1 {{'tv.dropout' op rate must be in [0, 1)}}
  %r = tv.dropout %x rate(1.0) seed(1) stream(2) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dropout_step(%x: tensor<2x3xf32>, %t: tensor<1xi64>) {
  // expected-error@+1 {{'tv.dropout' op step is 'tensor<1xi64>'; it must be a tensor<i64>}}
  %r = tv.dropout %x rate(0.5) seed(1) stream(2) step %t : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dropout_types(%x: tensor<2x3xf32>, %t: tensor<i64>) {
  // expected-error@+1 {{'tv.dropout' op}}
  %r = tv.dropout %x rate(0.5) seed(1) stream(2) step %t : (tensor<2x3xf32>, tensor<i64>) -> tensor<2x3xbf16>
  return
}

// -----

func.func @cross_entropy_lse(%x: tensor<2x3xbf16>, %l: tensor<2xi32>) {
  // expected-error@+1 {{'tv.cross_entropy' op lse has element type 'bf16'; it must be 'f32'}}
  %r, %lse = tv.cross_entropy %x, %l : (tensor<2x3xbf16>, tensor<2xi32>) -> (tensor<2xbf16>, tensor<2xbf16>)
  return
}

// -----

func.func @cross_entropy_labels(%x: tensor<2x3xf32>, %l: tensor<2xf32>) {
  // expected-error@+1 {{'tv.cross_entropy' op labels has element type 'f32'; it must be i32 or i64}}
  %r = tv.cross_entropy %x, %l : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @gelu_integers(%x: tensor<2xi32>) {
  // expected-error@+1 {{'tv.gelu' op operand #0 has element type 'i32'; it must be f64, f32, bf16 or f16}}
  %r = tv.gelu %x : (tensor<2xi32>) -> tensor<2xi32>
  return
}

// -----

func.func @gelu_grad_integers(%x: tensor<2xi32>) {
  // expected-error@+1 {{'tv.gelu_grad' op operand #0 has element type 'i32'; it must be f64, f32, bf16 or f16}}
  %r = tv.gelu_grad %x, %x : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  return
}

// -----

func.func @gelu_grad_shapes(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  // expected-error@+1 {{'tv.gelu_grad' op}}
  %r = tv.gelu_grad %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @add_element_types(%x: tensor<2xi32>, %y: tensor<2xf32>) {
  // expected-error@+1 {{'tv.add' op element type 'f32' must be 'i32', as the others}}
  %r = tv.add %x, %y : (tensor<2xi32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @sub_conditions(%x: tensor<2xi1>) {
  // expected-error@+1 {{'tv.sub' op operand #0 has element type 'i1'; it must be a number, not f8 or i1}}
  %r = tv.sub %x, %x : (tensor<2xi1>, tensor<2xi1>) -> tensor<2xi1>
  return
}

// -----

func.func @exp_integers(%x: tensor<2xi32>) {
  // expected-error@+1 {{'tv.exp' op operand #0 has element type 'i32'; it must be f64, f32, bf16 or f16}}
  %r = tv.exp %x : (tensor<2xi32>) -> tensor<2xi32>
  return
}

// -----

func.func @max_shapes(%x: tensor<2xf32>, %y: tensor<3xf32>) {
  // expected-error@+1 {{'tv.max' op operand #1's dimension 0 has extent 3; it must be 2, as operand #0's dimension 0 has}}
  %r = tv.max %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @neg_rank(%x: tensor<2xf32>) {
  // expected-error@+1 {{'tv.neg' op result #0 has rank 2; it must be 1, as operand #0 has: tv.broadcast adds dimensions}}
  %r = tv.neg %x : (tensor<2xf32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @compare_element_types(%x: tensor<2xf32>, %y: tensor<2xf64>) {
  // expected-error@+1 {{'tv.compare' op element type 'f64' must be 'f32', as the others}}
  %r = tv.compare lt %x, %y : (tensor<2xf32>, tensor<2xf64>) -> tensor<2xi1>
  return
}

// -----

func.func @compare_result(%x: tensor<2xf32>) {
  // expected-error@+1 {{'tv.compare' op result has element type 'f32'; it must be i1}}
  %r = tv.compare lt %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @compare_predicate(%x: tensor<2xf32>) {
  // expected-error@+1 {{expected string or keyword containing one of the following enum values for attribute 'predicate' [eq, ne, lt, le, gt, ge]}}
  %r = tv.compare less %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return
}

// -----

func.func @where_condition(%x: tensor<2xf32>) {
  // expected-error@+1 {{'tv.where' op condition has element type 'f32'; it must be i1}}
  %r = tv.where %x, %x, %x : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @where_element_types(%c: tensor<2xi1>, %x: tensor<2xf32>, %y: tensor<2xi32>) {
  // expected-error@+1 {{'tv.where' op element type 'i32' must be 'f32', as the others}}
  %r = tv.where %c, %x, %y : (tensor<2xi1>, tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  return
}

// -----

func.func @cast_to_i16(%x: tensor<2xf32>) {
  // expected-error@+1 {{'tv.cast' op result #0 has element type 'i16'; it must be one of f64, f32, bf16, f16, f8E4M3FN, f8E5M2, i64, i32, ui32, i8, ui8, i1}}
  %r = tv.cast %x : (tensor<2xf32>) -> tensor<2xi16>
  return
}

// -----

func.func @cast_shape(%x: tensor<2xf32>) {
  // expected-error@+1 {{'tv.cast' op result #0's dimension 0 has extent 3; it must be 2, as operand #0's dimension 0 has}}
  %r = tv.cast %x : (tensor<2xf32>) -> tensor<3xi8>
  return
}

// -----

func.func @form(%x: tensor<2xf32>) {
  // expected-error@+1 {{custom op 'tv.gelu' has no 'tahn' before operands, but may have 'tanh'}}
  %r = tv.gelu tahn %x : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @direction(%x: tensor<2xf32>) {
  // expected-error@+1 {{custom op 'tv.cumsum' has no 'revrse' before operands, but may have 'reverse'}}
  %r = tv.cumsum revrse %x dim 0 : (tensor<2xf32>) -> tensor<2xf32>
  return
}
