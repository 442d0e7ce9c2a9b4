# SPDX-License-Identifier: Apache-2.0
"""Fully sharded training with FSDP2."""

import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

import job


def train(args, rank, device):
    net = job.model().to(device)
    for layer in net:
        if any(True for _ in layer.parameters()):
            fully_shard(layer)
    fully_shard(net)
    for _ in job.fit(net, job.Samples(args, rank), device):
        pass
    dist.barrier()
    return [p.full_tensor() for p in net.parameters()]


if __name__ == '__main__':
    job.run(train, __doc__)
