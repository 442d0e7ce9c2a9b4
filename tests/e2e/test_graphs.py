# SPDX-License-Identifier: Apache-2.0
"""Jobs whose communication is in CUDA graphs: they end as without the agent, for each way of the
program to the driver, and we find a fault in a replay."""
import pytest
from built import GRAPH_LOOP
from daemon import Daemon
from job import Job
from waiting import expect as check
from waiting import wait_until

RANKS, FAULTY = 4, 2
pytestmark = pytest.mark.at_once


def run(through, daemons=()):
    with Job("same-" + through, RANKS, ["--steps", "200"], daemons, GRAPH_LOOP + through) as job:
        return job.wait(120)


def ends_alike(through):
    with Daemon() as daemon:
        daemon.start()
        alone, watched = run(through), run(through, daemon)
        check(all(status == 0 and b"done steps=200 " in out and not err
                  for status, out, err in alone), str(alone))
        check(alone == watched, "with the agent: %r" % (watched,))


def diagnosed(through, fault):
    """The incident of a job with that fault in the middle."""
    with Daemon() as daemon:
        daemon.start()
        job = daemon.train(fault, RANKS, ["--steps", "0", "--step-ms", "20", "--fault", fault,
                                          "--fault-rank", str(FAULTY), "--fault-step", "150"],
                           program=GRAPH_LOOP + through)
        if fault != "wrong-capture":  # that one hangs at once
            daemon.wait_for(job)
        doc = wait_until(lambda: daemon.incident_of(fault), fault + " is diagnosed")
    check([c["rank"] for c in doc["culprits"]] == [FAULTY], str(doc))
    return doc


def test_finds_who_did_not_launch():
    doc = diagnosed("static", "skip-launch")
    check(doc["class"] == "never_entered" and doc["detail"] == "outside_nccl", str(doc))
    check(doc["where"]["coll_seq"] == 451, "three collectives a step: %r" % (doc["where"],))
    check("all_reduce #451" in doc["summary"], doc["summary"])


def test_finds_who_is_stuck_inside():
    doc = diagnosed("runtime", "stuck-inside")
    check(doc["class"] == "device_stalled", str(doc))
    # Its first op is over: the others wait in the group behind the work that is stuck.
    check(doc["where"]["coll_seq"] == 452, str(doc["where"]))


def test_finds_who_captured_something_else():
    doc = diagnosed("driver", "wrong-capture")
    check(doc["class"] == "mismatch" and doc["detail"] == "count", str(doc))
    check(doc["where"]["coll_seq"] == 2, str(doc["where"]))


def test_driver_ends_alike():
    ends_alike("driver")


def test_runtime_ends_alike():
    ends_alike("runtime")


def test_static_ends_alike():
    ends_alike("static")
