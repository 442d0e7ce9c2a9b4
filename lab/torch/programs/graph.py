# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training whose gradients are averaged by a captured CUDA graph, replayed in each step."""

import torch
import torch.distributed as dist

import job

CHUNKS = 2  # collectives in the graph


class Averager:
    """Averages all gradients. They are views of one buffer: a graph has fixed addresses."""

    def __init__(self, net, device):
        self.flat = torch.zeros(sum(p.numel() for p in net.parameters()), device=device)
        at = 0
        for p in net.parameters():
            p.grad = self.flat[at:at + p.numel()].view_as(p)
            at += p.numel()
        dist.all_reduce(self.flat)  # makes connections, which a capture cannot include
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, capture_error_mode='thread_local'):
            for chunk in self.flat.chunk(CHUNKS):
                dist.all_reduce(chunk, op=dist.ReduceOp.AVG)

    def replay(self):
        self.graph.replay()


def train(args, rank, device):
    net = job.model().to(device)
    averager = Averager(net, device)
    samples = job.Samples(args, rank)
    for _ in job.fit(net, samples, device, averager.replay, keeps_gradients=True):
        pass
    dist.barrier()
    return list(net.parameters())


if __name__ == '__main__':
    job.run(train, __doc__)
