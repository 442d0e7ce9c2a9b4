# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training; beside NCCL a group of the CPU, whose barrier names who does not come."""

import datetime

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import job

PATIENCE = datetime.timedelta(hours=1)


def check_in(cpu):
    """Waits for all ranks before we count a step."""
    dist.monitored_barrier(cpu, timeout=PATIENCE)


def train(args, rank, device):
    cpu = dist.new_group(backend='gloo', timeout=PATIENCE, group_desc='check_in')
    net = DistributedDataParallel(job.model().to(device), device_ids=[device.index])
    samples = job.Samples(args, rank)
    for step, loss in job.fit(net, samples, device):
        if not samples.goes_wrong('skipped-barrier', step):
            check_in(cpu)
        job.average(samples, step, loss)
    check_in(cpu)
    return list(net.parameters())


if __name__ == '__main__':
    job.run(train, __doc__)
