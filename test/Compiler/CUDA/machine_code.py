"""Machine code, and NVRTC's and cuobjdump's of .venv, for tests that look at it."""
import collections
import ctypes
import os
import pathlib
import re
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def find(file, package):
    """A file of a package of PyPI's CUDA 13."""
    found = list(ROOT.glob(f".venv/lib/python3*/site-packages/nvidia/cu13/{file}"))
    if not found:
        sys.exit(f"failed: .venv has no {file} (PyPI's {package}): run scripts/setup")
    return found[0]


def disassemble(cubin):
    """What cuobjdump says of a file; it runs nvdisasm from beside it."""
    program = find("bin/cuobjdump", "nvidia-cuda-cuobjdump")
    find("bin/nvdisasm", "nvidia-cuda-nvdisasm")
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run([program, "-sass", cubin], text=True, check=True,
                          stdout=subprocess.PIPE, env=dict(os.environ, PATH=path)).stdout


# Of sm_80 to sm_90: an instruction is 16 bytes, of which bits 0 to 11 are the operation
# and 73 to 75 what is accessed.
ACCESSES = {0x981: "LDG", 0x986: "STG", 0xfae: "LDGSTS", 0x983: "LDL", 0x387: "STL"}
BITS = (8, 8, 16, 16, 32, 64, 128)


def accesses(cubin):
    """{(operation, bits): how many} of global and local memory in a file. cuobjdump takes
    0.4 s to say so."""
    elf = pathlib.Path(cubin).read_bytes()
    start, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3a)
    sections = [struct.unpack_from("<IIQQQQ", elf, start + i * size) for i in range(count)]
    found = collections.Counter()
    for name, _, _, _, offset, length in sections:
        if elf.startswith(b".text.", sections[names][4] + name):
            for low, high in struct.iter_unpack("<QQ", elf[offset:offset + length]):
                if operation := ACCESSES.get(low & 0xfff):
                    found[operation, BITS[high >> 9 & 7]] += 1
    return found


def accesses_by_cuobjdump(cubin):
    return collections.Counter(
        (operation, int(bits[1]) if (bits := re.search(r"\.[US]?(8|16|64|128)\b", kind)) else 32)
        for operation, kind in re.findall(rf"\b({'|'.join(ACCESSES.values())})(\.\S*|) ",
                                          disassemble(cubin)))


def compile(text):
    """Machine code of CUDA C++ over lib/Kernels/cuda, and what ptxas says."""
    library = find("lib/libnvrtc.so.13", "nvidia-cuda-nvrtc")
    ctypes.CDLL(library.parent / "libnvrtc-builtins.so.13.0")
    nvrtc = ctypes.CDLL(library)
    program, size = ctypes.c_void_p(), ctypes.c_size_t()

    def call(name, *args):
        if result := getattr(nvrtc, name)(*args):
            raise RuntimeError(f"{name}: error {result}")

    def get(what):
        call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        call(f"nvrtcGet{what}", program, data)
        return data.raw

    call("nvrtcCreateProgram", ctypes.byref(program), text.encode(), b"test.cu", 0, None,
         None)
    flags = [b"-arch=sm_90a", b"-std=c++17", b"--ptxas-options=-v",
             b"-I" + os.fsencode(ROOT / "lib/Kernels/cuda")]
    result = nvrtc.nvrtcCompileProgram(program, len(flags),
                                       (ctypes.c_char_p * len(flags))(*flags))
    log = get("ProgramLog").rstrip(b"\0").decode()
    if result:
        sys.exit(f"failed: NVRTC error {result}\n{log}")
    return get("CUBIN"), log
