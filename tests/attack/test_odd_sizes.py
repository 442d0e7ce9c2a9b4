# SPDX-License-Identifier: Apache-2.0
"""A user's processes lie about the sizes of messages and records: in lengths of frames, messages
and texts, in files too short or too long, in seals and in headers. The daemon answers each, keeps
nothing of it, and watches other users as before."""
import collections
import contextlib
import json
import struct
import subprocess

import pytest
from agent_lib import start
from built_attack import LYING_AGENTS, ODD_RECORDS
from daemon import Daemon
from waiting import expect, wait_until

pytestmark = pytest.mark.root  # to be another user
LIAR, USER = 26100, 26101
# A few MiB more than an idle daemon needs: the daemon keeps nothing of the messages sent to it.
RSS_KIB = 96 << 10
LOOP_S = 1  # loops beside it are no matter of this test
SLOT = struct.Struct("=3I")  # struct slot of lying_agents.c


def rss_kib(world):
    with open(f"/proc/{world.process.pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def expect_well(world, pid):
    """It is the same daemon, has kept nothing and was not held up, and sees another user's hang."""
    world.wait_for(world.train("honest", arguments=[
        "--step-ms", "20", "--steps", "0", "--fault", "block-in-data-loader", "--fault-rank", "1",
        "--fault-step", "50"], user=USER))
    incident = wait_until(lambda: world.incident_of("honest"), "another user's hang", 120)
    expect([c["rank"] for c in incident["culprits"]] == [1], incident)
    expect(world.process.pid == pid and world.process.poll() is None, "it is the same daemon")
    held = world.status()["loop_max_s"]
    print(f"# {rss_kib(world) >> 10} MiB, loop held up for {1000 * held:.0f} ms at most")
    expect(rss_kib(world) < RSS_KIB, f"it keeps {rss_kib(world)} KiB")
    expect(held < LOOP_S, f"the loop was held up for {held} s")


@contextlib.contextmanager
def running(*args, **more):
    it = start([str(a) for a in args], {}, cwd="/", **more)
    try:
        yield it
    finally:
        it.kill()
        it.wait()


def test_records_of_odd_sizes_are_let_in_or_refused_one_by_one(daemon):
    daemon.start()
    pid = daemon.process.pid
    with running(ODD_RECORDS, daemon.path, LIAR, stdout=subprocess.PIPE, text=True) as them:
        answers, n = [], None
        while n is None or len(answers) < n:
            words = them.stdout.readline().split()
            expect(words, f"it has ended after {len(answers)} answers")
            if words[0] == "started":
                n = int(words[1])
            else:
                answers.append(words)
        print(f"# {dict(collections.Counter(' '.join(a[1:]) for a in answers))}")
        wrong = [a for a in answers if a[2] not in (
            {"good": ["welcome"], "bad": ["refused", "impossible"]}[a[1]])]
        expect(not wrong, wrong)
        welcome = sum(a[2] == "welcome" for a in answers)
        wait_until(lambda: daemon.job("odd") and daemon.status()["agents"]["connected"] == welcome,
                   "those who were let in are watched")
        expect_well(daemon, pid)


def asked(path):
    try:
        with open(path, "rb") as f:
            return [up and asked for up, asked, _ended in SLOT.iter_unpack(f.read())]
    except FileNotFoundError:
        return []


def frames_of(trees):
    """A rank without a stack has a node that gives the reason."""
    return {frame["name"] for tree in trees if tree["kind"] == "python"
            for frame in walk(tree["roots"]) if not frame["name"].startswith("no Python stack: ")}


def walk(frames):
    for frame in frames:
        yield frame
        yield from walk(frame["calls"])


def test_python_stacks_whose_lengths_lie_are_not_kept_nor_believed(daemon):
    daemon.start()
    pid, path = daemon.process.pid, daemon.dir + "/lies"
    with running(LYING_AGENTS, daemon.path, path, LIAR):
        wait_until(lambda: asked(path) and daemon.status()["agents"]["connected"] ==
                   len(asked(path)), "the liars are there")
        wait_until(lambda: daemon.incident_of("lies"), "their hang", 120)
        ever, names = set(), set()

        def ask_again():
            done = daemon.ask("stacks", "lies", "--json", check=False)
            if done.returncode == 0:
                names.update(frames_of(json.loads(done.stdout)["trees"]))
            ever.update(i for i, n in enumerate(asked(path)) if n)
            return len(ever) == len(asked(path))

        wait_until(ask_again, "each of them was asked", 600)
        expect(names == {"read_sample"}, f"of the honest one alone: {names}")
        expect_well(daemon, pid)
