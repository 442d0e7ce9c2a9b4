# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training that reads through torch's DataLoader, whose workers are processes."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import job


class Batches(torch.utils.data.Dataset):
    """The batches that a worker reads."""

    def __init__(self, samples):
        self.samples = samples

    def __len__(self):
        return self.samples.args.steps

    def __getitem__(self, step):
        if self.samples.goes_wrong('worker-dies', step):
            os._exit(3)
        if self.samples.goes_wrong('worker-blocks', step):
            job.wait_for_ever()
        generator = torch.Generator().manual_seed(1000 * self.samples.rank + step)
        return torch.randn(job.BATCH, job.WIDTH, generator=generator)


class Loaded(job.Samples):
    """The same samples, read through a worker."""

    def __iter__(self):
        return enumerate(torch.utils.data.DataLoader(Batches(self), batch_size=None,
                                                     num_workers=1))


def train(args, rank, device):
    net = DistributedDataParallel(job.model().to(device), device_ids=[device.index])
    for _ in job.fit(net, Loaded(args, rank), device):
        pass
    dist.barrier()
    return list(net.parameters())


if __name__ == '__main__':
    job.run(train, __doc__)
