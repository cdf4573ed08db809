#===- capi_test.py - the C header from Python -----------------------------===#
#
# Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===-----------------------------------------------------------------------===#
"""Drives libtessera.so through ctypes and NumPy alone, as an embedder would.

    capi_test.py LIBTESSERA MAKE_TEST_MODULE

The module is an MLP: y = (2 * (x @ w0.T) + 1) @ w1.T, its weights split over
the ranks, which are threads here.
"""

import ctypes as c
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

LIBRARY, MAKE_MODULE = sys.argv[1], sys.argv[2]
os.environ["TESSERA_ROOT"] = str(pathlib.Path(LIBRARY).parents[1])
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
from tessera import _native  # noqa: E402
from tessera._native import (Alternative, Collective, ContextOptions, Error,  # noqa: E402
                             Layout, Memory, P, Port, Run, Symbol)

INPUT, OUTPUT, STATE = range(3)
DTYPES = {0: np.float64, 1: np.float32}
INVALID_ARGUMENT, INVALID_MODULE, IO = 1, 2, 3
runtime, lib = _native.runtime(), c.CDLL(LIBRARY)


def prototypes():
    """The header's functions: kind of result, name, types of arguments."""
    header = pathlib.Path(__file__).parents[2] / "include/tessera/tessera.h"
    found = []
    for result, name, arguments in re.findall(
            r"TESSERA_API\s+([^;(]*?)\s*\b(tessera_\w+)\(([^)]*)\);", header.read_text()):
        result = re.sub(r"\s", "", result)
        kind = {"tessera_status*": "status", "constchar*": "text", "double": "double", "void": "none"}
        types = [re.sub(r"\bconst\b|\w+$|\s", "", a.strip()) for a in arguments.split(",")]
        found.append((kind.get(result, "number"), name, [t for t in types if t]))
    return found


def make_module(ranks):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mlp.tsr")
        subprocess.run([MAKE_MODULE, str(ranks), path], check=True)
        with open(path, "rb") as file:
            return file.read()


class Rank:
    """One rank: a context, a module, and arrays for its ports."""

    def __init__(self, rank, world, group, module):
        self.context, self.module, self.binding = P(), P(), P()
        options = ContextOptions(rank=rank, world=world, transport=b"threads",
                                 handle=group, deadline=20)
        runtime.context_create(c.byref(options), c.byref(self.context))
        runtime.module_load(self.context, module, len(module),
                                c.byref(self.module))

    def indices(self, port, symbols, dimension, extent):
        """The global indices of a local dimension."""
        runs, count = (Run * 64)(), c.c_size_t(64)
        runtime.module_runs(self.module, port, symbols, len(symbols),
                                dimension, runs, c.byref(count))
        found = [np.arange(r.start, r.start + r.length)
                 for r in runs[:count.value]]
        result = np.concatenate(found) if found else np.arange(0)
        assert len(result) == extent
        return result

    def run(self, values, batch, runs=2):
        """Binds, runs, and returns for each output (grid of global indices,
        array)."""
        symbols = (c.c_int64 * 1)(batch)
        arrays, pointers, grids, outputs = [], [], [], {}
        for i in range(runtime.module_port_count(self.module)):
            port, layout = Port(), Layout()
            runtime.module_port(self.module, i, c.byref(port))
            runtime.module_layout(self.module, i, symbols, 1, c.byref(layout))
            shape = tuple(layout.shape[:layout.rank])
            grid = np.ix_(*[self.indices(i, symbols, d, n)
                            for d, n in enumerate(shape)])
            array = np.full(shape, np.nan, DTYPES[port.dtype])
            assert array.nbytes == layout.bytes
            name = port.name.decode()
            if port.kind != OUTPUT:
                array[...] = values[name][grid]
            else:
                outputs[name] = (grid, array)
            arrays.append(array)
            pointers.append(array.ctypes.data)
        runtime.binding_create(self.module, symbols, 1,
                                   (P * len(pointers))(*pointers),
                                   len(pointers), c.byref(self.binding))
        for _ in range(runs):
            runtime.binding_run(self.binding)
        return outputs

    def close(self):
        for handle, destroy in [(self.binding, runtime.binding_destroy),
                                (self.module, runtime.module_destroy),
                                (self.context, runtime.context_destroy)]:
            if handle:
                destroy(handle)


def on_ranks(world, body):
    """body(rank, group) on as many threads; the first exception is raised."""
    group, errors = P(), []
    runtime.threads_create(world, c.byref(group))

    def guarded(rank):
        try:
            body(rank, group)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(r,))
               for r in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    runtime.threads_destroy(group)
    if errors:
        raise errors[0]


class CApi(unittest.TestCase):
    def test_mlp_equals_numpy(self):
        random = np.random.default_rng(1)
        for world in (1, 2, 3):
            module = make_module(world)
            for batch in (2, 10, 64):
                values = {"x": random.normal(size=(batch, 8)),
                          "w0": random.normal(size=(32, 8)),
                          "w1": random.normal(size=(8, 32))}
                values = {k: v.astype(np.float32) for k, v in values.items()}
                x, w0, w1 = (values[k].astype(np.float64)
                             for k in ("x", "w0", "w1"))
                expected = (2 * (x @ w0.T) + 1) @ w1.T

                def body(rank, group):
                    one = Rank(rank, world, group, module)
                    grid, array = one.run(values, batch)["y"]
                    np.testing.assert_allclose(array, expected[grid],
                                               rtol=1e-4, atol=1e-3)
                    report = Collective()
                    self.assertEqual(
                        runtime.binding_collective_count(one.binding), 1)
                    runtime.binding_collective(one.binding, 0, c.byref(report))
                    self.assertEqual(report.kind, b"all-reduce")
                    self.assertEqual(report.axes, b"[tp]")
                    self.assertEqual(report.op, b"tv.reshard")
                    self.assertEqual(report.copies, 0)
                    self.assertEqual(report.bytes_sent > 0, world > 1)
                    memory = Memory()
                    runtime.binding_memory(one.binding, c.byref(memory))
                    self.assertEqual(memory.symmetric, batch * 8 * 4)
                    one.close()

                on_ranks(world, body)

    def test_variants(self):
        module = make_module(2)
        values = {name: np.ones(shape, np.float32) for name, shape in
                  [("x", (2, 8)), ("w0", (32, 8)), ("w1", (8, 32))]}

        def body(rank, group):
            one = Rank(rank, 2, group, module)
            for allowed, chosen in [(None, b"flash"), (b"math", b"math"),
                                    (b"math,flash", b"math")]:
                if allowed:
                    runtime.variants_push(b"attention", allowed)
                grid, array = one.run(values, 2)["y"]
                np.testing.assert_array_equal(array, 544)
                self.assertEqual(
                    runtime.binding_collective_count(one.binding), 1)
                self.assertEqual(
                    runtime.binding_alternative_count(one.binding), 1)
                found = Alternative()
                runtime.binding_alternative(one.binding, 0, c.byref(found))
                self.assertEqual(
                    (found.kind, found.op, found.location, found.chosen,
                     found.variants),
                    (b"attention", b"tv.attention", b"choice.mlir:1:1", chosen,
                     b"flash, math"))
                runtime.binding_destroy(one.binding)
                one.binding = P()
                if allowed:
                    runtime.variants_pop()
            with self.assertRaisesRegex(Error, "there are 'flash', 'cudnn' and 'math'"):
                runtime.variants_push(b"attention", b"fast")
            with self.assertRaisesRegex(Error, "no variants to pop"):
                runtime.variants_pop()
            one.close()

        on_ranks(2, body)

    def test_inspection(self):
        module = make_module(2)

        def body(rank, group):
            one = Rank(rank, 2, group, module)
            symbol, port = Symbol(), Port()
            runtime.module_symbol(one.module, 0, c.byref(symbol))
            self.assertEqual((symbol.name, symbol.maximum, symbol.multiple),
                             (b"batch", 64, 2))
            names = []
            for i in range(runtime.module_port_count(one.module)):
                runtime.module_port(one.module, i, c.byref(port))
                names.append((port.name, port.kind))
            self.assertEqual(names, [(b"x", INPUT), (b"w0", INPUT),
                                     (b"w1", INPUT), (b"y", OUTPUT)])
            self.assertEqual(port.shape_text, b"[batch, 8]")
            self.assertEqual(runtime.module_report(one.module),
                             b"made by hand")
            one.close()

        on_ranks(2, body)

    def test_errors_are_status_objects(self):
        module = make_module(1)

        def body(rank, group):
            one = Rank(rank, 1, group, module)
            with self.assertRaisesRegex(Error, "above its declared maximum"):
                one.run({"x": np.zeros((66, 8))}, 66)
            other = P()
            damaged = bytearray(module)
            damaged[-1] ^= 1
            for bytes_, text in [(bytes(damaged), "damaged"),
                                 (module[:5000], "truncated"),
                                 (b"", "not a Tessera module")]:
                with self.assertRaisesRegex(Error, text) as caught:
                    runtime.module_load(one.context, bytes_, len(bytes_),
                                            c.byref(other))
                self.assertEqual(caught.exception.code, INVALID_MODULE)
            with self.assertRaisesRegex(Error, "No such file") as caught:
                runtime.module_load_file(one.context, b"/nowhere.tsr",
                                             c.byref(other))
            self.assertEqual(caught.exception.code, IO)
            with self.assertRaisesRegex(Error, "No such file") as caught:
                runtime.module_inspect(b"/nowhere.tsr", None)
            self.assertEqual(caught.exception.code, IO)
            port = Port()
            port.size = 0
            with self.assertRaisesRegex(Error, "size is not set"):
                runtime.module_port(one.module, 0, c.byref(port))
            one.close()

        on_ranks(1, body)

    def test_null_is_an_error_of_every_function(self):
        # In a process of its own: what crashes is the last that it names.
        script = '''
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
for line in sys.stdin:
    result, name, arguments = line.split(";")
    print(name, flush=True)
    function = getattr(lib, name)
    function.restype = {"text": ctypes.c_char_p, "double": ctypes.c_double,
                        "none": None, "number": ctypes.c_int64}.get(result, ctypes.c_void_p)
    got = function(*[ctypes.c_void_p(0)] * int(arguments))
    if result == "status":
        lib.tessera_status_message.restype = ctypes.c_char_p
        assert got and len(lib.tessera_status_message(ctypes.c_void_p(got))) > 5
        lib.tessera_status_free(ctypes.c_void_p(got))
    elif result == "text":
        assert got == b""
    elif result != "none":
        assert got == 0 or name.endswith("_rank") and got & 0xffffffff == 0xffffffff, got
'''
        functions = prototypes()
        lines = [f"{result};{name};{len(arguments)}" for result, name, arguments in functions]
        done = subprocess.run([sys.executable, "-c", script, LIBRARY], input="\n".join(lines),
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout.split()[-1:] + [done.stderr])
        self.assertEqual(done.stdout.split(), [name for _, name, _ in functions])

    def test_null_beside_a_handle_and_wrong_indices(self):
        self.with_handles(self.check_handles)

    def check_handles(self, handles):
        structs = 0
        for result, name, arguments in prototypes():
            handle = handles.get(arguments[0] if arguments else None)
            if not handle or name.endswith("_destroy"):
                continue
            function = c.CFUNCTYPE(P if result == "status" else c.c_double if result == "double" else c.c_int64)(
                (name, lib))
            calls = [[0] * (len(arguments) - 1), [2**64 - 1 if "size_t" in a else 0 for a in arguments[1:]]]
            for call in calls if result == "status" else []:
                status = function(handle, *map(c.c_void_p, call))
                # There is nothing to copy, and nothing wrong in a run.
                self.assertTrue(status or name in ("tessera_device_copy", "tessera_binding_run",
                                                   "tessera_binding_wait"), name)
                runtime.status_free(status)
            # A result's struct of any size is filled as far as it goes.
            out = arguments[-1].rstrip("*")
            if result != "status" or out + "*" in handles or not out.startswith("tessera_") or out == "tessera_run":
                continue
            structs += 1
            for size in range(0, 1200):
                buffer = (c.c_uint8 * 2048)(*[0xEE] * 2048)
                c.cast(buffer, c.POINTER(c.c_size_t))[0] = size
                symbols = (c.c_int64 * 1)(2)
                middle = {3: [0], 4: [symbols, 1], 5: [0, symbols, 1]}.get(len(arguments), [])
                middle = {"tessera_module_memory": [symbols, 1]}.get(name, middle)
                if "communicator" in name:
                    break  # a processor has none
                status = function(handle, *[c.c_void_p(m) if isinstance(m, int) else m for m in middle], buffer)
                self.assertEqual(bool(status), size == 0 or size % 8 != 0, (name, size))
                self.assertEqual(set(buffer[max(size, 8):]), {0xEE}, (name, size))
                runtime.status_free(status)
        self.assertGreater(structs, 8)

    def with_handles(self, body):
        module = make_module(1)

        def on_rank(rank, group):
            one = Rank(rank, 1, group, module)
            values = {name: np.ones(shape, np.float32) for name, shape in
                      [("x", (2, 8)), ("w0", (32, 8)), ("w1", (8, 32))]}
            kept = one.run(values, 2)
            body({"tessera_context*": one.context, "tessera_module*": one.module,
                  "tessera_binding*": one.binding})
            one.close()
            del kept

        on_ranks(1, on_rank)

    def test_only_the_headers_functions_are_visible(self):
        listing = subprocess.run(
            ["nm", "--dynamic", "--defined-only", LIBRARY], check=True,
            capture_output=True, text=True).stdout
        names = {line.split()[-1] for line in listing.splitlines()}
        self.assertEqual({name for _, name, _ in prototypes()},
                         {n for n in names if n.startswith("tessera_")})
        self.assertEqual({n for n in names if not n.startswith("tessera_")},
                         set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
