// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_80 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: there is no target 'cuda:sm_80'; there are cpu and cuda:sm_90a

// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_90a --nvrtc=%t.none 2>&1 | FileCheck %s --check-prefix=NVRTC
// RUN: not env TESSERA_NVRTC=%t.none tessera-compile %s --compile-from=local --target=cuda:sm_90a 2>&1 | FileCheck %s --check-prefix=NVRTC
// NVRTC: error: cuda kernels need NVRTC of CUDA 13, which cannot be opened; give its place by --nvrtc or TESSERA_NVRTC, or install the PyPI package nvidia-cuda-nvrtc 13.0 into .venv. Tried:
// NVRTC-NEXT: {{.*}}.none: cannot open shared object file: No such file or directory

// A library that is another.
// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_90a --nvrtc=libm.so.6 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: 'libm.so.6' is no NVRTC of CUDA 13: it lacks nvrtcVersion, nvrtcGetErrorString,

// RUN: touch %t.file
// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_90a --dump-kernels=%t.file/kernels -o %t.tsr 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: error: cannot make the folder '{{.*}}.file/kernels': Not a directory
// RUN: not tessera-compile %s --compile-from=local --dump-kernels=%t.kernels 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: error: kernels for cpu are no programs of their own; see the files kernels.* of --dump-dir

// A cache that cannot be written is none; a damaged entry is compiled anew.
// RUN: env TESSERA_CACHE=%t.file/cache tessera-compile %s --compile-from=local --target=cuda:sm_90a -o %t.1.tsr
// RUN: rm -rf %t.cache
// RUN: env TESSERA_CACHE=%t.cache tessera-compile %s --compile-from=local --target=cuda:sm_90a -o %t.2.tsr
// RUN: cmp %t.1.tsr %t.2.tsr
// RUN: %python -c "import pathlib, sys; [p.write_bytes(p.read_bytes()[:-1]) for p in pathlib.Path(sys.argv[1]).glob('*.cubin')]" %t.cache
// RUN: env TESSERA_CACHE=%t.cache tessera-compile %s --compile-from=local --target=cuda:sm_90a -o %t.3.tsr
// RUN: cmp %t.1.tsr %t.3.tsr
// RUN: env TESSERA_CACHE=%t.cache tessera-compile %s --compile-from=local --target=cuda:sm_90a -o %t.4.tsr
// RUN: cmp %t.1.tsr %t.4.tsr

#m = #tv.mesh<tp = 1>
#x = #tv.view<#m, [_]>
!x = tensor<?xf32, #tv.local<#x, of [n]>>
func.func @main(%x: !x {tv.name = "x", tv.dims = ["n"]})
    -> (!x {tv.name = "y"}) attributes {tv.sizes = {n = 64 : i64}} {
  %0 = tv.silu %x : (!x) -> !x
  return %0 : !x
}
