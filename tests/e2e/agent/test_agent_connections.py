# SPDX-License-Identifier: Apache-2.0
"""Jobs of the simulated NCCL whose connection from rank 1 to rank 2 stops. The records name it: it is
the only sender whose steps are handed to the network and not confirmed."""
import glob
import json
import os
import subprocess
import tempfile

import pytest
from agent_lib import AGENT, environment, start
from built import COLLWATCH, GRAPH_LOOP, TRAIN_LOOP
from waiting import expect as check
from waiting import wait_until

RANKS, STALLED = 4, 1
FOREVER = [TRAIN_LOOP, "--steps", "0"]
OF_GRAPHS = [GRAPH_LOOP + "driver", "--steps", "0", "--step-ms", "1"]
pytestmark = pytest.mark.at_once


class Stalled:
    """A job in a directory, with a copy of each rank's record there; its connection stops once it
    runs."""

    def __init__(self, argv, version, preload=AGENT, plugin=AGENT):
        self.at = tempfile.TemporaryDirectory()
        self.ranks = [start([*argv, "--uid-file", self.at.name + "/uid"],
                            environment(preload=preload, RANK=str(rank), WORLD_SIZE=str(RANKS),
                                        LOCAL_RANK=str(rank), NCCL_PROFILER_PLUGIN=plugin,
                                        SIM_NCCL_PROFILER=str(version), SIM_NCCL_STEPS="1",
                                        SIM_NCCL_STALL_FILE=f"{self.at.name}/stall{rank}",
                                        COLLWATCH_RECORD=self.at.name, COLLWATCH_JOB="unit"),
                            stdout=subprocess.DEVNULL) for rank in range(RANKS)]

    def __enter__(self):
        wait_until(lambda: min(r["calls"] for r in self.records() or [{"calls": 0}]) > 50, "the job runs")
        with open(f"{self.at.name}/stall{STALLED}", "wb"):
            pass
        return self

    def __exit__(self, *exception):
        for rank in self.ranks:
            rank.kill()
            rank.wait()
        self.at.cleanup()

    def records(self):
        """Of all ranks, in their order; None as long as one is missing."""
        found = []
        for path in glob.glob(self.at.name + "/*.record"):
            shown = subprocess.run([COLLWATCH, "record", "show", path, "--json", "--ops", "32"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
            if shown.returncode != 0:
                return None
            found.append(json.loads(shown.stdout))
        return sorted(found, key=lambda r: r["rank"]) if len(found) == RANKS else None

    def edges(self):
        """(record, connection) of each sender with steps that the network does not confirm."""
        return [(record, c) for record in self.records() or []
                for c in record["connections"] if c["direction"] == "send" and c["handed"] > c["done"]]

    def edge(self):
        """The only one that two looks in a row show. Every rank has one or none in flight before."""
        last = []

        def stands():
            nonlocal last
            now = self.edges()
            before, last = last, now
            return len(now) == 1 and before == now
        wait_until(stands, lambda: "one connection stands: %r" % ([c for _, c in last],))
        (record, connection), = last
        check(record["rank"] == STALLED and connection["rank"] == STALLED and
              connection["peer"] == STALLED + 1, str(connection))
        check(record["connections_lost"] == record["connections_impossible"] == 0, str(record))
        check(len(record["connections"]) == 2 * (RANKS - 1), "each way to each peer: %r" % (record["connections"],))
        return record, connection


def the_op(record, connection):
    """The call that the connection works on."""
    (comm,) = [c for c in record["comms"] if c["id"] == connection["comm"]]
    (op,) = [o for o in comm["ops"] if o["op_index"] == connection["op_index"]]
    return comm, op


@pytest.mark.parametrize("version", [4, 5, 7])
def test_beside_the_preload(version):
    with Stalled(FOREVER, version) as job:
        record, connection = job.edge()
        comm, op = the_op(record, connection)
        check(comm["source"] == "wrappers", str(comm))
        check(op["state"] == "reached", "the stream is in it: %r" % (op,))
        check(connection["replay"] == 0, str(connection))
        numbers = [c["entered"] - c["returned"] for c in record["comms"]]
        check(max(numbers) == 0, "each call once: %r" % (record["comms"],))


@pytest.mark.parametrize("version", [4, 6])
def test_as_a_plugin_alone(version):
    with Stalled(FOREVER, version, preload="") as job:
        comm, op = the_op(*job.edge())
        check(comm["source"] == "profiler" and op["kind"], str(comm))


def test_in_a_replay_of_a_graph():
    with Stalled(OF_GRAPHS, 5) as job:
        _, connection = job.edge()
        check(connection["replay"] > 1, str(connection))
        check(connection["op_index"] > 0, str(connection))


def test_none_without_the_plugin():
    with Stalled(FOREVER, 5, plugin="none") as job:
        calls = [r["calls"] for r in job.records()]
        check(len(calls) == RANKS, str(calls))
        check(all(r["connections"] == [] for r in job.records()), "nothing to show")
