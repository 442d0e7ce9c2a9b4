# SPDX-License-Identifier: Apache-2.0
"""COLLWATCH_PROGRESS=auto in real processes: two ranks that make calls as fast as they can."""
import glob
import json
import os
import signal
import subprocess
import tempfile

from agent_lib import *
from built import COLLWATCH, PROGRAM

STEPS, BURST = 40, 300  # of agent_program
STEP = BURST + 1
UNTRACKED = 1 << 8
# agent/cuda/progress_budget.h
PAIRS_PER_S, IN_HAND_S, FIRST_OPS = 652, 1, 64


def shown(path):
    p = subprocess.run([COLLWATCH, "record", "show", path, "--json"], stdout=subprocess.PIPE)
    return json.loads(p.stdout) if p.returncode == 0 else None


def entered(at):
    """Of the ranks whose record is there."""
    docs = [shown(path) for path in glob.glob(os.path.join(at, "*.record"))]
    return sorted(c["entered"] for doc in docs if doc for c in doc["comms"])


class Bursts:
    """The program in this mode, and where the copies of its records are."""

    def __init__(self, mode, progress):
        self.mode, self.progress = mode, progress

    def __enter__(self):
        self.dir = tempfile.TemporaryDirectory()
        self.daemon = StandIn().__enter__()
        self.process = start([PROGRAM, self.mode],
                             environment(self.daemon, COLLWATCH_PROGRESS=self.progress,
                                         COLLWATCH_RECORD=self.dir.name),
                             stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                             start_new_session=True)
        self.agents = [self.daemon.accept().welcome() for _ in range(2)]
        return self

    def __exit__(self, *exc):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        self.daemon.__exit__(*exc)
        self.dir.cleanup()


def untracked(record):
    return struct.unpack_from("=Q", record.raw, 1144)[0]


def test_writes_within_its_budget():
    with Bursts("bursts", "auto") as job:
        all_done = lambda a: [c.returned for c in a.record().comms()] == [STEPS * STEP]
        wait_until(lambda: all(all_done(a) for a in job.agents), "all steps", 120)
        for a in job.agents:
            r = a.record()
            c = r.comms()[0]
            seconds = (c.last_enter - c.ready) / 1e9
            # One in 16, and as many because of marks; the first and the last of each step.
            allowed = ((seconds + IN_HAND_S) * PAIRS_PER_S + FIRST_OPS + STEPS * STEP / 8 + 2 * STEPS)
            written = STEPS * STEP - untracked(r)
            print("# %d of %d pairs in %.1f s" % (written, STEPS * STEP, seconds))
            check(written <= allowed, "%d pairs, %d in %.1f s are allowed" %
                  (written, allowed, seconds))
            if seconds < STEPS * STEP / PAIRS_PER_S / 4:
                check(untracked(r) > STEPS * STEP / 4, "so many in so short a time")
            ends = [o for o in r.ring() if o.count == 1 and o.seq > STEP]
            check(len(ends) > 20, "ends of steps in the ring")
            check(not any(o.flags & UNTRACKED for o in ends), "who ends a step is written")
            check(all(bool(o.flags & UNTRACKED) == (o.slot >= 0x8000) for o in r.ring()), "marks")
            check(not any(r.drops), "nothing is lost: %r" % (r.drops,))
            wait_until(lambda: a.record().progress(ends[-1].slot) == (ends[-1].op_index,) * 2,
                       "all have completed")


def analyzed(at):
    p = subprocess.run([COLLWATCH, "analyze", "--json", *glob.glob(os.path.join(at, "*.record"))],
                       stdout=subprocess.PIPE)
    return json.loads(p.stdout) if p.returncode == 2 else None


def verdict(progress):
    """Of a job where rank 1 does not reach the end of the last step."""
    with Bursts("bursts-hang", progress) as job:
        wait_until(lambda: entered(job.dir.name) == [STEPS * STEP - 1, STEPS * STEP],
                   "copies of the records", 120)
        # A wait of ten seconds counts as a hang.
        doc = wait_until(lambda: analyzed(job.dir.name), "a verdict")
        skipped = sum(untracked(a.record()) for a in job.agents)
        print("# %s: %d left out, %s" % (progress, skipped, doc["summary"]))
        check(progress == "auto" or skipped == 0, "with on, nothing is left out")
        return (doc["class"], doc["detail"], doc["confidence"], doc["where"]["coll_seq"],
                [c["rank"] for c in doc["culprits"]])


def test_a_hang_at_the_end_of_a_step_is_diagnosed_as_with_on():
    expected = ("never_entered", "outside_nccl", "likely", STEPS * STEP, [1])
    for progress in "on", "auto":
        got = verdict(progress)
        check(got == expected, "%s: %r" % (progress, got))
