#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank that issues calls from places that a test knows: those with a comment that names them.

usage: stacks_rank.py HOW

HOW: "lines" (two kinds of calls, from two lines), "deep" (a call below a thousand frames),
"threads" (a thread with a small stack, and another one, unknown to Python, that destroys the
communicator), "lazy" (from a coroutine, below a generator that C code goes on with), "many" (from
more places than there is room for), "leave" (a thread goes on while the interpreter is taken down),
"want" (prints the address of the word on which a thread sleeps while it waits for the interpreter
lock). Says "ready" when it is done, and ends with its input.
"""
import asyncio
import ctypes
import os
import subprocess
import sys
import threading

from agent_rank import COUNT, FLOAT, SUM, Rank, check

MANY = 300
SYS_FUTEX = {"x86_64": 202, "aarch64": 98}[os.uname().machine]


def reduce(rank):
    data = ctypes.c_void_p(rank.buffer.value)
    check(rank.nccl.ncclAllReduce(data, data, ctypes.c_size_t(COUNT), FLOAT, SUM, rank.comm, rank.stream), "all_reduce")  # reduce


class Evaluation:
    def gather(self, rank):
        data = ctypes.c_void_p(rank.buffer.value)

        check(
            rank.nccl.ncclAllGather(data, data, ctypes.c_size_t(COUNT), FLOAT, rank.comm,  # gather
                                    rank.stream), "all_gather")


def lines(rank):
    for step in range(20):
        reduce(rank)  # step
        if step % 5 == 0:
            Evaluation().gather(rank)  # evaluation


def down(rank, depth):
    if depth:
        down(rank, depth - 1)
    else:
        reduce(rank)


def deep(rank):
    sys.setrecursionlimit(10000)
    down(rank, 1000)


def threads(rank):
    threading.stack_size(128 << 10)
    thread = threading.Thread(target=reduce, args=(rank,))
    thread.start()
    thread.join()
    check(rank.cuda.cuStreamSynchronize(rank.stream), "synchronise")
    posix, handle = ctypes.CDLL(None), ctypes.c_void_p()
    check(posix.pthread_create(ctypes.byref(handle), None, rank.nccl.ncclCommDestroy, rank.comm),
          "pthread_create")
    check(posix.pthread_join(handle, None), "pthread_join")


async def later(rank):
    await asyncio.sleep(0)
    reduce(rank)  # later


def größe(rank):
    asyncio.run(later(rank))


def generate(rank):
    yield 1
    größe(rank)  # generate
    yield 2


def lazy(rank):
    if sum(map(int, generate(rank))) != 3:  # lazy
        sys.exit("not all was generated")


def leave(rank):
    is_busy = threading.Event()

    def go_on():
        while True:
            reduce(rank)
            is_busy.set()
    threading.Thread(target=go_on, daemon=True).start()
    is_busy.wait()
    sys.exit(0)


# Of a thread that waits for a word: which.
SAY_WORD = """
while True:
    call = open("/proc/%d/task/%d/syscall").read().split()
    if call[0] == "%d":
        break
print(call[1], flush=True)
"""


def want(rank):
    """Another thread keeps the interpreter until the test has seen this one wait for it."""
    reduce(rank)
    program = SAY_WORD % (os.getpid(), threading.get_native_id(), SYS_FUTEX)

    def keep():
        with subprocess.Popen([sys.executable, "-S", "-c", program]) as other:
            ctypes.PyDLL(None).waitpid(other.pid, None, 0)

    thread = threading.Thread(target=keep)
    thread.start()
    while thread.is_alive():
        pass


def many(rank):
    places = {"reduce": reduce}
    for i in range(MANY):
        exec("def place_%d(rank):\n    reduce(rank)\n" % i, places)
    for i in range(MANY):
        places["place_%d" % i](rank)


if __name__ == "__main__":
    a_rank = Rank("cdll")
    # The evaluation loop serves a request between two instructions, once the communicator is made.
    {"lines": lines, "deep": deep, "threads": threads, "lazy": lazy,
     "many": many, "leave": leave, "want": want}[sys.argv[1]](a_rank)
    print("ready", flush=True)
    sys.stdin.read()
