// RUN: tessera-opt %s | tessera-opt | FileCheck %s
// RUN: tessera-opt %s --emit-bytecode | tessera-opt | FileCheck %s

// In any order.
// CHECK: module attributes {tv.machine = #tv.machine<latency = 1.0e-05, bandwidth = 2.0e+10, copy = 2.5e+11, loops = 4.125e+13>}
module attributes {tv.machine = #tv.machine<loops = 41250.0e9, latency = 1.0e-5, copy = 2.5e11, bandwidth = 2.0e10>} {
}
