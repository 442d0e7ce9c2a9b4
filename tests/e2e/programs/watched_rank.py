# SPDX-License-Identifier: Apache-2.0
"""A rank of train_loop.py with a watchdog, as frameworks have one: a thread that polls NCCL for
failed communicators. This one only polls. When a call reports a failure, the training stands still
as if it left the rest to the watchdog: it aborts nothing, and no rank ends.

usage: watched_rank.py TRAIN_LOOP_PY [ARGUMENT…]
"""
import ctypes
import os
import sys
import threading

PERIOD_S = 0.05

sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])  # as if it had been started itself

import train_loop  # pylint: disable=import-error,wrong-import-position  # noqa: E402


class Communicator(train_loop.Communicator):
    """Tells the watchdog of itself."""
    made = []

    def __init__(self, nccl, handle):
        super().__init__(nccl, handle)
        self.made.append(self)

    def ask(self):
        error = ctypes.c_int()
        self.nccl.lib.ncclCommGetAsyncError(self.handle, ctypes.byref(error))


NEVER = threading.Event()


def stand_still(result, _):
    if result != 0:
        NEVER.wait()


def watch():
    while not NEVER.wait(PERIOD_S):
        for comm in list(Communicator.made):
            comm.ask()


train_loop.Communicator = Communicator
train_loop.check = stand_still
threading.Thread(target=watch, daemon=True).start()
train_loop.main()
