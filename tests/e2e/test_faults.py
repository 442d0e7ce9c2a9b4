# SPDX-License-Identifier: Apache-2.0
"""Troubles of a daemon while it watches: no room on disk, no descriptors, no memory, its socket
full while it is stopped, its wall clock set. The job never notices, the daemon diagnoses its hang,
and when the trouble is over all is as before. Each test is a daemon and jobs of its own; they run
at the same time, as most of each is waiting."""
import ctypes
import json
import os
import resource
import signal
import socket

import pytest
from built import STEP_CLOCK_LIB
from daemon import Daemon
from waiting import expect as check
from waiting import wait_until

RANKS, BLOCKED = 2, 1
LIBC = ctypes.CDLL(None, use_errno=True)
TRAINING = ["--step-ms", "20", "--log-every", "1", "--elements", "64"]
HOUR = 3600
pytestmark = pytest.mark.at_once


def hanging(step):
    return [*TRAINING, "--steps", "0", "--fault", "block-in-data-loader", "--fault-rank",
            str(BLOCKED), "--fault-step", str(step)]


def check_verdict(doc):
    check(doc["class"] == "never_entered" and doc["confidence"] == "likely", str(doc))
    check([c["rank"] for c in doc["culprits"]] == [BLOCKED], str(doc))


def diagnosed(daemon, name):
    doc = wait_until(lambda: daemon.incident_of(name), name + " is diagnosed")
    check_verdict(doc)
    return doc


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
    with Daemon() as d:
        os.mkdir(d.state)
        if LIBC.mount(b"tmpfs", d.state.encode(), b"tmpfs", 0, b"size=128k") != 0:
            pytest.skip("no tmpfs can be mounted")
        try:
            d.start()
            fill(d.state + "/filler")
            d.wait_for(d.train("full-disk", RANKS, hanging(50)))
            wait_until(lambda: (d.job("full-disk") or {}).get("incident"), "an incident")
            wait_until(lambda: any("kept in memory" in n for n in d.notes()),
                       "the status says that the disk is full")
            check(not d.bundles(), "nothing was written: %r" % d.bundles())
            check_verdict(json.loads(d.said("report", d.job("full-disk")["incident"], "--json")))
            LIBC.mount(b"", d.state.encode(), b"", 32, b"size=64m")  # MS_REMOUNT
            diagnosed(d, "full-disk")
            wait_until(lambda: not any("kept in memory" in n for n in d.notes()),
                       "nothing waits any more")
            d.stop()
        finally:
            if d.process:
                d.end(signal.SIGKILL)
            LIBC.umount2(d.state.encode(), 2)


def test_no_descriptors():
    """New agents have to wait; the daemon watches the registered ones, and diagnoses their hang."""
    with Daemon() as d:
        d.start()
        d.wait_for(d.train("was-there", RANKS, hanging(150)))
        before = resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE)

        def takes_the_rest():
            # Its numbers have gaps, and the daemon uses some of them for a moment only: we repeat
            # until it reports the shortage.
            held = {int(fd) for fd in os.listdir(f"/proc/{d.process.pid}/fd")}
            free = next(n for n in range(len(held) + 1) if n not in held)
            resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, (free, before[1]))
        takes_the_rest()
        late = d.train("comes-late", RANKS, [*TRAINING, "--steps", "0"])
        wait_until(lambda: late.steps() > 20, "the late job trains")

        def has_run_out():
            takes_the_rest()
            # The daemon answers no client now; its log shows it.
            return "accept" in d.log()
        wait_until(has_run_out, "it has run out of descriptors")
        wait_until(lambda: "never reached" in d.log(), "the journal has the alert")
        resource.prlimit(d.process.pid, resource.RLIMIT_NOFILE, before)
        diagnosed(d, "was-there")
        d.wait_for(late)
        d.stop()


def test_no_memory():
    """An action that needs memory fails and is tried again; the daemon stays, and recovers."""
    with Daemon('log_level = "debug"\n') as d:
        d.start()
        d.wait_for(d.train("was-there", RANKS, hanging(300)))
        with open(f"/proc/{d.process.pid}/statm", encoding="ascii") as f:
            now = int(f.read().split()[0]) * resource.getpagesize()
        before = resource.prlimit(d.process.pid, resource.RLIMIT_AS)
        resource.prlimit(d.process.pid, resource.RLIMIT_AS, (now, before[1]))
        late = d.train("comes-late", 8, [*TRAINING, "--steps", "0"])
        wait_until(lambda: "out of memory" in d.log() or
                   "Cannot allocate memory" in d.log(), "it has run out of memory")
        wait_until(lambda: late.steps() > 50, "the late job trains")
        check(d.process.poll() is None, "it did not survive:\n" + d.log())
        resource.prlimit(d.process.pid, resource.RLIMIT_AS, before)
        d.wait_for(late)
        diagnosed(d, "was-there")
        d.stop()


def test_its_socket_full():
    """While it is stopped its queue of connections fills; a job starts and trains all the same."""
    with Daemon() as d:
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
        job = d.train("full-socket", RANKS, hanging(150))
        wait_until(lambda: job.steps() >= 150 or not job.is_running(), "the job trains")
        check(job.is_running(), "the job noticed")
        for one in held:
            one.close()
        d.send(signal.SIGCONT)
        d.wait_for(job)
        diagnosed(d, "full-socket")
        d.stop()


def test_its_clock_set():
    """An hour ahead while a job trains, an hour back while it hangs: one alert, right, and once."""
    with Daemon() as d:
        step = d.dir + "/step"
        d.command = ["env", "LD_PRELOAD=" + STEP_CLOCK_LIB,
                     "CW_STEP_CLOCK=" + step]

        def set_by(seconds):
            with open(step + ".new", "w", encoding="ascii") as f:
                f.write(str(seconds))
            os.rename(step + ".new", step)
        d.start()
        job = d.wait_for(d.train("stepped", RANKS, hanging(150)))
        set_by(HOUR)
        wait_until(lambda: job.steps() >= 150, "the hang")
        # A late look finds the hang confirmed: we set the clock back in the middle of it
        # all the same.
        wait_until(lambda: (d.job("stepped") or {"state": "healthy"})["state"] != "healthy",
                   "a suspicion")
        set_by(-HOUR)
        doc = diagnosed(d, "stepped")
        set_by(HOUR)
        wait_until(lambda: (d.job("stepped") or {}).get("incident") == doc["id"], "the same incident")
        check(len(d.documents()) == 1, "one: %r" % d.documents())
        # It was the daemon's clock that was set, and not only in the test.
        check(doc["times"]["confirmed"] != doc["times"]["last_progress"], str(doc["times"]))
        d.stop()
