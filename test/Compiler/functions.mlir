// RUN: tessera-compile %s --compile-from=local -o %t.tsr --dump-dir=%t.dump
// RUN: FileCheck %s < %t.dump/kernels.ll

// Loops over them are vectorized, and nothing is called. CompileTest checks the
// values.
// CHECK: fmul <4 x double>
// CHECK-NOT: call {{.*}}f(float
#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [65536]>
!x = tensor<65536xf32, #tv.local<#x, of [65536]>>
func.func @main(%x: !x) -> (!x {tv.name = "exp"}, !x {tv.name = "erf"},
                            !x {tv.name = "tanh"}) {
  %0:3 = tv.map %x : (!x) -> (!x, !x, !x) (%a: f32) {
    %e = math.exp %a : f32
    %f = math.erf %a : f32
    %t = math.tanh %a : f32
    tv.yield %e, %f, %t : f32, f32, f32
  }
  return %0#0, %0#1, %0#2 : !x, !x, !x
}
