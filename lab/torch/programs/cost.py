# SPDX-License-Identifier: Apache-2.0
"""What a collective costs the thread that calls it: CPU time, of many calls of a small all_reduce."""

import statistics
import time

import torch
import torch.distributed as dist

import job

CALLS = 32  # calls before a wait: too few to fill NCCL's queue


def batch(numbers):
    """Microseconds of a call."""
    start = time.thread_time()
    for _ in range(CALLS):
        dist.all_reduce(numbers, async_op=True)
    end = time.thread_time()
    torch.cuda.synchronize()
    return (end - start) / CALLS * 1e6


def measure(args, rank, device):
    numbers = torch.zeros(4, device=device)
    costs = sorted(batch(numbers) for _ in range(args.steps))
    job.say(rank, 'call %.2f us least %.2f us median of %d' % (
        costs[0], statistics.median(costs), len(costs) * CALLS))
    return [numbers]


if __name__ == '__main__':
    job.run(measure, __doc__)
