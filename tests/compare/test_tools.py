#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ranks that each tool of the comparison names, by its output for such hangs. Prints TAP.

usage: tests/compare/test_tools.py BUILD-DIRECTORY"""
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[1:1] = [HERE, os.path.join(os.path.dirname(HERE), "real")]
os.environ["CW_BUILD"] = os.path.realpath(sys.argv[1])

# pylint: disable=wrong-import-position
from cases import CASES  # noqa: E402
from lab_lib import tap  # noqa: E402
from tools import PY_SPY, RAS, SERVER, TRACE, WATCHDOG, has_line, ranks_in  # noqa: E402

SAID = [
    (TRACE, "error msg: Culprit rank 1; Error type: SIZE_OR_SYNTAX_MISMATCH, Expected\n"
            "missing ranks: {0, 2}", {1}),
    (TRACE, "Not all ranks joining collective, sequence number: 12\nmissing ranks: {0, 2}", {0, 2}),
    (TRACE, "", set()),
    (SERVER, "PARTIAL DATA: 2/3 workers responded\n  Rank 1: ConnectionError", {1}),
    (RAS, "DEAD\n  1 job process is considered dead\n#0-0 (a4b4) INCOMPLETE\n"
          "  Missing communicator data from 1 rank\n  Rank 1 -- GPU 1 managed by process 9988", {1}),
    (RAS, "Group     Comms     Nodes     Ranks\n    0         1         1         3", set()),
    (WATCHDOG, "   ranks that caused the desync are:\n\t     [1] finished collective #10, but didn't join "
               "collective #11 (count from 1)\n\t     [1] finished ALLREDUCE\n\t     [0, 2] started", {1}),
    (WATCHDOG, "\t   - [0, 2] joined but didn't finish collective #11 (count from 1)", {0, 2}),
    (WATCHDOG, "Traceback of rank 1\n[rank1]: Traceback (most recent call last):", {1}),
    (PY_SPY, "rank 1\nThread 5 (idle): \"MainThread\"\n    read_sample (job.py:93)", set()),
]
LINES = [
    ("    read_sample (job.py:93)", True),
    ('  File "/src/lab/torch/programs/job.py", line 93, in read_sample', True),
    ('  File "/src/lab/torch/programs/job.py", line 93, in fit', False),
    ("    fit (job.py:93)", False),
    ("read_sample", False),
]


def ranks_are_read():
    wrong = [(tool, text, ranks_in(tool, text)) for tool, text, ranks in SAID
             if ranks_in(tool, text) != ranks]
    if wrong:
        raise tap.Failure(str(wrong))


def lines_are_read():
    case = next(c for c in CASES if c.name == "ddp/block-in-data-loader")
    wrong = [text for text, there in LINES if has_line(text, case) != there]
    if wrong:
        raise tap.Failure(str(wrong))


tap.run([ranks_are_read, lines_are_read])
