// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_75 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_80a 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: there is no target 'cuda:sm_{{75|80a}}'; there are cpu, cuda:sm_90a and cuda:sm_XY from sm_80 on
// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_85 2>&1 | FileCheck %s --check-prefix=NO-CODE
// NO-CODE: error: NVRTC 13.0 makes no code for sm_85; the nearest that it does are sm_80 and sm_86
// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_999 2>&1 | FileCheck %s --check-prefix=LATER
// LATER: error: NVRTC 13.0 makes no code for sm_999; the nearest that it does is sm_121

// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_90a --nvrtc=%t.none 2>&1 | FileCheck %s --check-prefix=NVRTC
// RUN: not env TESSERA_NVRTC=%t.none tessera-compile %s --compile-from=local --target=cuda:sm_90a 2>&1 | FileCheck %s --check-prefix=NVRTC
// NVRTC: error: cuda kernels need NVRTC of CUDA 13, which cannot be opened; give its place by --nvrtc or TESSERA_NVRTC, or install the PyPI package nvidia-cuda-nvrtc 13.0 into .venv. Tried:
// NVRTC-NEXT: {{.*}}.none: cannot open shared object file: No such file or directory

// A library that is another, by its name from where it is.
// RUN: cd %lib && not tessera-compile %s --compile-from=local --target=cuda:sm_90a --nvrtc=libtessera.so 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: '{{.*}}/libtessera.so' is no NVRTC of CUDA 13: it lacks nvrtcVersion, nvrtcGetErrorString,

// RUN: touch %t.file
// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_90a --dump-kernels=%t.file/kernels -o %t.tsr 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: error: cannot make the folder '{{.*}}.file/kernels': Not a directory
// RUN: not tessera-compile %s --compile-from=local --dump-kernels=%t.kernels 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: error: kernels for cpu are no programs of their own; see the files kernels.* of --dump-dir

// Flags that would change nothing.
// RUN: not tessera-compile %s --compile-from=local --nvrtc=%t.none 2>&1 | FileCheck %s --check-prefix=CPU-NVRTC
// CPU-NVRTC: error: kernels for cpu need no --nvrtc
// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_90a --dump-kernels=%t.kernels --compile-to=kernels 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: error: --dump-kernels needs machine code of kernels, which is made after 'kernels'; compile to plan or module
// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_90a --nvrtc=%t.none --compile-to=local 2>&1 | FileCheck %s --check-prefix=EARLY-NVRTC
// EARLY-NVRTC: error: --nvrtc needs machine code of kernels, which is made after 'local'; compile to plan or module
// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_90a --dump-kernels= 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_90a --dump-dir= 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: --dump-{{kernels|dir}} names no folder
// RUN: not tessera-compile %s --compile-from=local --target=cuda:sm_90a --nvrtc= 2>&1 | FileCheck %s --check-prefix=EMPTY-NVRTC
// EMPTY-NVRTC: error: --nvrtc names no path

// Lists of variants are checked for programs without such ops too, for which only
// lists that are right change nothing.
// RUN: not tessera-compile %s --compile-from=local --attention=fast 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: error: --attention: 'fast' is no variant of attention; there are 'flash', 'cudnn' and 'math'
// RUN: not tessera-compile %s --compile-from=local --attention= 2>&1 | FileCheck %s --check-prefix=NO-NAME
// NO-NAME: error: --attention: '' is no variant of attention; there are 'flash', 'cudnn' and 'math'
// RUN: not tessera-compile %s --compile-from=local --attention=flash,math,flash 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: --attention: 'flash' is named twice
// RUN: not tessera-compile %s --compile-from=local --matmul=own,own 2>&1 | FileCheck %s --check-prefix=TWICE-MATMUL
// TWICE-MATMUL: error: --matmul: 'own' is named twice
// RUN: tessera-compile %s --compile-from=local --target=cuda:sm_90a --attention=flash --matmul=own -o %t.tsr

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
