# SPDX-License-Identifier: Apache-2.0
"""A job on four nodes (network namespaces on a bridge, joined by TLS). We kill its leader again and
again, set clocks by an hour both ways, and cut a node off. Then a rank hangs behind the partition's
back: the verdict must be right, list the invisible ranks, and go out once.

Options: [--kills N] [--partition SECONDS] All of it: meson test -C build -v -t 4 cluster_faults
--test-args '--kills 5 --partition 60' E2E_SEED=… repeats the draws.
"""
import json
import os
import signal
import threading

import pytest
from built import STEP_CLOCK_LIB
from cluster import HOOK_PORT, HUB, IsolatedCluster
from demo_driver import seeded
from job import stop_outside_nccl
from waiting import expect as check
from waiting import wait_until

NODES, RANKS_A_NODE = 4, 2
RANKS = NODES * RANKS_A_NODE
HOUR = 3600


def with_clocks(node):
    """From now on a file sets its clock."""
    step = node.dir + "/step"
    node.command += ["env", "LD_PRELOAD=" + STEP_CLOCK_LIB, "CW_STEP_CLOCK=" + step]


def set_clock_by(node, seconds):
    step = node.dir + "/step"
    with open(step + ".new", "w", encoding="ascii") as f:
        f.write(str(seconds))
    os.rename(step + ".new", step)


def sees_all(node, name):
    job = node and node.job(name)
    return bool(job and job["ranks"] == RANKS)


def agreed(cluster, name):
    """The node that leads the job by the word of all nodes, when each is connected to all others
    and the leader sees all of it; None while leadership moves. A node that has come back may take
    the lead again: that is over then."""
    said = [n.status() for n in cluster.nodes]
    if any(len(d["peers"]) != NODES - 1 or any(p["state"] != "connected" for p in d["peers"])
           for d in said):
        return None
    names = [{j["leader"] for j in d["jobs"] if j["job"].endswith(":" + name)} for d in said]
    leader = cluster.leader(name)
    return leader if sees_all(leader, name) and all(n == {leader.name} for n in names) else None


def kill_leaders(cluster, rng, name, kills):
    """We kill the leader; another node takes over; the killed one comes back."""
    for _ in range(kills):
        leader = wait_until(lambda: agreed(cluster, name), "all agree who leads")
        leader.end(signal.SIGKILL)
        wait_until(lambda: cluster.leader(name), "another one leads")
        set_clock_by(rng.choice(cluster.nodes), rng.choice([-HOUR, HOUR]))
        leader.start()
        wait_until(lambda: sees_all(cluster.leader(name), name), "one leads and sees all")
    check(not cluster.alerts(), "the job is well: %r" % cluster.alerts())


def check_alert(doc, rank, missing):
    what = json.dumps(doc)
    check(doc["class"] == "never_entered" and doc["detail"] == "stopped", what)
    check([c["rank"] for c in doc["culprits"]] == [rank], what)
    check(doc["coverage"]["ranks_expected"] == RANKS, what)
    check(doc["coverage"]["ranks_seen"] <= RANKS, what)
    said = json.dumps(doc["coverage"])
    check(missing.name in said, f"the coverage does not name {missing.name}: {said}")


def hang_while_cut(cluster, rng, name, training, cut_s):
    """A node that does not lead is cut off; the job goes on. Then a rank elsewhere is stopped."""
    leader = wait_until(lambda: agreed(cluster, name), "all agree who leads")
    lone = rng.choice([n for n in cluster.nodes if n is not leader])
    others = [n for n in cluster.nodes if n is not lone]
    culprit = cluster.nodes.index(rng.choice(others)) * RANKS_A_NODE + rng.randrange(RANKS_A_NODE)
    print(f"# leader {leader.name}, cut off {lone.name}, culprit {culprit}", flush=True)
    lone.cut(True)
    # Not a wait for anything: for so long the cluster is in two parts and the job is well.
    threading.Event().wait(cut_s)
    check(training.is_running(), "the job does not notice")
    check(not cluster.alerts(), "the job is well: %r" % cluster.alerts())
    stop_outside_nccl(training.ranks[culprit])
    wait_until(lambda: not sees_all(leader, name) or
               any(n["state"] != "connected" for n in leader.status()["peers"]),
               "the leader misses a node")
    wait_until(cluster.alerts, "an alert")
    check_alert(cluster.alerts()[0], culprit, lone)
    lone.cut(False)
    wait_until(lambda: all(p["state"] == "connected" for p in lone.status()["peers"]),
               "the parts are one again")
    wait_until(lambda: sees_all(cluster.leader(name), name), "one leads and sees all")
    return culprit


@pytest.mark.root
@pytest.mark.namespaces
def test_verdicts_stay_right(pytestconfig):
    rng = seeded("cluster_faults")
    name = "four-nodes"
    with IsolatedCluster(NODES, config=f'webhook_url = "http://{HUB}:{HOOK_PORT}/"') as cluster:
        cluster.listen()
        for node in cluster.nodes:
            with_clocks(node)
            node.start()
        training = cluster.job(name, RANKS, ["--steps", "0", "--step-ms", "20", "--tp", "2"])
        wait_until(lambda: sees_all(cluster.leader(name), name), "all are seen")
        kill_leaders(cluster, rng, name, pytestconfig.getoption("--kills"))
        culprit = hang_while_cut(cluster, rng, name, training, pytestconfig.getoption("--partition"))
        ids = [a["id"] for a in cluster.alerts()]
        check(len(ids) == len(set(ids)), "an id twice: %r" % cluster.alerts())
        check(all([c["rank"] for c in a["culprits"]] == [culprit] for a in cluster.alerts()),
              "another verdict: %r" % cluster.alerts())
        print("# %d alerts" % len(ids))
        for node in cluster.nodes:
            node.stop()
