// RUN: tessera-opt --split-input-file --verify-diagnostics --mlir-print-op-on-diagnostic=false %s

// expected-error @+1 {{the bandwidth of a machine is a number above 0, such as #tv.machine<latency = 5.0e-6, bandwidth = 3.0e11, copy = 2.0e12, loops = 3.0e14>}}
module attributes {tv.machine = #tv.machine<latency = 1.0e-5, copy = 2.5e11, loops = 4.0e13>} {
}

// -----

// expected-error @+1 {{the loops of a machine is a number above 0}}
module attributes {tv.machine = #tv.machine<latency = 1.0e-5, bandwidth = 2.0e10, copy = 2.5e11, loops = -4.0e13>} {
}

// -----

// expected-error @+1 {{'speed' is not one of latency, bandwidth, copy and loops, each of which is given once}}
module attributes {tv.machine = #tv.machine<speed = 1.0e-5>} {
}

// -----

// expected-error @+1 {{'copy' is not one of latency, bandwidth, copy and loops, each of which is given once}}
module attributes {tv.machine = #tv.machine<copy = 1.0e11, copy = 1.0e11>} {
}

// -----

// expected-error @+1 {{expected a number, as 1.0e-5 or 1e-5}}
module attributes {tv.machine = #tv.machine<latency = 1us>} {
}

// -----

// expected-error @+1 {{'tv.machine' is a #tv.machine<...> on the module}}
module attributes {tv.machine = "fast"} {
}

// -----

// expected-error @+1 {{'tv.machine' is a #tv.machine<...> on the module}}
func.func @f() attributes {tv.machine = #tv.machine<latency = 1.0e-5, bandwidth = 2.0e10, copy = 2.5e11, loops = 4.0e13>} {
  return
}

// -----

// A name that has no meaning is an error, too.
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has no meaning for "tv.variant"; there are tv.sizes, tv.variants, tv.step, tv.local, tv.machine and tv.user_view}}
  %0 = tv.exp %x {tv.variant = ["math"]} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
