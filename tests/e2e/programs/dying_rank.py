# SPDX-License-Identifier: Apache-2.0
"""A rank of train_loop.py that dies on command. A word on its standard input says how; a thread of
its own reads it while the training goes on.

usage: dying_rank.py TRAIN_LOOP_PY [ARGUMENT…]
"""
import ctypes
import os
import runpy
import sys
import threading


def take_memory():
    taken = []
    while True:
        taken.append(b"x" * (1 << 20))


WAYS = {
    "exit-0": lambda: os._exit(0),
    "exit-1": lambda: os._exit(1),
    "segfault": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "take-memory": take_memory,
}


def obey():
    word = sys.stdin.readline().strip()
    if word:
        WAYS[word]()


threading.Thread(target=obey, daemon=True).start()
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])  # as if it had been started itself
runpy.run_path(sys.argv[0], run_name="__main__")
