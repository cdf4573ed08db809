"""The Python package, as an embedder uses it: against NumPy float64, and what it says
about input that is wrong.

    test_tessera.py BIN_FOLDER"""

import concurrent.futures
import ctypes
import gc
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(sys.argv[1]).resolve()
os.environ["TESSERA_ROOT"] = str(BIN.parent)
sys.path[:0] = [str(ROOT / each) for each in ("python", "bench", "test/EndToEnd")]

import python_overhead
import run_programs
import tessera
import tvnumpy
from tessera import _native

SUM = """#m = #tv.mesh<tp = 2>
!x = tensor<4x6xf32, #tv.view<#m, [did(tp) * _, _]>>
func.func @main(%s: !x {tv.name = "s", tv.role = "state"}, %x: !x {tv.name = "x"}) -> (!x {tv.name = "s"}) {
  %y = tv.add %s, %x : (!x, !x) -> !x
  return %y : !x
}
"""
TURNED = """#m = #tv.mesh<tp = 2>
!x = tensor<4x6xf32, #tv.view<#m, [_, did(tp) * _], alloc = (1, 0)>>
!y = tensor<?x6xf32, #tv.view<#m, [_, did(tp) * _]>>
func.func @main(%x: !x {tv.name = "x"}, %z: !y {tv.name = "z", tv.dims = ["b"]})
    -> (!x {tv.name = "y"}, !y {tv.name = "w"}) attributes {tv.sizes = {b = 8}} {
  %y = tv.neg %x : (!x) -> !x
  %w = tv.neg %z : (!y) -> !y
  return %y, %w : !x, !y
}
"""
RING = """#m = #tv.mesh<x = 4>
#n = #tv.mesh<x = 4, devices = [0, 1, 3, 2]>
!x = tensor<8x2xf32, #tv.view<#m, [did(x) * _, _]>>
!y = tensor<8x2xf32, #tv.view<#n, [did(x) * _, _]>>
func.func @main(%x: !x {tv.name = "x"}, %y: !y {tv.name = "y"}, %z: !x {tv.name = "z"},
                %t: !y {tv.name = "t", tv.role = "state"})
    -> (!y {tv.name = "r"}, !x {tv.name = "s"}, !x {tv.name = "u"}, !y {tv.name = "t"}) {
  %r = tv.add %x, %y : (!x, !y) -> !y
  %n = tv.add %t, %x : (!y, !x) -> !y
  return %r, %z, %z, %n : !y, !x, !x, !y
}
"""
X = np.arange(24, dtype=np.float32).reshape(4, 6)


class OnlyDLPack:
    """An array of a library that is not NumPy."""

    def __init__(self, array, device=None):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)


def ports(program, ranks):
    def ask(context):
        with context.load(program) as module:
            return module.ports
    return tessera.threads(ranks, ask)[0]


class Header(unittest.TestCase):
    def test_structs(self):
        """The package's structs are the headers'."""
        other = {"start": "from", "stop": "to"}
        structs = [each for each in vars(_native).values() if isinstance(each, type)
                   and issubclass(each, _native.Struct) and each is not _native.Struct]
        self.assertGreater(len(structs), 10)
        lines, want = [], []
        for struct in structs:
            for name, _ in struct._fields_:
                field = other.get(name, name)
                lines.append(f'printf("%zu\\n", offsetof({struct.__doc__}, {field}));')
                want.append(getattr(struct, name).offset)
            lines.append(f'printf("%zu\\n", sizeof({struct.__doc__}));')
            want.append(ctypes.sizeof(struct))
        source = ("#include <stdio.h>\n#include <tessera/compile.h>\nint main() {\n"
                  + "\n".join(lines) + "\n}\n")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["clang-22", "-xc", "-", f"-I{ROOT}/include", "-o",
                            f"{folder}/sizes"], input=source, text=True, check=True)
            said = subprocess.run([f"{folder}/sizes"], capture_output=True, text=True).stdout
        self.assertEqual([int(line) for line in said.split()], want)


class Compile(unittest.TestCase):
    def test_phases(self):
        phases = tessera.phases()
        self.assertEqual((phases[0], phases[-1]), ("source", "module"))
        self.assertIn("tv.add", tessera.compile(SUM, to="planned").text)
        planned = tessera.compile(SUM, to="planned", explain=True)
        again = tessera.compile(planned.text, start="planned")
        self.assertEqual(again.output[4:8], tessera.compile(SUM).output[4:8])

    def test_moves(self):
        gathered = tessera.compile(
            """#m = #tv.mesh<tp = 2>
            func.func @main(%x: tensor<4x6xf32, #tv.view<#m, [did(tp) * _, _]>>)
                -> tensor<4x6xf32> {
              %y = tv.constrain %x : (tensor<4x6xf32, #tv.view<#m, [did(tp) * _, _]>>)
                -> tensor<4x6xf32> to #tv.view<#m, [_, _]>
              return %y : tensor<4x6xf32>
            }""", name="a.mlir")
        self.assertRegex(gathered.moves,
                         r"^a\.mlir:4:\d+: all-gather over \[tp\] of 48 bytes on a device\n$")
        self.assertEqual(tessera.compile(SUM).moves, "")

    def test_is_the_tool(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a.mlir")
            path.write_text(SUM)
            module = pathlib.Path(folder, "a.tsr")
            subprocess.run([sys.executable, "-m", "tessera", "compile", path, "--mesh=tp=4",
                            "-o", module], check=True,
                           env=dict(os.environ, PYTHONPATH=ROOT / "python"))
            compiled = tessera.compile(SUM, name=str(path), mesh={"tp": 4})
            self.assertEqual(compiled.output, module.read_bytes())
            compiled.save(module)
            self.assertEqual(tessera.target_of(module), "cpu")

    def test_errors(self):
        cases = [
            (dict(source="func.func @main("), "<stdin>:1:16: error: "),
            (dict(source=SUM, mesh={"dp": 2}), "error: .*dp"),
            (dict(source=SUM, target="tpu"), "tpu.*cpu"),
            (dict(source=SUM, to="nowhere"), "nowhere.*planned"),
            (dict(source=SUM.replace("tv.add", "tv.ad"), name="a.mlir"), "a.mlir:4:"),
        ]
        for arguments, says in cases:
            with self.subTest(**arguments), self.assertRaisesRegex(tessera.CompileError, says):
                tessera.compile(**arguments)

    def test_version(self):
        said = subprocess.run([sys.executable, "-m", "tessera", "--version"], text=True,
                              capture_output=True, env=dict(os.environ, PYTHONPATH=ROOT / "python"))
        self.assertEqual(said.stdout, f"Tessera {tessera.__version__}\n", said.stderr)

    def test_progress(self):
        """How far the compilation of kernels is; what a callback raises comes through."""
        seen = []
        tessera.compile(SUM, target="cuda:sm_80", progress=lambda *counts: seen.append(counts))
        self.assertEqual(seen, [(1, 2), (2, 2)])

        def stop(done, all):
            raise ValueError(f"{done} of {all}")
        with self.assertRaisesRegex(ValueError, "1 of 2"):
            tessera.compile(SUM, target="cuda:sm_80", progress=stop)

    def test_shardings(self):
        plain = re.sub(r", #tv.view<.*", ">", SUM)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "sum.shardings")
            path.write_text("mesh <tp = 2>\n[sx]: [did(tp) * _, _]\n")
            program = tessera.compile(plain, shardings=path)
        self.assertEqual(ports(program, 2)["s"].view, ports(tessera.compile(SUM), 2)["s"].view)

    def test_memory(self):
        tessera.compile(SUM, memory="1MiB")
        with self.assertRaisesRegex(tessera.CompileError, "memory: 'much' is no number"):
            tessera.compile(SUM, memory="much")

    def test_machine(self):
        machine = {"latency": 1e-5, "bandwidth": 2e10, "copy": 2.5e11, "loops": 4e13}
        text = tessera.compile(SUM, machine=machine, to="propagated").output
        self.assertIn(b"<latency = 1.0e-05, bandwidth = 2.0e+10,", text)
        with self.assertRaisesRegex(tessera.CompileError, "'speed' is not one of latency"):
            tessera.compile(SUM, machine={"speed": 1.0})

    def test_threads(self):
        results = tessera.threads(3, lambda context: tessera.compile(SUM).output)
        self.assertEqual(len(set(results)), 1)


class Programs(unittest.TestCase):
    """Global arrays in and out, on every mesh of 1 to 4 devices."""

    def test_programs(self):
        tools = run_programs.Tools(BIN.parent, "threads")
        names = ["mlp", "slice-pad-concat", "dynamic-flat", "embedding", "experts", "moves-into-flat",
                 "grouped-queries"]
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                file = ROOT / f"test/Programs/{name}.mlir"
                for number, _, text in run_programs.programs_in(file):
                    sizes = run_programs.sizes_of(text)
                    case = run_programs.Case(tools, text, folder, "case", sizes)
                    for ranks in range(1, 5):
                        with self.subTest(name=name, number=number, ranks=ranks):
                            self.check(case, text, ranks)

    def check(self, case, text, ranks):
        axis = re.search(r"#tv\.mesh<(\w+) = \d+>", text)[1]
        program = tessera.compile(text, mesh={axis: ranks})
        # ml_dtypes' where that is installed, else integers.
        bits = {name: port.numpy_dtype for name, port in ports(program, ranks).items()
                if port.dtype == 2}
        inputs = {name: run_programs.bfloat16(array).view(bits[name]) if name in bits else array
                  for name, array in run_programs.read_outputs(case.inputs).items()}
        results = tessera.run(program, inputs, ranks=ranks, sizes=case.sizes)
        for name in bits.keys() & set(results):
            results[name] = (results[name].view(np.uint16).astype(np.uint32) << 16).view(
                np.float32)
        allowed = case.allowed(ranks)
        for port, exact in case.exact.items():
            why = tvnumpy.compare(port, results[port], exact, allowed[port])
            self.assertFalse(why, why)


class Run(unittest.TestCase):
    def test_state(self):
        def work(context):
            module = context.load(program)
            arrays = module.shards({"s": X, "x": X})
            binding = module.bind(arrays)
            for _ in range(3):
                binding.run()
            return binding.arrays["s"]

        program = tessera.compile(SUM)
        np.testing.assert_array_equal(np.concatenate(tessera.threads(2, work)), 4 * X)

    def test_state_from_zeros(self):
        text = SUM.replace('tv.role = "state"', 'tv.init = "zero", tv.role = "state"')
        program = tessera.compile(text)

        def work(context):
            module = context.load(program)
            self.assertEqual([port.zero_init for port in module.ports.values()], [True, False])
            with self.assertRaisesRegex(tessera.Error, "the input 'x' of shape"):
                module.run({"s": X})
            return module.run({"x": X})["s"], module.run({"s": X, "x": X})["s"]

        started, given = zip(*tessera.threads(2, work))
        np.testing.assert_array_equal(np.concatenate(started), X)
        np.testing.assert_array_equal(np.concatenate(given), 2 * X)

    def test_variants(self):
        """What the caller allows, its ranks' threads do, and no others."""
        text = """#m = #tv.mesh<tp = 2>
!q = tensor<1x2x3x4xf32, #tv.view<#m, [_, did(tp) * _, _, _]>>
func.func @main(%q: !q {tv.name = "q"}) -> (!q {tv.name = "y"}) {
  %y, %lse = tv.attention %q, %q, %q scale(0.5) : (!q, !q, !q) -> (!q, tensor<1x2x3xf32>)
  return %y : !q
}
"""
        program, q = tessera.compile(text), np.zeros((1, 2, 3, 4), np.float32)
        with tessera.variants("attention", "flash"):
            with self.assertRaisesRegex(tessera.Error, "flash.*there is math"):
                tessera.run(program, {"q": q}, ranks=2)
            with tessera.variants("attention", "math"):
                tessera.run(program, {"q": q}, ranks=2)
        tessera.run(program, {"q": q}, ranks=2)

    def test_choices(self):
        """A gradient follows what a binding of the attention chose, in other threads."""
        types = """#m = #tv.mesh<tp = 1>
!q = tensor<1x2x3x4xf32, #tv.view<#m, [_, _, _, _]>>
!l = tensor<1x2x3xf32>
"""
        forward = tessera.compile(types + """
func.func @main(%q: !q {tv.name = "q"}) -> (!q {tv.name = "o"}, !l {tv.name = "l"}) {
  %o, %l = tv.attention %q, %q, %q scale(0.5) causal : (!q, !q, !q) -> (!q, !l)
  return %o, %l : !q, !l
}
""", name="its\nname.mlir")
        text = types + """
func.func @main(%q: !q {tv.name = "q"}, %o: !q {tv.name = "o"}, %l: !l {tv.name = "l"})
    -> (!q {tv.name = "d"}) {
  %d, %dk, %dv = tv.attention_grad %q, %q, %q, %q, %o, %l scale(0.5) causal
      : (!q, !q, !q, !q, !q, !l) -> (!q, !q, !q)
  return %d : !q
}
"""
        q = np.linspace(-1, 1, 24, dtype=np.float32).reshape(1, 2, 3, 4)
        with tessera.Context() as context, context.load(forward) as module:
            arrays = {"q": q, "o": np.zeros_like(q), "l": np.zeros((1, 2, 3), np.float32)}
            with module.bind(arrays) as binding:
                binding.run()
                choice = binding.choice()
                self.assertEqual(binding.choice("matmul"), "")
        self.assertIn("math", choice)
        backward = tessera.compile(text)
        with tessera.variants.of(choice):
            followed = tessera.run(backward, arrays)["d"]
            for other in ("0.25", "0.50000000001", "-0.5"):
                with self.assertRaisesRegex(
                        tessera.Error, r"tv.attention_grad.*the choice is of attention of "
                        rf"\[1, 2, 3, 4\].* scale 0.5 causal.*, not of .*scale {other}\d* causal"):
                    tessera.run(tessera.compile(text.replace("(0.5)", f"({other})")), arrays)
        np.testing.assert_array_equal(followed, tessera.run(backward, arrays)["d"])
        with self.assertRaisesRegex(tessera.Error, "no choice"):
            tessera.variants.of("math").__enter__()

    def test_layouts(self):
        """Memory in another order, a size that is bound, and one that arrays show."""
        program = tessera.compile(TURNED)
        for rows in (0, 1, 5, 8):
            z = np.arange(rows * 6, dtype=np.float32).reshape(rows, 6)
            results = tessera.run(program, {"x": X, "z": z}, ranks=2)
            np.testing.assert_array_equal(results["y"], -X)
            np.testing.assert_array_equal(results["w"], -z)

        def look(context):
            module = context.load(program)
            return module.layout("x", {"b": 3}), module.empty("x", {"b": 3}).strides, module

        (layout, strides, module), (other, _, _) = tessera.threads(2, look)
        self.assertEqual((layout.shape, layout.strides, layout.bytes), ((4, 3), (1, 4), 48))
        self.assertEqual(strides, (4, 16))
        self.assertEqual(list(other.indices[1]), [3, 4, 5])
        self.assertEqual(module.symbols["b"].maximum, 8)
        self.assertEqual(module.ports["z"].shape, (-1, 6))

    def test_other_devices(self):
        """A rank's part is that of the mesh that the argument or result lists."""
        program = tessera.compile(RING)
        x = np.arange(16, dtype=np.float32).reshape(8, 2)
        np.testing.assert_array_equal(
            tessera.run(program, {name: x for name in "xyzt"}, ranks=4)["r"], 2 * x)

        def look(context):
            module = context.load(program)
            with module.bind(module.shards({name: x for name in "xyzt"})) as binding:
                binding.run()
                binding.run()
                return ([list(module.layout(name).indices[0]) for name in "xyrt"],
                        binding.arrays["r"], binding.arrays["t"],
                        [module.ports[name].mesh for name in "xyrt"], module.mesh)

        ring = [0, 1, 3, 2]
        for rank, (rows, r, t, meshes, mesh) in enumerate(tessera.threads(4, look)):
            at = ring.index(rank)
            here, there = [2 * rank, 2 * rank + 1], [2 * at, 2 * at + 1]
            self.assertEqual(rows, [here] + 3 * [there])
            np.testing.assert_array_equal(r, 2 * x[there])
            np.testing.assert_array_equal(t, 3 * x[there])
            self.assertEqual(mesh, "<x = 4>")
            self.assertEqual(meshes, [mesh] + 3 * ["<x = 4, devices = [0, 1, 3, 2]>"])

    def test_dlpack(self):
        with tessera.Context() as context:
            module = context.load(tessera.compile(SUM, mesh={"tp": 1}))
            state = X.copy()
            binding = module.bind({"s": OnlyDLPack(state), "x": OnlyDLPack(X)})
            binding.run()
            np.testing.assert_array_equal(state, 2 * X)  # in place
            with self.assertRaisesRegex(tessera.Error, "'x' is of f32; the array is not"):
                module.bind({"x": OnlyDLPack(X.astype(np.float64))})

    def test_reports(self):
        program = tessera.compile((ROOT / "examples/mlp.mlir").read_text(), name="mlp.mlir")

        def work(context):
            module = context.load(program)
            with module.bind({}) as binding:
                binding.run()
                return binding.collectives, binding.steps, binding.memory, module.memory()

        for collectives, steps, memory, before in tessera.threads(2, work):
            (collective,) = collectives
            self.assertEqual(collective.kind, "all-reduce")
            self.assertEqual(collective.location, "mlp.mlir:10:8")
            self.assertEqual(collective.bytes_sent, 512)
            self.assertIn("linear", " ".join(step.op for step in steps))
            self.assertEqual(memory.external, before.external)

    def test_mpi(self):
        """Ranks are processes, found by mpi4py."""
        script = ("import sys, numpy as np, tessera\nfrom mpi4py import MPI\n"
                  "x = np.ones((4, 6), np.float32)\n"
                  "with tessera.Context(comm=MPI.COMM_WORLD) as context:\n"
                  "  with context.load(sys.argv[1]) as module:\n"
                  "    s = module.run({'s': x, 'x': x})['s']\n"
                  "    assert s.shape == (2, 6) and (s == 2).all()\n"
                  "    ranks = MPI.COMM_WORLD.gather((context.rank, context.world))\n"
                  "    if ranks: print(ranks)\n")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a.tsr")
            tessera.compile(SUM).save(path)
            env = dict(run_programs.environment(), PYTHONPATH=str(ROOT / "python"))
            done = subprocess.run(["mpirun", "-n", "2", sys.executable, "-c", script, path],
                                  env=env, capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "[(0, 2), (1, 2)]\n")

    def test_mpi_rank(self):
        """A rank whose options are wrong is an error on all ranks at once."""
        script = ("import tessera\nfrom mpi4py import MPI\n"
                  "class First(MPI.Intracomm):\n"
                  "  rank = 0\n"
                  "try:\n"
                  "  tessera.Context(comm=First(MPI.COMM_WORLD))\n"
                  "except tessera.Error as error:\n"
                  "  said = MPI.COMM_WORLD.gather(str(error))\n"
                  "  if said: print(*said, sep='\\n')\n")
        env = dict(run_programs.environment(), PYTHONPATH=str(ROOT / "python"))
        done = subprocess.run(["mpirun", "-n", "2", sys.executable, "-c", script],
                              env=env, capture_output=True, text=True, timeout=60)
        says = "the options say rank 0 of 2, the transport says 1 of 2"
        for line, prefix in zip(done.stdout.splitlines(), ("rank 1: ", ""), strict=True):
            self.assertIn(prefix + says, line)

    def test_bootstrap(self):
        """Ranks agree by callbacks; one that raises is an error on its rank."""
        meeting = tessera._Threads(2)
        parts, barrier = [None, None], threading.Barrier(2)

        def work(rank, broken=False):
            def gather(mine):
                if broken:
                    raise ValueError("lost")
                parts[rank] = mine
                barrier.wait()
                every = list(parts)
                barrier.wait()
                return every

            with tessera.Context(rank=rank, world=2, all_gather=gather, deadline=2,
                                 barrier=barrier.wait, _threads=meeting) as context:
                with context.load(tessera.compile(SUM)) as module:
                    return module.run({"s": X, "x": X})["s"]

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            halves = list(pool.map(work, range(2)))
        np.testing.assert_array_equal(np.concatenate(halves), 2 * X)
        with self.assertRaises(tessera.Error):
            work(0, broken=True)


class Wrong(unittest.TestCase):
    """One error that says what would be right, before anything runs."""

    def setUp(self):
        self.context = tessera.Context()
        self.sum = self.context.load(tessera.compile(SUM, mesh={"tp": 1}))
        self.turned = self.context.load(tessera.compile(TURNED, mesh={"tp": 1}))

    def test_errors(self):
        s, t = self.sum, self.turned
        wide = np.zeros((4, 12), np.float32)
        cases = [
            (lambda: s.run({"s": X}), "'x' of shape \\[4, 6\\] is missing"),
            (lambda: s.run({"s": X, "q": X}), "no port 'q': it has s, x"),
            (lambda: s.run({"s": X, "x": X.T}), "'x' has the shape .4, 6.*array has .6, 4"),
            (lambda: s.run({"s": X, "x": X.astype(int)}), "'x' is of f32; the array is of i"),
            (lambda: s.bind({"x": X.tolist()}), "list is no array"),
            (lambda: s.bind({"x": X[:2]}), "'x' has the shape .4, 6.*has .2, 6"),
            (lambda: s.bind({"x": wide[:, ::2]}), "'x' has the strides .6, 1.*has .12, 2"),
            (lambda: s.bind({"s": np.broadcast_to(X, (1, 4, 6))[0]}), "'s' is read-only"),
            (lambda: s.bind({"s": wide[:2].reshape(4, 6), "x": wide.reshape(8, 6)[3:7]}),
             "'s' and 'x' overlap, and a run writes 's'"),
            (lambda: s.layout("x", {"n": 1}), "no size 'n'"),
            (lambda: t.layout("z"), "what is the size 'b'"),
            (lambda: t.layout("z", {"b": 9}), "9"),
            (lambda: tessera.Context(backend="tpu"), "tpu"),
            (lambda: tessera.Context(world=2), "needs a transport"),
            (lambda: tessera.Context(barrier=print), "all_gather and barrier together"),
            (lambda: self.context.load(b"no module"), "module"),
            (lambda: self.context.load("/no/such/file"), "/no/such/file"),
            (lambda: tessera.run(tessera.compile(SUM), {}, ranks=3), "mesh of 2 devices"),
            (lambda: tessera.variants("attention", "swift").__enter__(), "swift.*flash"),
            (lambda: tessera.default_variants("attention", "swift"), "swift.*flash"),
            (lambda: tessera.default_variants("softmax"), "softmax.*attention"),
        ]
        for i, (call, says) in enumerate(cases):
            with self.subTest(i), self.assertRaisesRegex(tessera.Error, says):
                call()

    def test_overhead(self):
        python, c = python_overhead.measure(rounds=5, runs=200)
        self.assertLess(python - c, 20e-6)

    def test_code_and_place(self):
        with self.assertRaises(tessera.Error) as caught:
            self.context.load(b"no module")
        self.assertEqual(caught.exception.code, tessera.Code.INVALID_MODULE)
        self.assertEqual(caught.exception.rank, 0)

    def test_order_of_closing(self):
        """What is left of a closed context is closed with it."""
        binding = self.sum.bind({})
        self.context.close()
        for owner in (binding, self.sum, self.turned):
            with self.assertRaisesRegex(tessera.Error, "is closed: use it before its close"):
                owner._handle
            owner.close()

    def test_collected_in_a_cycle(self):
        """What is made from a context is given back before it, in whatever order a cycle
        that has them all, as the end of a script, is collected."""
        given_back = []
        runtime = _native.runtime()

        class Recorder:
            def __getattr__(self, name):
                if name.endswith("_destroy"):
                    given_back.append(name)
                return getattr(runtime, name)

        program = tessera.compile(SUM, mesh={"tp": 1})
        gc.collect()  # what other tests left
        with unittest.mock.patch.object(_native, "runtime", Recorder):
            for turn in (1, -1):
                context = tessera.Context()
                module = context.load(program)
                cycle = [context, module, module.bind({})][::turn]
                cycle.append(cycle)
                del context, module, cycle
                gc.collect()
        self.assertEqual(given_back, 2 * ["binding_destroy", "module_destroy", "context_destroy"])

    def test_a_rank_fails(self):
        """The others end too, and what is raised is why."""
        def work(context):
            with context.load(program) as module:
                if context.rank == 1:
                    raise RuntimeError("rank 1 has no data")
                module.run({"s": X, "x": X})

        program = tessera.compile(SUM)
        with self.assertRaisesRegex(RuntimeError, "no data"):
            tessera.threads(2, work, deadline=2)

    def test_missing_library(self):
        done = subprocess.run(
            [sys.executable, "-c", "import tessera; tessera.compile('')"],
            env=dict(os.environ, PYTHONPATH=str(ROOT / "python"), TESSERA_ROOT="/nowhere"),
            capture_output=True, text=True)
        self.assertIn("cannot find libtessera-compiler.so", done.stderr)
        self.assertIn("/nowhere", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
