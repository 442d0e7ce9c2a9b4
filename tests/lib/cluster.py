# SPDX-License-Identifier: Apache-2.0
"""Daemons that are each other's peers, and the receiver of their alerts: on loopback, or each in a
network namespace on a bridge, joined by the files of collwatch init-cluster."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import unittest

from built import COLLWATCH, COLLWATCHD
from daemon import Daemon
from job import Job, labels
from ports import unused_port
from receiver import Receiver
from waiting import call, wait_until

PORT, HOOK_PORT = 7411, 7480
HUB = "10.99.9.100"
RECEIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e/programs/alert_receiver.py")


def name_of(number):
    return "node-" + "abcdefgh"[number]


class Node(Daemon):
    def __init__(self, name, **more):
        self.name = name
        super().__init__(name=name, **more)

    def peer_states(self):
        return [p["state"] for p in self.status()["peers"]]


class Cluster(contextlib.ExitStack):
    """Of n nodes, with one receiver of alerts. train() gives a job a rank on each."""

    def __init__(self, n=3, program=COLLWATCHD):
        super().__init__()
        self.n, self.program = n, program
        self.nodes, self.receiver = [], None

    def __enter__(self):
        super().__enter__()
        try:
            self.make()
        except BaseException:
            self.close()
            raise
        return self

    def make(self):
        self.receiver = self.enter_context(Receiver())
        self.receiver.listen()
        ports = {name_of(i): unused_port() for i in range(self.n)}
        peers = ", ".join(f'"{name}=127.0.0.1:{port}"' for name, port in ports.items())
        config = f'peers = {{{peers}}}\nwebhook_url = "{self.receiver.url}"'
        self.nodes = [self.enter_context(Node(name, config=config, program=self.program))
                      for name in ports]

    def start(self):
        """All of them; returns when they have met."""
        for node in self.nodes:
            node.start()
        self.wait_until_met()
        return self

    def wait_until_met(self):
        wait_until(lambda: all(s == "connected" for n in self.nodes for s in n.peer_states()),
                   lambda: f"they meet: {[n.status()['peers'] for n in self.nodes]}")

    # ---- jobs ----

    def job(self, name, ranks=None, arguments=None, **more):
        """Dealt out to the nodes in their order."""
        return self.enter_context(Job(name, labels(ranks or self.n, COLLWATCH_JOB=name), arguments,
                                      self.nodes, **more))

    def train(self, name):
        """A job, its leader, and the other nodes."""
        job = self.job(name)

        def leader():
            seen = [(n, n.job(name)) for n in self.nodes]
            return next((n for n, j in seen if j and j["led_here"] and j["ranks"] == self.n and
                         j["collectives"] > 20), None)
        led = wait_until(leader, f"{name} is led, and all its ranks are seen")
        return job, led, [n for n in self.nodes if n is not led]

    def leader(self, name):
        """The only running daemon that leads the job; None when there is none yet."""
        leads = [n for n in self.nodes if n.leads(name)]
        return leads[0] if len(leads) == 1 else None

    @staticmethod
    def take_over(name, survivors):
        return wait_until(lambda: next((n for n in survivors if n.leads(name)), None),
                          "another one leads")


class IsolatedNode(Node):
    """A daemon in a namespace whose only link goes to the hub."""

    def __init__(self, cluster, number, **more):
        self.cluster, self.number = cluster, number
        self.address, self.netns = f"10.99.9.{number + 1}", f"cw{os.getpid()}{'abcdefgh'[number]}"
        super().__init__(name_of(number), **more)
        self.command = ["ip", "netns", "exec", self.netns]

    def configure(self, text):
        """After what init-cluster made."""
        with open(f"{self.cluster.made}/{self.name}/collwatchd.conf", encoding="ascii") as f:
            made = f.read()
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(f'{made}\nagent_socket = "{self.path}"\ncontrol_socket = "{self.control}"\n'
                    f'state_dir = "{self.state}"\nlog_level = info\n{self.patience}{text}\n')

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
        """Like a pulled cable: packets vanish, and no end gets an error."""
        call("ip", "-n", self.cluster.hub, "link", "set", f"p{self.number}",
             "nomaster" if is_cut else "master", *([] if is_cut else ["bridge"]))

    def close(self):
        try:
            super().close()
        finally:
            call("ip", "netns", "del", self.netns, check=False)


class IsolatedCluster(Cluster):
    """Its nodes have networks of their own. options: of init-cluster."""

    def __init__(self, n=2, options=(), config=""):
        super().__init__(n)
        self.options, self.config = options, config
        self.hub = f"cw{os.getpid()}hub"
        self.dir = self.made = self.alerts_file = None

    def make(self):
        self.dir = self.enter_context(tempfile.TemporaryDirectory(prefix="cw-"))
        self.made, self.alerts_file = self.dir + "/made", self.dir + "/alerts"
        self.init_cluster(self.made)
        call("ip", "netns", "add", self.hub)
        self.callback(call, "ip", "netns", "del", self.hub, check=False)
        if "BRIDGE" in call("ip", "-n", self.hub, "link", "add", "bridge", "type", "bridge", check=False):
            raise unittest.SkipTest("no bridge can be made here")
        call("ip", "-n", self.hub, "address", "add", HUB + "/24", "dev", "bridge")
        call("ip", "-n", self.hub, "link", "set", "bridge", "up")
        for i in range(self.n):
            node = self.enter_context(IsolatedNode(self, i, config=self.config))
            self.nodes.append(node)
            node.link()

    def init_cluster(self, directory, *options):
        nodes = [word for i in range(self.n)
                 for word in ("--node", f"{name_of(i)}=10.99.9.{i + 1}:{PORT}")]
        call(COLLWATCH, "init-cluster", directory, "--key-path", directory + "/peer.key", *self.options,
             *options, *nodes)

    def listen(self):
        """For alerts, at the hub."""
        receiver = subprocess.Popen(
            ["ip", "netns", "exec", self.hub, sys.executable, RECEIVER, HUB, str(HOOK_PORT),
             self.alerts_file])
        self.callback(receiver.wait)
        self.callback(receiver.kill)
        wait_until(lambda: os.path.exists(self.alerts_file), "the receiver listens")

    def alerts(self):
        with open(self.alerts_file, encoding="utf-8") as f:
            return [json.loads(line) for line in f]
