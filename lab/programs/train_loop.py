#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training-like loop over NCCL, through ctypes and nothing but the standard library.

The same program as train_loop.c, with the same results: data-parallel, optionally tensor-parallel,
one step after the other. An ordinary NCCL program that knows nothing about watchers.
Faults are options, as any program can go wrong.
"""

import argparse
import ctypes
import os
import socket
import sys
import time

from train_faults import KINDS, Fault, Watchdog
from train_workloads import WORKLOADS

SCHEDULE_STEPS = 10
NCCL_FLOAT, NCCL_DOUBLE = 7, 8
NCCL_SUM, NCCL_MAX = 0, 2
STREAM_NON_BLOCKING = 1


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


class Config(ctypes.Structure):
    """ncclConfig_t of nccl.h 2.28; NCCL takes the fields it knows."""
    UNDEFINED = -2**31
    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint),
                ("blocking", ctypes.c_int), ("cga_cluster_size", ctypes.c_int),
                ("min_ctas", ctypes.c_int), ("max_ctas", ctypes.c_int),
                ("net_name", ctypes.c_char_p), ("split_share", ctypes.c_int),
                ("traffic_class", ctypes.c_int), ("comm_name", ctypes.c_char_p),
                ("collnet_enable", ctypes.c_int), ("cta_policy", ctypes.c_int),
                ("shrink_share", ctypes.c_int), ("nvls_ctas", ctypes.c_int),
                ("channels_per_net_peer", ctypes.c_int), ("nvlink_centric_sched", ctypes.c_int)]

    def __init__(self, comm_name):
        super().__init__()
        for field, kind in self._fields_:
            if kind is ctypes.c_int:
                setattr(self, field, self.UNDEFINED)
        self.size = ctypes.sizeof(self)
        self.magic = 0xcafebeef
        self.version = 22800
        self.comm_name = comm_name.encode()


def load(name, signatures):
    lib = ctypes.CDLL(name)
    for function, argtypes in signatures.items():
        getattr(lib, function).argtypes = argtypes
    return lib


def check(result, what):
    if result != 0:
        sys.exit(f"train_loop: rank {os.environ.get('RANK', '?')}: {what}: error {result}")


class Device:
    """One GPU, one stream, through the CUDA driver API."""

    def __init__(self, ordinal):
        ptr, u64, size, num = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_int
        self.cuda = load("libcuda.so.1", {
            "cuInit": [num],
            "cuDeviceGetCount": [ptr],
            "cuDeviceGet": [ptr, num],
            "cuDevicePrimaryCtxRetain": [ptr, num],
            "cuCtxSetCurrent": [ptr],
            "cuStreamCreate": [ptr, num],
            "cuStreamSynchronize": [ptr],
            "cuStreamDestroy_v2": [ptr],
            "cuLaunchHostFunc": [ptr, ptr, ptr],
            "cuMemAlloc_v2": [ptr, size],
            "cuMemFree_v2": [u64],
            "cuMemAllocHost_v2": [ptr, size],
            "cuMemFreeHost": [ptr],
            "cuMemcpyHtoDAsync_v2": [u64, ptr, size, ptr],
            "cuMemcpyDtoHAsync_v2": [ptr, u64, size, ptr],
        })
        count, device = ctypes.c_int(), ctypes.c_int()
        context, stream = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGetCount", ctypes.byref(count))
        self.call("cuDeviceGet", ctypes.byref(device), ordinal % count.value)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuStreamCreate", ctypes.byref(stream), STREAM_NON_BLOCKING)
        self.stream = stream
        self.watchdog = None

    def call(self, name, *args):
        check(getattr(self.cuda, name)(*args), name)

    def synchronize(self):
        if self.watchdog:
            self.watchdog.since = time.monotonic()
        self.call("cuStreamSynchronize", self.stream)
        if self.watchdog:
            self.watchdog.since = None

    def close(self):
        self.call("cuStreamDestroy_v2", self.stream)


class Tensor:
    """Floats on the device and a pinned copy on the host, so that copies do not block the program."""

    def __init__(self, device, count):
        self.device = device
        self.count = count
        dev, host = ctypes.c_uint64(), ctypes.c_void_p()
        device.call("cuMemAllocHost_v2", ctypes.byref(host), 4 * count)
        self.host = (ctypes.c_float * count).from_address(host.value)
        self.host[:] = [0] * count
        device.call("cuMemAlloc_v2", ctypes.byref(dev), 4 * count)
        self.dev = dev.value

    def upload(self, values):
        self.host[:] = list(values)
        self.device.call("cuMemcpyHtoDAsync_v2", self.dev, self.host, 4 * self.count,
                         self.device.stream)

    def download(self):
        self.device.call("cuMemcpyDtoHAsync_v2", self.host, self.dev, 4 * self.count,
                         self.device.stream)

    def sum(self):
        return int(sum(self.host))

    def free(self):
        self.device.call("cuMemFree_v2", self.dev)
        self.device.call("cuMemFreeHost", self.host)


class Nccl:
    def __init__(self):
        ptr, size, num = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        self.lib = load("libnccl.so.2", {
            "ncclGetUniqueId": [ptr],
            "ncclCommInitRankConfig": [ptr, num, UniqueId, num, ptr],
            "ncclCommSplit": [ptr, num, num, ptr, ptr],
            "ncclCommDestroy": [ptr],
            "ncclCommGetAsyncError": [ptr, ptr],
            "ncclGroupStart": [],
            "ncclGroupEnd": [],
            "ncclAllReduce": [ptr, ptr, size, num, num, ptr, ptr],
            "ncclReduceScatter": [ptr, ptr, size, num, num, ptr, ptr],
            "ncclAllGather": [ptr, ptr, size, num, ptr, ptr],
            "ncclBroadcast": [ptr, ptr, size, num, num, ptr, ptr],
            "ncclSend": [ptr, size, num, num, ptr, ptr],
            "ncclRecv": [ptr, size, num, num, ptr, ptr],
        })

    def call(self, name, *args):
        check(getattr(self.lib, name)(*args), name)

    def unique_id(self):
        uid = UniqueId()
        self.call("ncclGetUniqueId", ctypes.byref(uid))
        return uid


class Communicator:
    def __init__(self, nccl, handle):
        self.nccl = nccl
        self.handle = handle

    @classmethod
    def create(cls, nccl, name, world, uid, rank):
        handle = ctypes.c_void_p()
        nccl.call("ncclCommInitRankConfig", ctypes.byref(handle), world, uid, rank,
                  ctypes.byref(Config(name)))
        return cls(nccl, handle)

    def split(self, name, color, key):
        handle = ctypes.c_void_p()
        self.nccl.call("ncclCommSplit", self.handle, color, key, ctypes.byref(handle),
                       ctypes.byref(Config(name)))
        return Communicator(self.nccl, handle)

    def all_reduce(self, tensor, count=None, op=NCCL_SUM):
        self.nccl.call("ncclAllReduce", tensor.dev, tensor.dev, count or tensor.count, NCCL_FLOAT,
                       op, self.handle, tensor.device.stream)

    def reduce_scatter(self, source, shard):
        self.nccl.call("ncclReduceScatter", source.dev, shard.dev, shard.count, NCCL_FLOAT,
                       NCCL_SUM, self.handle, shard.device.stream)

    def all_gather(self, shard, target):
        self.nccl.call("ncclAllGather", shard.dev, target.dev, shard.count, NCCL_FLOAT,
                       self.handle, shard.device.stream)

    def broadcast(self, tensor, root, dtype=NCCL_FLOAT):
        self.nccl.call("ncclBroadcast", tensor.dev, tensor.dev, 1, dtype, root, self.handle,
                       tensor.device.stream)

    def send(self, tensor, peer, count=None):
        self.nccl.call("ncclSend", tensor.dev, tensor.count if count is None else count, NCCL_FLOAT,
                       peer, self.handle, tensor.device.stream)

    def recv(self, tensor, peer, count=None):
        self.nccl.call("ncclRecv", tensor.dev, tensor.count if count is None else count, NCCL_FLOAT,
                       peer, self.handle, tensor.device.stream)

    def has_failed(self):
        error = ctypes.c_int()
        self.nccl.call("ncclCommGetAsyncError", self.handle, ctypes.byref(error))
        return error.value != 0

    def destroy(self):
        self.nccl.call("ncclCommDestroy", self.handle)


def sample_of(step, dp_rank):
    return (step * 31 + dp_rank * 17 + 7) % 101


class DataLoader:
    """Endless batches for one data-parallel rank."""

    def __init__(self, dp_rank, fault):
        self.dp_rank = dp_rank
        self.fault = fault
        self.step = -1

    def __iter__(self):
        return self

    def __next__(self):
        self.step += 1
        return self.read_sample(self.step)

    def read_sample(self, step):
        if self.fault.strikes("block-in-data-loader", step):
            source, self.writer = os.pipe()
            os.read(source, 1)  # the storage system never answers
        self.fault.before_step(step)
        return sample_of(step, self.dp_rank)


class Trainer:
    def __init__(self, args, rank, world):
        self.rank, self.world = rank, world
        self.tp, self.dp = args.tp, world // args.tp
        self.tp_rank, self.dp_rank = rank % args.tp, rank // args.tp
        self.step_ms = args.step_ms
        self.is_strict = args.strict
        self.elements = args.elements
        self.fault = Fault(args, rank)
        self.device = Device(int(os.environ.get("LOCAL_RANK", "0")))
        self.checksum = 0

        shard = self.elements // 4
        sizes = {"activations": self.elements, "bucket_a": self.elements,
                 "bucket_b": self.elements, "norms": self.elements, "grads": shard * self.dp,
                 "shard": shard, "params": shard * self.dp, "loss": 1, "rate": 2,
                 "halo": self.elements}
        self.tensors = {name: Tensor(self.device, count) for name, count in sizes.items()}

        self.fault.before_nccl()
        nccl = Nccl()
        self.nccl = nccl
        uid = exchange_id(nccl, args, rank, world, self.fault)
        self.world_comm = Communicator.create(nccl, "world", world, uid, rank)
        self.tp_comm = self.world_comm.split("tp", self.dp_rank, rank) if self.tp > 1 else None
        self.dp_comm = self.world_comm.split("dp", self.tp_rank, rank)
        self.pp_comm = self.world_comm.split("pp", 0, rank) if args.ring else None
        self.workload = WORKLOADS[args.workload](self)
        if args.watchdog:
            comms = [comm for comm in (self.world_comm, self.tp_comm, self.dp_comm) if comm]
            self.device.watchdog = Watchdog(args.watchdog, args.fault_file,
                                            lambda: any(comm.has_failed() for comm in comms))

    def new_tensor(self, count):
        return Tensor(self.device, count)

    def checks(self, step):
        return self.is_strict or not self.fault.spoils_all(step)

    def expect(self, step, name, index, want):
        got = self.tensors[name].host[index]
        if got != want and self.checks(step):
            sys.exit(f"train_loop: rank {self.rank}: step {step}: {name}[{index}] is {got}, "
                     f"should be {want}")

    def activation(self, sample, i):
        return sum((sample + i + 3 * p) % 13 for p in range(self.tp))

    def forward(self, step, sample):
        act = self.tensors["activations"]
        base = sample + 3 * self.tp_rank
        act.upload([(base + i) % 13 for i in range(self.elements)])
        if self.tp_comm:
            self.tp_comm.all_reduce(act)
            act.download()
        self.device.synchronize()
        for i in (0, self.elements // 2, self.elements - 1):
            self.expect(step, "activations", i, self.activation(sample, i))

    def exchange(self, step):
        """Hands the activations to the next rank of the ring."""
        self.nccl.call("ncclGroupStart")
        self.pp_comm.send(self.tensors["activations"], (self.rank + 1) % self.world)
        skips = self.fault.strikes("skip-recv", step)
        if not skips:
            self.pp_comm.recv(self.tensors["halo"], (self.rank - 1) % self.world)
        self.nccl.call("ncclGroupEnd")
        if skips:
            return
        self.tensors["halo"].download()
        self.device.synchronize()
        before = (self.rank - 1) % self.world // self.tp
        self.expect(step, "halo", 1, self.activation(sample_of(step, before), 1))

    def compute(self):
        if self.step_ms:
            time.sleep(self.step_ms / 1000)

    def fill_gradients(self, step):
        act = [int(v) for v in self.tensors["activations"].host]
        n = self.elements
        tensors = self.tensors
        tensors["bucket_a"].upload([(a + self.dp_rank + i) % 7 for i, a in enumerate(act)])
        tensors["bucket_b"].upload([(a * 2 + step + i) % 5 for i, a in enumerate(act)])
        norms = [(self.rank + i) % 3 for i in range(n)]
        if self.fault.strikes("feed-nan", step):
            norms[n // 2] = float("nan")
        tensors["norms"].upload(norms)
        tensors["grads"].upload([(act[i % n] + i) % 9 for i in range(tensors["grads"].count)])

    def check_gradients(self, step):
        for i in (0, self.elements - 1):
            a = sum((self.activation(sample_of(step, d), i) + d + i) % 7 for d in range(self.dp))
            self.expect(step, "bucket_a", i, a)
            if not self.fault.spoils_norms(step):
                self.expect(step, "norms", i, sum((r + i) % 3 for r in range(self.world)))
        shard, params = self.tensors["shard"], self.tensors["params"]
        start = self.dp_rank * shard.count
        if params.host[start:start + shard.count] != shard.host[:] and self.checks(step):
            sys.exit(f"train_loop: rank {self.rank}: step {step}: wrong parameters")

    def reduce_buckets(self):
        self.nccl.call("ncclGroupStart")
        self.dp_comm.all_reduce(self.tensors["bucket_a"])
        self.dp_comm.all_reduce(self.tensors["bucket_b"])
        self.nccl.call("ncclGroupEnd")

    def reduce_norms(self, step):
        norms, strikes = self.tensors["norms"], self.fault.strikes
        self.fault.before_norms(step, self.device)
        if strikes("wrong-op", step):
            self.nccl.call("ncclAllGather", norms.dev, norms.dev, norms.count // self.world,
                           NCCL_FLOAT, self.world_comm.handle, self.device.stream)
            return
        self.world_comm.all_reduce(
            norms, count=self.elements // 2 if strikes("wrong-count", step) else self.elements,
            op=NCCL_MAX if strikes("wrong-redop", step) else NCCL_SUM)

    def backward(self, step):
        tensors = self.tensors
        self.fill_gradients(step)
        self.fault.in_step(step, self.device)
        if self.fault.strikes("swap-comms", step):
            self.reduce_norms(step)
            self.reduce_buckets()
        else:
            self.reduce_buckets()
            self.reduce_norms(step)
        self.dp_comm.reduce_scatter(tensors["grads"], tensors["shard"])
        self.dp_comm.all_gather(tensors["shard"], tensors["params"])
        for name in ("bucket_a", "bucket_b", "norms", "shard", "params"):
            tensors[name].download()
        self.device.synchronize()
        self.check_gradients(step)

    def finish_step(self, step):
        loss, rate = self.tensors["loss"], self.tensors["rate"]
        mine = sum(self.tensors[name].sum()
                   for name in ("activations", "bucket_a", "bucket_b", "params"))
        loss.upload([mine % 1000])
        if not self.fault.strikes("skip-op", step):
            self.world_comm.all_reduce(loss)
        if self.fault.strikes("extra-op", step):
            self.world_comm.all_reduce(loss)
        loss.download()
        if step % SCHEDULE_STEPS == 0:
            rate.upload([step % 17 if self.rank == 0 else -1, 0])
            strikes = self.fault.strikes
            self.world_comm.broadcast(
                rate, root=(self.rank or 1) if strikes("wrong-root", step) else 0,
                dtype=NCCL_DOUBLE if strikes("wrong-dtype", step) else NCCL_FLOAT)
            rate.download()
        self.device.synchronize()
        if step % SCHEDULE_STEPS == 0:
            self.expect(step, "rate", 0, step % 17)
        if self.checks(step):
            self.checksum = (self.checksum * 1000003 + int(loss.host[0]) + int(rate.host[0])) % 2**64

    def hand_out_request(self, step):
        """One rank gets its work from outside and passes it to the others."""
        self.fault.await_request(step)
        self.world_comm.broadcast(self.tensors["rate"], root=self.fault.culprit)
        self.device.synchronize()

    def train_step(self, step, sample):
        if self.fault.hands_out_requests(step):
            self.hand_out_request(step)
        self.forward(step, sample)
        if self.pp_comm:
            self.exchange(step)
        self.workload.step(step)
        self.compute()
        self.backward(step)
        self.finish_step(step)

    def close(self):
        self.workload.close()
        for comm in (self.pp_comm, self.dp_comm, self.tp_comm):
            if comm:
                comm.destroy()
        self.world_comm.destroy()
        for tensor in self.tensors.values():
            tensor.free()
        self.device.close()


def fetch_from(address):
    """Fetches rank 0's data; waits until rank 0 listens."""
    while True:
        try:
            with socket.create_connection(address) as s:
                return s.makefile("rb").read(128)
        except ConnectionRefusedError:
            time.sleep(0.02)


def serve_at(address, clients, data):
    with socket.create_server(address, backlog=128) as server:
        for _ in range(clients):
            client, _ = server.accept()
            with client:
                client.sendall(data)


def wait_for_file(path):
    while True:
        try:
            with open(path, "rb") as f:
                return f.read(128)
        except FileNotFoundError:
            time.sleep(0.02)


def exchange_id(nccl, args, rank, world, fault):
    """The first rank to arrive makes NCCL's unique id, and the others fetch it from there."""
    present = [r for r in range(world) if not fault.absent_rank(r)]
    address = (os.environ.get("MASTER_ADDR", "127.0.0.1"),
               int(os.environ.get("MASTER_PORT", "29500")))
    if rank != present[0]:
        data = wait_for_file(args.uid_file) if args.uid_file else fetch_from(address)
        return UniqueId.from_buffer_copy(data)
    uid = nccl.unique_id()
    if args.uid_file:
        with open(args.uid_file + ".tmp", "wb") as f:
            f.write(bytes(uid))
        os.rename(args.uid_file + ".tmp", args.uid_file)
    else:
        serve_at(address, len(present) - 1, bytes(uid))
    return uid


def parse_args():
    parser = argparse.ArgumentParser(description="training-like loop over NCCL")
    parser.add_argument("--steps", type=int, default=100, help="0: for ever")
    parser.add_argument("--step-ms", type=int, default=0, help="time to compute in each step")
    parser.add_argument("--tp", type=int, default=1, help="size of a tensor-parallel group")
    parser.add_argument("--ring", action="store_true", help="pass activations around a ring")
    parser.add_argument("--workload", choices=WORKLOADS, default="plain")
    parser.add_argument("--elements", type=int, default=256, help="of each buffer")
    parser.add_argument("--log-every", type=int, default=10, help="0: never")
    parser.add_argument("--uid-file", help="exchange the unique id there, not over TCP")
    parser.add_argument("--fault", choices=KINDS)
    parser.add_argument("--fault-rank", type=int, default=-1)
    parser.add_argument("--fault-step", type=int, default=0)
    parser.add_argument("--fault-seconds", type=int, default=20, help="where it passes")
    parser.add_argument("--strict", action="store_true",
                        help="end at wrong numbers, even where the fault makes them")
    parser.add_argument("--fault-path", help="file the fault writes to")
    parser.add_argument("--watchdog", type=int, default=0,
                        help="abort when a collective takes so many seconds, or fails")
    parser.add_argument("--fault-file", help="created when the fault strikes")
    return parser.parse_args()


def train(trainer, steps, log_every):
    loader = DataLoader(trainer.dp_rank, trainer.fault)
    step = 0
    for sample in loader:
        trainer.train_step(step, sample)
        if log_every and step % log_every == 0:
            print(f"rank {trainer.rank} step {step} loss={trainer.tensors['loss'].host[0]:g} "
                  f"checksum={trainer.checksum:016x}", flush=True)
        step += 1
        if step == steps:
            return step


def main():
    args = parse_args()
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if args.tp < 1 or not 0 <= rank < world or world % args.tp or args.elements < 4:
        sys.exit(f"train_loop: rank {rank} of {world} in groups of {args.tp}")
    trainer = Trainer(args, rank, world)
    steps = train(trainer, args.steps, args.log_every)
    trainer.close()
    print(f"done steps={steps} checksum={trainer.checksum:016x}", flush=True)


if __name__ == "__main__":
    main()
