# SPDX-License-Identifier: Apache-2.0
"""Each rank works on what it has and on what its neighbour sent it, as in context parallelism:
batch_isend_irecv round a ring."""

import torch
import torch.distributed as dist

import job


def pass_on(batch, samples, step):
    """Returns the batch of the rank before this one."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    got = torch.empty_like(batch)
    messages = [dist.P2POp(dist.irecv, got, (rank - 1) % ranks)]
    if not samples.goes_wrong('missing-send', step):
        messages.append(dist.P2POp(dist.isend, batch, (rank + 1) % ranks))
    for request in dist.batch_isend_irecv(messages):
        request.wait()
    return got


def train(args, rank, device):
    net = job.model().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    samples = job.Samples(args, rank)
    for step, batch in samples:
        mine = batch.to(device)
        loss = torch.nn.functional.mse_loss(net(mine), pass_on(mine, samples, step))
        optimizer.zero_grad()
        loss.backward()
        for p in net.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        optimizer.step()
        job.say(rank, 'step %d loss %.6f' % (step, job.average(samples, step, loss.detach())))
    dist.barrier()
    return list(net.parameters())


if __name__ == '__main__':
    job.run(train, __doc__)
