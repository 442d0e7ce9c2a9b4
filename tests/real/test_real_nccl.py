#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own NCCL on the simulated device: every collective, data type and operator gives the
right result, over shared memory and over sockets, and the same bits with the agent preloaded.
Skipped where the source of NCCL cannot be had. Prints TAP.

Arguments: the build directory, the sweep program."""
import os
import sys

sys.dont_write_bytecode = True

from lab_lib import Tool, must_be_equal  # noqa: E402 pylint: disable=wrong-import-position
import tap  # noqa: E402 pylint: disable=wrong-import-position
from agent_lib import check, wait_until  # noqa: E402 pylint: disable=wrong-import-position
from fault_lib import RealDaemon, Training  # noqa: E402 pylint: disable=wrong-import-position
import nccl_place  # noqa: E402 pylint: disable=wrong-import-position
import nccl_run  # noqa: E402 pylint: disable=wrong-import-position

BUILD, SWEEP = sys.argv[1:3]
AGENT = os.environ["CW_AGENT"]
RUN_TIMEOUT_S = 600
BUILD_TIMEOUT_S = 3000
# A part of a slice, and more than a chunk of the small buffer below.
SIZES = ["7", "20000"]
SMALL_BUFFER = {"NCCL_BUFFSIZE": "65536"}

nccl = Tool("real-nccl", BUILD, RUN_TIMEOUT_S)


def build_real_nccl():
    nccl.build(BUILD_TIMEOUT_S)


def computes_right(ranks, net):
    alone = nccl.sweep(SWEEP, ranks, net, SIZES)
    must_be_equal(alone, nccl.sweep(SWEEP, ranks, net, SIZES, AGENT), "with the agent")


def two_ranks_compute_right_over_shared_memory():
    computes_right(2, "shm")


def two_ranks_compute_right_over_sockets():
    computes_right(2, "socket")


def four_ranks_compute_right_over_shared_memory():
    computes_right(4, "shm")


def four_ranks_compute_right_over_sockets():
    computes_right(4, "socket")


def small_buffers_go_round():
    """Data that are many times the buffer: each slot is used again and again."""
    for net in "shm", "socket":
        nccl.sweep(SWEEP, 2, net, SIZES, env=SMALL_BUFFER)


# What train_loop can do, and what is right then.
FAULTS = {"block-in-data-loader": "never_entered", "wrong-count": "mismatch",
          "kill-self": "process_dead"}
CULPRIT, ALERT_S = 2, 120


def go_wrong(net, fault):
    """The first incident of a job whose rank CULPRIT does that."""
    job = nccl_run.job_environment(nccl_place.default_cache(), BUILD, nccl_place.DEFAULT_VERSION,
                                   4, net)
    ours = {k: v for k, v in job.items() if k.startswith("NCCL_")}

    def variables(rank):
        return {**ours, **({"NCCL_HOSTID": f"lab-node-{rank}"} if net == "socket" else {})}

    with RealDaemon() as daemon:
        daemon.start()
        ranks = Training(daemon.dir, fault, 4, [
            "--steps", "0", "--step-ms", "20", "--elements", "256", "--tp", "2", "--fault", fault,
            "--fault-rank", str(CULPRIT), "--fault-step", "30"], daemon,
            libraries=job["LD_LIBRARY_PATH"], variables=variables)
        try:
            wait_until(lambda: daemon.incident_of(fault), "an incident", ALERT_S)
            return daemon.incident_of(fault)
        finally:
            ranks.kill()


def hangs_are_told(net):
    nccl.needed()
    for fault, verdict in FAULTS.items():
        incident = go_wrong(net, fault)
        check(incident["class"] == verdict, f"{fault}: {incident['summary']}")
        check([c["rank"] for c in incident["culprits"]] == [CULPRIT], incident["summary"])


def hangs_over_shared_memory_are_told():
    hangs_are_told("shm")


def hangs_over_sockets_are_told():
    hangs_are_told("socket")


tap.run([build_real_nccl, two_ranks_compute_right_over_shared_memory,
         two_ranks_compute_right_over_sockets, four_ranks_compute_right_over_shared_memory,
         four_ranks_compute_right_over_sockets, small_buffers_go_round,
         hangs_over_shared_memory_are_told, hangs_over_sockets_are_told])
