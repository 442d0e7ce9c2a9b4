# SPDX-License-Identifier: Apache-2.0
"""A job on four nodes (network namespaces on a bridge, joined by TLS) while its leader is killed
again and again, clocks are set by an hour both ways, and a node is cut off. Then a rank hangs behind
the partition's back: the verdict must be right, say what was not seen, and go out once.

Options: [--kills N] [--partition SECONDS]
All of it: meson test -C build -v -t 4 cluster_faults --test-args '--kills 5 --partition 60'
E2E_SEED=… repeats the draws.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

import pytest
from built import STEP_CLOCK_LIB
from agent_lib import check, wait_until
from demo_driver import seeded
from fault_lib import COLLWATCH, PATIENCE, RealDaemon, Training, stop_outside_nccl

NODES, RANKS_A_NODE = 4, 2
RANKS = NODES * RANKS_A_NODE
PORT, HOOK_PORT = 7411, 7480
HUB = "10.99.9.100"
HOUR = 3600
RECEIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs/alert_receiver.py")


def call(*command, check_it=True):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120, check=False)
    check(done.returncode == 0 or not check_it, f"{command}: {done.stdout}")
    return done.returncode == 0


class Node(RealDaemon):
    """A daemon in a namespace whose only link goes to the hub."""

    def __init__(self, cluster, number):
        self.cluster, self.number = cluster, number
        self.name, self.address = f"node-{'abcd'[number]}", f"10.99.9.{number + 1}"
        self.netns = f"cwf{os.getpid()}{number}"
        super().__init__()
        self.step = self.dir + "/step"
        self.command = ["ip", "netns", "exec", self.netns, "env",
                        "LD_PRELOAD=" + STEP_CLOCK_LIB,
                        "CW_STEP_CLOCK=" + self.step]

    def configure(self, config):
        with open(f"{self.cluster.dir}/made/{self.name}/collwatchd.conf", encoding="ascii") as f:
            made = f.read()
        with open(self.dir + "/conf", "w", encoding="ascii") as f:
            f.write(f'{made}\nagent_socket = "{self.path}"\ncontrol_socket = "{self.control}"\n'
                    f'state_dir = "{self.state}"\n{PATIENCE}'
                    f'webhook_url = "http://{HUB}:{HOOK_PORT}/"\n')

    def set_clock_by(self, seconds):
        with open(self.step + ".new", "w", encoding="ascii") as f:
            f.write(str(seconds))
        os.rename(self.step + ".new", self.step)

    def link(self):
        hub, port = self.cluster.hub, f"p{self.number}"
        call("ip", "netns", "add", self.netns)
        call("ip", "-n", self.netns, "link", "add", "eth0", "type", "veth", "peer", "name", port,
             "netns", hub)
        call("ip", "-n", self.netns, "address", "add", self.address + "/24", "dev", "eth0")
        call("ip", "-n", hub, "link", "set", port, "master", "bridge")
        for words in (["-n", self.netns, "link", "set", "lo", "up"],
                      ["-n", self.netns, "link", "set", "eth0", "up"],
                      ["-n", hub, "link", "set", port, "up"]):
            call("ip", *words)

    def cut(self, is_cut):
        """As a cable that is pulled: packets vanish, nobody is told."""
        call("ip", "-n", self.cluster.hub, "link", "set", f"p{self.number}",
             "nomaster" if is_cut else "master", *([] if is_cut else ["bridge"]))

    def leads(self, name):
        job = self.process and self.job(name)
        return bool(job and job["led_here"])


class Cluster:
    def __init__(self):
        self.dir, self.hub = tempfile.mkdtemp(prefix="cw-"), f"cwf{os.getpid()}h"
        self.nodes, self.receiver, self.alerts_file = [], None, self.dir + "/alerts"

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def build(self):
        call("ip", "netns", "add", self.hub)
        if not call("ip", "-n", self.hub, "link", "add", "bridge", "type", "bridge",
                    check_it=False):
            pytest.skip("no bridge can be made here")
        call("ip", "-n", self.hub, "address", "add", HUB + "/24", "dev", "bridge")
        call("ip", "-n", self.hub, "link", "set", "bridge", "up")
        call(COLLWATCH, "init-cluster", self.dir + "/made", "--key-path",
             self.dir + "/made/peer.key", *(w for i in range(NODES) for w in (
                 "--node", f"node-{'abcd'[i]}=10.99.9.{i + 1}:{PORT}")))
        for i in range(NODES):
            self.nodes.append(Node(self, i))
            self.nodes[-1].link()
        self.receiver = subprocess.Popen(
            ["ip", "netns", "exec", self.hub, sys.executable, RECEIVER, HUB,
             str(HOOK_PORT), self.alerts_file])
        wait_until(lambda: os.path.exists(self.alerts_file), "the receiver listens")

    def alerts(self):
        with open(self.alerts_file, encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def leader(self, name):
        """The only one who leads the job, as far as they run; None when there is none yet."""
        leads = [n for n in self.nodes if n.leads(name)]
        return leads[0] if len(leads) == 1 else None

    def __exit__(self, *_):
        for node in self.nodes:
            node.__exit__()
            call("ip", "netns", "del", node.netns, check_it=False)
        if self.receiver:
            self.receiver.kill()
            self.receiver.wait()
        call("ip", "netns", "del", self.hub, check_it=False)
        shutil.rmtree(self.dir, ignore_errors=True)


def sees_all(node, name):
    job = node and node.job(name)
    return bool(job and job["ranks"] == RANKS)


def agreed(cluster, name):
    """The node that all nodes, each connected to all others, say leads the job, and that sees all of
    it; None while it is moving. Whoever has come back may take the lead again: that is over then."""
    said = [n.status() for n in cluster.nodes]
    if any(d is None or any(p["state"] != "connected" for p in d["peers"]) for d in said):
        return None
    names = [{j["leader"] for j in d["jobs"] if j["job"].endswith(":" + name)} for d in said]
    leader = cluster.leader(name)
    return leader if sees_all(leader, name) and all(n == {leader.name} for n in names) else None


def kill_leaders(cluster, rng, name, kills):
    """Whoever leads is killed; somebody else takes over; the killed one comes back."""
    for _ in range(kills):
        leader = wait_until(lambda: agreed(cluster, name), "all agree who leads")
        leader.end(signal.SIGKILL)
        wait_until(lambda: cluster.leader(name), "another one leads")
        rng.choice(cluster.nodes).set_clock_by(rng.choice([-HOUR, HOUR]))
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
    culprit = rng.choice(others).number * RANKS_A_NODE + rng.randrange(RANKS_A_NODE)
    print(f"# leader {leader.name}, cut off {lone.name}, culprit {culprit}", flush=True)
    lone.cut(True)
    # Not a wait for anything: for so long the cluster is in two parts and the job is well.
    threading.Event().wait(cut_s)
    check(training.is_running(), "the job does not notice")
    check(not cluster.alerts(), "the job is well: %r" % cluster.alerts())
    stop_outside_nccl(training.ranks[culprit])
    wait_until(lambda: not sees_all(leader, name) or
               any(n["state"] != "connected" for n in leader.answer()["peers"]),
               "the leader misses a node")
    wait_until(cluster.alerts, "an alert")
    check_alert(cluster.alerts()[0], culprit, lone)
    lone.cut(False)
    wait_until(lambda: all(p["state"] == "connected" for p in lone.answer()["peers"]),
               "the parts are one again")
    wait_until(lambda: sees_all(cluster.leader(name), name), "one leads and sees all")
    return culprit


@pytest.mark.root
@pytest.mark.namespaces
def test_verdicts_stay_right(pytestconfig):
    rng = seeded("cluster_faults")
    name = "four-nodes"
    with Cluster() as cluster:
        for node in cluster.nodes:
            node.start()
        training = Training(cluster.dir, name, RANKS,
                            ["--steps", "0", "--step-ms", "20", "--tp", "2"], cluster.nodes)
        try:
            wait_until(lambda: sees_all(cluster.leader(name), name), "all are seen")
            kill_leaders(cluster, rng, name, pytestconfig.getoption("--kills"))
            culprit = hang_while_cut(cluster, rng, name, training,
                                     pytestconfig.getoption("--partition"))
            ids = [a["id"] for a in cluster.alerts()]
            check(len(ids) == len(set(ids)), "an id twice: %r" % cluster.alerts())
            check(all([c["rank"] for c in a["culprits"]] == [culprit] for a in cluster.alerts()),
                  "another verdict: %r" % cluster.alerts())
            print("# %d alerts" % len(ids))
            for node in cluster.nodes:
                check(node.end() == 0, f"{node.name} did not end well:\n{node.read_log()}")
        finally:
            training.kill()
