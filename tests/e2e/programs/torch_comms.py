# SPDX-License-Identifier: Apache-2.0
"""Two processes that make each of the calls of torch.distributed once a step, behind a model that is watched."""

import argparse
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import isend as isend_of_before

import collwatch.torch


def sends(rank, step):
    """The same two messages in each of the three ways."""
    x, y = torch.full((3,), float(rank + step)), torch.zeros(3)
    if rank == 0:
        dist.send(x, 1)
        dist.recv(y, 1)
    else:
        dist.recv(y, 0)
        dist.send(x, 0)
    assert y.tolist() == [1 - rank + step] * 3, y
    y.zero_()
    work = dist.isend(x, 1 - rank)
    other = dist.irecv(y, 1 - rank)
    assert isinstance(other, dist.Work)
    work.wait()
    other.wait()
    assert y.tolist() == [1 - rank + step] * 3, y
    y.zero_()
    ops = [dist.P2POp(isend_of_before if step else dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, y, 1 - rank)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert y.tolist() == [1 - rank + step] * 3, y


def collectives(rank, step):
    x = torch.full((4,), float(rank))
    dist.all_reduce(x)
    assert x.tolist() == [1] * 4
    x = torch.full((4,), rank + 1.0)
    dist.reduce(x, dst=0)
    x = torch.full((4,), rank + 5.0)
    dist.broadcast(x, 1)
    assert x.tolist() == [6] * 4
    parts = [torch.zeros(2), torch.zeros(2)]
    dist.all_gather(parts, torch.full((2,), float(rank)))
    assert parts[1].tolist() == [1, 1]
    dist.gather(torch.full((2,), float(rank)), parts if rank == 0 else None, dst=0)
    x = torch.zeros(2)
    dist.scatter(x, [torch.ones(2), torch.full((2,), 3.0)] if rank == 0 else None, src=0)
    assert x.tolist() == [1 + 2 * rank] * 2
    x = torch.zeros(2)
    work = dist.all_to_all_single(x, torch.tensor([10.0 * rank, 10.0 * rank + 1]), async_op=True)
    work.wait()
    assert x.tolist() == [rank, 10 + rank], x
    for name, arguments in (("all_to_all", ([torch.zeros(1), torch.zeros(1)], [torch.ones(1), torch.ones(1)])),
                            ("reduce_scatter", (torch.zeros(1), [torch.ones(1), torch.ones(1)]))):
        try:
            getattr(dist, name)(*arguments)
        except RuntimeError as error:  # gloo of some versions has neither
            print("left out", name, error)


def coalesced():
    """Two calls of the program's, one of the backend's."""
    x, y = torch.ones(2), torch.full((2,), 5.0)
    with dist._coalescing_manager():  # pylint: disable=protected-access
        dist.all_reduce(x)
        dist.all_reduce(y)
    assert (x.tolist(), y.tolist()) == ([2, 2], [10, 10])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", "--output")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--nan", action="store_true", help="rank 1 reduces NaN in step 1")
    parser.add_argument("--off", action="store_true")
    arg = parser.parse_args()
    rank = int(os.environ["RANK"])
    before = dist.all_reduce
    dist.init_process_group("gloo", rank=rank, world_size=2)
    model = nn.Linear(2, 2)
    watch = None if arg.off else collwatch.torch.watch(model, comms=True, every=arg.every,
                                                       path=arg.output + ".rank%d" % rank)
    for step in range(arg.steps):
        model(torch.ones(1, 2)).sum().backward()
        collectives(rank, step)
        sends(rank, step)
        coalesced()
        if arg.nan and step == 1:
            x = torch.full((3,), float("nan") if rank else 1.0)
            dist.all_reduce(x)
    if watch:
        assert dist.all_reduce is not before and dist.all_reduce == before
        watch.close()
    assert dist.all_reduce is before
    dist.destroy_process_group()
    sys.stdout.flush()


if __name__ == "__main__":
    main()
