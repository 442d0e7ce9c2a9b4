#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own NCCL on the simulated device: every collective, data type and operator gives the
right result, over shared memory and over sockets, and the same bits with the agent preloaded.
Skipped where the source of NCCL cannot be had. Prints TAP.

Arguments: lab/real-nccl, the build directory, the sweep program."""
import os
import re
import subprocess
import sys

import tap
from agent_lib import check, wait_until
from fault_lib import RealDaemon, Training

sys.path.insert(0, os.path.join(os.environ["CW_SOURCE"], "lab"))
sys.dont_write_bytecode = True
import nccl_place  # noqa: E402 pylint: disable=wrong-import-position
import nccl_run  # noqa: E402 pylint: disable=wrong-import-position

TOOL, BUILD, SWEEP = sys.argv[1:4]
AGENT = os.environ["CW_AGENT"]
RUN_TIMEOUT_S = 600
BUILD_TIMEOUT_S = 3000
OFFLINE = 3
# A part of a slice, and more than a chunk of the small buffer below.
SIZES = ["7", "20000"]
SMALL_BUFFER = {"NCCL_BUFFSIZE": "65536"}
# 3 reductions and 7 moves with 12 types, 6 operators; split, abort, end.
LINES_PER_RANK = 3 * 12 * 6 + 7 * 12 + 3

state = {}


def tool(*args, env=None, timeout=RUN_TIMEOUT_S):
    return subprocess.run([TOOL, *args], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=timeout,
                          env=dict(os.environ, **(env or {})), check=False)


def build_real_nccl():
    p = tool("build", "--build", BUILD, "--jobs", "2", timeout=BUILD_TIMEOUT_S)
    if p.returncode == OFFLINE:
        said = [line for line in p.stdout.splitlines() if line.startswith("real-nccl: ")]
        state["absent"] = said[-1] if said else "no source"
        raise tap.Skip(state["absent"])
    if p.returncode != 0:
        raise tap.Failure(p.stdout[-3000:])
    state["is_built"] = True


def sweep(ranks, net, preload=None, env=None):
    """The lines of all ranks, sorted."""
    if "is_built" not in state:
        raise tap.Skip(state.get("absent", "it could not be built"))
    extra = ["--preload", preload] if preload else []
    p = tool("run", "--build", BUILD, "--ranks", str(ranks), "--net", net, "--timeout",
             str(RUN_TIMEOUT_S - 20), *extra, "--", SWEEP, *SIZES, env=env)
    lines = sorted(line for line in p.stdout.splitlines() if re.match(r"rank \d+ \w+", line))
    if p.returncode != 0:
        raise tap.Failure("%d: %s" % (p.returncode, p.stdout[-3000:]))
    results = [line for line in lines if " NCCL " not in line]
    if len(results) != ranks * LINES_PER_RANK:
        raise tap.Failure("%d results: %s" % (len(results), p.stdout[-2000:]))
    return lines


def computes_right(ranks, net):
    state[ranks, net] = sweep(ranks, net)
    with_agent = sweep(ranks, net, AGENT)
    if with_agent != state[ranks, net]:
        different = set(with_agent) ^ set(state[ranks, net])
        raise tap.Failure("different with the agent: " + ", ".join(sorted(different)[:6]))


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
        sweep(2, net, env=SMALL_BUFFER)


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
    if "is_built" not in state:
        raise tap.Skip(state.get("absent", "it could not be built"))
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
