#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job all of whose ops are in groups. Each step has two all_reduce, an all_gather and a
broadcast, on one communicator and on a second one, then an all-to-all of sends and receives.
Options choose the fault."""
import argparse
import ctypes
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../lab/programs"))
from train_loop import NCCL_SUM, Communicator, Device, Nccl, Tensor, UniqueId  # pylint: disable=wrong-import-position

ELEMENTS = 64
NCCL_FLOAT = 7


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--elements", type=int, default=ELEMENTS)
    parser.add_argument("--one-device", action="store_true", help="all ranks on the first, each as a host of its own")
    parser.add_argument("--say", action="store_true", help="what came out")
    parser.add_argument("--many", type=int, default=0, help="so many all_reduce more, in one group at the end")
    parser.add_argument("--scale", type=float, default=1, help="of what rank 1 sends in the last step")
    parser.add_argument("--fault", choices=["nan", "nan-sent", "flip", "round", "flip-gathered"])
    parser.add_argument("--fault-rank", type=int, default=1)
    parser.add_argument("--other-model", type=int, default=-1, metavar="RANK", help="it has a device of another model")
    parser.add_argument("--rank", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--uid", help=argparse.SUPPRESS)
    return parser.parse_args()


class Rank:
    def __init__(self, arg):
        self.arg, self.n = arg, arg.elements
        self.device = Device(0 if arg.one_device else arg.rank)
        self.nccl = Nccl()
        self.world = Communicator.create(self.nccl, "world", arg.ranks,
                                         UniqueId.from_buffer_copy(bytes.fromhex(arg.uid)), arg.rank)
        self.other = self.world.split("other", 0, arg.rank)
        self.inputs = [Tensor(self.device, self.n) for _ in range(2)]
        self.sums = [Tensor(self.device, self.n) for _ in range(2)]
        self.all = Tensor(self.device, self.n * arg.ranks)
        self.one = Tensor(self.device, 1)
        self.sent, self.came = ([Tensor(self.device, self.n) for _ in range(arg.ranks)] for _ in range(2))

    def draw(self, tensor, *what, scale=1.0):
        numbers = random.Random("/".join(map(str, (*what, self.arg.rank))))
        tensor.upload([scale * numbers.gauss(0, 1) for _ in range(tensor.count)])

    def all_reduce(self, comm, source, target):
        self.nccl.call("ncclAllReduce", source.dev, target.dev, self.n, NCCL_FLOAT, NCCL_SUM, comm.handle,
                       self.device.stream)

    def collectives(self, step, strikes):
        for i, tensor in enumerate(self.inputs):
            self.draw(tensor, step, i)
        self.draw(self.one, step)
        if strikes == "nan":
            self.inputs[1].upload([float("nan"), *self.inputs[1].host[1:]])
        if self.arg.fault == "round":  # the sum sent below instead is next to nothing, too
            self.inputs[0].upload([1e-30, *self.inputs[0].host[1:]])
            self.inputs[1].upload([2e-30, *self.inputs[1].host[1:]])
        self.nccl.call("ncclGroupStart")
        self.all_reduce(self.world, self.inputs[0], self.sums[0])
        self.nccl.call("ncclGroupStart")
        self.all_reduce(self.other, self.inputs[1], self.sums[1])
        self.nccl.call("ncclGroupEnd")
        self.world.all_gather(self.inputs[0], self.all)
        self.other.broadcast(self.one, root=0)
        if strikes in ("flip", "round", "flip-gathered"):
            # On one rank something else comes into a copy before it is looked at.
            copy = self.all if strikes == "flip-gathered" else self.sums[0]
            self.nccl.call("ncclSend", self.inputs[1].dev, 1, NCCL_FLOAT, self.arg.rank, self.world.handle,
                           self.device.stream)
            self.nccl.call("ncclRecv", copy.dev, 1, NCCL_FLOAT, self.arg.rank, self.world.handle,
                           self.device.stream)
        self.nccl.call("ncclGroupEnd")

    def all_to_all(self, step, strikes):
        last = step == self.arg.steps - 1 and self.arg.rank == 1
        for peer, tensor in enumerate(self.sent):
            self.draw(tensor, step, "to", peer, scale=self.arg.scale if last else 1.0)
        if strikes == "nan-sent":
            self.sent[0].upload([float("nan"), *self.sent[0].host[1:]])
        self.nccl.call("ncclGroupStart")
        for peer in range(self.arg.ranks):
            self.world.send(self.sent[peer], peer)
            self.world.recv(self.came[peer], peer)
        self.nccl.call("ncclGroupEnd")

    def step(self, step):
        strikes = self.arg.fault if self.arg.rank == self.arg.fault_rank and step == 1 else None
        mark = getattr(ctypes.CDLL(None), "collwatch_mark_step", None)
        if mark:
            mark(ctypes.c_int64(step))
        self.collectives(step, strikes)
        self.all_to_all(step, strikes)
        self.device.synchronize()

    def many(self):
        self.nccl.call("ncclGroupStart")
        for i in range(self.arg.many):
            self.all_reduce(self.world, self.inputs[0], self.sums[i % 2])
        self.nccl.call("ncclGroupEnd")
        self.device.synchronize()

    def say(self):
        results = [*self.sums, self.all, *self.came]
        for tensor in results:
            tensor.download()
        self.device.synchronize()
        sys.stdout.write(f"rank {self.arg.rank} got {' '.join(f'{sum(t.host):.9g}' for t in results)}\n")


def main():
    arg = options()
    if arg.rank >= 0:
        rank = Rank(arg)
        for step in range(arg.steps):
            rank.step(step)
        if arg.many:
            rank.many()
        if arg.say:
            rank.say()
        return
    uid = bytes(Nccl().unique_id()).hex()
    ranks = [subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--rank", str(r), "--uid", uid],
                              env=dict(os.environ, RANK=str(r), WORLD_SIZE=str(arg.ranks), LOCAL_RANK=str(r),
                                       **({"NCCL_HOSTID": f"gpu-host-{r}"} if arg.one_device else {}),
                                       **({"SIM_CUDA_MODEL": "NVIDIA B200"} if arg.other_model == r else {})))
             for r in range(arg.ranks)]
    sys.exit(max(p.wait() for p in ranks))


if __name__ == "__main__":
    main()
