# SPDX-License-Identifier: Apache-2.0
"""A daemon whose descriptors are used up from outside, on a machine with two busy loops. The
attacker holds connections open to the control socket, the peer port and the agent socket. The
daemon neither spins nor fills the log. It goes on with its work, and serves the waiting clients as
soon as there is room.

At full size (E2E_SCALE=1): the descriptors are kept for 7 s
"""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import time

import pytest
from attack_lib import busy, scale, scaled, time_limit, unit_settings
from built import COLLWATCH
from daemon import Daemon
from ports import unused_port
from waiting import expect, wait_until

SCALE = scale()
HOLD_S = max(2, 7 * SCALE)
MAX_LINES = 10
# Of one core, while nothing comes in.
MAX_CPU = 0.25
# The daemon itself takes about 15, a flood the rest.
DESCRIPTORS = 64
# Clients that connect beyond them.
WAITING = scaled(400, SCALE)
PROCESSES = 2 * DESCRIPTORS
FIRST_UID = 22000
PR_SET_PDEATHSIG = 1
pytestmark = pytest.mark.root  # one user gets fewer connections than there are descriptors


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        words = f.read().rsplit(") ", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def open_descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def connect(address, number):
    """Does not wait: a client that the daemon has not accepted stays in the queue. Over TCP it uses
    an address of its own, because an address gets few places."""
    s = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    s.setblocking(False)
    try:
        if s.family == socket.AF_INET:
            s.bind((f"127.1.{number // 200 % 200}.{number % 200 + 1}", 0))
        s.connect(address)
    except (BlockingIOError, InterruptedError):
        pass
    except OSError:
        s.close()
        return None
    return s


class Process:
    """Connects and waits. A process has one connection to the agent socket, and a user may hold
    only a part of them, so each of these belongs to another user."""

    def __init__(self, address, uid):
        self.pid = os.fork()
        if self.pid == 0:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            held = connect(address, 0)
            while held or True:
                signal.pause()

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def storm(listener, address_of):
    with contextlib.ExitStack() as stack:
        port = unused_port()
        world = stack.enter_context(Daemon())
        subprocess.run([COLLWATCH, "init-cluster", world.dir + "/cluster", "--peers-from",
                        f"localhost:{port}"], stdout=subprocess.DEVNULL, check=True)
        world.configure(f'peers = {{"node-a=127.0.0.1:{port}", "node-b=127.0.0.2:{port}"}}\n'
                        f'listen = "127.0.0.1:{port}"\n'
                        f'peer_key_file = "{world.dir}/cluster/peer.key"\n'
                        f'metrics_socket = "{world.dir}/metrics.sock"\n')
        world.start(preexec=lambda: unit_settings(DESCRIPTORS))
        pid = world.process.pid
        counter = f'collwatch_accept_pauses_total{{listener="{listener}"}}'
        expect(world.scrape().get(counter, 0) == 0, "there are enough at first")
        held = []
        with busy():
            said = world.log()
            address = address_of(world, port)

            def come():
                if listener != "agent":
                    held.append(connect(address, len(held)))
                elif len(held) < PROCESSES:
                    held.append(Process(address, FIRST_UID + len(held)))
                return open_descriptors(pid)

            try:
                wait_until(lambda: come() >= DESCRIPTORS * 3 // 4, "the descriptors are gone")
                for _ in range(WAITING):
                    come()
                begin, before = time.monotonic(), cpu_s(pid)
                while time.monotonic() < begin + HOLD_S:
                    # A client that the daemon turns away comes back.
                    come()
                    time.sleep(0.02)
                share = (cpu_s(pid) - before) / (time.monotonic() - begin)
                lines = world.log()[len(said):].splitlines()
            finally:
                for s in filter(None, held):
                    s.close()
            print(f"# {listener}: {len(lines)} lines, {100 * share:.1f} % of a core in {HOLD_S} s")
            expect(len(lines) <= MAX_LINES, f"{len(lines)} lines, such as {lines[-3:]}")
            expect(share < MAX_CPU, f"{100 * share:.0f} % of a core")
            wait_until(lambda: world.ask("status", check=False).returncode in (0, 2, 3),
                       "it serves again: " + world.log(), time_limit(5, SCALE))
        counted = world.scrape()
        expect(counted[counter] >= 1, f"nothing was counted: {counted}")
        expect(any("had to wait" in note for note in world.status()["notes"]),
               f"status does not say it: {world.status()['notes']}")


def test_control_socket_waits_for_descriptors():
    storm("control", lambda world, port: world.control)


def test_peer_port_waits_for_descriptors():
    storm("peer", lambda world, port: ("127.0.0.1", port))


def test_agent_socket_waits_for_descriptors():
    storm("agent", lambda world, port: world.path)
