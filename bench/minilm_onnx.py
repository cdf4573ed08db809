#!/usr/bin/env python3
"""all-MiniLM-L6-v2 on one thread beside onnxruntime, in one process, by turns.

    python3 bench/minilm_onnx.py --build build --model .cache/minilm

The graph is written here from the weights that the module reads: plain ops of opset 20
(MatMul, Softmax, LayerNormalization, Gelu), which onnxruntime fuses as it does by default.
Both embed the same tokens. Times are the CPU's, of the process, the least of all turns, so
that what else runs counts little. With --ranks 2 two threads run the module alone, by the
clock.
PYTHONPATH has the package (python/ of a clone); onnx, onnxruntime and safetensors are
installed.
"""
import argparse
import os
import pathlib
import subprocess
import tempfile
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402
from safetensors.numpy import load_file  # noqa: E402
import tessera  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS, HEADS, WIDTH, EPSILON = 6, 12, 384, 1e-12


class Graph:
    def __init__(self, weights):
        self.weights, self.nodes, self.constants = weights, [], {}

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0]

    def constant(self, array, name=None):
        name = name or f"c{len(self.constants)}"
        self.constants[name] = numpy_helper.from_array(np.asarray(array), name)
        return name

    def weight(self, name):
        return self.constant(self.weights[name], name)

    def linear(self, name, x):
        matrix = self.constant(np.ascontiguousarray(self.weights[name + ".weight"].T),
                               name + ".weight")
        return self.op("Add", self.op("MatMul", x, matrix), self.weight(name + ".bias"))

    def norm(self, name, x):
        return self.op("LayerNormalization", x, self.weight(name + ".weight"),
                       self.weight(name + ".bias"), axis=-1, epsilon=EPSILON)

    def heads(self, name, x):
        shape = self.constant(np.array([0, 0, HEADS, WIDTH // HEADS], np.int64))
        return self.op("Transpose", self.op("Reshape", self.linear(name, x), shape),
                       perm=[0, 2, 1, 3])

    def attention(self, name, x, added):
        q, k, v = (self.heads(f"{name}.self.{part}", x) for part in ("query", "key", "value"))
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scale = self.constant(np.float32((WIDTH // HEADS) ** -0.5))
        scores = self.op("Add", self.op("Mul", scores, scale), added)
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        shape = self.constant(np.array([0, 0, WIDTH], np.int64))
        y = self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), shape)
        y = self.linear(name + ".output.dense", y)
        return self.norm(name + ".output.LayerNorm", self.op("Add", y, x))

    def model(self, tokens):
        rows = self.constant(self.weights["embeddings.position_embeddings.weight"][:tokens])
        kind = self.constant(self.weights["embeddings.token_type_embeddings.weight"][0])
        x = self.op("Gather", self.weight("embeddings.word_embeddings.weight"), "ids")
        x = self.norm("embeddings.LayerNorm", self.op("Add", self.op("Add", x, rows), kind))
        one, low = self.constant(np.float32(1)), self.constant(np.float32(-1e9))
        column = self.op("Unsqueeze", "mask", self.constant(np.array([1, 2], np.int64)))
        added = self.op("Mul", self.op("Sub", one, column), low)
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            x = self.attention(name + ".attention", x, added)
            y = self.op("Gelu", self.linear(name + ".intermediate.dense", x))
            y = self.linear(name + ".output.dense", y)
            x = self.norm(name + ".output.LayerNorm", self.op("Add", y, x))
        last, middle = (self.constant(np.array([axis], np.int64)) for axis in (-1, 1))
        mask = self.op("Unsqueeze", "mask", last)
        total = self.op("ReduceSum", self.op("Mul", x, mask), middle, keepdims=0)
        mean = self.op("Div", total, self.op("ReduceSum", mask, middle, keepdims=0))
        length = self.op("ReduceL2", mean, last, keepdims=1)
        self.nodes.append(helper.make_node("Div", [mean, length], ["embeddings"]))
        port = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "minilm", [port("ids", onnx.TensorProto.INT32, ["b", tokens]),
                                   port("mask", onnx.TensorProto.FLOAT, ["b", tokens])],
            [port("embeddings", onnx.TensorProto.FLOAT, ["b", WIDTH])],
            list(self.constants.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)],
                                 ir_version=10)


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"])


def least(run, turns, clock):
    """Seconds of one run."""
    times = []
    for _ in range(turns):
        begin = clock()
        run()
        times.append(clock() - begin)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / ".cache/minilm")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--turns", type=int, default=3, help="runs of each in a round")
    parser.add_argument("--ranks", type=int, default=1)
    args = parser.parse_args()

    weights = load_file(args.model / "model.safetensors")
    rng = np.random.default_rng(0)
    inputs = {"ids": rng.integers(1000, 30000, (args.batch, args.tokens), np.int32),
              "mask": np.ones((args.batch, args.tokens), np.float32)}
    theirs = session(Graph(weights).model(args.tokens))
    with tempfile.TemporaryDirectory() as folder:
        module = os.path.join(folder, "minilm.tsr")
        subprocess.run([args.build / "bin/tessera-compile",
                        ROOT / "examples/minilm/encoder.mlir", f"--mesh=tp={args.ranks}",
                        "-o", module], check=True)
        whole = pathlib.Path(module).read_bytes()

    def bound(context):
        loaded = context.load(whole)
        arrays = {name: inputs[name] if name in inputs else weights[name]
                  for name, port in loaded.ports.items() if port.kind != tessera.Kind.OUTPUT}
        sizes = loaded.sizes_of(arrays)
        return loaded.bind(loaded.shards(arrays, sizes), sizes)

    def measure(context):
        binding = bound(context)
        binding.run()
        if context.world > 1:
            return least(binding.run, args.rounds * args.turns, time.perf_counter)
        ours = next(binding.arrays[name] for name, port in binding.module.ports.items()
                    if port.kind == tessera.Kind.OUTPUT)
        expected = theirs.run(None, inputs)[0]
        print(f"largest difference: {np.abs(ours - expected).max():.1e}")
        best = {"tessera": np.inf, "onnxruntime": np.inf}
        runs = {"tessera": binding.run, "onnxruntime": lambda: theirs.run(None, inputs)}
        for _ in range(args.rounds):
            for name, run in runs.items():
                best[name] = min(best[name], least(run, args.turns, time.process_time))
        for name, seconds in best.items():
            print(f"{name}: {seconds * 1e3:.1f} ms")
        print(f"ratio: {best['tessera'] / best['onnxruntime']:.2f}")
        return best["tessera"]

    times = tessera.threads(args.ranks, measure)
    if args.ranks > 1:
        print(f"{args.ranks} ranks: {max(times) * 1e3:.1f} ms by the clock")


if __name__ == "__main__":
    main()
