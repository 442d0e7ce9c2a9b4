# SPDX-License-Identifier: Apache-2.0
"""A rank that makes a communicator, which NCCL may refuse, and trains on it until it is killed.

INIT_WAY sets the behaviour of this rank:
  (unset)  call ncclCommInitRank, and wait
  raise    end with status 1 where NCCL returns an error
  catch    live on where NCCL returns an error, outside NCCL
  poll     make a communicator that does not block, ask until it is made, live on after an error
  split    give ncclCommSplit a colour that NCCL refuses, live on
  repeat   after an error make the network interface known, and call again

INIT_AFTER names a file that the rank waits for before the call.

usage: failing_init.py TRAIN_LOOP_PY [ARGUMENT…]
"""
import ctypes
import os
import sys
import threading
import time

sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])  # as if it had been started itself

import train_loop  # pylint: disable=import-error,wrong-import-position  # noqa: E402

WAY = os.environ.get("INIT_WAY", "")
IN_PROGRESS, REFUSED_COLOUR = 7, -5
POLL_S = 0.02


class Failed(Exception):
    pass


def live_on():
    threading.Event().wait()


def check(result, what):
    if result in (0, IN_PROGRESS):
        return
    print(f"{what}: {result}", file=sys.stderr, flush=True)
    if WAY in ("catch", "poll"):
        live_on()
    raise Failed(f"{what}: {result}")


def ask_until_made(nccl, handle):
    state = ctypes.c_int(IN_PROGRESS)
    while state.value == IN_PROGRESS:
        nccl.lib.ncclCommGetAsyncError(handle, ctypes.byref(state))
        time.sleep(POLL_S)
    if state.value:
        live_on()


class Communicator(train_loop.Communicator):
    @classmethod
    def create(cls, nccl, name, world, uid, rank):
        handle, config = ctypes.c_void_p(), train_loop.Config(name)
        if WAY == "poll":
            config.blocking = 0
        if "INIT_AFTER" in os.environ:
            train_loop.wait_for_file(os.environ["INIT_AFTER"])
        try:
            nccl.call("ncclCommInitRankConfig", ctypes.byref(handle), world, uid, rank,
                      ctypes.byref(config))
        except Failed:
            if WAY != "repeat":
                raise
            del os.environ["NCCL_SOCKET_IFNAME"]
            return cls.create(nccl, name, world, uid, rank)
        if WAY == "poll":
            ask_until_made(nccl, handle)
        return cls(nccl, handle)

    def split(self, name, color, key):
        if WAY != "split":
            return super().split(name, color, key)
        handle = ctypes.c_void_p()
        self.nccl.lib.ncclCommSplit(self.handle, REFUSED_COLOUR, key, ctypes.byref(handle), None)
        return live_on()


train_loop.Communicator = Communicator
train_loop.check = check
train_loop.main()
