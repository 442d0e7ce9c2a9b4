# SPDX-License-Identifier: Apache-2.0
"""What befalls a daemon while it watches: no room on disk, no descriptors, no memory, its socket
full while it is stopped, its wall clock set. The job never notices, its hang is diagnosed, and when
the trouble is over all is as before. Each test is a daemon and jobs of its own; they run at the
same time, as most of each is waiting."""
import ctypes
import json
import os
import resource
import signal
import socket

import pytest
from built import STEP_CLOCK_LIB
from agent_lib import AGENT, check, subprocess, wait_until
from fault_lib import PATIENCE, RealDaemon, Training, wait_for_job

RANKS, BLOCKED = 2, 1
LIBC = ctypes.CDLL(None, use_errno=True)
TRAINING = ["--step-ms", "20", "--log-every", "1", "--elements", "64"]
HOUR = 3600
pytestmark = pytest.mark.at_once


def hanging(step):
    return [*TRAINING, "--steps", "0", "--fault", "block-in-data-loader", "--fault-rank",
            str(BLOCKED), "--fault-step", str(step)]


class Scene:
    """A daemon, and jobs that end with it."""

    def __init__(self, **daemon):
        self.daemon = RealDaemon(**daemon)
        self.jobs = []

    def train(self, name, arguments, ranks=RANKS, waits=True):
        self.jobs.append(Training(self.daemon.dir, name, ranks, arguments, self.daemon))
        if waits:
            wait_for_job(self.daemon, self.jobs[-1], ranks)
        return self.jobs[-1]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for job in self.jobs:
            job.kill()
        self.daemon.__exit__(*exc)


def check_verdict(doc):
    check(doc["class"] == "never_entered" and doc["confidence"] == "certain", str(doc))
    check([c["rank"] for c in doc["culprits"]] == [BLOCKED], str(doc))


def diagnosed(scene, name):
    wait_until(lambda: scene.daemon.incident_of(name), name + " is diagnosed")
    doc = scene.daemon.incident_of(name)
    check_verdict(doc)
    return doc


def ends_well(scene):
    status = scene.daemon.end()
    check(status == 0, "it ended with %d:\n%s" % (status, scene.daemon.read_log()))


def fill(path):
    """The disk, to the last page."""
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        while os.write(fd, bytes(4096)):
            pass
    except OSError:
        pass
    os.close(fd)


@pytest.mark.root
def test_a_full_disk():
    """The alert goes out, the bundle waits in memory and is written when there is room."""
    with Scene() as s:
        d = s.daemon
        os.mkdir(d.state)
        if LIBC.mount(b"tmpfs", d.state.encode(), b"tmpfs", 0, b"size=128k") != 0:
            pytest.skip("no tmpfs can be mounted")
        try:
            d.start()
            fill(d.state + "/filler")
            s.train("full-disk", hanging(50))
            wait_until(lambda: (d.job("full-disk") or {}).get("incident"), "an incident")
            wait_until(lambda: any("kept in memory" in n for n in d.notes()),
                       "the status says that the disk is full")
            check(not d.bundles(), "nothing was written: %r" % d.bundles())
            check_verdict(json.loads(d.ask("report", d.job("full-disk")["incident"], "--json")))
            LIBC.mount(b"", d.state.encode(), b"", 32, b"size=64m")  # MS_REMOUNT
            diagnosed(s, "full-disk")
            wait_until(lambda: not any("kept in memory" in n for n in d.notes()),
                       "nothing waits any more")
            ends_well(s)
        finally:
            if d.process:
                d.end(signal.SIGKILL)
            LIBC.umount2(d.state.encode(), 2)


def test_no_descriptors():
    """New agents have to wait; those that are there are watched, and their hang is diagnosed."""
    with Scene() as s:
        d = s.daemon
        d.start()
        s.train("was-there", hanging(150))
        before = resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE)

        def takes_the_rest():
            # What it holds has gaps, and some of it for a moment only: until it says so.
            held = {int(fd) for fd in os.listdir(f"/proc/{d.process.pid}/fd")}
            free = next(n for n in range(len(held) + 1) if n not in held)
            resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, (free, before[1]))
        takes_the_rest()
        late = s.train("comes-late", [*TRAINING, "--steps", "0"], waits=False)
        wait_until(lambda: late.steps() > 20, "the late job trains")

        def has_run_out():
            takes_the_rest()
            # Nobody can ask the daemon now; its log tells.
            return "accept" in d.read_log()
        wait_until(has_run_out, "it has run out of descriptors")
        wait_until(lambda: "never reached" in d.read_log(), "the journal has the alert")
        resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, before)
        diagnosed(s, "was-there")
        wait_for_job(d, late, RANKS)
        ends_well(s)


def test_no_memory():
    """What needs memory fails and is tried again; the daemon stays, and recovers."""
    with Scene(config=PATIENCE + 'log_level = "debug"\n') as s:
        d = s.daemon
        d.start()
        s.train("was-there", hanging(300))
        with open(f"/proc/{d.process.pid}/statm", encoding="ascii") as f:
            now = int(f.read().split()[0]) * resource.getpagesize()
        before = resource.prlimit(d.process.pid, resource.RLIMIT_AS)
        resource.prlimit(d.process.pid, resource.RLIMIT_AS, (now, before[1]))
        late = s.train("comes-late", [*TRAINING, "--steps", "0"], ranks=8, waits=False)
        wait_until(lambda: "out of memory" in d.read_log() or
                   "Cannot allocate memory" in d.read_log(), "it has run out of memory")
        wait_until(lambda: late.steps() > 50, "the late job trains")
        check(d.process.poll() is None, "it did not survive:\n" + d.read_log())
        resource.prlimit(d.process.pid, resource.RLIMIT_AS, before)
        wait_for_job(d, late, 8)
        diagnosed(s, "was-there")
        ends_well(s)


def test_its_socket_full():
    """While it is stopped its queue of connections fills; a job starts and trains all the same."""
    with Scene() as s:
        d = s.daemon
        d.start()
        d.send(signal.SIGSTOP)
        held = []
        while True:
            one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            held.append(one)
            try:
                one.connect(d.path)
            except BlockingIOError:
                break
        check(len(held) > 100, "so many are queued: %d" % len(held))
        job = s.train("full-socket", hanging(150), waits=False)
        wait_until(lambda: job.steps() >= 150 or not job.is_running(), "the job trains")
        check(job.is_running(), "the job noticed")
        for one in held:
            one.close()
        d.send(signal.SIGCONT)
        wait_for_job(d, job, RANKS)
        diagnosed(s, "full-socket")
        ends_well(s)


def test_its_clock_set():
    """An hour ahead while a job trains, an hour back while it hangs: one alert, right, and once."""
    with Scene() as s:
        d = s.daemon
        step = d.dir + "/step"
        d.command = ["env", "LD_PRELOAD=" + STEP_CLOCK_LIB,
                     "CW_STEP_CLOCK=" + step]

        def set_by(seconds):
            with open(step + ".new", "w", encoding="ascii") as f:
                f.write(str(seconds))
            os.rename(step + ".new", step)
        d.start()
        job = s.train("stepped", hanging(150))
        set_by(HOUR)
        wait_until(lambda: job.steps() >= 150, "the hang")
        # Whoever looks late finds the hang confirmed: it is set back in the middle of it all the same.
        wait_until(lambda: (d.job("stepped") or {"state": "healthy"})["state"] != "healthy",
                   "a suspicion")
        set_by(-HOUR)
        doc = diagnosed(s, "stepped")
        set_by(HOUR)
        wait_until(lambda: (d.job("stepped") or {}).get("incident") == doc["id"], "the same incident")
        check(len(d.incidents()) == 1, "one: %r" % d.incidents())
        # It was the daemon's clock that was set, and not only in the test.
        check(doc["times"]["confirmed"] != doc["times"]["last_progress"], str(doc["times"]))
        ends_well(s)
