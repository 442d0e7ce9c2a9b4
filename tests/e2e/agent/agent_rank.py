#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank written in Python that reaches NCCL through ctypes; one of a job of one.

usage: agent_rank.py LOADER END

LOADER: cdll, global, deepbind, pydll (calls keep the GIL).
END: how it goes on after some collectives: "return", "exit" (sys.exit at once, from the middle of
a function), "os-exit", "thread" (NCCL is used by a thread while the main thread leaves).
"""
import ctypes
import os
import sys
import threading

COUNT = 64
FLOAT, SUM = 7, 0


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def load(loader, name):
    if loader == "pydll":
        return ctypes.PyDLL(name)
    flags = {"cdll": os.RTLD_LOCAL, "global": os.RTLD_GLOBAL,
             "deepbind": os.RTLD_DEEPBIND}[loader]
    return ctypes.CDLL(name, mode=flags | os.RTLD_NOW)


def check(result, what):
    if result != 0:
        sys.exit("agent_rank: %s: %d" % (what, result))


class Rank:
    def __init__(self, loader, ranks=1, rank=0, unique=None):
        cuda = load("cdll", "libcuda.so.1")
        self.nccl = load(loader, "libnccl.so.2")
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self.stream, self.buffer = ctypes.c_void_p(), ctypes.c_uint64()
        self.comm = ctypes.c_void_p()
        check(cuda.cuInit(0), "cuInit")
        check(cuda.cuDeviceGet(ctypes.byref(device), rank), "cuDeviceGet")
        check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "context")
        check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
        check(cuda.cuStreamCreate(ctypes.byref(self.stream), 1), "stream")
        check(cuda.cuMemAlloc_v2(ctypes.byref(self.buffer), ctypes.c_size_t(4 * COUNT)), "memory")
        self.cuda = cuda
        if not unique:
            unique = UniqueId()
            check(self.nccl.ncclGetUniqueId(ctypes.byref(unique)), "unique id")
        check(self.nccl.ncclCommInitRank(ctypes.byref(self.comm), ranks, unique, rank), "init")

    def reduce(self, times):
        data = ctypes.c_void_p(self.buffer.value)
        for _ in range(times):
            check(self.nccl.ncclAllReduce(data, data, ctypes.c_size_t(COUNT), FLOAT, SUM,
                                          self.comm, self.stream), "all_reduce")
        check(self.cuda.cuStreamSynchronize(self.stream), "synchronise")


def main(loader, end):
    if end == "thread":
        thread = threading.Thread(target=lambda: Rank(loader).reduce(20))
        thread.start()
        print("leaving", flush=True)
        return
    rank = Rank(loader)
    if end == "os-exit":
        os._exit(5)
    if end == "exit":
        sys.exit(4)
    rank.reduce(20)
    import faulthandler
    print("faulthandler", faulthandler.is_enabled(), "threads", threading.active_count())
    sys.stdin.read()
    check(rank.nccl.ncclCommDestroy(rank.comm), "destroy")
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
