# SPDX-License-Identifier: Apache-2.0
"""A daemon is held up (SIGSTOP) while a job hangs, for longer than the others wait for it: alone on
its node, as the job's leader, elsewhere, and killed before it goes on. The hang stays one incident
with one id and one alert, and the first report stays.

Options: [--hold SECONDS]
Longer: meson test -C build -v -t 10 held --test-args '--hold 60'
"""

import array
import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest
from agent_lib import environment
from built import COLLWATCHD
from daemon import Daemon
from job import stop_outside_nccl
from receiver import Receiver
from waiting import expect, wait_until

# A daemon that took the pause for an end finds the hang anew in this time.
SETTLED_S = 12
# No file of ours has so many descriptors.
HIGH_FD = 200


@pytest.fixture(name="hold")
def seconds_to_hold(pytestconfig):
    return pytestconfig.getoption("--hold")


@contextlib.contextmanager
def held(world, seconds):
    world.send(signal.SIGSTOP)
    try:
        # Not a wait for anything: for so long the daemon is held up.
        threading.Event().wait(seconds)
        yield
    finally:
        if world.process:
            world.send(signal.SIGCONT)


class Alerted:
    """The state of an incident on the node that sent the alert."""

    def __init__(self, world, job, rank, receiver):
        """The rank stops, and an alert goes out, with all stacks."""
        self.world, self.job, self.receiver, self.rank = world, job, receiver, job.ranks[rank]
        stop_outside_nccl(self.rank)
        wait_until(lambda: receiver.posts, f"an alert: {world.log()}")
        self.id = receiver.posts[0][1]["id"]
        self.dir = f"{world.state}/incidents/{self.id}"
        wait_until(self.has_stacks, "the stacks of all")
        wait_until(lambda: world.is_settled(self.id), "it is noted as sent")
        self.inode, self.incident = os.stat(self.dir).st_ino, self.read("incident.json")

    def read(self, name):
        with open(f"{self.dir}/{name}", encoding="utf-8") as f:
            return json.load(f)

    def has_stacks(self):
        try:
            return self.read("stacks.json")["awaited"] == 0
        except (OSError, ValueError):
            return False

    def times(self):
        return {k: v for k, v in self.read("incident.json")["times"].items() if k != "resolved"}

    def first_times(self):
        return {k: v for k, v in self.incident["times"].items() if k != "resolved"}

    def status(self):
        return self.world.job(self.job.name)

    def is_known(self):
        job = self.status()
        return bool(job and job["ranks"] == len(self.job.ranks) and job["incident"] == self.id)

    def check_kept(self):
        wait_until(self.is_known, f"its incident is known: {self.world.log()}")
        began = self.world.status()["uptime_s"]
        wait_until(lambda: self.world.status()["uptime_s"] >= began + SETTLED_S, "it has looked")
        wait_until(self.is_known, f"its incident is known still: {self.world.log()}")
        # A proof that came after the alert, on a slow machine, replaces what patience had found.
        if f"inc={self.id}: refined from" not in self.world.log():
            expect(os.stat(self.dir).st_ino == self.inode,
                   "its bundle was written anew: " + self.world.log())
            expect(self.read("incident.json") == self.incident, self.read("incident.json"))
        expect(self.times() == self.first_times(), self.read("incident.json"))
        self.check_alerted_once()

    def check_alerted_once(self):
        expect([doc["id"] for _, doc in self.receiver.posts] == [self.id], self.receiver.posts)
        log = self.world.log()
        told = [line for line in log.splitlines()
                if f"(collwatch report {self.id})" in line and ": notice: " not in line]
        expect(len(told) == 1, log)
        expect("the job is over" not in log and "ended after" not in log, log)

    def check_closed(self, held_s):
        """The rank goes on: the incident ends with its verdict unchanged."""
        expect("closed_as" not in self.incident, self.incident)
        self.rank.send_signal(signal.SIGCONT)
        wait_until(lambda: "closed_as" in self.read("incident.json"), "it ends")
        doc = self.read("incident.json")
        expect(doc["closed_as"] == "slow" and doc["lasted_s"] > held_s, doc)
        expect(self.times() == self.first_times(), doc["times"])
        expect(len(self.receiver.posts) == 1, self.receiver.posts)


@contextlib.contextmanager
def alone(kind=Daemon):
    """One node with a job of two ranks."""
    with Receiver() as receiver, kind(f'webhook_url = "{receiver.url}"') as world:
        receiver.listen()
        world.start()
        job = world.train("alone")
        world.wait_for_all()
        yield world, job, receiver


def test_one_node_alone_keeps_its_incident(hold):
    with alone() as (world, job, receiver):
        told = Alerted(world, job, 1, receiver)
        with held(world, hold):
            pass
        told.check_kept()
        told.check_closed(hold)


def test_leader_keeps_its_incident(hold, cluster):
    job, leader, others = cluster.train("held-leader")
    told = Alerted(leader, job, cluster.nodes.index(others[0]), cluster.receiver)
    with held(leader, hold):
        cluster.take_over("held-leader", others)
    told.check_kept()
    for other in others:
        expect([b["id"] for b in other.documents(job.name)] in ([], [told.id]), other.log())
    told.check_closed(hold)


def test_leader_keeps_the_incident_of_a_node_that_is_held(hold, cluster):
    job, leader, others = cluster.train("held-node")
    told = Alerted(leader, job, cluster.nodes.index(others[0]), cluster.receiver)
    with held(others[0], hold):
        pass
    told.check_kept()
    told.check_closed(hold)


class Manager:
    """Keeps descriptors for a service, as systemd does for one with FileDescriptorStoreMax=."""

    def __init__(self, path):
        self.kept = []  # (name, descriptor), the newest first
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            room = socket.CMSG_SPACE(16 * array.array("i").itemsize)
            text, control, _, _ = self.socket.recvmsg(4096, room)
            if text == b"STOP":
                return
            fds = array.array("i")
            for level, kind, data in control:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds.frombytes(data[:len(data) - len(data) % fds.itemsize])
            self.take(dict(line.split("=", 1) for line in text.decode().splitlines()), fds)

    def take(self, words, fds):
        name = words.get("FDNAME", "stored")
        if "FDSTOREREMOVE" in words:
            for _, fd in [k for k in self.kept if k[0] == name]:
                os.close(fd)
            self.kept = [k for k in self.kept if k[0] != name]
        for fd in fds:
            if "FDSTORE" in words:
                self.kept.insert(0, (name, fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)))
            os.close(fd)

    def close(self, path):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.sendto(b"STOP", path)
        self.thread.join()
        self.socket.close()
        for _, fd in self.kept:
            os.close(fd)


# Becomes the service: its descriptors from 3 on, and the pid that may take them.
PASS_ON = """
import os, sys
fds = [int(w) for w in sys.argv[1].split(",") if w]
for i, fd in enumerate(fds):
    os.dup2(fd, 3 + i)
os.execve(sys.argv[2], sys.argv[2:], dict(os.environ, LISTEN_PID=str(os.getpid())))
"""


class Service(Daemon):
    """A daemon under a manager that keeps its descriptors."""

    def __init__(self, text):
        super().__init__(text)
        self.notify = self.dir + "/notify.sock"
        self.manager = Manager(self.notify)

    def start(self, preexec=None, **extra):
        kept = list(self.manager.kept)
        env = environment(preload=None, no_proxy="*", NOTIFY_SOCKET=self.notify,
                          LISTEN_FDS=str(len(kept)), LISTEN_FDNAMES=":".join(n for n, _ in kept))
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PASS_ON, ",".join(str(fd) for _, fd in kept), COLLWATCHD,
                 "--config", self.conf], env=env, stdin=subprocess.DEVNULL, stderr=log,
                pass_fds=[fd for _, fd in kept])
        wait_until(lambda: self.ask("status", check=False).returncode in (0, 2, 3),
                   "the daemon answers: " + self.log())
        return self

    def close(self):
        self.manager.close(self.notify)
        super().close()


def test_daemon_killed_meanwhile_goes_on_with_its_incident(hold):
    with alone(Service) as (world, job, receiver):
        told = Alerted(world, job, 1, receiver)
        wait_until(lambda: len(world.manager.kept) >= 2 * len(job.ranks), "descriptors are kept")
        with held(world, hold):
            world.kill()
        world.start()
        expect("2 of 2 rank processes kept over the restart are restored" in world.log(), world.log())
        told.check_kept()
        told.check_closed(hold)
