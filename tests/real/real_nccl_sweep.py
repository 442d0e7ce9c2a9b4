#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own NCCL on the simulated device, started many times: two to eight ranks, shared
memory and sockets, small and large data, small buffers, alone and with the agent preloaded. Of the
same job all starts give the same bits. Prints TAP.

usage: tests/real/real_nccl_sweep.py BUILD-DIRECTORY [STARTS]"""
import concurrent.futures
import itertools
import os
import sys

sys.dont_write_bytecode = True

from lab_lib import Tool, must_be_equal  # noqa: E402 pylint: disable=wrong-import-position
import tap  # noqa: E402 pylint: disable=wrong-import-position

BUILD = os.path.realpath(sys.argv[1])
STARTS = int(sys.argv[2]) if len(sys.argv) > 2 else 200
AGENT, SWEEP = BUILD + "/agent/libcollwatch.so", BUILD + "/lab/nccl/sweep"
BUILD_TIMEOUT_S, RUN_TIMEOUT_S = 3000, 1800
SIZES = (["7", "20000"], ["1", "1000"], ["33"])
BUFFERS = ({}, {"NCCL_BUFFSIZE": "65536"})

nccl = Tool("real-nccl", BUILD, RUN_TIMEOUT_S)


# A job's ranks wait for each other most of the time: two at once keep two processors busy.
pool = concurrent.futures.ThreadPoolExecutor(2)


def build():
    nccl.build(BUILD_TIMEOUT_S)
    for test in TESTS:
        test.future = pool.submit(test.run)


def job(ranks, net, sizes, variables, starts):
    """Alone first, then in turns with the agent and alone."""
    def run():
        first = nccl.sweep(SWEEP, ranks, net, sizes, env=variables)
        for i in range(1, starts):
            agent = AGENT if i % 2 else None
            must_be_equal(first, nccl.sweep(SWEEP, ranks, net, sizes, agent, variables),
                          f"in start {i + 1}" + (", with the agent" if agent else ""))

    def test():
        test.future.result()
    test.run = run
    test.__name__ = "_".join([f"{ranks}_ranks", net, "sizes", *sizes,
                              *(["small_buffers"] if variables else []), f"{starts}_starts"])
    return test


JOBS = list(itertools.product(range(2, 9), ("shm", "socket"), SIZES, BUFFERS))
# Each job at least alone and with the agent; with fewer starts than that, every n-th job.
CHOSEN = JOBS[::-(-2 * len(JOBS) // max(STARTS, 2))]
SHARE, REST = divmod(max(STARTS, 2), len(CHOSEN))
TESTS = [job(*j, SHARE + (i < REST)) for i, j in enumerate(CHOSEN)]
try:
    tap.run([build] + TESTS)
finally:
    pool.shutdown(cancel_futures=True)
