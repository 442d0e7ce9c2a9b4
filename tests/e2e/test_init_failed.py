# SPDX-License-Identifier: Apache-2.0
"""NCCL refuses one rank a communicator while the others wait for it. The alert names that rank,
with NCCL's error, whether its process ended or lives on. It does not name a rank that lost a peer.
"""
import json
import os
import signal
import sys

import pytest
from built import COLLWATCH, TRAIN_LOOP_PY
from job import labels
from waiting import expect, said, wait_until

FAILING_INIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs/failing_init.py")
RANKS, CULPRIT = 4, 2
UNKNOWN_INTERFACE = {"NCCL_SOCKET_IFNAME": "nosuch0"}
NO_SUCH_DEVICE = "No such device"


def starts(daemon, name, **ways):
    """ways: the variables of single ranks, by r0, r1, …"""
    ranks = labels(RANKS, COLLWATCH_JOB=name)
    for rank, own in ways.items():
        ranks[int(rank[1:])].update(own)
    daemon.start()
    return daemon.train(name, ranks, ["--steps", "0", "--step-ms", "20", "--elements", "64"],
                        program=[sys.executable, FAILING_INIT, TRAIN_LOOP_PY])


def page_of(daemon, name):
    return wait_until(lambda: daemon.incident_of(name), lambda: f"a page: {daemon.log()}")


def expect_page(incident, verdict_class, detail):
    got = incident["class"], incident["detail"], [c["rank"] for c in incident["culprits"]]
    expect(got == (verdict_class, detail, [CULPRIT]), incident["summary"])
    expect(incident["hang"] == "proven", str(incident["hang"]))
    return incident["summary"]


@pytest.mark.parametrize("way, verdict", [("raise", ("process_dead", "exited")),
                                          ("catch", ("init_stuck", "failed")),
                                          ("poll", ("init_stuck", "failed"))])
def test_the_rank_that_nccl_refused_is_named(daemon, way, verdict):
    starts(daemon, way, r2={"INIT_WAY": way, **UNKNOWN_INTERFACE})
    summary = expect_page(page_of(daemon, way), *verdict)
    expect(f"rank {CULPRIT} " in summary and "failed in ncclCommInitRank" in summary, summary)
    expect('with ncclSystemError ("' in summary and NO_SUCH_DEVICE in summary, summary)
    place = " and exited with status 1." if way == "raise" else "Its process is now outside NCCL."
    expect(place in summary, summary)


@pytest.mark.parametrize("is_reaped", [False, True])
def test_a_rank_that_ends_before_the_daemon_looks_is_named(daemon, is_reaped):
    """The daemon stands still until the rank has failed and ended. Its parent has reaped it, or not."""
    ranks = labels(RANKS, COLLWATCH_JOB="hasty")
    ranks[CULPRIT].update(INIT_WAY="raise", **UNKNOWN_INTERFACE)
    daemon.start()
    daemon.send(signal.SIGSTOP)
    job = daemon.train("hasty", ranks, ["--steps", "0", "--step-ms", "20", "--elements", "64"],
                       program=[sys.executable, FAILING_INIT, TRAIN_LOOP_PY])
    pid = job.ranks[CULPRIT].pid
    wait_until(lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG),
               "rank 2 has ended")
    if is_reaped:
        job.ranks[CULPRIT].wait()
    daemon.send(signal.SIGCONT)
    summary = expect_page(page_of(daemon, "hasty"), "process_dead", "exited")
    expect("failed in ncclCommInitRank" in summary and NO_SUCH_DEVICE in summary, summary)


def test_the_rank_whose_split_nccl_refused_is_named(daemon):
    starts(daemon, "split", r2={"INIT_WAY": "split"})
    summary = expect_page(page_of(daemon, "split"), "init_stuck", "failed")
    expect("failed in ncclCommSplit" in summary and "ncclInvalidArgument" in summary, summary)


def comms_of(rank):
    try:
        return json.loads(said(COLLWATCH, "record", "show", str(rank.pid), "--json"))["comms"]
    except ValueError:
        return []  # it has no record yet


def is_in_state(rank, state):
    return any(c["state"] == state for c in comms_of(rank))


def test_who_lost_a_peer_is_not_named(daemon):
    """A rank is killed inside the call, before the last one comes to it: NCCL may tell others of it."""
    go = daemon.dir + "/go"
    caught = {"INIT_WAY": "catch"}
    job = starts(daemon, "killed", r0=caught, r1=caught, r3={**caught, "INIT_AFTER": go})
    wait_until(lambda: is_in_state(job.ranks[CULPRIT], "init"), "rank 2 is inside")
    job.kill(CULPRIT)
    with open(go, "wb"):
        pass
    expect_page(page_of(daemon, "killed"), "process_dead", "killed")


def test_an_initialisation_that_the_program_repeats_is_no_hang(daemon):
    job = starts(daemon, "repeat", r2={"INIT_WAY": "repeat", **UNKNOWN_INTERFACE})
    daemon.wait_for(job)
    expect(not daemon.documents("repeat"), str(daemon.documents("repeat")))
