# SPDX-License-Identifier: Apache-2.0
"""Other users of the machine attack the daemon through the agents' socket by every means it offers,
while one user's job trains, and hangs. The daemon must not crash, not be held up, not grow. It must
count its refusals, and must find the hang in time.

Options: [--seconds N]        N: how long the attack goes on before the hang
E2E_SEED=… repeats it, as far as time allows.
"""
import json
import os
import re
import signal
import stat
import subprocess
import threading

import pytest
from agent_lib import start
from built import HOSTILE
from demo_driver import seeded
from open_copy import directory, open_copy
from waiting import expect as check
from waiting import wait_until

ATTACKS = ["frames", "loris", "flood", "descriptors", "records", "messages"]
USER, FIRST_ATTACKER = 23000, 23001  # every attack by a user of its own
RANKS, BLOCKED = 2, 1
LOOP_S = 0.1
# The share of all users' records, the daemon's own, and room for libraries and messages: half of
# the unit's limit (MemoryMax).
RSS_KIB = 512 << 10


def may_make_namespaces():
    return subprocess.run(["unshare", "--user", "--mount", "true"], stderr=subprocess.DEVNULL,
                          check=False, **as_user(FIRST_ATTACKER)).returncode == 0


def make_fuse_device():
    """A device that every user can open, as on most machines. None: this machine has no FUSE."""
    with open("/proc/filesystems", encoding="ascii") as f:
        if "nodev\tfuse\n" not in f.readlines():
            return None
    path = directory() + "/fuse"
    os.mknod(path, stat.S_IFCHR, os.makedev(10, 229))
    os.chmod(path, 0o666)
    return path


def as_user(uid):
    return {"user": uid, "group": uid, "extra_groups": []}


class Attack:
    def __init__(self, name, number, daemon, rng, fuse):
        self.name = name
        env = {"PATH": os.environ["PATH"], "CW_HOSTILE_FUSE": fuse or "/dev/fuse"}
        # Beside the job, not instead of it: we test the daemon, not the scheduler.
        self.process = start(["nice", "-n", "15", open_copy(HOSTILE), daemon.path,
                              str(rng.randrange(1 << 31)), name],
                             env, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, cwd="/", start_new_session=True,
                             **as_user(FIRST_ATTACKER + number))

    def stop(self):
        """Returns its counts."""
        self.process.send_signal(signal.SIGTERM)
        try:
            out, _ = self.process.communicate(timeout=120)
        finally:
            self.kill()
        check(self.process.returncode == 0, f"{self.name} ended with {self.process.returncode}")
        return json.loads(out)

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # its own session: children, too
        except ProcessLookupError:
            pass
        self.process.wait(120)


def peak_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))


def check_hang(daemon, name):
    wait_until(lambda: daemon.incident_of(name), "the hang is diagnosed")
    doc = daemon.incident_of(name)
    check(doc["class"] == "never_entered" and doc["confidence"] == "likely", str(doc))
    check([c["rank"] for c in doc["culprits"]] == [BLOCKED], str(doc))
    check(doc["coverage"]["ranks_seen"] == RANKS, str(doc))
    mine = [d for d in daemon.documents() if d["uid"] == USER]
    check(len(mine) == 1, "nothing else about this user: %r" % mine)


def check_counts(counts, status, fuse):
    """The daemon counted each refusal, and accepted nothing that it should refuse."""
    refused = sum(c["refused"] for c in counts)
    agents = status["agents"]
    for c in counts:
        print("# " + ", ".join(f"{k} {v}" for k, v in c.items()))
        check(c["wrong"] == 0, "welcome, and should not have been: %r" % c)
        check(c["silent"] == 0, "no answer in time: %r" % c)
        check(c["tried"] > 0, "it did nothing: %r" % c)
    # A user who may make no namespace cannot have such a file: then this is not tested, and said.
    closing = next(c["fuse"] for c in counts if c["attack"] == "descriptors")
    print("# a descriptor on a file system that never answers: " + closing)
    if fuse and may_make_namespaces():
        check(re.match(r"sent \d+ times, [1-9]\d* closings hang", closing), closing)
    print("# the daemon counted: %r" % agents)
    check(agents["refused"] >= refused > 0, "%d refusals, counted %d" % (refused, agents["refused"]))
    check(agents["bad_messages"] > 0, "malformed messages are counted")


@pytest.mark.root  # to be several users
def test_others_are_watched_meanwhile(pytestconfig, daemon, job):
    rng = seeded("hostile")
    fuse = make_fuse_device()
    daemon.start()
    pid = daemon.process.pid
    attacks = []
    try:
        attacks = [Attack(n, i, daemon, rng, fuse) for i, n in enumerate(ATTACKS)]
        wait_until(lambda: daemon.status()["agents"]["bad_messages"] > 100, "the attack has begun")
        # Not a wait for anything: for so long all goes on at once.
        threading.Event().wait(pytestconfig.getoption("--seconds"))
        daemon.wait_for(job("hangs", RANKS, [
            "--step-ms", "20", "--log-every", "1", "--steps", "0", "--fault", "block-in-data-loader",
            "--fault-rank", str(BLOCKED), "--fault-step", "100"], user=USER))
        check_hang(daemon, "hangs")
        counts = [a.stop() for a in attacks]
        status = daemon.status()
        check(daemon.process.pid == pid and daemon.process.poll() is None, "it is the same daemon")
        check_counts(counts, status, fuse)
        wait_until(lambda: daemon.status()["agents"]["connected"] == RANKS, "the attackers are gone")
        print("# loop held up for %.0f ms at most, %d MiB at most" % (
            1000 * status["loop_max_s"], peak_kib(pid) >> 10))
        check(status["loop_max_s"] < LOOP_S, "the loop was held up")
        check(peak_kib(pid) < RSS_KIB, "it grew to %d KiB" % peak_kib(pid))
        daemon.stop()
    finally:
        for it in attacks:
            it.kill()
        if fuse:
            os.unlink(fuse)
