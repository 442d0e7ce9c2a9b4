# SPDX-License-Identifier: Apache-2.0
"""Things that tests have left behind when all are done: processes, network namespaces, temporary
files."""

import os
import re
import signal
import subprocess
import time

import pytest

KEY = pytest.StashKey()
# Grace for processes that are about to end.
GRACE_S = float(os.environ.get("E2E_GRACE", "30"))
NETNS = "/run/netns"


def namespaces():
    """Our own: a test names each after this process. Namespaces of other runs beside us do not
    count."""
    names = os.listdir(NETNS) if os.path.isdir(NETNS) else []
    return {name for name in names if re.match(rf"cw{os.getpid()}(?!\d)", name)}


class Watch:
    """Begins before the tests. All processes that they start have our mark in their environment."""

    def __init__(self):
        self.mark = f"E2E_SESSION={os.getpid()}-{time.monotonic_ns()}"
        os.environ.update([self.mark.split("=")])

    def processes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if self.mark.encode() in f.read() and int(pid) != os.getpid():
                        with open(f"/proc/{pid}/cmdline", "rb") as words:
                            line = words.read().replace(b"\0", b" ").decode(errors="replace")
                        found.append((int(pid), line))
            except OSError:
                continue  # ended meanwhile, or not ours to read
        return found

    def left(self, directory):
        """A line for each thing, [] when there is none. Processes are ended, namespaces removed."""
        end = time.monotonic() + GRACE_S
        while (processes := self.processes()) and time.monotonic() < end:
            time.sleep(0.05)
        for pid, _ in processes:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        netns = namespaces()
        for name in netns:
            subprocess.run(["ip", "netns", "del", name], check=False)
        return ([f"process {pid}: {line}" for pid, line in processes] +
                [f"network namespace {name}" for name in sorted(netns)] +
                [f"{directory}/{name}" for name in sorted(os.listdir(directory))])
