# SPDX-License-Identifier: Apache-2.0
"""Three daemons on loopback that are each other's peers, one receiver of alerts, and jobs with a
rank on each node."""

import contextlib
import os

from agent_lib import wait_until
from ops_lib import Job, Receiver, World, plain_ranks
from ports import unused_port

NAMES = ["node-a", "node-b", "node-c"]


class Node(World):
    def __init__(self, name, ports, receiver):
        super().__init__()
        self.name = name
        peers = ", ".join(f'"{n}=127.0.0.1:{p}"' for n, p in ports.items())
        self.configure(f'peers = {{{peers}}}\nwebhook_url = "{receiver.url}"')
        with open(self.conf, encoding="ascii") as f:
            made = f.read()
        with open(self.conf, "w", encoding="ascii") as f:
            f.write(made.replace('node_name = "node-a"', f'node_name = "{name}"'))

    def leads(self, name):
        job = self.daemon and self.job_status(name)
        return bool(job and job["led_here"])

    def die(self):
        self.daemon.kill()
        self.daemon.wait()
        self.daemon = None

    def bundles_of(self, name):
        top = self.state + "/incidents"
        found = [self.bundle(i) for i in os.listdir(top) if not i.startswith(".")] \
            if os.path.isdir(top) else []
        return [b for b in found if b["job"].endswith(":" + name)]


class Ranks(Job):
    """One on each node."""

    def __init__(self, nodes, name):
        envs = [dict(env, COLLWATCH_JOB=name) for env in plain_ranks(len(nodes))]
        for env, node in zip(envs, nodes):
            env.update(COLLWATCH_SOCKET=node.path)
        super().__init__(nodes[0], name, envs)


class Nodes(contextlib.ExitStack):
    def __enter__(self):
        super().__enter__()
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def start(self):
        self.receiver = Receiver()
        self.callback(self.receiver.close)
        self.receiver.listen()
        self.ports = {name: unused_port() for name in NAMES}
        self.nodes = [self.enter_context(Node(n, self.ports, self.receiver)) for n in NAMES]
        for node in self.nodes:
            node.start()
        wait_until(lambda: all(p["state"] == "connected" for n in self.nodes
                               for p in n.status()["peers"]), "they meet")

    def train(self, name):
        """The job, its leader, and the others."""
        job = Ranks(self.nodes, name)
        self.callback(job.close)

        def leader():
            return next((n for n in self.nodes if n.leads(name) and
                         n.job_status(name)["ranks"] == len(NAMES) and
                         n.job_status(name)["collectives"] > 20), None)
        led = wait_until(leader, f"{name} is led, and all its ranks are seen")
        return job, led, [n for n in self.nodes if n is not led]

    def take_over(self, name, survivors):
        return wait_until(lambda: next((n for n in survivors if n.leads(name)), None),
                          "another one leads")
