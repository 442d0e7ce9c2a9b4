# SPDX-License-Identifier: Apache-2.0
"""The agent names its daemon as the tracer of the process where Yama asks for one. A library before
it notes the named pid (agent_prctl.c); Yama's file is a plain one, in a mount namespace."""
import os
import shutil
import subprocess

import pytest

from agent_lib import *
from built import PRCTL, PROGRAM

NOBODY = 65534
YAMA = ("mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && "
        "echo %s > /proc/sys/kernel/yama/ptrace_scope && exec \"$@\"")


class Rank:
    """A program that waits in NCCL, and the pid that its agent has named."""

    def __init__(self, daemon, scope="1", uid=None, **variables):
        if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("setpriv"):
            pytest.skip("needs root, unshare and setpriv")
        os.chmod(daemon.dir, 0o777)
        os.chmod(daemon.path, 0o777)
        self.noted = daemon.dir + "/prctl"
        become = ["setpriv", f"--reuid={uid}", "--clear-groups"] if uid else []
        within = ["unshare", "-m", "sh", "-c", YAMA % scope, "sh"] if scope else []
        env = environment(daemon, preload=None, PRCTL_LOG=self.noted, **variables)
        self.p = start([*within, *become, "env", f"LD_PRELOAD={PRCTL}:{AGENT}", PROGRAM, "wait"], env,
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self.agent = daemon.accept(program=self.p).welcome()
        except BaseException:
            self.p.kill()
            raise

    def named(self):
        """Pids, in the order of their naming. The thread that names one sends the reply."""
        self.agent.python_stacks(7)
        if not os.path.exists(self.noted):
            return []
        with open(self.noted, encoding="ascii") as f:
            lines = [[int(n) for n in line.split()] for line in f]
        for pid, tid, _ in lines:
            check(pid == self.agent.pid != tid, f"by the agent's own thread: {lines}")
        return [tracer for _, _, tracer in lines]

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.p.kill()
            self.p.wait(120)
            return
        self.finish()

    def finish(self):
        out, _ = self.p.communicate(b"x", timeout=120)
        check(self.p.returncode == 0 and out.endswith(b"done\n"), f"it ends as ever: {out}")


def test_the_daemon_is_named_and_again_when_it_comes_back():
    with StandIn() as d, Rank(d) as rank:
        check(rank.named() == [os.getpid()], f"{rank.named()}")
        rank.agent.close()
        d.stop()
        d.listen()
        rank.agent = d.accept(program=rank.p).welcome()
        check(rank.named() == [os.getpid()] * 2, f"{rank.named()}")


def test_a_daemon_that_did_not_answer_is_not_named():
    with StandIn() as d, Rank(d) as rank:
        check(len(rank.named()) == 1, "the first")
        rank.agent.close()
        d.accept(program=rank.p).refuse()
        rank.agent = d.accept(program=rank.p).welcome()
        check(rank.named() == [os.getpid()] * 2, f"not for the refusal: {rank.named()}")


@pytest.mark.parametrize("scope", ["0", "2", "3", None])
def test_nobody_is_named_in_another_scope(scope):
    if scope is None and os.path.exists("/proc/sys/kernel/yama"):
        pytest.skip("this kernel has Yama")
    with StandIn() as d, Rank(d, scope) as rank:
        check(rank.named() == [], f"{rank.named()}")


def test_another_users_daemon_is_never_named():
    with StandIn() as d, Rank(d, uid=NOBODY) as rank:
        check(rank.named() == [], f"{rank.named()}")


def test_it_can_be_switched_off():
    with StandIn() as d, Rank(d, COLLWATCH_PTRACER="off") as rank:
        check(rank.named() == [], f"{rank.named()}")
