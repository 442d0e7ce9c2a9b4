# SPDX-License-Identifier: Apache-2.0
"""Jobs of 10,000 steps, in C, of graphs and in Python, with the agent and without, and no daemon.
Their output, with its checksums of reduced data, and their exit status are the same to the last
bit."""
import glob
import json
import os
import subprocess
import sys
import tempfile

from agent_lib import *
from built import COLLWATCH, GRAPH_LOOP, TRAIN_LOOP, TRAIN_LOOP_PY

STEPS, RANKS = 10000, 2
LOOP = ["--steps", str(STEPS), "--elements", "16", "--log-every", "500"]
IN_C = [TRAIN_LOOP, *LOOP]
IN_PYTHON = [sys.executable, TRAIN_LOOP_PY, *LOOP]
OF_GRAPHS = [GRAPH_LOOP + "driver", "--steps", str(STEPS), "--step-ms", "0"]


def job(argv, preload, **extra):
    """(exit status, output, errors) of each rank."""
    with tempfile.TemporaryDirectory() as at:
        files = [[open(os.path.join(at, "%d.%s" % (rank, what)), "wb") for what in ("out", "err")]
                 for rank in range(RANKS)]
        ranks = [start([*argv, "--uid-file", os.path.join(at, "uid")],
                       environment(preload=preload, RANK=str(rank), WORLD_SIZE=str(RANKS),
                                   LOCAL_RANK=str(rank), **extra), stdout=out, stderr=err)
                 for rank, (out, err) in enumerate(files)]
        try:
            statuses = [rank.wait(600) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
        for f in sum(files, []):
            f.close()
        return [(status, open(out.name, "rb").read(), open(err.name, "rb").read())
                for status, (out, err) in zip(statuses, files)]


def calls(path):
    p = subprocess.run([COLLWATCH, "record", "show", path, "--json"], stdout=subprocess.PIPE)
    check(p.returncode == 0, "%s cannot be read" % path)
    return json.loads(p.stdout)["calls"]


def is_the_same(argv, expected, each=6, preload=AGENT, **extra):
    """The copies that are written at the end tell that the agent has seen all of it. each: ops of a
    step, at least."""
    with tempfile.TemporaryDirectory() as at:
        got = job(argv, preload, COLLWATCH_RECORD=at, **extra)
        for rank, (with_agent, without) in enumerate(zip(got, expected)):
            check(with_agent == without, "rank %d: %r\nwithout the agent: %r" %
                  (rank, with_agent, without))
        seen = [calls(path) for path in glob.glob(os.path.join(at, "*.record"))]
        check(len(seen) == RANKS and min(seen) > each * STEPS, "calls of the ranks: %r" % seen)


def without_agent(argv):
    expected = job(argv, None)
    done = b"done steps=%d checksum=" % STEPS
    check(all(status == 0 and done in out and not err for status, out, err in expected),
          "without the agent: %r" % expected)
    return expected


def test_a_program_in_c():
    expected = without_agent(IN_C)
    is_the_same(IN_C, expected)
    # Kernels of its own between those of the program, and writes around each call.
    is_the_same(IN_C, expected, COLLWATCH_SUMMARY="full", COLLWATCH_PROGRESS="timed")
    is_the_same(IN_C, expected, preload=None, NCCL_PROFILER_PLUGIN=AGENT)


def test_a_program_in_python():
    is_the_same(IN_PYTHON, without_agent(IN_PYTHON))


def test_a_program_that_replays_graphs():
    """With nodes of the agent's in its graphs."""
    is_the_same(OF_GRAPHS, without_agent(OF_GRAPHS), each=1)
