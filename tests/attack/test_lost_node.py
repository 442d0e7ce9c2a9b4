# SPDX-License-Identifier: Apache-2.0
"""An attacker has taken over a node of the cluster: it has a name that the others know, speaks as
their peer does, and lies. The table of docs/hardening.md lists its means and its limits. We write
its messages by hand."""
import contextlib
import json
import os
import select
import socket
import struct
import threading
import time

import pytest
from agent_lib import envelope, field, varint
from cluster import Cluster
from job import Job
from waiting import expect, wait_until

pytestmark = pytest.mark.root  # loopback without a key is root's
NAME = "node-c"
HELLO, DIGEST, MEMBERS, EVIDENCE, EVIDENCE_REPLY, ANNOUNCE, OBJECTION, COPY, ASK, ANSWER = (
    20, 22, 23, 26, 27, 28, 29, 30, 33, 34)
HOUR = 3600
BELIEVED_S = 90  # docs/hardening.md
# docs/hardening.md: so many at once, and then so many a second.
AT_ONCE, A_SECOND = 64, 8


def fields_of(data):
    """[(number, value)], with values of fixed length as they lie there."""
    found, at = [], 0

    def number():
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 0x7f) << shift
            shift += 7
            if not byte & 0x80:
                return n

    while at < len(data):
        key = number()
        if key & 7 == 0:
            found.append((key >> 3, number()))
            continue
        size = {1: 8, 5: 4}.get(key & 7) or number()
        found.append((key >> 3, data[at:at + size]))
        at += size
    return found


def fixed64(number, value):
    return varint(number << 3 | 1) + value


def one(message, number, default=b""):
    return next((v for n, v in message if n == number), default)


class LostNode:
    """Connected to one daemon; notes what that says. objects: to each incident that it hears of."""

    def __init__(self, port, objects=False):
        self.objects = objects
        self.received, self.lock = [], threading.Lock()  # (type, fields)
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.say(HELLO, field(1, NAME.encode()) + field(2, 1) + field(3, 1) +
                 field(4, time.time_ns()))
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()

    def say(self, body, message):
        with self.lock:
            self.socket.sendall(envelope(body, message))

    def listen(self):
        buffer, spoke = b"", 0
        while not self.ended.is_set():
            if time.monotonic() - spoke > 0.5:  # or it would count as lost indeed
                spoke = time.monotonic()
                self.say(MEMBERS, field(3, NAME.encode()))
            if not select.select([self.socket], [], [], 0.05)[0]:
                continue
            got = self.socket.recv(1 << 16)
            if not got:
                return
            buffer += got
            while len(buffer) >= 4 and len(buffer) >= 4 + struct.unpack(">I", buffer[:4])[0]:
                size = struct.unpack(">I", buffer[:4])[0]
                self.hear(fields_of(buffer[4:4 + size]))
                buffer = buffer[4 + size:]

    def hear(self, message):
        for body, value in message:
            if body == 1:
                continue
            said = fields_of(value)
            self.received.append((body, said))
            if body == ANNOUNCE and self.objects:
                self.object_to(said)

    def object_to(self, announce):
        self.say(OBJECTION, field(1, one(announce, 1)) + field(2, NAME.encode()) +
                 field(3, b"it went out from here") + field(4, one(announce, 5, 0)) +
                 field(5, one(announce, 6)))

    def count(self, body):
        return sum(1 for b, _ in self.received if b == body)

    def digest_of(self, label):
        """That it got as the job's leader."""
        return next((m for b, m in reversed(self.received)
                     if b == DIGEST and one(m, 2).decode().endswith(":" + label)), None)

    def knows(self, label):
        return any(b in (DIGEST, COPY) and one(m, 2).decode().endswith(":" + label)
                   for b, m in list(self.received))

    def close(self):
        self.ended.set()
        self.thread.join()
        self.socket.close()


class Setup(contextlib.ExitStack):
    """Two daemons, the lost node, and jobs enough: it leads some, and has no part in others."""

    def __init__(self, objects=False):
        super().__init__()
        self.objects, self.jobs, self.liars = objects, {}, []
        self.daemons, self.receiver = [], None

    def __enter__(self):
        super().__enter__()
        try:
            self.make()
        except BaseException:
            self.close()
            raise
        return self

    def make(self):
        cluster = self.enter_context(Cluster(3))
        self.receiver, self.daemons = cluster.receiver, cluster.nodes[:2]
        for daemon in self.daemons:
            daemon.start()
        for daemon in self.daemons:
            self.liars.append(LostNode(self.port_of(daemon), self.objects))
            self.callback(self.liars[-1].close)
        for daemon in self.daemons:
            wait_until(lambda d=daemon: d.peer_states().count("connected") == 2,
                       lambda d=daemon: f"its peers: {d.status()['peers']}")
        for name in map("lost-{}".format, range(5, 11)):
            self.jobs[name] = Job(name, daemons=self.daemons[0])
            self.callback(self.jobs[name].close)
        wait_until(lambda: all(self.job(n) for n in self.jobs), "all are watched")
        wait_until(self.led, lambda: f"a job that it leads: {self.liars[0].received[-3:]}")
        wait_until(self.others, lambda: f"one in which it has no part: {self.daemons[0].status()}")

    @staticmethod
    def port_of(daemon):
        with open(daemon.conf, encoding="ascii") as f:
            return int(f.read().split(f'"{daemon.name}=127.0.0.1:')[1].split('"')[0])

    def job(self, name):
        return next((j for d in self.daemons for j in [d.job(name)] if j), None)

    def led(self):
        return next((n for n in self.jobs if self.liars[0].digest_of(n)), None)

    def others(self):
        """Led by a daemon, and no copy of its digests came."""
        return next((n for n in self.jobs if any(d.leads(n) for d in self.daemons) and
                     not any(l.knows(n) for l in self.liars)), None)

    def alert_of(self, name):
        return next((doc for _, doc in self.receiver.posts if name in json.dumps(doc)), None)


@pytest.fixture(name="setup")
def setup_of_a_lost_node():
    with Setup() as setup:
        yield setup


def test_a_mute_of_a_job_in_which_it_has_no_part_silences_nobody(setup):
    name = setup.others()
    for number, liar in enumerate(setup.liars):
        said = json.dumps({"job": name, "uid": os.getuid(), "for_s": HOUR}).encode()
        liar.say(ASK, field(1, number + 1) + field(2, b"mute") + field(3, said) + field(4, 0) +
                 field(5, 1))
        wait_until(lambda l=liar: l.count(ANSWER), "an answer")
    setup.jobs[name].kill(1)
    wait_until(lambda: setup.alert_of(name), lambda: f"the alert: {setup.daemons[0].log()}")


def test_evidence_is_given_to_who_leads_and_not_without_end(setup):
    name, liar, seconds = setup.led(), setup.liars[0], 4
    digest = liar.digest_of(name)
    # No rank of this job: such a question is answered at once.
    target = field(1, 1) + fixed64(2, b"\1" + bytes(7)) + field(3, 0xff)
    begun, asked = time.monotonic(), 0
    while time.monotonic() - begun < seconds:
        asked += 1
        liar.say(EVIDENCE, field(1, asked) + fixed64(2, one(digest, 1)) + field(3, 20000) +
                 field(4, target) + field(5, one(digest, 10)) + field(6, one(digest, 3, 0)) +
                 field(7, one(digest, 2)))
    took = time.monotonic() - begun
    wait_until(lambda: liar.count(EVIDENCE_REPLY), "an answer")
    setup.daemons[0].status()  # the daemon has read all requests
    most = AT_ONCE + A_SECOND * (time.monotonic() - begun) + 1
    print(f"# {asked} questions in {took:.1f} s, {liar.count(EVIDENCE_REPLY)} answers")
    expect(asked > 2 * most, f"only {asked} questions")
    expect(liar.count(EVIDENCE_REPLY) <= most, f"{liar.count(EVIDENCE_REPLY)} answers to {asked}")


@pytest.mark.slow
def test_objections_without_end_silence_nobody():
    with Setup(objects=True) as setup:
        name = setup.others()
        setup.jobs[name].kill(1)
        wait_until(lambda: setup.alert_of(name), lambda: f"the alert: {setup.daemons[0].log()}",
                   BELIEVED_S + 110)
        objected = [o["node"] for o in setup.alert_of(name)["objections"]]
        expect(objected == [NAME], setup.alert_of(name))
