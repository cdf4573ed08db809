"""The C headers of libtessera.so and libtessera-compiler.so through ctypes: structs,
functions, and errors as exceptions. Nothing here is for users."""

import ctypes as c
import enum
import functools
import os
import pathlib

P = c.c_void_p
MAX_RANK = 16
HERE = pathlib.Path(__file__).resolve().parent


class Code(enum.IntEnum):
    """Why a call failed; see tessera_code."""
    INVALID_ARGUMENT = 1
    INVALID_MODULE = 2
    IO = 3
    OUT_OF_MEMORY = 4
    UNSUPPORTED = 5
    PEER = 6
    INTERNAL = 7
    DATA = 8


class Error(Exception):
    """What the library says: a sentence, and where known the op, its place in the
    source and the rank at fault."""

    def __init__(self, message, code=Code.INVALID_ARGUMENT, op="", location="", rank=None):
        super().__init__(": ".join(filter(None, [location, op and f"'{op}'", message])))
        self.message, self.code = message, code
        self.op, self.location, self.rank = op, location, rank


class Struct(c.Structure):
    """A struct that begins with its size."""

    def __init__(self, **fields):
        super().__init__(size=c.sizeof(type(self)), **fields)


def _struct(name, doc, /, **fields):
    of = {"text": c.c_char_p, "i32": c.c_int32, "u32": c.c_uint32, "i64": c.c_int64,
          "u64": c.c_uint64, "double": c.c_double, "pointer": P,
          "extents": c.c_int64 * MAX_RANK}
    body = [("size", c.c_size_t)] + [(key, of.get(kind, kind)) for key, kind in fields.items()]
    return type(name, (Struct,), {"_fields_": body, "__doc__": doc})


PROGRESS = c.CFUNCTYPE(None, P, c.c_size_t, c.c_size_t)
CompileOptions = _struct(
    "CompileOptions", "tessera_compile_options", name="text", mesh="text", target="text",
    attention="text", matmul="text", strict="i32", explain="i32", start="text", stop="text",
    dump_directory="text", dump_kernels="text", nvrtc="text", shardings="text",
    memory="text", locations="i32", progress=PROGRESS, progress_user="pointer",
    together="i32", op_by_op="i32", machine="text")
LOG = c.CFUNCTYPE(None, P, c.c_int, c.c_char_p)
ALL_GATHER = c.CFUNCTYPE(c.c_int, P, P, P, c.c_size_t)
BARRIER = c.CFUNCTYPE(c.c_int, P)
Bootstrap = _struct("Bootstrap", "tessera_bootstrap", user="pointer", all_gather=ALL_GATHER,
                    barrier=BARRIER)
ContextOptions = _struct(
    "ContextOptions", "tessera_context_options", rank="i32", world="i32", transport="text",
    handle="pointer", bootstrap=c.POINTER(Bootstrap), log=LOG, log_user="pointer",
    allocate="pointer", deallocate="pointer", allocate_user="pointer", memory_limit="u64",
    deadline="double", control="i32", backend="text", device=c.POINTER(c.c_int32),
    flags="u32", algorithms="text")
Device = _struct("Device", "tessera_device", target="text", description="text",
                 free_bytes="u64", ordinal="i32", model="text", driver="text",
                 libraries="text")
Symbol = _struct("Symbol", "tessera_symbol", name="text", maximum="i64", multiple="i64")
Port = _struct("Port", "tessera_port", name="text", kind=c.c_int, dtype=c.c_int, rank="i32",
               shape="extents", shape_text="text", view="text", zero_init="i32",
               check="text", mesh="text")
Layout = _struct("Layout", "tessera_layout", rank="i32", global_rank="i32",
                 global_shape="extents", shape="extents", strides="extents", span="extents",
                 bytes="u64")
Memory = _struct("Memory", "tessera_memory", external="u64", local="u64", symmetric="u64",
                 constants="u64")
Collective = _struct(
    "Collective", "tessera_collective", kind="text", axes="text", op="text",
    location="text", loser="text", bytes_sent="u64", bytes_received="u64", copies="u64",
    copied_bytes="u64", seconds="double", tensors="u64")
Step = _struct(
    "Step", "tessera_step", op="text", location="text", text="text", collective="i32",
    begin="double", end="double", kind="text", symbol="text", enqueue_begin="double",
    enqueue_end="double")
Alternative = _struct("Alternative", "tessera_alternative", kind="text", op="text",
                      location="text", chosen="text", variants="text")
ModuleInfo = _struct("ModuleInfo", "tessera_module_info", target=c.c_char * 64)


class Run(c.Structure):
    _fields_ = [("local", c.c_int64), ("start", c.c_int64), ("length", c.c_int64)]


# Of functions that return a status: what they take.
SIZES = [P, c.c_size_t]
CALLS = {
    "threads_create": [c.c_int32, P], "context_create": [P, P], "context_device": [P, P],
    "device_allocate": [P, c.c_size_t, P], "device_copy": [P, P, P, c.c_size_t],
    "module_load": [P, c.c_char_p, c.c_size_t, P], "module_load_file": [P, c.c_char_p, P],
    "module_inspect": [c.c_char_p, P], "module_symbol": [P, c.c_size_t, P],
    "module_port": [P, c.c_size_t, P], "module_layout": [P, c.c_size_t, *SIZES, P],
    "module_runs": [P, c.c_size_t, *SIZES, c.c_int32, P, P], "module_memory": [P, *SIZES, P],
    "variants_push": [c.c_char_p, c.c_char_p], "variants_pop": [],
    "variants_default": [c.c_char_p, c.c_char_p], "variants_push_choice": [c.c_char_p],
    "binding_create": [P, *SIZES, P, c.c_size_t, P], "binding_run": [P],
    "binding_enqueue": [P, P], "binding_wait": [P], "binding_memory": [P, P],
    "binding_collective": [P, c.c_size_t, P], "binding_step": [P, c.c_size_t, P],
    "binding_alternative": [P, c.c_size_t, P],
}
# Of the others: what they return, and take.
PLAIN = {
    "status_code": (c.c_int, [P]), "status_rank": (c.c_int32, [P]),
    "status_message": (c.c_char_p, [P]), "status_op": (c.c_char_p, [P]),
    "status_location": (c.c_char_p, [P]), "status_free": (None, [P]),
    "threads_destroy": (None, [P]), "context_destroy": (None, [P]),
    "context_rank": (c.c_int32, [P]), "context_world": (c.c_int32, [P]),
    "device_free": (None, [P, P, c.c_size_t]), "module_destroy": (None, [P]),
    "module_hash": (c.c_uint64, [P]), "module_mesh": (c.c_char_p, [P]),
    "module_report": (c.c_char_p, [P]), "module_symbol_count": (c.c_size_t, [P]),
    "module_port_count": (c.c_size_t, [P]), "binding_destroy": (None, [P]),
    "binding_collective_count": (c.c_size_t, [P]), "binding_step_count": (c.c_size_t, [P]),
    "binding_alternative_count": (c.c_size_t, [P]),
    "binding_choice": (c.c_char_p, [P, c.c_char_p]),
    "binding_host_seconds": (c.c_double, [P]),
}
COMPILER = {
    "compile": (P, [c.c_char_p, c.c_size_t, P]), "compiled_free": (None, [P]),
    "compiled_succeeded": (c.c_int32, [P]), "compiled_output": (P, [P, P]),
    "compiled_diagnostics": (c.c_char_p, [P]), "compiled_remarks": (c.c_char_p, [P]),
    "compiled_moves": (c.c_char_p, [P]),
    "compile_phases": (c.c_char_p, []),
}


def find(*names):
    """A file of the installed tree, of a wheel or of a build of the sources."""
    tried = []
    roots = [HERE, HERE.parents[2], HERE.parents[1] / "build"]
    if chosen := os.environ.get("TESSERA_ROOT"):
        roots = [pathlib.Path(chosen)]
    for root in roots:
        path = root.joinpath(*names)
        if path.exists():
            return path
        tried.append(str(path))
    raise Error(f"cannot find {names[-1]}: none of {', '.join(tried)}; TESSERA_ROOT may "
                "name a folder that has it in its lib or bin")


def _open(name):
    return c.CDLL(str(find("lib", f"{name}.0")))


@functools.cache
def compiler():
    library = _open("libtessera-compiler.so")
    return {name: _declare(library, name, *kinds) for name, kinds in COMPILER.items()}


def _declare(library, name, result, arguments):
    function = getattr(library, f"tessera_{name}")
    function.restype, function.argtypes = result, arguments
    return function


class _Runtime:
    """Functions of the header by their names without `tessera_`. Those that return a
    status raise it."""

    def __init__(self):
        library = _open("libtessera.so")
        for name, (result, arguments) in PLAIN.items():
            setattr(self, name, _declare(library, name, result, arguments))
        for name, arguments in CALLS.items():
            function = _declare(library, name, P, arguments)
            function.errcheck = self._check
            setattr(self, name, function)

    def _check(self, status, function, arguments):
        if not status:
            return
        rank = self.status_rank(status)
        error = Error(self.status_message(status).decode(), Code(self.status_code(status)),
                      self.status_op(status).decode(), self.status_location(status).decode(),
                      None if rank < 0 else rank)
        self.status_free(status)
        raise error


@functools.cache
def runtime():
    return _Runtime()
