# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training with DistributedDataParallel."""

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import job


def train(args, rank, device):
    net = DistributedDataParallel(job.model().to(device), device_ids=[device.index])
    for _ in job.fit(net, job.Samples(args, rank), device):
        pass
    dist.barrier()
    return list(net.parameters())


if __name__ == '__main__':
    job.run(train, __doc__)
