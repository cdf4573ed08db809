#!/usr/bin/env python3
"""The GPT-3 block forward of block.py in JAX, on N GPUs of one process, timed as there.

    python3 bench/gpu/block_jax.py N

GSPMD shards it by the constraints below, sequence parallel and tensor parallel; the
latency-hiding scheduler is on, XLA's own collective kernels and NVLink multicast are
off. Medians of 5 rounds of 30 queued steps behind twice as many, in ms.
"""
import os
import statistics
import sys
import time

os.environ["XLA_FLAGS"] = ("--xla_gpu_enable_latency_hiding_scheduler=true "
                           "--xla_gpu_experimental_use_collective_kernels=-ALL_REDUCE")
os.environ["NCCL_NVLS_ENABLE"] = "0"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.lax import with_sharding_constraint as constrain  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

import gpt3  # noqa: E402

S, E, HEADS, D = gpt3.S, gpt3.E, gpt3.HEADS, gpt3.D
WEIGHTS = {  # shape, sharding, scale; of a linear [in, out]
    "ln0w": ((E,), P(), .1), "ln0b": ((E,), P(), .1), "ln1w": ((E,), P(), .1), "ln1b": ((E,), P(), .1),
    "wqkv": ((E, 3 * E), P(None, "tp"), .01), "bqkv": ((3 * E,), P("tp"), .1),
    "wo": ((E, E), P("tp", None), .01), "bo": ((E,), P(), .1),
    "w0": ((E, 4 * E), P(None, "tp"), .01), "b0": ((4 * E,), P("tp"), .1),
    "w1": ((4 * E, E), P("tp", None), .01), "b1": ((E,), P(), .1),
}


def layer_norm(x, weight, bias):
    x = x.astype(jnp.float32)
    x = x - x.mean(-1, keepdims=True)
    x = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + gpt3.EPSILON)
    return ((1 + weight.astype(jnp.float32)) * x + bias.astype(jnp.float32)).astype(jnp.bfloat16)


def block(p, x, rows, columns):
    """`rows` is the sharding of x; `columns` that of what is between two products."""
    n = constrain(layer_norm(x, p["ln0w"], p["ln0b"]), rows)
    qkv = constrain(n @ p["wqkv"] + p["bqkv"], columns)
    q, k, v = jnp.split(qkv.reshape(1, S, HEADS, 3 * D), 3, axis=-1)
    a = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn")
    s = x + constrain(constrain(a.reshape(S, E), columns) @ p["wo"], rows) + p["bo"]
    n = constrain(layer_norm(s, p["ln1w"], p["ln1b"]), rows)
    h = constrain(jax.nn.gelu(n @ p["w0"] + p["b0"], approximate=True), columns)
    return constrain(s + constrain(h @ p["w1"], rows) + p["b1"], rows)


def reading(call, steps):
    for _ in range(2 * steps):
        result = call()
    warm = result
    for _ in range(steps):
        result = call()
    jax.block_until_ready(warm)
    begin = time.perf_counter()
    jax.block_until_ready(result)
    return 1e3 * (time.perf_counter() - begin) / steps


def main():
    ranks = int(sys.argv[1])
    mesh = Mesh(np.array(jax.devices()[:ranks]), ("tp",))

    def random(number, shape, spec, scale):
        return jax.jit(lambda: scale * jax.random.normal(jax.random.key(number), shape, jnp.bfloat16),
                       out_shardings=NamedSharding(mesh, spec))()

    p = {name: random(i, *which) for i, (name, which) in enumerate(WEIGHTS.items())}
    columns, calls = NamedSharding(mesh, P(None, "tp")), {}
    for name, spec in (("sequence parallel", P("tp", None)), ("tensor parallel", P(None, None))):
        rows, x = NamedSharding(mesh, spec), random(99, (S, E), spec, 1)
        run = jax.jit(lambda p, x, rows=rows: block(p, x, rows, columns))
        calls[name] = lambda run=run, x=x: run(p, x)
        assert bool(jnp.isfinite(jax.block_until_ready(calls[name]())).all())
    times = {name: [] for name in calls}
    for _ in range(5):
        for name, call in calls.items():
            times[name].append(reading(call, 30))
    for name, each in times.items():
        print(f"{ranks} GPUs: JAX {name:18} {statistics.median(each):7.3f} ms  "
              f"({min(each):.3f} to {max(each):.3f})", flush=True)


if __name__ == "__main__":
    main()
