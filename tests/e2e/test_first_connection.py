# SPDX-License-Identifier: Apache-2.0
"""Ranks that spin on the host inside of NCCL. It connects for the first collective of its kind, and
the peer does not come: state R, a whole core, without end. That is no sign of life, and the agent
can query the interpreter: the frames of a thread inside of NCCL hold still."""

import json
import re
import sys

from built import TRAIN_LOOP_PY
from daemon import Daemon
from waiting import expect, wait_until

RANKS = 2
SPUN_S = 1  # of CPU time: more than a program of Python takes to start
# Long enough that the daemon has seen two seconds without work of any rank.
PATIENCE = 'no_progress_after = "10s"\n'


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def hang(world, fault):
    """In the first step, before any rank is connected."""
    arguments = ["--steps", "0", "--log-every", "0", "--fault", fault, "--fault-rank", "1"]
    return world.train("spins", RANKS, arguments, program=[sys.executable, TRAIN_LOOP_PY],
                       variables={"SIM_NCCL_SPIN": "1"})


def expect_spun(job, *ranks):
    """Else the test proves nothing. They do it as long as they live: on a busy machine they come to it later."""
    used = {}

    def has_spun():
        expect(job.is_running(), f"ended: {job.ended()}")
        used.update({rank: cpu_s(job.ranks[rank].pid) for rank in ranks})
        return all(s > SPUN_S for s in used.values())
    wait_until(has_spun, lambda: f"they spin: {used} s")


def bundle_of(world, job):
    """The incident, once all stacks that were wanted are there."""
    def is_complete():
        for incident in world.documents(job.name):
            try:
                if world.document(incident["id"], "stacks")["awaited"] == 0:
                    return incident["id"]
            except (OSError, ValueError):
                pass
        return None
    return wait_until(is_complete, lambda: f"an incident with its stacks: {world.log()}")


def test_an_incident_has_the_line_that_called_nccl():
    with Daemon(patience=PATIENCE) as world:
        world.start()
        job = hang(world, "block-in-data-loader")
        incident = bundle_of(world, job)
        expect_spun(job, 0)
        report = " ".join(world.said("report", incident).split())
        for evidence in world.document(incident, "evidence"):
            python, rank = evidence["python"], evidence["rank"]
            # Rank 0 is in a group whose end does not return, and rank 1 works outside of NCCL.
            function = "reduce_buckets" if rank == 0 else "read_sample"
            expect(python["status"] == "ok", f"rank {rank}: {python}")
            expect(function in json.dumps(python), f"rank {rank}: {python}")
            expect(f"{function} (train_loop.py:" in report, report)


def test_a_proof_has_it_whether_the_call_is_in_a_group_or_not():
    """Both ranks spin, each on another communicator. The alert goes out before the daemon knows
    that no Python runs there, so it takes the stacks once more."""
    with Daemon() as world:
        world.start()
        job = hang(world, "swap-comms")
        incident = wait_until(lambda: world.incident_of(job.name), "the deadlock")["id"]

        def are_there():
            return all(e["python"]["status"] == "ok" for e in world.document(incident, "evidence"))
        wait_until(are_there, lambda: f"stacks of Python: {world.document(incident, 'evidence')}")
        expect_spun(job, 0, 1)
        report = " ".join(world.said("report", incident).split())
        for function in "reduce_buckets", "reduce_norms":
            # In the rank's own stack or in the tree of all: the order of the queries decides.
            expect(re.search(rf"\b{function} \(?\S*train_loop\.py:\d+", report), report)
