# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training whose rank 0 writes checkpoints, slowly, while all others wait for it."""

import errno
import os
import tempfile
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import job

EVERY = 6  # steps
WRITING_S = float(os.environ.get('CHECKPOINT_S', '2'))


def save(net, directory, samples, step):
    """Simulates a large model on a slow store: writes the small one again and again."""
    end = time.monotonic() + WRITING_S
    while True:
        with open(os.path.join(directory, 'model'), 'wb') as f:
            torch.save(net.state_dict(), f)
            f.flush()
            os.fsync(f.fileno())
        if samples.goes_wrong('block-in-checkpoint', step):
            job.wait_for_ever()  # the store does not answer
        if samples.goes_wrong('full-disk', step):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if time.monotonic() > end:
            break


def train(args, rank, device):
    net = DistributedDataParallel(job.model().to(device), device_ids=[device.index])
    samples = job.Samples(args, rank)
    with tempfile.TemporaryDirectory() as directory:
        for step, _ in job.fit(net, samples, device):
            if step % EVERY == EVERY - 1:
                if rank == 0:
                    save(net, directory, samples, step)
                if not samples.goes_wrong('skipped-barrier', step):
                    dist.barrier()
    return list(net.parameters())


if __name__ == '__main__':
    job.run(train, __doc__)
