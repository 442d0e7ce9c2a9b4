# SPDX-License-Identifier: Apache-2.0
"""What attacks share: how large a storm is, a machine that is busy with other things, and the limits
the daemon's unit sets.

A storm at scale 1 has the size and the figures of docs/security.md. CI runs a tenth of it, and only
what takes far longer fails there: whoever shares its machine is not what is tested.
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
    """The figure at full size; where less is run, the deadline of what never happens."""
    return seconds if by >= 1 else 12 * seconds


def scaled(n, by, least=1):
    return max(least, round(n * by))


@contextlib.contextmanager
def busy(loops=2):
    """Loops at normal priority beside what is tested: nobody has a machine to himself."""
    running = [start([sys.executable, "-c", BUSY_LOOP], dict(os.environ),
                     stdin=subprocess.DEVNULL) for _ in range(loops)]
    try:
        yield
    finally:
        for loop in running:
            loop.kill()
            loop.wait()


def unit_settings(descriptors=UNIT_DESCRIPTORS):
    """For preexec_fn of the daemon. No more descriptors than may be had here."""
    os.nice(UNIT_NICE - os.nice(0))
    descriptors = min(descriptors, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
