# SPDX-License-Identifier: Apache-2.0
"""A mixture of experts, one per rank: tokens go to theirs and come back by all_to_all_single, as
many as the router says, in groups of their own name."""

import torch
import torch.distributed as dist

import job


class Exchange(torch.autograd.Function):
    """Sends each rank its share of the rows, and gradients in the opposite direction."""

    @staticmethod
    def forward(ctx, rows, to_send, to_receive, group):
        ctx.splits = to_send, to_receive, group
        got = rows.new_empty(sum(to_receive), rows.shape[1])
        dist.all_to_all_single(got, rows.contiguous(), to_receive, to_send, group)
        return got

    @staticmethod
    def backward(ctx, grad):
        to_send, to_receive, group = ctx.splits
        return Exchange.apply(grad, to_receive, to_send, group), None, None, None


def announce(to_send, group, device):
    """Announces how many rows each rank gets from each other rank."""
    mine = torch.tensor(to_send, device=device)
    theirs = torch.empty_like(mine)
    dist.all_to_all_single(theirs, mine, group=group)
    return theirs.tolist()


def route(batch, step, ranks):
    """Returns the rows sorted by expert, and the number of rows per expert."""
    expert = (torch.arange(len(batch)) ** 2 + step) % ranks
    order = torch.argsort(expert, stable=True)
    return order, torch.bincount(expert, minlength=ranks).tolist()


def train(args, rank, device):
    ranks = dist.get_world_size()
    experts = dist.new_group(use_local_synchronization=True, group_desc='experts')
    torch.manual_seed(7 + rank)
    expert = torch.nn.Linear(job.WIDTH, job.WIDTH).to(device)
    optimizer = torch.optim.AdamW(expert.parameters(), lr=1e-3)
    samples = job.Samples(args, rank)
    for step, batch in samples:
        order, to_send = route(batch, step, ranks)
        rows = batch[order].to(device)
        to_receive = announce(to_send, experts, device)
        if samples.goes_wrong('wrong-splits', step):
            # We drop tokens beyond the capacity after their announcement.
            to_send = [max(n - 1, 0) for n in to_send]
            rows = rows[:sum(to_send)]
        got = expert(Exchange.apply(rows, to_send, to_receive, experts))
        back = Exchange.apply(got, to_receive, to_send, experts)
        loss = torch.nn.functional.mse_loss(back, rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        job.say(rank, 'step %d loss %.6f' % (step, job.average(samples, step, loss.detach())))
    dist.barrier()
    return list(expert.parameters())


if __name__ == '__main__':
    job.run(train, __doc__)
