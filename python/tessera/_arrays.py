"""Arrays of others as an address, an element type, a shape and strides: NumPy's, and
whatever speaks DLPack (torch, JAX, CuPy). Nothing is copied."""

import ctypes as c
import dataclasses
import typing

import numpy as np

from ._native import Code, Error

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None


def _small(name, bits):
    """A type that NumPy lacks: ml_dtypes' where it is, else the bits."""
    return np.dtype(getattr(ml_dtypes, name) if ml_dtypes else bits)


#: Element types by tessera_dtype.
DTYPES = dict(enumerate([
    np.dtype(np.float64), np.dtype(np.float32), _small("bfloat16", np.uint16),
    np.dtype(np.float16), np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.uint32),
    np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.bool_),
    _small("float8_e4m3fn", np.uint8), _small("float8_e5m2", np.uint8)]))
NAMES = ["f64", "f32", "bf16", "f16", "i64", "i32", "u32", "i8", "u8", "i1", "f8E4M3FN",
         "f8E5M2"]
# DLPack's (code, bits) of each.
DLPACK = [(2, 64), (2, 32), (4, 16), (2, 16), (0, 64), (0, 32), (1, 32), (0, 8), (1, 8),
          (6, 8), (10, 8), (12, 8)]
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13


@dataclasses.dataclass
class Buffer:
    """Where an array lies. Strides are in elements; None: row-major."""
    address: int
    dtypes: frozenset  # those of tessera_dtype that it may be
    shape: tuple
    strides: typing.Optional[tuple]
    device: int
    owner: object  # keeps the memory
    read_only: bool = False


class _Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device", c.c_int32), ("ordinal", c.c_int32),
                ("rank", c.c_int32), ("code", c.c_uint8), ("bits", c.c_uint8),
                ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("offset", c.c_uint64)]


_pointer = c.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c.c_void_p, [c.py_object, c.c_char_p]


def describe(array):
    """The Buffer of an array."""
    if isinstance(array, np.ndarray):
        if array.dtype.hasobject or any(s % array.itemsize for s in array.strides):
            raise Error(f"an array of {array.dtype} with strides {array.strides} is none "
                        "that a program can take")
        return Buffer(array.ctypes.data,
                      frozenset(n for n, dtype in DTYPES.items() if dtype == array.dtype),
                      array.shape, tuple(s // array.itemsize for s in array.strides), CPU,
                      array, not array.flags.writeable)
    if not hasattr(array, "__dlpack__"):
        raise Error(f"{type(array).__name__} is no array: give NumPy's, or one that has "
                    "__dlpack__")
    capsule = array.__dlpack__()
    tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    if tensor.lanes != 1:
        raise Error(f"an array of vectors of {tensor.lanes} elements", Code.UNSUPPORTED)
    kind = tensor.code, tensor.bits
    rank = tensor.rank
    return Buffer((tensor.data or 0) + tensor.offset,
                  frozenset(n for n, each in enumerate(DLPACK) if each == kind),
                  tuple(tensor.shape[:rank]),
                  tuple(tensor.strides[:rank]) if tensor.strides else None, tensor.device,
                  (array, capsule))


def lies(buffer, shape, strides):
    """Whether a buffer has these strides, where they matter."""
    if 0 in shape:
        return True
    given = buffer.strides
    if given is None:
        given, step = [], 1
        for extent in reversed(shape):
            given.insert(0, step)
            step *= extent
    return all(extent == 1 or a == b for extent, a, b in zip(shape, given, strides))


def empty(dtype, shape, strides):
    """A NumPy array with strides in elements, without gaps, dimensions in any order."""
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], d))
    array = np.zeros([shape[d] for d in order], dtype)
    return array.transpose(np.argsort(order))
