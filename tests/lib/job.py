# SPDX-License-Identifier: Apache-2.0
"""Jobs that daemons watch: ranks as processes, with all of their output in files."""

import os
import shutil
import signal
import tempfile

from agent_lib import environment, start
from built import AGENT, TRAIN_LOOP
from open_copy import directory, open_copy
from waiting import wait_until

# Trains until it is killed.
FOREVER = ["--steps", "0", "--step-ms", "20", "--elements", "64", "--log-every", "0"]


def labels(n, **more):
    """The variables of each of n ranks on one node, as launchers set them."""
    return [dict(RANK=str(r), WORLD_SIZE=str(n), LOCAL_RANK=str(r), **more) for r in range(n)]


class Job:
    """daemons: the daemons of the ranks' agents: none, one, or the nodes' daemons in turn. ranks:
    their number, or the variables of each. program: the rank's words before `arguments`, a path or
    words, or a function of the rank's number. variables: further ones, for all. user: the owner of
    the processes; then others can read copies of `program`, agent and libraries. meets: by a file.
    """

    def __init__(self, name, ranks=2, arguments=None, daemons=(), program=TRAIN_LOOP, variables=None,
                 user=None, meets=True, at=None, **popen):
        self.name, self.user = name, user
        self.daemons = daemons if isinstance(daemons, (list, tuple)) else [daemons]
        self.dir = tempfile.mkdtemp(prefix="job-", dir=at or (self.daemons[0].dir if self.daemons else None))
        self.ranks = []
        if user is not None:
            os.chown(self.dir, user, user)
            os.chmod(self.dir, 0o755)
            popen.update(user=user, group=user, extra_groups=[])
        words = list(FOREVER if arguments is None else arguments)
        words += ["--uid-file", self.dir + "/uid"] if meets else []
        known = labels(ranks, COLLWATCH_JOB=name) if isinstance(ranks, int) else ranks
        for rank, own in enumerate(known):
            argv = program(rank) if callable(program) else program
            self.start(rank, [*self.open([argv] if isinstance(argv, str) else argv), *words],
                       self.environment(rank, len(known), {**own, **(variables or {})}), popen)

    def open(self, argv):
        return argv if self.user is None else [open_copy(argv[0]), *argv[1:]]

    def environment(self, rank, n, own):
        daemon = self.daemons[rank * len(self.daemons) // n] if self.daemons else None
        agent = AGENT if self.user is None else open_copy(AGENT)
        if self.user is not None:
            own = {"LD_LIBRARY_PATH": directory(), **own}
        return environment(daemon, preload=agent if daemon else None, **own)

    def start(self, rank, argv, env, popen):
        with open(self.path(rank, "out"), "wb") as out, open(self.path(rank, "err"), "wb") as err:
            self.ranks.append(start(argv, env, **{"stdout": out, "stderr": err, **popen}))

    def path(self, rank, what):
        return f"{self.dir}/{rank}.{what}"

    def output(self, rank, what="out"):
        with open(self.path(rank, what), "rb") as f:
            return f.read()

    def steps(self, rank=0):
        """How many it has logged."""
        return self.output(rank).count(b" step ")

    def ended(self):
        """A description of the ended ranks; empty while all run."""
        return [(i, r.returncode, self.output(i), self.output(i, "err"))
                for i, r in enumerate(self.ranks) if r.poll() is not None]

    def is_running(self):
        return not any(r.poll() is not None for r in self.ranks)

    def wait(self, seconds):
        """The values to compare: exit status, output and errors of all ranks."""
        statuses = [r.wait(seconds) for r in self.ranks]
        return [(s, self.output(i), self.output(i, "err")) for i, s in enumerate(statuses)]

    def write_line(self, rank, text):
        """A line on its standard input, which is a pipe then."""
        self.ranks[rank].stdin.write(text.encode() + b"\n")
        self.ranks[rank].stdin.flush()

    def kill(self, rank):
        self.ranks[rank].kill()
        self.ranks[rank].wait()

    def close(self):
        for rank in self.ranks:
            rank.kill()
            rank.wait()
            if rank.stdin:
                rank.stdin.close()
        shutil.rmtree(self.dir)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# nanosleep and clock_nanosleep, on x86-64 and aarch64: where a rank computes, outside NCCL
SLEEPING = ("35", "230", "101", "115")


def stop_outside_nccl(rank):
    """A rank stopped in a call would have reached the others: then no rank is missing."""
    def is_caught():
        rank.send_signal(signal.SIGSTOP)
        wait_until(lambda: state_of(rank.pid) == "T", "it is stopped")
        with open(f"/proc/{rank.pid}/syscall", encoding="ascii") as f:
            if f.read().split()[0] in SLEEPING:
                return True
        rank.send_signal(signal.SIGCONT)
        return False
    wait_until(is_caught, "the rank computes")


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return f.read().rsplit(")", 1)[1].split()[0]
