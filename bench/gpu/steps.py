"""Where a program's time goes on GPUs: medians of the times of its steps, with events
between them, one run behind the other. Inputs are random.

    mpirun -n N python3 steps.py MODULE.tsr
"""
import argparse
import statistics

import torch

import tessera

TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module")
    parser.add_argument("--runs", type=int, default=60)
    args = parser.parse_args()
    try:
        from mpi4py import MPI
        world = MPI.COMM_WORLD
    except ImportError:
        world = None
    rank, ranks = (world.Get_rank(), world.Get_size()) if world else (0, 1)
    torch.cuda.set_device(rank)
    context = tessera.Context(comm=world if ranks > 1 else None, backend="cuda", device=rank,
                              flags=tessera.Flags.TIME_STEPS)
    module = context.load(args.module)
    torch.manual_seed(rank)
    arrays = {}
    for name, port in module.ports.items():
        shape = module.layout(name).shape
        arrays[name] = torch.randn(shape, device="cuda").to(TYPES[port.numpy_dtype.name])
    binding = module.bind(arrays)
    runs = []
    for _ in range(args.runs):
        binding.run()
        runs.append(binding.steps)
    runs = runs[args.runs // 3:]  # the first ones warm the GPU up
    for i, step in enumerate(runs[0]):
        took = statistics.median(run[i].end - run[i].begin for run in runs)
        if rank == 0:
            print(f"  {1e6 * took:8.1f} us  {step.op} {step.text}", flush=True)


if __name__ == "__main__":
    main()
