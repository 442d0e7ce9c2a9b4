# SPDX-License-Identifier: Apache-2.0
"""A pipeline, a stage per rank, with torch's own 1F1B schedule: sends and receives."""

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

import job

MICROBATCHES = 4


def train(args, rank, device):
    ranks = dist.get_world_size()
    layers = list(job.model())
    share = -(-len(layers) // ranks)
    net = torch.nn.Sequential(*layers[rank * share:(rank + 1) * share]).to(device)
    stage = PipelineStage(net, rank, ranks, device)
    schedule = Schedule1F1B(stage, MICROBATCHES, loss_fn=torch.nn.functional.mse_loss)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    samples = job.Samples(args, rank)
    for step, batch in samples:
        # All stages draw from the same samples: the first one's input is the last one's target.
        torch.manual_seed(step)
        batch = torch.randn_like(batch).to(device)
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(batch)
        elif rank == ranks - 1:
            schedule.step(target=batch)
        else:
            schedule.step()
        if samples.goes_wrong('branch', step):
            job.check_norm(next(net.parameters()).norm())
        optimizer.step()
        job.say(rank, 'step %d' % step)
    dist.barrier()
    return list(net.parameters())


if __name__ == '__main__':
    job.run(train, __doc__)
