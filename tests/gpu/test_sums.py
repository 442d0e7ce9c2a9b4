#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensor summaries without a GPU: the reference and the kernel's own code against exact fractions.
Prints TAP.

usage: test_sums.py SUMS-HOST TAP-DIRECTORY
"""

import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, sys.argv[2])
import sums  # noqa: E402
import tap  # noqa: E402

ENGINES = ["reference", "kernel", "kernel, in another order"]


def hold(group):
    program = sums.Program([sys.argv[1]], ENGINES)
    wrong, n = [], 0
    for case in group(random.Random(1)):
        wrong += program.check(case)
        n += 1
    if program.close() != 0:
        wrong.append("the program failed")
    if wrong or not n:
        raise tap.Failure("\n".join([f"{len(wrong)} faults in {n} cases"] + wrong[:20]))


def reads_every_number_of_every_format():
    hold(sums.formats)


def sums_up_tensors_of_any_size_wherever_they_lie():
    hold(sums.sizes)


def gives_the_same_for_any_number_of_blocks_and_any_share():
    hold(sums.launches)


def says_when_a_sum_leaves_the_range_and_counts_beyond_32_bits():
    hold(sums.extremes)


def spoiled(value):
    """The least that can be wrong with it."""
    return value + 1 if isinstance(value, int) else value * (1 + 1e-9)


def a_wrong_number_would_be_seen():
    draw = random.Random(2)
    case = sums.Case(sums.FP32, sums.ordinary(draw, sums.FP32, 999) + sums.pack(sums.FP32, [0x7FC00000]))
    program, want = sums.Program([sys.argv[1]], ENGINES), sums.exact(case)
    out, first, told = program.ask(case)["kernel"]
    program.close()
    if list(sums.faults(case, want, 1, out, first, told)):
        raise tap.Failure("a right one is refused")
    for field in sums.FIELDS:
        wrong = dict(out, **{field: spoiled(out[field])})
        if field != "device_ns" and not list(sums.faults(case, want, 1, wrong, dict(wrong), told)):
            raise tap.Failure(f"{field} may be anything")
    if not list(sums.faults(case, want, 1, out, dict(first, publish=0), told)):
        raise tap.Failure("the first with NaN may be missing")
    for field in sums.TOLD_FIELDS:
        if not list(sums.faults(case, want, 1, out, first, dict(told, **{field: 0.0}))):
            raise tap.Failure(f"a program may be told anything as {field}")


if __name__ == "__main__":
    tap.run([reads_every_number_of_every_format, sums_up_tensors_of_any_size_wherever_they_lie,
             gives_the_same_for_any_number_of_blocks_and_any_share,
             says_when_a_sum_leaves_the_range_and_counts_beyond_32_bits, a_wrong_number_would_be_seen])
