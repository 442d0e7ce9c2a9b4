# SPDX-License-Identifier: Apache-2.0
"""The same batch on however many ranks, by DistributedDataParallel or FSDP2: each takes its part, and gradients are
averaged. One rank may feed a NaN, or a loss that is larger, from a step on."""
import argparse
import os

import torch
import torch.distributed as dist

import collwatch.torch

HERE = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
BATCH, STEPS = 16, 12


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sharded", action="store_true")
    parser.add_argument("--fault-step", type=int, default=STEPS, help="on the last rank, from that step on …")
    parser.add_argument("--loss", type=float, default=1, help="… so many times the loss")
    parser.add_argument("--poison", help="… or NaN among what this layer makes")
    parser.add_argument("--path", default=os.devnull, help="of the watch; %%d: the rank")
    return parser.parse_args()


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 33), torch.nn.Linear(33, width)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(x)))


def parallel(model, arg):
    if not arg.sharded:
        return torch.nn.parallel.DistributedDataParallel(model, device_ids=[HERE.index], bucket_cap_mb=0.004)
    from torch.distributed.fsdp import fully_shard
    for block in model[1:-1]:
        fully_shard(block)
    return fully_shard(model)


def poisoned(gradient):
    gradient = gradient.clone()
    gradient.view(-1)[0] = float("nan")
    return gradient


def main():
    arg = options()
    torch.cuda.set_device(HERE)
    dist.init_process_group("nccl")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(9, 16), *(Block(16) for _ in range(4)), torch.nn.Linear(16, 7)).to(HERE)
    net = parallel(model, arg)
    collwatch.torch.watch(net, path=arg.path.replace("%d", str(RANK)))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    for step in range(STEPS):
        batch = torch.randn(BATCH, 9, generator=torch.Generator().manual_seed(step))
        is_wrong = step >= arg.fault_step and RANK == WORLD - 1
        if is_wrong and arg.poison and step == arg.fault_step:
            model.get_submodule(arg.poison).register_forward_hook(lambda _, __, made: made.register_hook(poisoned) and None)
        optimizer.zero_grad()
        loss = net(batch[BATCH // WORLD * RANK:BATCH // WORLD * (RANK + 1)].to(HERE)).square().mean()
        (loss * (arg.loss if is_wrong else 1)).backward()
        optimizer.step()
        torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()
    print("rank %d result %d" % (RANK, STEPS), flush=True)


if __name__ == "__main__":
    main()
