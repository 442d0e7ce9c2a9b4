# SPDX-License-Identifier: Apache-2.0
"""Two nodes, and one still has the daemon of an older build; either may lead. There is one leader
and one alert, also when we replace the other daemon while the job hangs.

CW_OLD_BUILD is a build directory of the older commit; without it nothing is tested here (the same in
memory: tests/unit/leader/test_upgrade.c). tests/rolling-upgrade makes one of any commit.
"""

import os

import pytest
from built import COLLWATCHD
from cluster import Cluster
from job import stop_outside_nccl
from waiting import expect, wait_until

OLD = os.environ.get("CW_OLD_BUILD", "") + "/daemon/collwatchd"
JOB = "rolled"
pytestmark = pytest.mark.skipif(not os.path.exists(OLD),
                                reason="CW_OLD_BUILD names no build of an older commit")


class Rolled(Cluster):
    """Two nodes with the old daemon, and a job with a rank on each."""

    def __init__(self):
        super().__init__(2, program=OLD)
        self.ranks = None

    def __enter__(self):
        super().__enter__()
        for node in self.nodes:
            node.start()
        self.ranks = self.job(JOB)
        self.wait_for_leader()
        return self

    @staticmethod
    def upgrade(node):
        node.stop()
        node.program = COLLWATCHD
        node.start()

    def wait_for_leader(self):
        """One node leads, has both ranks, and the other one knows the leader."""
        def agreed():
            seen = [n.job(JOB) for n in self.nodes]
            leaders = [j for j in seen if j and j["led_here"]]
            return (all(seen) and len(leaders) == 1 and leaders[0]["ranks"] == len(self.nodes) and
                    leaders[0]["collectives"] > 20 and len({j["leader"] for j in seen}) == 1)
        wait_until(agreed, f"one leads: {[n.status() for n in self.nodes]}")
        return next(n for n in self.nodes if n.job(JOB)["led_here"])

    def hang(self, node):
        """Its rank stops outside of NCCL, and with it its agent: the node must not be upgraded any
        more. The alert's document."""
        rank = self.ranks.ranks[self.nodes.index(node)]
        before = [n.log().count("leads now") for n in self.nodes]
        stop_outside_nccl(rank)
        wait_until(lambda: self.receiver.posts, "an alert: " + self.nodes[0].log() +
                   self.nodes[1].log())
        doc = self.receiver.posts[0][1]
        expect((doc["class"], doc["culprits"][0]["pid"]) == ("never_entered", rank.pid), doc)
        expect(doc["coverage"]["ranks_seen"] == len(self.nodes), doc)
        # A daemon that ends before it has noted that an alert arrived sends it once more.
        wait_until(lambda: any(n.is_settled(doc["id"]) for n in self.nodes), "it is noted as sent")
        # Longer than a leader may be silent has passed since they met.
        expect([n.log().count("leads now") for n in self.nodes] == before, "a leader given up")
        return doc

    def expect_one_alert(self):
        """The final leader finds the hang, and sends no further alert."""
        def found():
            leader = next((n for n in self.nodes if (n.job(JOB) or {}).get("led_here")), None)
            return (leader and leader.job(JOB)["state"] == "hang" and leader.job(JOB)["incident"] and
                    "went out before" in leader.log())
        wait_until(found, f"it is found again: {[n.log() for n in self.nodes]}")
        expect(len(self.receiver.posts) == 1, self.receiver.posts)


def test_a_new_daemon_follows_an_old_leader():
    with Rolled() as c:
        leader = c.wait_for_leader()
        other = next(n for n in c.nodes if n is not leader)
        c.upgrade(other)
        expect(c.wait_for_leader() is leader, "the weights are the same in both versions")
        c.hang(other)
        c.upgrade(leader)
        c.expect_one_alert()


def test_an_old_daemon_follows_a_new_leader():
    with Rolled() as c:
        leader = c.wait_for_leader()
        other = next(n for n in c.nodes if n is not leader)
        c.upgrade(leader)
        expect(c.wait_for_leader() is leader, "the weights are the same in both versions")
        doc = c.hang(leader)
        bundle = leader.document(doc["id"])
        expect(bundle["culprits"] == doc["culprits"], bundle)
        c.upgrade(other)
        c.wait_for_leader()
        expect(len(c.receiver.posts) == 1, c.receiver.posts)
