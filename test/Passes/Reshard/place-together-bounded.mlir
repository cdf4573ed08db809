// Planning ends soon, however many ways there are: what may be spent on finding better
// places is bounded, and what is found till then stays. (Without a bound these took 40
// seconds, and minutes.)
// RUN: timeout 60 tessera-opt %s --split-input-file --tessera=to=planned | FileCheck %s
// CHECK: tv.attention
// CHECK: tv.attention
//
// Remarks tell of what was not looked at: then, and in many layers, of which none can gain
// a hundredth of the whole.
// RUN: timeout 60 tessera-opt %s --split-input-file --tessera="to=planned explain" \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=ENOUGH
// ENOUGH: remark: groups of ops that are left as they are, for enough has been tried: 1
// RUN: %python -c "import sys; sys.path.insert(0, '%examples/../bench'); \
// RUN:   import compile_time; print(compile_time.program(24))" > %t.mlir
// RUN: tessera-opt %t.mlir --tv-bind --tv-propagate-shardings \
// RUN:   --tv-decompose-reshardings --tv-elide-reshards --tv-place-together=explain=1 \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=LAYERS
// LAYERS: remark: groups of ops that are left as they are: {{.*}}, each of which could gain less than {{.*}} us; moves of their operands take {{.*}} us
#m = #tv.mesh<dp = 2, tp = 2, cp = 2>
!q = tensor<1x32x1x128xbf16, #tv.view<#m, [_, did(tp) * _, _, _]>>
!k = tensor<1x8x131072x128xbf16, #tv.view<#m, [_, did(tp) * _, did(cp) * _, _]>>
!l = tensor<1x32x1xf32>
func.func @main(%q: !q, %k: !k, %v: !k) -> !q {
  %o, %l = tv.attention %q, %k, %v scale(0.125) causal : (!q, !k, !k) -> (!q, !l)
  return %o : !q
}

// -----

#m = #tv.mesh<x = 2, y = 2, z = 2>
!q = tensor<1x2x3x4xf32, #tv.view<#m, [_, _, did(x) * _, _]>>
!k = tensor<1x1x17x4xf32, #tv.view<#m, [_, _, did(z) * did(y) * _, _]>>
!v = tensor<1x1x17x5xf32, #tv.view<#m, [_, _, did(z) * did(y) * _, _]>>
!o = tensor<1x2x3x5xf32>
!l = tensor<1x2x3xf32>
module attributes {tv.machine = #tv.machine<latency = 1.0e-7, bandwidth = 1.0e7, copy = 2.0e12, loops = 3.0e14>} {
func.func @main(%q: !q, %k: !k, %v: !v) -> (!o, !l) {
  %o, %l = tv.attention %q, %k, %v scale(0.5) : (!q, !k, !v) -> (!o, !l)
  return %o, %l : !o, !l
}
}
