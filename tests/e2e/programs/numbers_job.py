#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job whose numbers follow from a seed: ranks that reduce drawn tensors, two a step, and gather
one. Options choose the differences between runs."""
import argparse
import ctypes
import os
import random
import subprocess
import sys
import time

for near in "../../../lab/programs", "../../lib":
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), near))
from waiting import wait_until  # pylint: disable=wrong-import-position
from train_loop import NCCL_SUM, Communicator, Device, Nccl, Tensor, UniqueId  # pylint: disable=wrong-import-position

ELEMENTS = 64
NCCL_INT32, NCCL_FLOAT = 2, 7


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--parts", type=int, default=0, help="of the batch, equally many on each rank (one)")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--from-step", type=int, default=0)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--scale", type=float, default=1, help="of what one rank feeds …")
    parser.add_argument("--scale-rank", type=int, default=-1)
    parser.add_argument("--scale-step", type=int, default=-1, help="… from that step on")
    parser.add_argument("--grow", type=float, default=1, help="… and so much more in each step")
    parser.add_argument("--step-ms", type=int, default=0)
    parser.add_argument("--more-in-step", type=int, default=-1, help="one call more")
    parser.add_argument("--other-type-in-step", type=int, default=-1)
    parser.add_argument("--mark", action="store_true", help="tell the steps")
    parser.add_argument("--fail", action="store_true", help="at the end")
    parser.add_argument("--stand-at", type=int, default=-1, metavar="STEP", help="before it (the first)…")
    parser.add_argument("--until", metavar="FILE", help="… until it is there")
    parser.add_argument("--rank", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--uid", help=argparse.SUPPRESS)
    return parser.parse_args()


class Rank:
    def __init__(self, arg):
        self.arg = arg
        self.device = Device(arg.rank)
        nccl = Nccl()
        self.world = Communicator.create(nccl, "world", arg.ranks,
                                         UniqueId.from_buffer_copy(bytes.fromhex(arg.uid)), arg.rank)
        n_parts = max(1, arg.parts // arg.ranks)
        self.parts = range(n_parts * arg.rank, n_parts * (arg.rank + 1))
        self.tensors = [Tensor(self.device, ELEMENTS) for _ in range(2)]
        self.part = Tensor(self.device, ELEMENTS * n_parts)
        self.all = Tensor(self.device, ELEMENTS * n_parts * arg.ranks)

    def draw(self, step, i):
        """Each part of the batch's contribution to a tensor."""
        scaled = self.arg.rank == self.arg.scale_rank and step >= self.arg.scale_step
        scale = self.arg.scale * self.arg.grow ** (step - self.arg.scale_step) if scaled else 1
        drawn = [random.Random(f"{self.arg.seed}/{step}/{i}/{part}") for part in self.parts]
        return [[scale * numbers.gauss(0, 1) for _ in range(ELEMENTS)] for numbers in drawn]

    def reduce(self, tensor, dtype=NCCL_FLOAT):
        world = self.world
        world.nccl.call("ncclAllReduce", tensor.dev, tensor.dev, ELEMENTS, dtype, NCCL_SUM, world.handle,
                        self.device.stream)

    def step(self, step):
        if self.arg.mark:
            ctypes.CDLL(None).collwatch_mark_step(ctypes.c_int64(step))
        for i, tensor in enumerate(self.tensors):
            tensor.upload(sum(column) for column in zip(*self.draw(step, i)))
            self.reduce(tensor, NCCL_INT32 if i and step == self.arg.other_type_in_step else NCCL_FLOAT)
        if step == self.arg.more_in_step:
            self.reduce(self.tensors[0])
        self.part.upload(number for part in self.draw(step, 2) for number in part)
        self.world.all_gather(self.part, self.all)
        self.device.synchronize()
        time.sleep(self.arg.step_ms / 1000)


def main():
    arg = options()
    if arg.rank >= 0:
        rank = Rank(arg)
        for step in range(arg.from_step, arg.steps):
            if arg.until and step == max(arg.stand_at, arg.from_step):
                wait_until(lambda: os.path.exists(arg.until), "the ranks are told to go on")
            rank.step(step)
        sys.exit(3 if arg.fail else 0)
    uid = bytes(Nccl().unique_id()).hex()
    ranks = [subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--rank", str(r), "--uid", uid],
                              env=dict(os.environ, RANK=str(r), WORLD_SIZE=str(arg.ranks), LOCAL_RANK=str(r)))
             for r in range(arg.ranks)]
    sys.exit(max(p.wait() for p in ranks))


if __name__ == "__main__":
    main()
