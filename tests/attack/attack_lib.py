# SPDX-License-Identifier: Apache-2.0
"""The common parts of attacks: the size of a storm, a machine that is busy with other things, and
the limits of the daemon's unit.

A storm at scale 1 has the size and the figures of docs/security.md. CI runs a tenth of it, and
fails only where a figure is far exceeded: other users of its machine are not under test.
"""
import contextlib
import os
import resource
import subprocess
import sys

from agent_lib import start

# As in systemd/collwatchd.service.
UNIT_NICE, UNIT_DESCRIPTORS = 5, 65536
BUSY_LOOP = "while True: pass"


def scale():
    """1: the full storm."""
    return float(os.environ.get("E2E_SCALE", "0.1"))


def time_limit(seconds, by):
    """The figure at full size; at a smaller scale, the deadline after which we give up."""
    return seconds if by >= 1 else 12 * seconds


def scaled(n, by, least=1):
    return max(least, round(n * by))


def _cpu_of_all():
    """Jiffies of the machine's processors since its start: the used ones and the ones taken by
    guests' hosts."""
    with open("/proc/stat", encoding="ascii") as f:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, f.readline().split()[1:9])
    return user + nice + system + irq + softirq + steal


def _cpu_of_ours():
    """Of this process and all processes it has started, including ended ones."""
    children, times = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        children.setdefault(int(fields[1]), []).append(int(name))
        times[int(name)] = sum(map(int, fields[11:15]))
    total, todo = 0, [os.getpid()]
    while todo:
        pid = todo.pop()
        total += times.get(pid, 0)
        todo += children.get(pid, [])
    return total


class Share:
    """The storm's share of the machine, with the loops beside it, measured in CPU time since this
    object was made. Other users of the machine slow the storm down, and that is no fault of the
    daemon."""

    def __init__(self):
        self.all, self.ours = _cpu_of_all(), _cpu_of_ours()

    def now(self):
        """1: the storm had the machine to itself."""
        spent, ours = _cpu_of_all() - self.all, _cpu_of_ours() - self.ours
        return max(0.0, min(1.0, ours / spent)) if spent > 0 else 1.0


@contextlib.contextmanager
def busy(loops=2):
    """Loops at normal priority beside the daemon under test: no production daemon has a machine to
    itself."""
    running = [start([sys.executable, "-c", BUSY_LOOP], dict(os.environ),
                     stdin=subprocess.DEVNULL) for _ in range(loops)]
    try:
        yield
    finally:
        for loop in running:
            loop.kill()
            loop.wait()


def unit_settings(descriptors=UNIT_DESCRIPTORS):
    """For preexec_fn of the daemon. Sets no more descriptors than this machine allows."""
    os.nice(UNIT_NICE - os.nice(0))
    descriptors = min(descriptors, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
