# SPDX-License-Identifier: Apache-2.0
"""We kill, stop, end and restart the daemon at random moments while two jobs train. The jobs'
output and exit status must be the same as without collwatch, to the bit. Afterwards one of them
hangs, and the verdict knows its history.

Options: [--strikes N] [--steps N]
All of it: meson test -C build -v -t 4 restarts --test-args '--strikes 200 --steps 10000'
E2E_SEED=… repeats the moments and the kinds.
"""
import json
import signal
import threading
import time

from demo_driver import seeded
from job import Job
from waiting import expect as check
from waiting import wait_until

RANKS = 2
# The slower job gives the daemon time to come back between two strikes.
STEP_MS = 20
# Fewer than a bundle's window holds: it reaches back to before the last strikes.
MORE_STEPS = 20
BLOCKED = 1
KINDS = [1, 1, 5, 4]  # a step's collectives on "dp": two all_reduce, reduce_scatter, all_gather
TRAINING = ["--log-every", "1", "--elements", "64"]


class Striker:
    """Does one thing to the daemon. After each the daemon runs again."""

    def __init__(self, daemon, rng):
        self.daemon, self.rng = daemon, rng
        self.counts = dict.fromkeys(["kill", "end", "stop", "kill stopped", "leave away"], 0)
        self.bad_ends = 0

    def for_a_while(self, most):
        # Not a wait for anything: for so long the daemon is away.
        threading.Event().wait(self.rng.uniform(0, most))

    def strike(self):
        kind = self.rng.choice(list(self.counts))
        self.counts[kind] += 1
        if kind in ("stop", "kill stopped"):
            self.daemon.send(signal.SIGSTOP)
            self.for_a_while(0.5)
        if kind == "stop":
            self.daemon.send(signal.SIGCONT)
            return
        if kind == "end":
            self.bad_ends += self.daemon.end(signal.SIGTERM) != 0
        else:
            self.daemon.end(signal.SIGKILL)
        if kind == "leave away":
            self.for_a_while(1.0)
        self.daemon.start()


def strike_all(daemon, rng, training, strikes, steps):
    """At random steps of the job, in order; late ones at once."""
    striker = Striker(daemon, rng)
    for moment in sorted(rng.randrange(1, steps) for _ in range(strikes)):
        wait_until(lambda m=moment: training.steps() >= m or not training.is_running(),
                   f"step {moment}", 600)
        check(training.is_running(), f"the job was over before step {moment} was struck at")
        striker.strike()
    return striker


def check_hang(daemon, training, steps):
    """The daemon diagnoses it: the right rank, the right call, and the calls before it."""
    wait_until(lambda: daemon.incident_of(training.name), "the hang is diagnosed")
    doc = daemon.incident_of(training.name)
    what = str(doc)
    check(doc["class"] == "never_entered" and doc["confidence"] == "likely", what)
    check([c["rank"] for c in doc["culprits"]] == [BLOCKED], what)
    check(doc["where"]["comm_name"] == "dp", what)
    check(doc["where"]["coll_seq"] == steps * len(KINDS) + 1, what)
    check(doc["coverage"]["ranks_seen"] == RANKS and not doc["coverage"]["missing"], what)
    check(len(daemon.documents()) == 1, "no other alert: %r" % daemon.documents())
    wait_until(lambda: doc["id"] in daemon.bundles(), "the bundle")
    check_history(daemon.bundles()[doc["id"]], steps)


def check_history(directory, steps):
    """The bundle has each rank's last calls, one by one, from before the daemon's last start."""
    with open(directory + "/snapshot.json", encoding="utf-8") as f:
        snapshot = json.load(f)
    dp = next(c for c in snapshot["comms"] if c.get("name") == "dp")
    for member in dp["members"]:
        rank = snapshot["ranks"][member.get("rank", 0)].get("rank", 0)
        last = (steps if rank == BLOCKED else steps + 1) * len(KINDS)
        got = [(op["coll_seq"], op["kind"]) for op in member["window"]]
        want = [(seq, KINDS[(seq - 1) % len(KINDS)])
                for seq in range(member["window_lost"] + 1, last + 1)]
        check(got == want and len(got) > MORE_STEPS * len(KINDS),
              "rank %d: calls %r to %r, not %r to %r" % (
                  rank, got[:1], got[-4:], want[:1], want[-4:]))


def test_jobs_do_not_notice(pytestconfig, daemon, job):
    strikes, steps = (pytestconfig.getoption(name) for name in ("--strikes", "--steps"))
    ends_at = ["--steps", str(steps)]
    hangs_at = ["--steps", "0", "--fault", "block-in-data-loader", "--fault-rank", str(BLOCKED),
                "--fault-step", str(steps + MORE_STEPS)]
    rng = seeded("restarts")
    with Job("plain", RANKS, ends_at + TRAINING) as alone:
        plain = alone.wait(600)
    check([s for s, _, _ in plain] == [0] * RANKS, "the job alone: %r" % plain[0][2])
    daemon.start()
    pace = ["--step-ms", str(STEP_MS)]
    ends = job("ends", RANKS, ends_at + TRAINING + pace)
    hangs = job("hangs", RANKS, hangs_at + TRAINING + pace)
    daemon.wait_for(ends)
    daemon.wait_for(hangs)
    began = time.monotonic()
    striker = strike_all(daemon, rng, hangs, strikes, steps)
    took = time.monotonic() - began
    check(striker.bad_ends == 0, "%d times it did not end well" % striker.bad_ends)
    check(ends.wait(600) == plain, "with collwatch the job is another")
    check_hang(daemon, hangs, steps + MORE_STEPS)
    for rank in range(RANKS):
        got = hangs.output(rank).splitlines()
        want = plain[rank][1].splitlines()[:-1]  # without "done"
        check(got[:len(want)] == want, "with collwatch the other job is another")
    print("# %d strikes in %.0f s over %d steps: %s; output equal" % (
        strikes, took, steps, ", ".join("%s %d" % i for i in striker.counts.items())))
