# SPDX-License-Identifier: Apache-2.0
"""Ranks that spin on the host inside of NCCL, which connects for the first collective of its kind and
whose peer does not come: state R, a whole core, for ever. That is no sign of life, and the interpreter
can be asked: the frames of a thread that is inside of NCCL hold still."""

import json
import subprocess
import sys

import pytest
from built import COLLWATCH, TRAIN_LOOP_PY
from daemon import Daemon
from waiting import expect, wait_until

RANKS = 2
SPUN_S = 1  # of CPU time: more than a program of Python takes to start
# The fault strikes in the first step, before anybody is connected. Where each rank is then.
HANGS = {
    "block-in-data-loader": {0: "reduce_buckets", 1: "read_sample"},
    "swap-comms": {0: "reduce_buckets", 1: "reduce_norms"},
}


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def hang(world, fault):
    arguments = ["--steps", "0", "--log-every", "0", "--fault", fault, "--fault-rank", "1"]
    return world.train("spins", RANKS, arguments, program=[sys.executable, TRAIN_LOOP_PY],
                       variables={"SIM_NCCL_SPIN": "1"})


def evidence_of(world, job):
    """Once all stacks that were wanted are there."""
    def document(name):
        try:
            return world.document(world.documents(job.name)[0]["id"], name)
        except (IndexError, OSError, ValueError):
            return None

    def is_complete():
        stacks = document("stacks")
        return stacks and stacks["awaited"] == 0
    wait_until(is_complete, lambda: f"an incident with its stacks: {world.log()}")
    return {e["rank"]: e for e in document("evidence")}


@pytest.mark.parametrize("fault", HANGS)
def test_python_is_asked_where_nccl_spins(fault):
    with Daemon() as world:
        world.start()
        job = hang(world, fault)
        evidence = evidence_of(world, job)
        incident = world.documents(job.name)[0]["id"]
        report = subprocess.run([COLLWATCH, "report", f"{world.state}/incidents/{incident}"],
                                stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
        for rank, function in HANGS[fault].items():
            if function.startswith("reduce"):
                used = cpu_s(job.ranks[rank].pid)
                expect(used > SPUN_S, f"rank {rank} has used {used} s: else this proves nothing")
            python = evidence[rank]["python"]
            expect(python["status"] == "ok", f"rank {rank}: {python}")
            expect(function in json.dumps(python), f"rank {rank}: {python}")
            expect(f"{function} (train_loop.py:" in " ".join(report.split()), report)
