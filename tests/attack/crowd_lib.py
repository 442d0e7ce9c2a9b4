# SPDX-License-Identifier: Apache-2.0
"""Many jobs of many users, played by crowd, beside the daemon as its unit runs it."""
import contextlib
import os
import struct

import attack_lib
from agent_lib import start
from built_attack import CROWD
from daemon import PATIENCE, Daemon
from waiting import wait_until

# Today's attacker, also against an older daemon: it knows no more of it than its messages.
TODAYS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/tests/attack/crowd")
FIRST_OP = 'first_op_after = "30s"\n'
SLOT = struct.Struct("=2I")  # struct slot of crowd.c


class Crowd:
    def __init__(self, daemon, uid, jobs, ranks, what):
        self.uid, self.n = uid, jobs * ranks
        self.path = f"{daemon.dir}/crowd-{uid}.state"
        program = TODAYS if os.path.exists(TODAYS) else CROWD
        self.process = start([program, daemon.path, self.path, str(uid), str(jobs), str(ranks), what],
                             dict(os.environ), cwd="/")

    def slots(self):
        try:
            with open(self.path, "rb") as f:
                data = f.read()
        except FileNotFoundError:
            return []
        return [SLOT.unpack_from(data, at) for at in range(0, len(data), SLOT.size)]

    def up(self):
        return sum(up for up, _ in self.slots())

    def refused(self):
        return sum(refused for _, refused in self.slots())

    def settle(self, seconds):
        """Each rank has its welcome, or the daemon has refused it because all places are taken."""
        wait_until(lambda: sum(bool(up or refused) for up, refused in self.slots()) == self.n,
                   lambda: f"an answer to all {self.n} ranks of uid {self.uid}: {self.up()} are "
                   f"registered, {self.refused()} refusals", seconds)

    def job(self, number=0):
        return f"crowd-{self.uid}-{number}"

    def kill(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def crowd(*args):
    it = Crowd(*args)
    try:
        yield it
    finally:
        it.kill()


@contextlib.contextmanager
def daemon_of_the_unit(config=""):
    with Daemon(config, patience=PATIENCE + FIRST_OP) as d, attack_lib.busy():
        d.start(preexec=attack_lib.unit_settings)
        yield d
