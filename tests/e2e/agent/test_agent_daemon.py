# SPDX-License-Identifier: Apache-2.0
"""Agents and the real daemon that goes away: killed, restarted, stopped. The job does not notice,
and every agent is back within two seconds."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from built import COLLWATCH, COLLWATCHD, PROGRAM
from agent_lib import *

AGENTS, ATTEMPTS = 4, 20


class RealDaemon:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="cw-agent-")
        self.path, self.control = self.dir + "/agent.sock", self.dir + "/control.sock"
        self.config, self.process = self.dir + "/collwatchd.conf", None
        with open(self.config, "w") as f:
            f.write('node_name = "here"\nagent_socket = "%s"\ncontrol_socket = "%s"\n'
                    'state_dir = "%s/state"\n' % (self.path, self.control, self.dir))

    def start(self):
        """Returns when the daemon takes agents."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            path = self.dir + "/notify.sock"
            if os.path.exists(path):
                os.unlink(path)
            notify.bind(path)
            notify.settimeout(120)
            self.process = subprocess.Popen([COLLWATCHD, "--config", self.config],
                                            stderr=subprocess.DEVNULL,
                                            env=dict(os.environ, NOTIFY_SOCKET=path))
            while b"READY=1" not in notify.recv(4096):
                pass

    def end(self, how=signal.SIGTERM):
        if self.process:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(how)
            self.process.wait(120)
            self.process = None

    def connected(self):
        """Agents connected to the daemon that runs now; None when it does not answer."""
        p = subprocess.run([COLLWATCH, "status", "--json", "--control", self.control],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            return json.loads(p.stdout)["agents"]["connected"]
        except (ValueError, KeyError):
            return None

    def has_all(self):
        wait_until(lambda: self.connected() == AGENTS, "%d agents" % AGENTS)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.end(signal.SIGKILL)
        shutil.rmtree(self.dir, ignore_errors=True)


class Job:
    """Ranks that work, wait for a byte, work again and end."""

    def __init__(self, daemon):
        self.ranks = [start([PROGRAM, "wait"], environment(daemon), stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE) for _ in range(AGENTS)]

    def finish(self):
        for p in self.ranks:
            out, _ = p.communicate(b"x", timeout=120)
            check(p.returncode == 0 and out == b"next descriptor 3\ndone\n", "the job: %r" % out)


def comes_back(how):
    with RealDaemon() as d:
        job = Job(d)
        d.has_all()
        took = []
        # The fastest: a busy test machine may hold all but one of them up.
        while len(took) < 3 or (min(took) >= 2 and len(took) < ATTEMPTS):
            d.end(how)
            d.start()
            began = time.monotonic()
            d.has_all()
            took.append(time.monotonic() - began)
        check(min(took) < 2, "back after %r s" % took)
        print("# back after %s s" % ", ".join("%.2f" % t for t in took))
        job.finish()


def test_back_after_the_daemon_was_killed():
    comes_back(signal.SIGKILL)


def test_back_after_the_daemon_was_restarted():
    comes_back(signal.SIGTERM)


def test_a_stopped_daemon_holds_nobody_up():
    with RealDaemon() as d:
        early = Job(d)
        d.has_all()
        d.process.send_signal(signal.SIGSTOP)
        late = Job(d)  # its agents connect: the kernel takes them in
        late.finish()
        d.process.send_signal(signal.SIGCONT)
        d.has_all()
        d.process.send_signal(signal.SIGSTOP)
        early.finish()


def test_a_daemon_killed_while_stopped():
    with RealDaemon() as d:
        job = Job(d)
        d.has_all()
        d.process.send_signal(signal.SIGSTOP)
        d.process.kill()
        d.process.wait(120)
        d.start()
        d.has_all()
        job.finish()
