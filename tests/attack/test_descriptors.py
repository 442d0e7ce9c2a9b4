# SPDX-License-Identifier: Apache-2.0
"""One user puts into the daemon's sockets a descriptor that takes long to close: a TCP connection
with SO_LINGER whose other end does not read. The process that closes its last copy waits. That is
the process that reads the bytes beside it, or closes the connection that holds it. The daemon does
neither itself."""
import array
import contextlib
import os
import signal
import socket
import struct
import time

import pytest
from agent_lib import HELLO, envelope, field
from attack_lib import unit_settings
from crowd_lib import FIRST_OP, crowd
from daemon import PATIENCE, Daemon
from waiting import expect, wait_until

pytestmark = pytest.mark.root  # to be another user
ATTACKER = 4243
# Far longer than the daemon may be held up.
LINGER_S, HELD_S = 60, 5
STORM = 300


def lingering():
    """(the connection, its other end)"""
    with socket.socket() as listener:  # small buffers are full soon
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        one.connect(listener.getsockname())
        other, _ = listener.accept()
    one.setblocking(False)
    try:
        while True:
            one.send(b"x" * 65536)
    except BlockingIOError:
        pass
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER_S))
    return one, other


def connect(path):
    """As the attacker: the kernel notes who connects."""
    it = socket.socket(socket.AF_UNIX)
    os.setegid(ATTACKER)
    os.seteuid(ATTACKER)
    try:
        it.connect(path)
    finally:
        os.seteuid(0)
        os.setegid(0)
    return it


def put_into(connection, data, flags=0):
    """Sends a lingering connection in a message and returns its other end: the last copy is then in
    the connection. A child sends it: where the daemon is faster, the last copy is the sender's, and
    the child waits."""
    one, other = lingering()
    go, ready = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(ready)
            os.read(go, 1)  # until that is the only copy
            connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                         array.array("i", [one.fileno()]))], flags)
            one.close()
        finally:  # or it has no place there
            os._exit(0)
    one.close()
    os.close(go)
    os.close(ready)
    end = time.monotonic() + 0.2
    while (not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) and
           time.monotonic() < end):
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return other


def descriptors(world):
    return len(os.listdir(f"/proc/{world.process.pid}/fd"))


@pytest.fixture(name="world", scope="module")
def daemon_with_a_victim():
    with Daemon() as world:
        world.start()
        world.wait_for(world.train("victim"))
        yield world


def expect_well(world, before):
    begun = time.monotonic()
    expect(world.status()["jobs"], "the victim's job")
    took = time.monotonic() - begun
    expect(took < HELD_S, f"an answer took {took:.1f} s")
    expect(world.status()["loop_max_s"] < HELD_S, world.status()["loop_max_s"])
    wait_until(lambda: descriptors(world) <= before + 2, "what was sent is closed")


# The bytes sent with it: nonsense, half a message, a hello, or a hello with bytes after it.
NONSENSE = b"GET / HTTP/1.1\r\n\r\n"
WHOLE_HELLO = envelope(HELLO, field(1, 1) + field(2, 1) + field(3, 4096))


@pytest.mark.parametrize("flags", [0, socket.MSG_OOB], ids=["in_band", "out_of_band"])
@pytest.mark.parametrize("which", ["control", "agent"])
@pytest.mark.parametrize("data", [NONSENSE, b"\0\0\0\x40\x08", WHOLE_HELLO, WHOLE_HELLO * 2],
                         ids=["nonsense", "half_a_message", "a_hello", "two_hellos"])
def test_nobody_waits_for_what_is_slow_to_close(world, which, data, flags):
    before = descriptors(world)
    path = world.control if which == "control" else world.path
    with connect(path) as first:
        with put_into(first, data, flags):
            with connect(path) as second:  # of one process the agents' socket keeps one
                with put_into(second, data, flags):
                    first.close()
                    second.close()
                    expect_well(world, before)


def test_a_storm_of_it_holds_nobody_up(world):
    before = descriptors(world)
    others = []
    try:
        for n in range(STORM):
            with connect(world.control if n % 2 else world.path) as connection:
                others.append(put_into(connection, NONSENSE))
        expect_well(world, before)
    finally:
        for other in others:
            other.close()


USER, ASKERS = 4244, 24
FEW = 64


def ask_and_hold(path, uid):
    """As that user."""
    it = socket.socket(socket.AF_UNIX)
    it.setblocking(False)
    os.setegid(uid)
    os.seteuid(uid)
    try:
        it.connect(path)
    except OSError:
        pass  # the queue is full
    finally:
        os.seteuid(0)
        os.setegid(0)
    return it


def test_with_few_descriptors_one_is_kept_for_root_and_one_for_the_webhook(receiver):
    """Users' ranks and their connections to the control socket take all others."""
    receiver.listen()
    with Daemon(f'webhook_url = "{receiver.url}"\n', patience=PATIENCE + FIRST_OP) as world, \
            contextlib.ExitStack() as held:
        world.start(preexec=lambda: unit_settings(FEW))
        held.enter_context(crowd(world, USER, 1, 2, "hang")).settle(60)
        held.enter_context(crowd(world, USER + 100, 12, 1, "train"))
        for i in range(ASKERS):
            for _ in range(8):
                held.callback(ask_and_hold(world.control, USER + 1 + i).close)
        wait_until(lambda: len(os.listdir(f"/proc/{world.process.pid}/fd")) > FEW - 12,
                   "the descriptors are used up")
        wait_until(lambda: receiver.posts, lambda: f"an alert: {world.log()[-2000:]}", 90)
        done = world.ask("status", check=False)
        expect(done.returncode in (0, 2), f"root is answered: {done}")
