# SPDX-License-Identifier: Apache-2.0
"""Ranks with the agent under valgrind's memcheck: no error, and nothing lost for good. The agent's unit
tests under it: tools/test --valgrind."""

import os
import shutil
import sys

import pytest
from agent_lib import copies
from built import SOURCE, TRAIN_LOOP, TRAIN_LOOP_PY
from waiting import expect

pytestmark = pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind")
MEMCHECK = ["valgrind", f"--suppressions={SOURCE}/tests/lib/valgrind.supp", "--leak-check=full",
            "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite", "--num-callers=30"]
# A slow rank is no hang.
PATIENCE = 'no_progress_after = "1h"\nfirst_op_after = "1h"\n'
JOB_S = 300


def must_be_clean(daemon, name, program, steps, **variables):
    """One rank of two: it meets the other one, its agent a daemon, and both end by themselves."""
    daemon.patience = PATIENCE
    daemon.configure("")
    daemon.start()
    log, records = f"{daemon.dir}/{name}.memcheck", f"{daemon.dir}/records"
    os.mkdir(records)
    words = ["--steps", str(steps), "--step-ms", "0", "--elements", "256", "--log-every", "1"]
    job = daemon.train(name, 2, words, variables={"COLLWATCH_CALL_STACKS": "on", "COLLWATCH_RECORD": records, **variables},
                       program=lambda rank: [*MEMCHECK, f"--log-file={log}", *program] if rank else program)
    ended = job.wait(JOB_S)
    with open(log, encoding="utf-8", errors="replace") as f:
        said = f.read()
    expect([status for status, _, _ in ended] == [0, 0], f"{ended}\n{said}")
    expect("ERROR SUMMARY: 0 errors" in said, said)
    expect([r.ops_total > steps for r in copies(records)] == [True, True], "the agent was in both")


def test_a_program_in_c_is_clean(daemon):
    must_be_clean(daemon, "in-c", [TRAIN_LOOP], 40)


def test_a_program_in_python_is_clean(daemon):
    """The agent reads this program's frames at each call. Python's own allocator would hide freed
    memory."""
    must_be_clean(daemon, "in-python", [sys.executable, TRAIN_LOOP_PY], 40, PYTHONMALLOC="malloc")
