#!/usr/bin/env python3
"""Programs compiled and run on several ranks, against NumPy float64.

Each program of test/Programs, and the examples, is compiled for meshes of 1, 2, 3
and 4 devices, runs on random inputs as threads of one process or under mpirun (both:
as threads, and the first program of a file, on the most devices, under mpirun, which
takes long to start), and must equal the NumPy evaluation of its source within the
tolerance of architecture.md, 11.
What ran is held against a line `RAN` of the program, if it has one for the mesh: kinds,
with the number of tensors where it is not one, bytes that the busiest rank sends, packing
copies.

    // RAN tp=2: all-reduce 1024 bytes 0 copies

`--write` puts these lines as they are now, to be looked at before they are kept.

    run_programs.py --build build --transport both test/Programs/mlp.mlir
"""
import argparse
import collections
import itertools
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import load_file, save_file

import tvnumpy

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def environment():
    env = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    for line in (ROOT / "scripts/mpi.env").read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            env[name] = value
    return env


class Tools:
    def __init__(self, build, transport, deadline=60, emulate=False, flags=(), runs=(),
                 fakes=None, target="cuda:sm_90a"):
        self.bin = pathlib.Path(build).resolve() / "bin"
        self.transport = transport
        self.emulate = emulate  # kernels for GPUs, on the host
        self.target = target  # of what is emulated
        self.fakes = fakes  # a folder of libraries for a GPU that is not there
        self.flags = flags  # of tessera-compile, always
        self.runs = runs or [""]  # a flag of tessera-run for each run of a module
        self.chosen = collections.Counter()  # by run and variant
        self.deadline = deadline
        self.env = environment()
        if fakes:
            self.env.update(TESSERA_CUDA_LIBRARY_PATH=str(fakes), NCCL_NVLS_ENABLE="0")

    def call(self, *command):
        run = subprocess.run([str(c) for c in command], capture_output=True, text=True,
                             env=self.env, timeout=300)
        if run.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}\n"
                               f"{run.stdout[-1500:]}{run.stderr[-3000:]}")
        return run.stdout

    def source(self, path):
        """The program as tessera-opt prints it."""
        return self.call(self.bin / "tessera-opt", path, "--mlir-print-local-scope")

    def compile(self, path, mesh, module, *flags):
        flags = [*self.flags, *flags, *(f"--mesh={m}" for m in [mesh] if m)]
        if self.fakes:
            flags.append("--target=cuda:sm_90a")
        if not self.emulate:
            self.call(self.bin / "tessera-compile", path, *flags, "-o", module)
            return
        dumps = f"{module}.dumps"
        self.call(self.bin / "tessera-compile", path, *flags, "-o", f"{module}.gpu",
                  f"--target={self.target}", "--dump-dir", dumps)
        self.call(self.bin / "emulate-module", f"{module}.gpu", f"{dumps}/kernels.cu",
                  module)

    def interpret(self, path, mesh, ranks, sizes):
        """The local phase against the source, each value rounded to its type."""
        given = ",".join(f"{name}={size}" for name, size in sizes.items())
        ops = f"{path}.ops.mlir"  # the interpreter rounds no gradient
        self.call(self.bin / "tessera-opt", path, "--tv-inline", "--tv-inline-regions",
                  "--tv-differentiate", "-o", ops)
        self.call(self.bin / "tessera-opt", ops,
                  f"--tessera=to=local mesh={mesh}" if mesh else "--tessera=to=local",
                  f"--interpret={ranks}", "--interpret-precision=program",
                  *([f"--interpret-sizes={given}"] if given else []), "-o", os.devnull)

    def run(self, module, ranks, inputs, output, sizes=(), flag="", transport=None):
        command = [self.bin / "tessera-run", module, "--inputs", inputs, "--output",
                   output, "--report", "json", "--deadline", self.deadline]
        # As flash is in the module, but has no emulation.
        if self.emulate and b"tv.attention" in pathlib.Path(module).read_bytes():
            command += ["--attention", "math"]
        if self.fakes:  # what has kernels has none of them
            command += ["--attention", "cudnn"]
        command += [flag] if flag else []
        for name, size in dict(sizes).items():
            command += ["--size", f"{name}={size}"]
        if (transport or self.transport) == "threads":
            command += ["--transport", "threads", "--ranks", ranks]
        else:
            command = ["mpirun", "-n", ranks, "--oversubscribe", *command]
        report = json.loads(self.call(*command))
        kind, _, names = flag.removeprefix("--").partition("=")
        for choice in report.get("choices", []):
            if choice["kind"] == kind:
                want = next(n for n in names.split(",") if n in choice["variants"])
                if choice["chosen"] != want:
                    raise RuntimeError(f"{flag} chose {choice}")
                self.chosen[flag, want] += 1
        return report


def bfloat16(array):
    """bf16 as bits: safetensors' NumPy has no such type."""
    return (np.asarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def make_inputs(program, seed, sizes):
    """Random arguments of @main, by name."""
    random = np.random.default_rng(seed)
    line = program.lines[program.functions["main"]]
    begin = line.index("(", line.index("@"))
    texts = tvnumpy.split(line[begin + 1:tvnumpy.closing(line, begin) - 1])
    inputs = {}
    for (value, type_, name), text in zip(program.signature("main")[0], texts):
        dims = re.search(r"tv\.dims = \[(.*?)\]", text)
        names = iter(re.findall(r'"(\w+)"', dims[1]) if dims else [])
        shape = [sizes[next(names)] if e is None else e for e in type_.shape]
        if type_.element in tvnumpy.INTEGERS:
            bounds = re.search(r"tv\.range = \[(-?\d+)[^,]*, (-?\d+)", text)
            low, high = (int(bounds[1]), int(bounds[2])) if bounds else (0, 2)
            array = random.integers(low, high + 1, shape)
            array = array.astype(tvnumpy.INTEGERS[type_.element])
        else:
            # Large ones repeat, so that the GPU bundle stays small; the period is a prime,
            # so that the rows next to a row are not like it.
            count = math.prod(shape)
            array = np.resize(random.standard_normal(min(count, 2**17 - 1)), shape)
            if '"weight"' in text and len(shape) > 1:
                array /= np.sqrt(shape[-1])  # results as large as inputs
            array = tvnumpy.round_to(array, type_.element)
        inputs[name] = array
    return inputs


def write_inputs(path, program, inputs):
    """As safetensors; what NumPy lacks needs its header written by hand."""
    arrays, kinds = {}, {}
    for (value, type_, name), array in zip(program.signature("main")[0],
                                           inputs.values()):
        if type_.element == "bf16":
            arrays[name] = bfloat16(array)
            kinds[name] = "BF16"
        elif type_.element in tvnumpy.FLOAT8:
            arrays[name] = tvnumpy.bits_of_float8(array, type_.element)
            kinds[name] = type_.element.replace("f8", "F8_").removesuffix("FN")
        elif type_.element in tvnumpy.INTEGERS:
            arrays[name] = array
        else:
            arrays[name] = array.astype({"f64": np.float64, "f32": np.float32,
                                         "f16": np.float16}[type_.element])
    save_file({k: np.array(v, order="C") for k, v in arrays.items()}, path)
    if kinds:
        retype(path, kinds)


def retype(path, kinds):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    for name, kind in kinds.items():
        header[name]["dtype"] = kind
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(len(text).to_bytes(8, "little") + text
                                   + data[8 + size:])


def read_outputs(path):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    if not any(v.get("dtype") == "BF16" for v in header.values()):
        return load_file(path)
    outputs = {}
    for name, info in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + o for o in info["data_offsets"])
        raw = data[begin:end]
        if info["dtype"] == "BF16":
            bits = np.frombuffer(raw, np.uint16).astype(np.uint32) << 16
            array = bits.view(np.float32)
        else:
            array = np.frombuffer(raw, {
                "F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64,
                "I32": np.int32, "U32": np.uint32, "I8": np.int8, "U8": np.uint8,
                "BOOL": np.bool_}[info["dtype"]])
        outputs[name] = array.reshape(info["shape"])
    return outputs


# Elements of a row, each time that its rounding errors are drawn, among which one is
# not small.
ENOUGH = 16


class Case:
    """A program with random inputs, and its results in float64 with the distance that
    each element may have from them, whatever the mesh."""

    def __init__(self, tools, text, folder, name, sizes, seed=0):
        self.path, self.inputs, self.output, self.module = (
            os.path.join(folder, f"{name}.{end}") for end in (
                "mlir", "in.safetensors", "out.safetensors", "tsr"))
        self.sizes = sizes
        pathlib.Path(self.path).write_text(text)
        source = tools.source(self.path)
        program = tvnumpy.Program(source)
        inputs = make_inputs(program, seed, sizes)
        write_inputs(self.inputs, program, inputs)
        self.exact = program.run(inputs)
        # To nearest, and by chance, more often where a row has few elements: the
        # error of one may be small by luck.
        shortest = min((v.shape[-1] if v.ndim else 1 for v in self.exact.values()), default=1)
        draws = max(3, ENOUGH // max(shortest, 1) - 1)
        self.rounded = [tvnumpy.Program(source, rounded=True, random=random).run(inputs)
                        for random in (None, *map(np.random.default_rng, range(draws)))]
        self.elements = [type_.element for type_, _ in program.signature("main")[1]]

    def allowed(self, ranks):
        addend = max([1.0] + [float(np.abs(v[np.isfinite(v)]).max(initial=0))
                              for v in self.exact.values() if v.dtype.kind == "f"])
        return {port: tvnumpy.allowed(value, [each[port] for each in self.rounded], element,
                                      ranks, addend)
                for (port, value), element in zip(self.exact.items(), self.elements)}


def check(tools, case, ranks, transports=(None,)):
    """Runs a compiled program; gives what ran, the same in all runs of the module. Raises
    on a difference."""
    ran, allowed = set(), case.allowed(ranks)
    for flag, transport in itertools.product(tools.runs, transports):
        report = tools.run(case.module, ranks, case.inputs, case.output, case.sizes, flag,
                           transport)
        ran.add(summary(report))
        results = read_outputs(case.output)
        for port, value in case.exact.items():
            if port not in results:
                raise RuntimeError(f"no output '{port}'; there are {', '.join(results)}")
            why = tvnumpy.compare(port, results[port], value, allowed[port])
            if why:
                raise RuntimeError(f"{flag} {why}")
    if len(ran) != 1:
        raise RuntimeError(f"runs differ in what they move: {ran}")
    return ran.pop()


def with_names(text):
    """Gives every argument and result of @main a name, if it has none; and takes its
    checks away, for numbers that are drawn are wrong data."""
    text = re.sub(r', tv\.check = "[^"]*"', "", text)
    at = text.index("func.func @main(")
    begin = text.index("(", at)
    end = tvnumpy.closing(text, begin)
    parts = []
    for part in tvnumpy.split(text[begin + 1:end - 1]):
        if "tv.name" not in part:
            value = part.split(":")[0].strip().lstrip("%")
            if part.rstrip().endswith("}"):
                cut = part.rstrip()[:-1]
                part = f'{cut}, tv.name = "{value}"}}'
            else:
                part = f'{part} {{tv.name = "{value}"}}'
        parts.append(part)
    head, rest = text[:begin + 1] + ",\n    ".join(parts) + ")", text[end:]
    match = re.match(r"\s*->\s*", rest)
    if not match:
        return head + rest
    rest = rest[match.end():]
    if rest.startswith("("):
        stop = tvnumpy.closing(rest, 0)
        types = tvnumpy.split(rest[1:stop - 1])
    else:
        stop = tvnumpy.closing(rest, rest.index("<")) if rest.startswith("tensor") \
            else re.match(r"!\w+", rest).end()
        types = [rest[:stop]]
    named = [t if "tv.name" in t else f'{t} {{tv.name = "result{i}"}}'
             for i, t in enumerate(types)]
    return head + " -> (" + ", ".join(named) + ")" + rest[stop:]


def split_programs(file):
    return re.split(r"^// -----$", pathlib.Path(file).read_text(), flags=re.M)


def with_element(text, element):
    """All of f32 is `element`, but for a log-sum-exp, and for the regions of attention,
    which compute in f32; and all of bf16 where that is beside it."""
    lines, inside = text.split("\n"), False
    for i, line in enumerate(lines):
        inside |= bool(re.search(r"\b(score|mask)_(mod|grad) \(", line))
        if not inside and "lse" not in line:
            lines[i] = re.sub("bf16|f32", element, line)
        inside &= line.strip() != "}"
    return "\n".join(lines)


def programs_in(file, element=None):
    """[(number, part, text)] of the programs of a file: as it is written, and with
    names, and with another element type if one is given."""
    for number, part in enumerate(split_programs(file)):
        if "func.func @main" not in part or "expected-error" in part:
            continue
        text = with_names(part)
        if element:
            text = with_element(text, element)
        yield number, part, text


def sizes_of(text):
    declared = re.search(r"tv\.sizes = \{(.*?)\}", text)
    names = re.findall(r"(\w+) =", declared[1]) if declared else []
    return {name: {"b": 3, "s": 7, "m": 6, "z": 0}[name] for name in names}


def meshes_of(text, devices=(1, 2, 3, 4)):
    """[(mesh option, ranks)]: each number of devices on one axis, else the program's own."""
    axes = re.findall(r"(\w+) = (\d+)", re.search(r"#tv\.mesh<([^>]*)>", text)[1])
    if len(axes) == 1 and "devices =" not in text:
        return [(f"{axes[0][0]}={n}", n) for n in devices]
    ranks = int(np.prod([int(size) for _, size in axes]))
    return [("", ranks)]


def summary(report):
    return ", ".join(
        c["kind"] + (f" of {c['tensors']}" if c["tensors"] > 1 else "")
        + f" {c['sent']} bytes {c['copies']} copies"
        for c in report["collectives"] if c["kind"] != "slice") or "nothing"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--transport", choices=["mpi", "threads", "both"],
                        default="both")
    parser.add_argument("--element",
                        help="run all of f32 as this type, in the interpreter too")
    parser.add_argument("--devices", default="1,2,3,4", help="of programs with one mesh axis")
    parser.add_argument("--emulate", action="store_true",
                        help="kernels for GPUs, on the host")
    parser.add_argument("--target", default="cuda:sm_90a", help="of what is emulated")
    parser.add_argument("--fakes", type=pathlib.Path,
                        help="a folder of libraries for a GPU that is not there: runs "
                        "programs without kernels, and attention by cuDNN")
    parser.add_argument("--flags", nargs="+", default=[],
                        help="of tessera-compile, in this form: --flags=--matmul=own")
    parser.add_argument("--run", action="append", default=[], dest="runs",
                        help="a preference of tessera-run, once for each run of a "
                             "module: --run=--matmul=own,cublaslt")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    devices = [int(number) for number in args.devices.split(",")]
    if args.write and devices != [1, 2, 3, 4]:
        parser.error("--write writes lines for all devices")
    tools = Tools(args.build, args.transport, emulate=args.emulate, flags=args.flags,
                  target=args.target,
                  runs=args.runs, fakes=args.fakes)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for file in args.files:
            parts = split_programs(file)
            for place, (number, part, text) in enumerate(programs_in(file, args.element)):
                sizes = sizes_of(text)
                lines = []
                meshes = meshes_of(text, devices)
                case = None
                for mesh, ranks in meshes:
                    try:
                        case = case or Case(tools, text, folder, "program", sizes, args.seed)
                        tools.compile(case.path, mesh, case.module)
                        transports = ["threads", "mpi"] if args.transport == "both" else [None]
                        most = ranks == meshes[-1][1]
                        ran = check(tools, case, ranks, transports if most and place == 0
                                    else transports[:1])
                        # (At the size of GPU kernels that takes seconds.)
                        if args.element and most:
                            tools.interpret(case.path, mesh, ranks, sizes)
                        line = f"// RAN {mesh or 'here'}: {ran}"
                        lines.append(line)
                        want = re.search(rf"^// RAN {mesh or 'here'}: .*$", text, re.M)
                        # (How many rows are fetched, the inputs tell.)
                        if (want and want[0] != line
                                and not (args.element or args.write or args.fakes)
                                and not (args.seed and "fetch" in line)):
                            raise RuntimeError(f"{line}\nmust be\n{want[0]}")
                        passed += 1
                    except (RuntimeError, ValueError, KeyError, IndexError,
                            subprocess.TimeoutExpired) as error:
                        failed += 1
                        print(f"{file}#{number} {mesh} failed: "
                              f"{type(error).__name__}: {error}")
                part = re.sub(r"^// RAN .*\n", "", part, flags=re.M)
                at = part.index("#m = #tv.mesh")
                parts[number] = part[:at] + "\n".join(lines) + "\n" + part[at:]
            if args.write:
                pathlib.Path(file).write_text("// -----".join(parts))
    for flag in args.runs:
        first = flag.partition("=")[2].split(",")[0]
        print(f"{flag}: {first} {tools.chosen[flag, first]}")
        failed += not tools.chosen[flag, first]
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
