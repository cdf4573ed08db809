"""bench/gpu/queries.mlir by torch: causal attention and its gradients of a sequence that
GPUs share, by torch.distributed's context parallelism, which deals out the sequence in
blocks from both of its ends. The median time of forward and backward together.

    torchrun --nproc-per-node N queries_torch.py
"""
import statistics

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.nn.attention import SDPBackend, sdpa_kernel

HEADS, TOKENS, DEPTH, RUNS = 16, 16384, 128, 60


def main():
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank)
    mesh = init_device_mesh("cuda", (ranks,))
    for backend in SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION:
        torch.manual_seed(0)
        q, k, v, dout = (torch.randn(1, HEADS, TOKENS, DEPTH, device="cuda", dtype=torch.bfloat16)
                         for _ in range(4))
        with context_parallel(mesh, buffers=[q, k, v, dout], buffer_seq_dims=[2] * 4), \
                sdpa_kernel(backend):
            leaves = [x.detach().clone().requires_grad_() for x in (q, k, v)]
            times = []
            for _ in range(RUNS):
                dist.barrier()
                events = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
                torch.cuda._sleep(1_000_000)
                events[0].record()
                out = F.scaled_dot_product_attention(*leaves, is_causal=True)
                events[1].record()
                torch.autograd.grad(out, leaves, dout)
                events[2].record()
                torch.cuda.synchronize()
                times.append([a.elapsed_time(b) for a, b in zip(events, events[1:])])
        forward, backward = (statistics.median(x) for x in zip(*times[RUNS // 3:]))
        if rank == 0:
            print(f"torch, {backend.name}: forward {forward:.3f} ms, backward {backward:.3f} ms",
                  flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
