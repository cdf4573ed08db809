#!/usr/bin/env python3
"""The GPT-3 block forward of block.py in JAX, on N GPUs of one process, timed as there.

    python3 bench/gpu/block_jax.py N [--gradient]

With --gradient forward and backward, the gradients of x and of all parameters.
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
    """From when a step is done to when the one `steps` later is, always 10 ahead. (XLA takes
    no more than about 30: a clock that starts when all are queued may start too late.)"""
    queued = []
    for i in range(3 * steps):
        queued.append(jax.tree.leaves(call())[0])
        if len(queued) > 10:
            jax.block_until_ready(queued.pop(0))
        if i == 2 * steps - 1:
            begin = time.perf_counter()
    return 1e3 * (time.perf_counter() - begin) / steps


def main():
    ranks = int(sys.argv[1])
    mesh = Mesh(np.array(jax.devices()[:ranks]), ("tp",))

    def random(number, shape, spec, scale):
        return jax.jit(lambda: scale * jax.random.normal(jax.random.key(number), shape, jnp.bfloat16),
                       out_shardings=NamedSharding(mesh, spec))()

    p = {name: random(i, *which) for i, (name, which) in enumerate(WEIGHTS.items())}
    columns, calls = NamedSharding(mesh, P(None, "tp")), {}
    lying = {name: NamedSharding(mesh, spec) for name, (_, spec, _) in WEIGHTS.items()}
    for name, spec in (("sequence parallel", P("tp", None)), ("tensor parallel", P(None, None))):
        rows, x = NamedSharding(mesh, spec), random(99, (S, E), spec, 1)

        def forward(p, x, rows=rows):
            return block(p, x, rows, columns)

        def both(p, x, dy, forward=forward):
            y, adjoint = jax.vjp(forward, p, x)
            return y, *adjoint(dy)

        if "--gradient" in sys.argv:
            run, dy = jax.jit(both, out_shardings=(rows, lying, rows)), random(98, (S, E), spec, 1)
            calls[name] = lambda run=run, x=x, dy=dy: run(p, x, dy)
        else:
            run = jax.jit(forward)
            calls[name] = lambda run=run, x=x: run(p, x)
        results = jax.tree.leaves(jax.block_until_ready(calls[name]()))
        assert all(bool(jnp.isfinite(result).all()) for result in results)
        del results
    times = {name: [] for name in calls}
    for _ in range(5):
        for name, call in calls.items():
            times[name].append(reading(call, 30))
    for name, each in times.items():
        print(f"{ranks} GPUs: JAX {name:18} {statistics.median(each):7.3f} ms  "
              f"({min(each):.3f} to {max(each):.3f})", flush=True)


if __name__ == "__main__":
    main()
