#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A network that carries nothing any more: in each rank a nameless thread of NCCL polls on a whole
core meanwhile. It is no sign of life of the rank, and keeps nobody from asking the interpreter.

usage: test_network_hang.py COLLWATCH
"""
import glob
import json
import os
import shutil
import sys

import tap
from demo_driver import Demo, Draw
from tap import Failure

RANKS = 4
STILL_NS = 8 * 10**9  # a hang is confirmed later than that
POLLED_S = 0.2  # of CPU time: far more than any other thread beside the main one takes


def expect(condition, message):
    if not condition:
        raise Failure(message)


def load(bundle, name):
    with open(os.path.join(bundle, name), encoding="utf-8") as f:
        return json.load(f)


class Hang:
    """One run for all tests."""

    bundle = None

    @classmethod
    def run(cls, demo):
        keep = os.path.join(demo.tmp, "kept")
        demo.environment["SIM_NCCL_PROXY"] = "1"
        result = demo.run(Draw("network-stall", RANKS, 2, 0), "--keep", keep)
        expect(result.is_right, result.explain())
        (cls.bundle,) = glob.glob(keep + "/*")


def a_thread_of_nccl_polls():
    """Else the other tests prove nothing."""
    for evidence in load(Hang.bundle, "evidence.json"):
        main, *others = evidence["proc"]["threads"]
        expect(any(t["cpu_s"] > POLLED_S and t["name"] == main["name"] for t in others),
               f"nothing polls in rank {evidence['rank']}: {others}")


def python_stacks_of_all_ranks_are_there():
    seen = load(Hang.bundle, "evidence.json")
    expect(seen, "no evidence")
    for evidence in seen:
        expect(evidence["python"]["status"] == "ok",
               f"rank {evidence['rank']}: {evidence['python']}")
    (python,) = [t for t in load(Hang.bundle, "stacks.json")["trees"] if t["kind"] == "python"]
    expect(python["ranks"] == f"0-{RANKS - 1}" and "synchronize" in json.dumps(python), str(python))


def polling_is_no_sign_of_life():
    snapshot = load(Hang.bundle, "snapshot.json")
    for rank in snapshot["ranks"]:
        still_ns = snapshot["now_ns"] - rank["headway_ns"]
        expect(rank["headway_by"] == "nccl" and still_ns >= STILL_NS,
               f"{rank['headway_by']} {still_ns / 1e9:.1f} s ago: {rank}")


def main():
    with Demo(os.path.abspath(sys.argv[1])) as demo:
        try:
            Hang.run(demo)
            tap.run([a_thread_of_nccl_polls, python_stacks_of_all_ranks_are_there,
                     polling_is_no_sign_of_life])
        finally:
            shutil.rmtree(demo.tmp, ignore_errors=True)


main()
