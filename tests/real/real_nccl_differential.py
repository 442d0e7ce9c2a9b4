#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same job with the same fault on NVIDIA's NCCL and on the simulated one, side by side under
one daemon: both hang or neither does, and the alerts are the same. Prints TAP; below each case the
alerts of both.

usage: tests/real/real_nccl_differential.py BUILD-DIRECTORY [--net shm|socket] [FAULT…]"""
import argparse
import glob
import os
import re
import sys
import time

sys.dont_write_bytecode = True

RANKS, CULPRIT, STEP = 4, 2, 30
BUILD_TIMEOUT_S = 3000
# From the fault on: a page that has not come by then does not come.
QUIET_S = 90
RING = {"skip-recv"}
ASK_S = 30
# NCCL's own diagnostics: a log for each rank.
WITNESSES = {"NCCL_DEBUG": "WARN"}
RAS_NAMES = re.compile(r"(?m)^ *Ranks? [\d,-]+ ha(?:s|ve) launched up to operation \d+"
                       r".*?managed by process (\d+)")
# Of a rank that does not answer, RAS has no calls to compare.
CANNOT_ANSWER = {"kill-self", "stop-self", "wrong-root-noticed"}
# NVIDIA's buffers between two ranks take small messages whose receive is not there: the simulated
# ones, too, here.
AS_NVIDIAS = {"SIM_NCCL_BUFFERED": str(4 << 20)}
FAULTS = ["block-in-data-loader", "wrong-count", "kill-self", "wrong-op", "wrong-root", "skip-op",
          "extra-op", "stop-self", "block-stream", "wrong-dtype", "wrong-redop", "skip-recv",
          "swap-comms", "never-init", "wrong-root-noticed"]
# A program that checks its numbers: some rank ends, which often only got them from another.
NOTICED = "-noticed"

# NVIDIA's takes another course than ours here, with another verdict: the class. The rank is
# the same.
OTHERWISE = {
    # Its device is done with the call before; its proxy thread, stopped too, has still data of
    # the others.
    ("stop-self", "socket"): "in_collective",
}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build", metavar="BUILD-DIRECTORY")
    parser.add_argument("--net", choices=["shm", "socket"], default="shm")
    parser.add_argument("faults", nargs="*", metavar="FAULT", help="default: all")
    args = parser.parse_intermixed_args()
    unknown = set(args.faults) - set(FAULTS)
    if unknown:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}; there are {', '.join(FAULTS)}")
    args.build = os.path.realpath(args.build)
    args.faults = args.faults or FAULTS
    return args


ARGS = parse()
BUILT = ARGS.build + "/tests/e2e"  # built.py there says where what the modules below start is
if not os.path.exists(BUILT + "/built.py"):
    sys.exit(f"{ARGS.build}: not a build directory of collwatch")
sys.path.insert(0, BUILT)

# pylint: disable=wrong-import-position
from lab_lib import PATIENCE, SOURCE, Tool, ask_ras  # noqa: E402
import tap  # noqa: E402
from agent_lib import wait_until  # noqa: E402
from built import COLLWATCHD  # noqa: E402
from daemon import Daemon  # noqa: E402
from job import labels  # noqa: E402
import nccl_place  # noqa: E402
import nccl_run  # noqa: E402

# The program that can fail in each of these ways.
TRAIN_PY = SOURCE + "/lab/programs/train_loop.py"
nccl = Tool("real-nccl", ARGS.build, BUILD_TIMEOUT_S)


def build():
    nccl.build(BUILD_TIMEOUT_S)


def start_job(daemon, name, fault, is_real):
    arguments = ["--steps", "0", "--step-ms", "20", "--elements", "256", "--tp", "2", "--fault",
                 fault.removesuffix(NOTICED), "--fault-rank", str(CULPRIT), "--fault-step", str(STEP),
                 "--fault-file", f"{daemon.dir}/{name}.struck"]
    if fault.endswith(NOTICED):
        arguments.append("--strict")
    if fault in RING:
        arguments.append("--ring")
    if not is_real:
        return daemon.train(name, RANKS, arguments, program=TRAIN_PY, variables=AS_NVIDIAS)
    job = nccl_run.job_environment(nccl_place.default_cache(), ARGS.build,
                                   nccl_place.DEFAULT_VERSION, RANKS, ARGS.net)
    ours = {k: v for k, v in job.items() if k.startswith("NCCL_") or k == "LD_LIBRARY_PATH"}
    ours.update(WITNESSES, NCCL_DEBUG_FILE=f"{daemon.dir}/{name}.nccl.%p")

    ranks = labels(RANKS, COLLWATCH_JOB=name)
    if ARGS.net == "socket":
        for rank, own in enumerate(ranks):
            own["NCCL_HOSTID"] = f"lab-node-{rank}"
    training = daemon.train(name, ranks, arguments, program=TRAIN_PY, variables=ours)
    training.ras = job["NCCL_RAS_ADDR"]
    return training


def say_what_nccl_says(daemon, job):
    """NCCL's own words beside ours: the ranks with more or fewer calls than others by RAS, and its
    warnings. Returns those ranks."""
    ranks = {r.pid: i for i, r in enumerate(job.ranks)}
    named = sorted({ranks[int(pid)] for pid in RAS_NAMES.findall(ask_ras(job.ras, ASK_S))})
    print(f"# RAS: {f'the calls of ranks {named} differ' if named else 'names none'}", flush=True)
    warnings = set()
    for path in glob.glob(f"{daemon.dir}/{job.name}.nccl.*"):
        with open(path, encoding="utf-8", errors="replace") as f:
            warnings |= set(re.findall(r"NCCL WARN (.*)", f.read()))
    for line in sorted(warnings):
        print(f"# NCCL_DEBUG: {line}", flush=True)
    return named


def told(daemon, name):
    """(class, culprits) of the page, once it is there."""
    incident = daemon.incident_of(name)
    return incident and (incident["class"], sorted(c["rank"] for c in incident["culprits"]))


def outcome(daemon, job, struck_at):
    """The alerts of a job, or its further course if there are none."""
    found = told(daemon, job.name)
    if found or time.monotonic() - struck_at < QUIET_S:
        return found
    ends = [r.poll() for r in job.ranks]
    return ("no page", "runs" if ends == [None] * RANKS else f"ended with {ends}")


def has_struck(daemon, job):
    if os.path.exists(f"{daemon.dir}/{job.name}.struck"):
        return True
    for rank, process in enumerate(job.ranks):
        if process.poll() is not None:
            raise tap.Failure(f"rank {rank} of {job.name} ended with {process.returncode}: "
                              f"{job.output(rank, 'err')[-300:].decode()}")
    return False


def same(fault):
    def test():
        nccl.needed()
        with Daemon(patience=PATIENCE) as daemon:
            daemon.start()
            jobs = [start_job(daemon, "real", fault, True),
                    start_job(daemon, "simulated", fault, False)]
            for job in jobs:
                wait_until(lambda j=job: has_struck(daemon, j),
                           f"the fault strikes the {job.name} job", QUIET_S * 2)
            struck_at = time.monotonic()
            both = [wait_until(lambda j=job: outcome(daemon, j, struck_at), "an outcome",
                               QUIET_S + 120) for job in jobs]
            witnessed = say_what_nccl_says(daemon, jobs[0])
            said = [(daemon.incident_of(job.name) or {}).get("summary", "") for job in jobs]
        for job, result, summary in zip(jobs, both, said):
            print(f"# {fault}, {job.name}: {result[0]} {result[1]} {summary}", flush=True)
        expected = (OTHERWISE.get((fault, ARGS.net), both[1][0]), both[1][1])
        if both[0] != expected:
            raise tap.Failure(f"{both[0]} on NVIDIA's, {both[1]} on the simulated one")
        if witnessed and CULPRIT not in witnessed and fault not in CANNOT_ANSWER:
            raise tap.Failure(f"RAS finds ranks {witnessed}, and not {CULPRIT}, to differ")
    test.__name__ = fault.replace("-", "_") + "_over_" + ARGS.net
    return test


if not os.access(COLLWATCHD, os.X_OK):
    sys.exit(f"{ARGS.build}: not built yet")
tap.run([build] + [same(fault) for fault in ARGS.faults])
