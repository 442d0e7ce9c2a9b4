#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/jobs with the simulated libraries: its work without PyTorch, and its note on that.
Prints TAP. Arguments: the build directory, the simulated libraries' directory, tests/lib."""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
BUILD, SIMULATED, LIB = sys.argv[1:]
sys.path.insert(0, LIB)

import tap  # noqa: E402 pylint: disable=wrong-import-position

JOBS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jobs")
PATIENCE = 600


def run(*args, **env):
    """(status, document)"""
    with tempfile.TemporaryDirectory() as at:
        done = subprocess.run([JOBS, "--logs", at, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False, timeout=PATIENCE, env=dict(os.environ, **env))
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        raise tap.Failure(f"{done.returncode}: {done.stdout[-1000:]}{done.stderr[-1000:]}") from None


def replayed_graphs_are_compared_and_their_records_read():
    status, doc = run(BUILD, "graphs", LD_LIBRARY_PATH=SIMULATED)
    ways = doc["parts"]["graphs"]
    if status != 0 or doc["wrong"] or set(ways) != {"driver", "static", "runtime"}:
        raise tap.Failure(repr(doc))
    for way in ways.values():
        if (way["records"], way["unlike"], way["told"]) != (2, [], []) or way["lines"] < 4:
            raise tap.Failure(repr(way))


def calls_are_timed_by_each_way():
    status, doc = run("--smoke", BUILD, "calls", LD_LIBRARY_PATH=SIMULATED)
    if status != 0 or set(doc["parts"]["calls"]) != {"1 rank 256", "2 ranks 256"}:
        raise tap.Failure(repr(doc))
    for name, shape in doc["parts"]["calls"].items():
        if set(shape["ns"]) != {"alone", "recording", "progress", "auto", "timed", "sampled", "full"}:
            raise tap.Failure(repr(shape))
        for way, ns in shape["ns"].items():
            # Ranks that share a device tell nothing about it.
            if ns["host_ns"] <= 0 or (ns["device_ns"] > 0) != name.startswith("1 rank"):
                raise tap.Failure(f"{name}, {way}: {ns}")


def what_needs_pytorch_is_not_said_to_be_right_without_it():
    status, doc = run(BUILD, "torch", LD_LIBRARY_PATH=SIMULATED, PYTHON="/bin/false")
    if status != 1 or doc["wrong"] != ["torch: /bin/false has no PyTorch"]:
        raise tap.Failure(f"{status}: {doc}")


def nothing_is_run_without_a_gpu():
    with tempfile.TemporaryDirectory() as empty:
        status, doc = run(BUILD, LD_LIBRARY_PATH=empty)
    if doc["device"] is None and status != 77:
        raise tap.Failure(f"{status}: {doc}")


tap.run([replayed_graphs_are_compared_and_their_records_read, calls_are_timed_by_each_way,
         what_needs_pytorch_is_not_said_to_be_right_without_it, nothing_is_run_without_a_gpu])
