"""Tessera compiles sharded tensor programs and runs them on CPUs and GPUs.

    import numpy as np
    import tessera

    program = tessera.compile(open("mlp.mlir").read(), mesh={"tp": 2})
    outputs = tessera.run(program, {"x": x, "w0": w0, "w1": w1}, ranks=2)

`run` keeps all ranks in this process, as threads. A program that has a process a rank
makes a Context in each, with a communicator of mpi4py or callbacks of its own:

    with tessera.Context(comm=MPI.COMM_WORLD) as context:
        module = context.load(program)
        binding = module.bind(module.shards(weights) | {"x": x, "y": y})
        binding.run()

What fails raises Error: the op, its place in the program, and what would be right.
"""

import contextlib
import ctypes as c
import dataclasses
import enum
import functools
import os
import pathlib
import threading
import typing

import numpy as np

from . import _arrays, _native
from ._native import Code, Error

__all__ = ["Alternative", "Binding", "Code", "Collective", "CompileError", "Compiled",
           "Context", "Error", "Flags", "Layout", "Memory", "Module", "Port", "Step",
           "Symbol", "assemble", "compile", "default_variants", "phases", "run",
           "target_of", "threads", "variants"]
__version__ = "0.1.0"

Source = typing.Union[str, bytes]
Sizes = typing.Mapping[str, int]
Arrays = typing.Mapping[str, typing.Any]


# -------------------------------------------------------------------------------------
# Compiling
# -------------------------------------------------------------------------------------


class CompileError(Error):
    """A program that does not compile. `diagnostics` has each error with its place."""

    def __init__(self, diagnostics):
        super().__init__(diagnostics.strip())
        self.diagnostics = diagnostics


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A program after its last phase: a module file, or text."""
    output: bytes
    diagnostics: str  #: warnings, each with its place
    remarks: str  #: reasons of decisions, if `explain` was set
    #: What moves between devices: a line for each collective and place, with the bytes of
    #: a device at the largest sizes.
    moves: str

    @property
    def text(self) -> str:
        """Of what was compiled to a phase before "module"."""
        return self.output.decode()

    def save(self, path) -> None:
        pathlib.Path(path).write_bytes(self.output)


def compile(source: Source, *, name: str = "-", mesh: Sizes = {}, target: str = "cpu",
            attention: typing.Sequence[str] = (), matmul: typing.Sequence[str] = (),
            strict: bool = False, explain: bool = False, start: str = "source",
            to: str = "module", locations: bool = False,
            dump: typing.Optional[os.PathLike] = None,
            dump_kernels: typing.Optional[os.PathLike] = None,
            nvrtc: typing.Optional[os.PathLike] = None,
            shardings: typing.Optional[os.PathLike] = None,
            memory: typing.Union[int, str, None] = None,
            progress: typing.Optional[typing.Callable[[int, int], typing.Any]] = None,
            op_by_op: bool = False,
            machine: typing.Optional[typing.Mapping[str, float]] = None) -> Compiled:
    """Compiles a program in text or MLIR's bytecode.

    name: of the source, in messages. mesh: sizes of mesh axes; those not named keep
    theirs. target: "cpu", "cuda:sm_90a" (H100, H200), "cuda:sm_80" and on, or "cuda", the
    GPU of this machine. attention, matmul: variants to compile in, the preferred first;
    none: see compile.h. strict: a move that the source does not write is an error.
    start, to: names of `phases`. locations: text has the places of ops, and each type
    once, as an alias. dump: a folder for the program after each phase.
    shardings: a file with a line "mesh <tp = 2>" and views by name, with patterns:
    "layers.*.wq: [did(tp) * _, _]". memory: bytes that a device may hold between steps,
    or as "80GiB"; values beyond are made again. progress: called with how many kernels for
    cuda are compiled, and of how many, on any thread, one call at a time. What it raises is
    raised when all are. op_by_op: ops are placed one after the other alone, not together
    where that takes less time by the model. machine: what moves and loops are priced with,
    {"latency": 1e-5, "bandwidth": 2e10, "copy": 2.5e11, "loops": 4e13} of one device, in
    seconds, bytes a second and iterations a second; none: what the program says, else what
    the target has.
    """
    functions = _native.compiler()
    data = source.encode() if isinstance(source, str) else bytes(source)
    text = lambda value: os.fsencode(value) if value else None
    raised = []

    def report(_, done, all):
        try:
            progress(done, all)
        except BaseException as error:  # no C++ has it pass through
            raised.append(error)

    options = _native.CompileOptions(
        name=name.encode(), target=target.encode(), strict=strict, explain=explain,
        op_by_op=op_by_op, locations=locations,
        mesh=text(",".join(f"{axis}={size}" for axis, size in mesh.items())),
        attention=text(",".join(attention)), matmul=text(",".join(matmul)),
        start=start.encode(), stop=to.encode(), dump_directory=text(dump),
        dump_kernels=text(dump_kernels), nvrtc=text(nvrtc), shardings=text(shardings),
        memory=None if memory is None else str(memory).encode(),
        machine=text(machine and "<%s>" % ", ".join(
            f"{figure} = {value:e}" for figure, value in machine.items())),
        progress=_native.PROGRESS(report) if progress else _native.PROGRESS())
    compiled = functions["compile"](data, len(data), c.byref(options))
    if not compiled:
        raise Error("no memory is left", Code.OUT_OF_MEMORY)
    try:
        if raised:
            raise raised[0]
        diagnostics = functions["compiled_diagnostics"](compiled).decode(errors="replace")
        if not functions["compiled_succeeded"](compiled):
            raise CompileError(diagnostics)
        count = c.c_size_t()
        output = functions["compiled_output"](compiled, c.byref(count))
        return Compiled(c.string_at(output, count.value), diagnostics,
                        *(functions[f"compiled_{what}"](compiled).decode(errors="replace")
                          for what in ("remarks", "moves")))
    finally:
        functions["compiled_free"](compiled)


def phases() -> typing.List[str]:
    """The phases of a compilation in order, from "source" to "module"."""
    return _native.compiler()["compile_phases"]().decode().split(",")


# -------------------------------------------------------------------------------------
# What there is to know about a module
# -------------------------------------------------------------------------------------


class Kind(enum.IntEnum):
    INPUT = 0
    OUTPUT = 1
    STATE = 2  #: read, then replaced by a run


class Flags(enum.IntFlag):
    """Of a context, for people who look into a program; see tessera_context_flags."""
    NO_GRAPH = 1
    TIME_STEPS = 2
    CHECK_STEPS = 4
    SYMMETRIC = 8
    COPY_ENGINES = 16
    AUTOTUNE = 32


@dataclasses.dataclass(frozen=True)
class Symbol:
    """A size that is fixed when a module is bound."""
    name: str
    maximum: int
    multiple: int


@dataclasses.dataclass(frozen=True)
class Port:
    """An input, output or state of a program."""
    index: int
    name: str
    kind: Kind
    dtype: int  #: tessera_dtype
    shape: typing.Tuple[int, ...]  #: global; -1 where it depends on a symbol
    shape_text: str  #: "[batch, 4 * heads, 128]"
    view: str  #: how it lies over the mesh
    zero_init: bool  #: a state that is zeros before the first run, unless given
    check: str  #: what it means where it is not 0, which `run` and `wait` raise; or ""
    mesh: str  #: that it lies on: the module's, or one that lists other devices

    @property
    def numpy_dtype(self) -> np.dtype:
        """bf16 and f8 are ml_dtypes' where that is installed, else integers that hold
        their bits."""
        return _arrays.DTYPES[self.dtype]


@dataclasses.dataclass(frozen=True)
class Layout:
    """A rank's part of a port. A local dimension may stand for several adjacent global
    ones (`flat` in the view): `span` says how many."""
    global_shape: typing.Tuple[int, ...]
    shape: typing.Tuple[int, ...]
    strides: typing.Tuple[int, ...]  #: in elements
    span: typing.Tuple[int, ...]
    bytes: int
    indices: typing.Tuple[np.ndarray, ...]  #: of local dimensions, in the global ones

    @property
    def spanned_shape(self) -> typing.Tuple[int, ...]:
        """The global shape with the dimensions of each span taken as one."""
        shape, at = [], 0
        for span in self.span:
            shape.append(int(np.prod(self.global_shape[at:at + span], dtype=np.int64)))
            at += span
        return tuple(shape)


def _record(name, native):
    """A dataclass of the fields of a struct."""
    fields = [(key, {c.c_char_p: str, c.c_double: float}.get(kind, int))
              for key, kind in native._fields_[1:]]
    record = dataclasses.make_dataclass(name, fields, frozen=True)
    record.__doc__, record.__module__ = f"See {native.__doc__} in tessera.h.", __name__
    return record


Memory = _record("Memory", _native.Memory)
Collective = _record("Collective", _native.Collective)
Step = _record("Step", _native.Step)
Alternative = _record("Alternative", _native.Alternative)


def _take(record, native):
    values = (getattr(native, key) for key, _ in native._fields_[1:])
    return record(*(v.decode() if isinstance(v, bytes) else "" if v is None else v
                    for v in values))


def target_of(path) -> str:
    """What a module file was compiled for, "cpu" or "cuda:sm_90a"."""
    info = _native.ModuleInfo()
    _native.runtime().module_inspect(os.fsencode(path), c.byref(info))
    return info.target.decode()


# -------------------------------------------------------------------------------------
# Running
# -------------------------------------------------------------------------------------


class _Handle:
    """A handle of the library, and those of what was made from it, which are given back
    before it: strong references, for weak ones of a cycle that is collected end before
    any `__del__` runs."""

    def __init__(self, destroy, owners):
        self.value: typing.Optional[c.c_void_p] = c.c_void_p()
        self._destroy, self._owners = destroy, owners
        self._made: typing.Set[_Handle] = set()
        for owner in owners:
            owner._made.add(self)

    def close(self):
        value, self.value = self.value, None
        for made in list(self._made):
            made.close()
        for owner in self._owners:
            owner._made.discard(self)
        if value:
            getattr(_native.runtime(), self._destroy)(value)


class _Owner:
    """What has a handle to give back, after those of what was made from it. `close` may
    be called twice."""
    _destroy: str
    _own: typing.Optional[_Handle] = None

    @property
    def _handle(self):
        if self._own is None or self._own.value is None:
            name = type(self).__name__.lower()
            raise Error(f"this {name} is closed: use it before its close() and that of what "
                        "it was made from, or the end of their `with`")
        return self._own.value

    def _made_from(self, *owners):
        for owner in owners:
            owner._handle  # is open
        self._owners = owners
        self._own = _Handle(self._destroy, [owner._own for owner in owners])

    def close(self) -> None:
        if self._own is not None:
            self._own.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()


class _Threads(_Owner):
    _destroy = "threads_destroy"

    def __init__(self, world):
        self._made_from()
        _native.runtime().threads_create(world, c.byref(self._handle))


class Context(_Owner):
    """One rank. Closing it closes what was made from it.

    rank, world: of this rank, and how many there are. comm: a communicator of mpi4py,
    which says both; or `all_gather(mine: bytes) -> list of bytes` with `barrier()`, both
    collective, for ranks that meet in another way (NCCL moves the data then). backend:
    "cpu" or "cuda"; device: the GPU's ordinal. deadline: seconds after which a wait for
    other ranks is an error. control: whether a dead or stuck rank is named. log: called
    with a level (0 information, 1 warning) and a message. memory_limit: bytes.
    algorithms: a file for products, see tessera.h.
    """
    _destroy = "context_destroy"

    def __init__(self, *, rank: int = 0, world: int = 1, comm=None,
                 all_gather: typing.Optional[typing.Callable] = None,
                 barrier: typing.Optional[typing.Callable] = None, backend: str = "cpu",
                 device: typing.Optional[int] = None, deadline: float = 0,
                 control: bool = False, memory_limit: int = 0,
                 log: typing.Optional[typing.Callable[[int, str], None]] = None,
                 flags: Flags = Flags(0), algorithms: typing.Optional[os.PathLike] = None,
                 _threads: typing.Optional[_Threads] = None):
        if (all_gather is None) != (barrier is None):
            raise Error("ranks meet by all_gather and barrier together")
        options = _native.ContextOptions(
            rank=rank, world=world, backend=backend.encode(), deadline=deadline,
            control=control, memory_limit=memory_limit, flags=flags,
            algorithms=os.fsencode(algorithms) if algorithms else None)
        self._made_from(*([_threads] if _threads else []))
        self._kept = [comm]
        if comm is not None:
            from mpi4py import MPI
            options.transport, options.handle = b"mpi", MPI._addressof(comm)
            options.rank, options.world = comm.rank, comm.size
        elif _threads is not None:
            options.transport, options.handle = b"threads", _threads._handle
        if all_gather is not None:
            options.bootstrap = c.pointer(self._bootstrap(all_gather, barrier, options.world))
        if log is not None:
            options.log = _native.LOG(lambda _, level, text: log(level, text.decode()))
        if device is not None:
            options.device = c.pointer(c.c_int32(device))
        self._kept.append(options)
        _native.runtime().context_create(c.byref(options), c.byref(self._handle))
        self.backend = backend
        self._is_gpu = self._describe().ordinal >= 0

    @staticmethod
    def _bootstrap(all_gather, barrier, world):
        # What a callback raises must not pass through C: it is an error there.
        def gather(_, mine, everyone, count):
            try:
                parts = [bytes(part) for part in all_gather(c.string_at(mine, count))]
                if len(parts) != world or any(len(part) != count for part in parts):
                    return 1
                c.memmove(everyone, b"".join(parts), world * count)
                return 0
            except Exception:
                return 1

        def wait(_):
            try:
                barrier()
                return 0
            except Exception:
                return 1

        return _native.Bootstrap(all_gather=_native.ALL_GATHER(gather),
                                 barrier=_native.BARRIER(wait))

    @property
    def rank(self) -> int:
        return _native.runtime().context_rank(self._handle)

    @property
    def world(self) -> int:
        return _native.runtime().context_world(self._handle)

    def _describe(self) -> _native.Device:
        device = _native.Device()
        _native.runtime().context_device(self._handle, c.byref(device))
        return device

    @property
    def device(self) -> str:
        """What it runs on: "GPU 0, NVIDIA H200, driver ..."."""
        return self._describe().description.decode()

    def load(self, program: typing.Union[Compiled, bytes, str, os.PathLike]) -> "Module":
        """A module, from what `compile` gave or from a file. Collective."""
        return Module(self, program)


class Module(_Owner):
    """A loaded program."""
    _destroy = "module_destroy"

    def __init__(self, context: Context, program):
        lib = _native.runtime()
        self._made_from(context)
        self.context = context
        if isinstance(program, Compiled):
            program = program.output
        if isinstance(program, bytes):
            lib.module_load(context._handle, program, len(program), c.byref(self._handle))
        else:
            lib.module_load_file(context._handle, os.fsencode(program),
                                 c.byref(self._handle))
        self.mesh: str = lib.module_mesh(self._handle).decode()
        self.report: str = lib.module_report(self._handle).decode()
        self.hash: int = lib.module_hash(self._handle)

    @functools.cached_property
    def symbols(self) -> typing.Dict[str, Symbol]:
        """By name, in order."""
        lib, symbols = _native.runtime(), {}
        for i in range(lib.module_symbol_count(self._handle)):
            symbol = _native.Symbol()
            lib.module_symbol(self._handle, i, c.byref(symbol))
            name = symbol.name.decode()
            symbols[name] = Symbol(name, symbol.maximum, symbol.multiple)
        return symbols

    @functools.cached_property
    def ports(self) -> typing.Dict[str, Port]:
        """By name, in order."""
        lib, ports = _native.runtime(), {}
        for i in range(lib.module_port_count(self._handle)):
            port = _native.Port()
            lib.module_port(self._handle, i, c.byref(port))
            name = port.name.decode()
            ports[name] = Port(i, name, Kind(port.kind), port.dtype,
                               tuple(port.shape[:port.rank]), port.shape_text.decode(),
                               port.view.decode(), bool(port.zero_init),
                               port.check.decode(), port.mesh.decode())
        return ports

    def _port(self, name) -> Port:
        if name not in self.ports:
            raise Error(f"the module has no port '{name}': it has "
                        f"{', '.join(self.ports)}")
        return self.ports[name]

    def _sizes(self, sizes):
        for name in sizes:
            if name not in self.symbols:
                raise Error(f"the module has no size '{name}'" + (
                    f": it has {', '.join(self.symbols)}" if self.symbols else ""))
        for name in self.symbols:
            if name not in sizes:
                raise Error(f"what is the size '{name}'? Give sizes={{'{name}': ...}}")
        values = [sizes[name] for name in self.symbols]
        return (c.c_int64 * len(values))(*values), len(values)

    def sizes_of(self, arrays: Arrays, sizes: Sizes = {}) -> typing.Dict[str, int]:
        """The sizes that global arrays have where a dimension is one symbol; `sizes`
        are known before."""
        found = dict(sizes)
        for name, array in arrays.items():
            port = self._port(name)
            dims = [dim.strip() for dim in port.shape_text.strip("[]").split(",")]
            for dim, extent in zip(dims, np.shape(array)):
                if dim in self.symbols:
                    found.setdefault(dim, extent)
        return found

    def layout(self, name: str, sizes: Sizes = {}) -> Layout:
        """This rank's part of a port."""
        lib, port, (values, count) = _native.runtime(), self._port(name), self._sizes(sizes)
        layout = _native.Layout()
        lib.module_layout(self._handle, port.index, values, count, c.byref(layout))
        indices = []
        for dim in range(layout.rank):
            runs, length = None, c.c_size_t(0)
            # Asked for once for their number.
            lib.module_runs(self._handle, port.index, values, count, dim, runs,
                            c.byref(length))
            runs = (_native.Run * length.value)()
            lib.module_runs(self._handle, port.index, values, count, dim, runs,
                            c.byref(length))
            index = np.zeros(layout.shape[dim], np.int64)
            for run in runs:
                index[run.local:run.local + run.length] = np.arange(
                    run.start, run.start + run.length)
            indices.append(index)
        rank = layout.rank
        return Layout(tuple(layout.global_shape[:layout.global_rank]),
                      tuple(layout.shape[:rank]), tuple(layout.strides[:rank]),
                      tuple(layout.span[:rank]), layout.bytes, tuple(indices))

    def memory(self, sizes: Sizes = {}) -> Memory:
        """Bytes that a binding needs on this rank, before anything is allocated."""
        memory = _native.Memory()
        _native.runtime().module_memory(self._handle, *self._sizes(sizes), c.byref(memory))
        return _take(Memory, memory)

    def empty(self, name: str, sizes: Sizes = {}) -> np.ndarray:
        """An array of zeros that this rank's part of a port fits into."""
        layout = self.layout(name, sizes)
        return _arrays.empty(self._port(name).numpy_dtype, layout.shape, layout.strides)

    def shard(self, name: str, array: np.ndarray, sizes: Sizes = {}) -> np.ndarray:
        """This rank's part of a global array."""
        port, layout = self._port(name), self.layout(name, sizes)
        array = np.asarray(array)
        if array.shape != layout.global_shape:
            raise Error(f"'{name}' has the shape {port.shape_text}, here "
                        f"{layout.global_shape}; the array has {array.shape}")
        if array.dtype != port.numpy_dtype:
            raise Error(f"'{name}' is of {_arrays.NAMES[port.dtype]}; the array is of "
                        f"{array.dtype}")
        part = self.empty(name, sizes)
        part[...] = array.reshape(layout.spanned_shape)[np.ix_(*layout.indices)]
        return part

    def shards(self, arrays: Arrays, sizes: Sizes = {}) -> typing.Dict[str, np.ndarray]:
        """`shard` of each; sizes that the arrays show need not be given."""
        sizes = self.sizes_of(arrays, sizes)
        return {name: self.shard(name, array, sizes) for name, array in arrays.items()}

    def bind(self, arrays: Arrays, sizes: Sizes = {}) -> "Binding":
        """Fixes the sizes, and each port's memory: this rank's part, with the strides of
        its layout. On cuda arrays are the device's, of any library that speaks DLPack.
        Ports of a CPU's module without an array get one. Collective."""
        return Binding(self, arrays, sizes)

    def run(self, arrays: Arrays, sizes: Sizes = {}) -> typing.Dict[str, np.ndarray]:
        """One run on global arrays: this rank's part of each output and state.
        Collective; CPUs only."""
        sizes = self.sizes_of(arrays, sizes)
        for port in self.ports.values():
            if (port.kind != Kind.OUTPUT and not port.zero_init
                    and port.name not in arrays):
                raise Error(f"the input '{port.name}' of shape {port.shape_text} is missing")
        zeros = [port.name for port in self.ports.values() if port.zero_init]
        given = [name for name in zeros if name in arrays]
        if given and len(given) < len(zeros):
            lacking = next(name for name in zeros if name not in arrays)
            raise Error(f"states that start as zeros are given all, as '{given[0]}' is, or none; "
                        f"'{lacking}' is missing")
        with self.bind(self.shards(arrays, sizes), sizes) as binding:
            binding.run()
            return {name: binding.arrays[name] for name, port in self.ports.items()
                    if port.kind != Kind.INPUT}


class Binding(_Owner):
    """A module with its sizes and memory. `arrays` are those of its ports."""
    _destroy = "binding_destroy"

    def __init__(self, module: Module, arrays: Arrays, sizes: Sizes = {}):
        self._made_from(module)
        self.module, self.sizes = module, dict(sizes)
        self.arrays: typing.Dict[str, typing.Any] = dict(arrays)
        for name in self.arrays:
            module._port(name)
        addresses, self._buffers, spans = [], [], []
        is_cpu = not module.context._is_gpu
        for name, port in module.ports.items():
            if name not in self.arrays:
                if not is_cpu:
                    raise Error(f"'{name}' needs an array of the device")
                self.arrays[name] = module.empty(name, sizes)
            buffer = _arrays.describe(self.arrays[name])
            layout = module.layout(name, sizes)
            self._check(port, layout, buffer, is_cpu)
            self._buffers.append(buffer)
            addresses.append(buffer.address if layout.bytes else None)
            if layout.bytes:
                spans.append((buffer.address, buffer.address + layout.bytes,
                              port.kind != Kind.INPUT, name))
        self._check_apart(spans)
        _native.runtime().binding_create(
            module._handle, *module._sizes(sizes), (c.c_void_p * len(addresses))(*addresses),
            len(addresses), c.byref(self._handle))

    @staticmethod
    def _check_apart(spans):
        """That what a run writes is no part of another array."""
        furthest, written = (0, ""), (0, "")
        for begin, end, writes, name in sorted(spans):
            reach, other = furthest if writes else written
            if begin < reach:
                raise Error(f"the arrays of '{other}' and '{name}' overlap, and a run writes "
                            f"'{name if writes else other}'")
            furthest = max(furthest, (end, name))
            if writes:
                written = max(written, (end, name))

    @staticmethod
    def _check(port, layout, buffer, is_cpu):
        name = f"'{port.name}'"
        if port.dtype not in buffer.dtypes:
            raise Error(f"{name} is of {_arrays.NAMES[port.dtype]}; the array is not")
        if buffer.shape != layout.shape:
            raise Error(f"this rank's part of {name} has the shape {layout.shape}; the array "
                        f"has {buffer.shape}")
        if not _arrays.lies(buffer, layout.shape, layout.strides):
            raise Error(f"this rank's part of {name} has the strides {layout.strides}; the "
                        f"array has {buffer.strides or 'those of rows'}")
        if buffer.read_only and port.kind != Kind.INPUT:
            raise Error(f"the array of {name} is read-only; a run writes it")
        places = (_arrays.CPU, _arrays.CUDA_HOST) if is_cpu else (
            _arrays.CUDA, _arrays.CUDA_MANAGED)
        if buffer.device not in places:
            raise Error(f"the array of {name} is not in memory of the "
                        f"{'host' if is_cpu else 'GPU'}")

    def run(self) -> None:
        """Reads inputs and state, writes outputs and state. Collective. An output with a
        `check` that is not 0 is an error, after which others may run."""
        _native.runtime().binding_run(self._handle)

    def enqueue(self, stream) -> None:
        """A run in a CUDA stream: its address, or an object of a library that has it
        (torch's `cuda_stream`, CuPy's `ptr`). Collective."""
        for name in ("cuda_stream", "ptr"):
            stream = getattr(stream, name, stream)
        _native.runtime().binding_enqueue(self._handle, stream)

    def wait(self) -> None:
        """Until what was enqueued last has ended; then outputs are checked as by `run`."""
        _native.runtime().binding_wait(self._handle)

    def _list(self, what, native, record):
        lib, found = _native.runtime(), []
        for i in range(getattr(lib, f"binding_{what}_count")(self._handle)):
            each = native()
            getattr(lib, f"binding_{what}")(self._handle, i, c.byref(each))
            found.append(_take(record, each))
        return found

    @property
    def collectives(self) -> typing.List[Collective]:
        """What moves in a run, by this rank."""
        return self._list("collective", _native.Collective, Collective)

    @property
    def steps(self) -> typing.List[Step]:
        return self._list("step", _native.Step, Step)

    @property
    def alternatives(self) -> typing.List[Alternative]:
        """Ops with variants, and which of them was chosen."""
        return self._list("alternative", _native.Alternative, Alternative)

    def choice(self, kind: str = "attention") -> str:
        """Which variants the ops of a kind took, for `variants.of`; "" without such ops."""
        return _native.runtime().binding_choice(self._handle, kind.encode()).decode()

    @property
    def memory(self) -> Memory:
        memory = _native.Memory()
        _native.runtime().binding_memory(self._handle, c.byref(memory))
        return _take(Memory, memory)

    @property
    def host_seconds(self) -> float:
        """What the host did in the last run, before it only waited."""
        return _native.runtime().binding_host_seconds(self._handle)


class variants:
    """Variants of ops that this thread allows, and those that `threads` and `run` start
    in it; the preferred first:

        with tessera.variants("attention", "flash", "math"):
            binding = module.bind(arrays)

    or those that a binding chose, for the module of its gradients:

        with tessera.variants.of(forward.choice()):
            backward = gradients.bind(arrays)
    """

    _own = threading.local()

    def __init__(self, kind: str, *names: str):
        self._push = "variants_push", kind.encode(), ",".join(names).encode()

    @classmethod
    def of(cls, choice: str) -> "variants":
        scope = cls.__new__(cls)
        scope._push = "variants_push_choice", choice.encode()
        return scope

    @classmethod
    def _open(cls) -> list:
        """Those that this thread is in, the innermost last."""
        return cls._own.__dict__.setdefault("open", [])

    def __enter__(self):
        name, *arguments = self._push
        getattr(_native.runtime(), name)(*arguments)
        self._open().append(self)

    def __exit__(self, *_):
        self._open().pop()
        _native.runtime().variants_pop()


def default_variants(kind: str, *names: str) -> None:
    """What threads allow that have no `variants` for the kind; without names: all."""
    _native.runtime().variants_default(kind.encode(),
                                       ",".join(names).encode() if names else None)


# -------------------------------------------------------------------------------------
# All ranks in this process
# -------------------------------------------------------------------------------------


def threads(ranks: int, function: typing.Callable[[Context], typing.Any],
            **options) -> typing.List[typing.Any]:
    """Calls `function` with a context in a thread a rank; what they return, by rank.
    `options` are Context's. The first error of the lowest rank is raised, but that
    another rank has failed only if no rank says more."""
    results, errors = [None] * ranks, [None] * ranks
    meeting = _Threads(ranks)
    allowed = list(variants._open())

    def work(rank):
        try:
            with contextlib.ExitStack() as stack:
                for scope in allowed:
                    stack.enter_context(scope)
                results[rank] = function(stack.enter_context(
                    Context(rank=rank, world=ranks, _threads=meeting, **options)))
        except BaseException as error:
            errors[rank] = error

    workers = [threading.Thread(target=work, args=(rank,)) for rank in range(ranks)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    raised = [error for error in errors if error is not None]
    raised.sort(key=lambda error: getattr(error, "code", None) == Code.PEER)
    if raised:
        raise raised[0]
    return results


def assemble(module: Module, name: str, parts: typing.Sequence[np.ndarray],
             layouts: typing.Sequence[Layout]) -> np.ndarray:
    """The global array of a port from the parts of all ranks, each with its layout."""
    port = module._port(name)
    if "partial" in port.view:
        raise Error(f"'{name}' is a partial value ({port.view}): its parts are to be "
                    "combined, not joined")
    whole = np.zeros(layouts[0].spanned_shape, port.numpy_dtype)
    for part, layout in zip(parts, layouts):
        whole[np.ix_(*layout.indices)] = part
    return whole.reshape(layouts[0].global_shape)


def run(program, arrays: Arrays, *, ranks: int = 1, sizes: Sizes = {},
        **options) -> typing.Dict[str, np.ndarray]:
    """One run on global arrays, all ranks as threads of this process: the global outputs
    and states. Sizes that the arrays show need not be given. CPUs only."""
    def work(context):
        with context.load(program) as module:
            here = module.sizes_of(arrays, sizes)
            parts = module.run(arrays, here)
            return module, {name: (part, module.layout(name, here))
                            for name, part in parts.items()}

    results = threads(ranks, work, **options)
    module = results[0][0]
    outputs = {}
    for name in results[0][1]:
        parts, layouts = zip(*(each[name] for _, each in results))
        outputs[name] = assemble(module, name, parts, layouts)
    return outputs
