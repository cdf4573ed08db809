"""The C header of libtessera.so through ctypes, as far as the GPU benchmarks need it.
Addresses are the device's; ranks are the processes of an MPI job."""

import ctypes as c

P = c.c_void_p


class Struct(c.Structure):
    def __init__(self, **fields):
        super().__init__(size=c.sizeof(type(self)), **fields)


class Options(Struct):
    _fields_ = [("size", c.c_size_t), ("rank", c.c_int32), ("world", c.c_int32),
                ("transport", c.c_char_p), ("handle", P), ("bootstrap", P), ("log", P),
                ("log_user", P), ("allocate", P), ("deallocate", P), ("allocate_user", P),
                ("memory_limit", c.c_uint64), ("deadline", c.c_double),
                ("control", c.c_int32), ("backend", c.c_char_p),
                ("device", c.POINTER(c.c_int32)), ("flags", c.c_uint32),
                ("algorithms", c.c_char_p)]


class Port(Struct):
    _fields_ = [("size", c.c_size_t), ("name", c.c_char_p), ("kind", c.c_int),
                ("dtype", c.c_int), ("rank", c.c_int32), ("shape", c.c_int64 * 16),
                ("shape_text", c.c_char_p), ("view", c.c_char_p)]


class Step(Struct):
    _fields_ = [("size", c.c_size_t), ("op", c.c_char_p), ("location", c.c_char_p),
                ("text", c.c_char_p), ("collective", c.c_int32),
                ("begin", c.c_double), ("end", c.c_double)]


TIME_STEPS, AUTOTUNE = 2, 32  # of tessera_context_flags


class Module:
    """One rank's context with one module loaded. Algorithms of matrix products are
    measured where the file `algorithms` has none."""

    def __init__(self, library, path, rank, ranks, device, stream, flags=0,
                 algorithms=None):
        self.lib = lib = c.CDLL(library)
        for name in ("status_message", "status_op", "status_location"):
            getattr(lib, f"tessera_{name}").restype = c.c_char_p
            getattr(lib, f"tessera_{name}").argtypes = [P]
        lib.tessera_module_port_count.restype = c.c_size_t
        lib.tessera_module_port_count.argtypes = [P]
        lib.tessera_binding_step_count.restype = c.c_size_t
        lib.tessera_binding_step_count.argtypes = [P]
        lib.tessera_binding_host_seconds.restype = c.c_double
        lib.tessera_binding_host_seconds.argtypes = [P]
        for name, arguments in {
                "context_create": [P, P], "module_load_file": [P, c.c_char_p, P],
                "module_port": [P, c.c_size_t, P],
                "binding_create": [P, P, c.c_size_t, P, c.c_size_t, P],
                "binding_enqueue": [P, P], "binding_run": [P],
                "binding_step": [P, c.c_size_t, P]}.items():
            getattr(lib, f"tessera_{name}").restype = P
            getattr(lib, f"tessera_{name}").argtypes = arguments
        for name in ("status_free", "binding_destroy", "module_destroy", "context_destroy"):
            getattr(lib, f"tessera_{name}").restype = None
            getattr(lib, f"tessera_{name}").argtypes = [P]
        ordinal = c.c_int32(device)
        options = Options(rank=rank, world=ranks, transport=b"mpi" if ranks > 1 else None,
                          backend=b"cuda", device=c.pointer(ordinal),
                          flags=flags | (AUTOTUNE if algorithms else 0),
                          algorithms=algorithms.encode() if algorithms else None)
        self.stream = stream
        self.context, self.module = P(), P()
        self.check(lib.tessera_context_create(c.byref(options), c.byref(self.context)))
        self.check(lib.tessera_module_load_file(self.context, path.encode(),
                                                c.byref(self.module)))

    def check(self, status):
        if status:
            parts = [getattr(self.lib, f"tessera_status_{part}")(status).decode()
                     for part in ("location", "op", "message")]
            self.lib.tessera_status_free(status)
            raise RuntimeError(": ".join(filter(None, parts)))

    def bind(self, addresses):
        """A call that enqueues one run; `addresses` by the names of ports."""
        pointers = []
        for i in range(self.lib.tessera_module_port_count(self.module)):
            port = Port()
            self.check(self.lib.tessera_module_port(self.module, i, c.byref(port)))
            pointers.append(addresses[port.name.decode()])
        return Binding(self, (P * len(pointers))(*pointers))

    def close(self):
        self.lib.tessera_module_destroy(self.module)
        self.lib.tessera_context_destroy(self.context)


class Binding:
    def __init__(self, module, pointers):
        self.module, self.handle = module, P()
        module.check(module.lib.tessera_binding_create(
            module.module, None, 0, pointers, len(pointers), c.byref(self.handle)))

    def __call__(self):
        """Enqueues a run in the stream."""
        self.module.check(self.module.lib.tessera_binding_enqueue(
            self.handle, self.module.stream))

    def run(self):
        self.module.check(self.module.lib.tessera_binding_run(self.handle))

    def steps(self):
        """[(what, seconds)] of the last run, if the context times steps."""
        lib, times = self.module.lib, []
        for i in range(lib.tessera_binding_step_count(self.handle)):
            step = Step()
            self.module.check(lib.tessera_binding_step(self.handle, i, c.byref(step)))
            times.append((f"{step.op.decode()} {step.text.decode()}", step.end - step.begin))
        return times

    def host_seconds(self):
        return self.module.lib.tessera_binding_host_seconds(self.handle)

    def close(self):
        self.module.lib.tessera_binding_destroy(self.handle)
