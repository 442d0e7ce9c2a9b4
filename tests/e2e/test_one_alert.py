# SPDX-License-Identifier: Apache-2.0
"""One trouble, one message. A daemon is killed right after its first alert, alone on its node or leading a
job of two nodes: the mismatch that it alerted of before a rank waited is waited in when it comes back.
A job that fails before its first communicator leaves one post-mortem.

Options: [--one-alert-kills N]
Twenty kills of each sort: meson test -C build -v -t 8 one_alert --test-args '--one-alert-kills 40'
E2E_SEED=… repeats the draws.
"""
import itertools
import subprocess
import sys
import threading

from built import SIM_DIR, TRAIN_LOOP_PY
from cluster import Cluster
from daemon import Daemon
from demo_driver import seeded
from job import labels
from waiting import expect, wait_until

# Without device progress a rank is seen to wait only once its host does.
UNSEEN = {"COLLWATCH_PROGRESS": "off"}
FAULTS = ["skip-op", "wrong-dtype", "extra-op"]
OUT_BEFORE = "the alert went out before"
RANKS = 7

# Its first communicator cannot be made (its rank is none of seven): it ends when the test says so.
FAILS_AT_START = [sys.executable, "-c", f"""
import ctypes, sys
nccl = ctypes.CDLL("{SIM_DIR}/libnccl.so.2")
class Uid(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]
uid, comm = Uid(), ctypes.c_void_p()
nccl.ncclGetUniqueId(ctypes.byref(uid))
print("failed", nccl.ncclCommInitRank(ctypes.byref(comm), {RANKS}, uid, 99), flush=True)
sys.stdin.readline()
sys.exit(1)
"""]


def mismatch(fault):
    return ["--steps", "0", "--step-ms", "20", "--elements", "64", "--log-every", "0",
            "--fault", fault, "--fault-rank", "1", "--fault-step", "30"]


def strike(nodes, receiver, leader, rng):
    """Kills the node that leads at an instant right after its first alert, and starts it again."""
    wait_until(lambda: receiver.posts, lambda: f"an alert: {[n.log() for n in nodes]}")
    node, posts = leader(), len(receiver.posts)
    # Not waits for anything: instants that are drawn.
    threading.Event().wait(rng.uniform(0, 0.3))
    node.kill()
    said = sum(n.log().count(OUT_BEFORE) for n in nodes)
    threading.Event().wait(rng.uniform(0, 1))
    node.start()
    wait_until(lambda: len(receiver.posts) > posts or
               sum(n.log().count(OUT_BEFORE) for n in nodes) > said,
               lambda: f"it is found again: {[n.log() for n in nodes]}")


def expect_one_alert(receiver, what):
    """An alert that was delivered, and not noted before the kill, goes out again under its key."""
    told = {key: doc["summary"] for key, doc in receiver.posts}
    expect(len(told) == 1, f"{what}: {told}")


def kills(pytestconfig):
    """Their numbers and faults: of each of the two sorts half of them."""
    n = pytestconfig.getoption("--one-alert-kills")
    return zip(range((n + 1) // 2), itertools.cycle(FAULTS))


def test_a_daemon_that_dies_right_after_its_alert_alerts_once(pytestconfig, receiver):
    receiver.listen()
    rng = seeded("one_alert")
    for n, fault in kills(pytestconfig):
        receiver.posts.clear()
        with Daemon(config=f'webhook_url = "{receiver.url}"') as daemon:
            daemon.start()
            daemon.train(f"{fault}-{n}", 3, mismatch(fault), variables=UNSEEN,
                         program=[sys.executable, TRAIN_LOOP_PY])
            strike([daemon], receiver, lambda d=daemon: d, rng)
        expect_one_alert(receiver, f"kill {n}, {fault}")


def test_a_leader_of_two_that_dies_right_after_its_alert_alerts_once(pytestconfig):
    rng = seeded("one_alert_of_two")
    for n, fault in kills(pytestconfig):
        name = f"{fault}-{n}"
        with Cluster(2) as cluster:
            cluster.start()
            cluster.job(name, 4, mismatch(fault), variables=UNSEEN, program=[sys.executable, TRAIN_LOOP_PY])
            strike(cluster.nodes, cluster.receiver,
                   lambda c=cluster, j=name: wait_until(lambda: c.leader(j), "one leads"), rng)
            expect_one_alert(cluster.receiver, f"kill {n}, {fault}")


def fail_at_start(daemon, name, ranks):
    """Its post-mortems, once there is one."""
    job = daemon.train(name, labels(ranks, COLLWATCH_JOB=name), [], program=FAILS_AT_START, meets=False,
                       stdin=subprocess.PIPE)
    wait_until(lambda: daemon.job(name) and all(b"failed" in job.output(r) for r in range(ranks)),
               lambda: f"its ranks are seen: {daemon.status()['jobs']}")
    for rank in range(ranks):
        job.write_line(rank, "end")
    return wait_until(lambda: daemon.postmortems(name), daemon.log)


def test_ranks_that_fail_at_their_start_leave_one_post_mortem(daemon):
    daemon.start()
    fail_at_start(daemon, "early", RANKS)
    # Those of the other ranks would be due before the one of a job that ends later.
    fail_at_start(daemon, "later", 2)
    docs = daemon.postmortems("early")
    expect(len(docs) == 1 and docs[0]["ranks_ended"] == RANKS, docs)
    expect("alone failed" not in docs[0]["summary"], docs[0]["summary"])
