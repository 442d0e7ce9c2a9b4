# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training under torchrun: started again, it goes on from its last checkpoint."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import job

EVERY = 4  # steps
RESTARTS = int(os.environ.get('TORCHELASTIC_RESTART_COUNT', '0'))


class Samples(job.Samples):
    """The remaining samples."""

    def __init__(self, args, rank, first):
        super().__init__(args, rank)
        self.first = first

    def goes_wrong(self, fault, step):
        return RESTARTS == 0 and super().goes_wrong(fault, step)

    def read_sample(self, step):
        if self.goes_wrong('block-after-restart', step):
            raise ValueError('sample %d is damaged' % step)
        if RESTARTS > 0 and super().goes_wrong('block-after-restart', step):
            job.wait_for_ever()
        return super().read_sample(step)

    def __iter__(self):
        for step in range(self.first, self.args.steps):
            yield step, self.read_sample(step)


def load(net, path):
    """Returns the step to begin with."""
    if not os.path.exists(path):
        return 0
    checkpoint = torch.load(path, map_location='cpu')
    net.load_state_dict(checkpoint['net'])
    return checkpoint['step']


def save(net, path, step):
    """Writes it as a whole or not at all."""
    torch.save({'net': net.state_dict(), 'step': step}, path + '.new')
    os.rename(path + '.new', path)


def train(args, rank, device):
    path = os.environ['CHECKPOINT']
    net = DistributedDataParallel(job.model().to(device), device_ids=[device.index])
    samples = Samples(args, rank, load(net, path))
    job.say(rank, 'start %d at step %d' % (RESTARTS, samples.first))
    for step, _ in job.fit(net, samples, device):
        if step % EVERY == EVERY - 1:
            if rank == 0:
                save(net, path, step + 1)
            dist.barrier()
    return list(net.parameters())


if __name__ == '__main__':
    job.run(train, __doc__)
