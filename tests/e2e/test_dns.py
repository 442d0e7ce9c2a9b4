# SPDX-License-Identifier: Apache-2.0
"""Daemons that find each other under a DNS name, with a name server of our own that answers, is
silent, talks nonsense and lies. All of it in a network namespace with a resolv.conf of its own;
needs root, else says so."""

import contextlib
import subprocess
import time

import pytest
from built import COLLWATCH
from daemon import Daemon
from dns_lib import NameServer, own_network
from waiting import expect, wait_until

NAME, PORT = "daemons.collwatch.test", 7411
ADDRESS = {"node-a": "10.98.7.1", "node-b": "10.98.7.2", "node-c": "fd00:98::3",
           "node-d": "10.98.7.4", "stranger": "10.98.7.9"}


class Found(Daemon):
    def __init__(self, who, key):
        super().__init__(name="node-a" if who == "stranger" else who)
        self.address, self.key = ADDRESS[who], key

    def start_found(self):
        host = f"[{self.address}]" if ":" in self.address else self.address
        self.configure(f'listen = "{host}:{PORT}"\npeers_from = "{NAME}:{PORT}"\n'
                       f'peer_key_file = "{self.key}"')
        return self.start()

    def connected(self):
        return {p["node"] for p in self.status()["peers"] if p["state"] == "connected"}

    def says(self, text):
        return any(text in note for note in self.status()["notes"])


def addresses():
    for words in (["ip", "address", "add", ADDRESS["node-a"] + "/24", "dev", "lo"],
                  ["ip", "address", "add", ADDRESS["node-c"] + "/64", "dev", "lo", "nodad"]):
        subprocess.run(words, check=True)


def answers_quickly(daemon):
    """A busy machine may hold all but one of some answers up."""
    for _ in range(20):
        began = time.monotonic()
        daemon.status()
        if time.monotonic() - began < 5:
            return True
    return False


@pytest.mark.namespaces
@pytest.mark.forked  # into a network of its own
def test_daemons_find_each_other_whatever_the_name_server_does():
    with contextlib.ExitStack() as stack:
        a = stack.enter_context(Found("node-a", ""))
        own_network(a.dir)
        addresses()
        for cluster in "ours", "other":
            subprocess.run([COLLWATCH, "init-cluster", f"{a.dir}/{cluster}", "--peers-from",
                            f"{NAME}:{PORT}"], stdout=subprocess.DEVNULL, check=True)
        a.key = a.dir + "/ours/peer.key"
        b, c, d = (stack.enter_context(Found(f"node-{x}", a.key)) for x in "bcd")
        stranger = stack.enter_context(Found("stranger", a.dir + "/other/peer.key"))
        dns = NameServer()
        dns.start()
        stack.callback(dns.end)

        dns.addresses = [ADDRESS["node-a"], ADDRESS["node-b"]]
        a.start_found()
        b.start_found()
        wait_until(lambda: a.connected() == {"node-b"} and b.connected() == {"node-a"}, "they meet")
        # One more, over IPv6: it finds the others, and none of them has to find it.
        dns.addresses.append(ADDRESS["node-c"])
        c.start_found()
        wait_until(lambda: a.connected() == {"node-b", "node-c"}, "a third one is met")
        wait_until(lambda: c.connected() == {"node-a", "node-b"}, "by all")

        # A newcomer is in the hands of the server, its loop is not.
        stranger.start_found()
        dns.say = dns.silent
        d.start_found()
        asked = dns.asked
        wait_until(lambda: dns.asked > asked, "the server is asked")
        expect(answers_quickly(d), "the daemon answers while the name server does not")
        wait_until(lambda: d.says("cannot be looked up"), "the silence is told")
        dns.say = dns.nonsense
        asked = dns.asked
        wait_until(lambda: dns.asked > asked + 1, "the server talks nonsense")
        dns.say = dns.right
        dns.addresses = [ADDRESS["stranger"]] + [f"10.98.7.{n}" for n in range(200, 224)]
        wait_until(lambda: d.says("10.98.7.9: key differs"), "the lie is told")
        expect(not d.status()["peers"], "a daemon without the key is no peer: " + d.log())
        expect(not stranger.status()["peers"], "on neither side")
        expect(a.connected() >= {"node-b", "node-c"}, "the others stay connected: " + a.log())
        # The truth again.
        dns.addresses = list(ADDRESS.values())[:4]
        everybody = {"node-a", "node-b", "node-c", "node-d"}
        for node in a, b, c, d:
            wait_until(lambda node=node: node.connected() == everybody - {node.name},
                       f"{node.name} has met all")
