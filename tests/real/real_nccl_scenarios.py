#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every scenario of the demo (`collwatch demo --list`) on NVIDIA's NCCL instead of the simulated
one: the same programs, nodes, faults and labels as tests/e2e/test_demo.py, in a tree of its own
with NVIDIA's libraries. Prints TAP; below each scenario its outcome.

usage: tests/real/real_nccl_scenarios.py BUILD-DIRECTORY [--at-once N] [SCENARIO…]"""
import argparse
import concurrent.futures
import os
import random
import sys

sys.dont_write_bytecode = True

from lab_lib import Tool  # noqa: E402 pylint: disable=wrong-import-position
import tap  # noqa: E402 pylint: disable=wrong-import-position
from demo_driver import (EXPECTED, Demo, Draw, seeded,  # noqa: E402 pylint: disable=wrong-import-position
                         why_not)
import nccl_place  # noqa: E402 pylint: disable=wrong-import-position
import nccl_demo  # noqa: E402 pylint: disable=wrong-import-position
from nccl_tree import Tree  # noqa: E402 pylint: disable=wrong-import-position

BUILD_TIMEOUT_S = 3000
# Each rank has a thread for each channel, and proxy threads: fewer than the simulated NCCL takes.
RANKS_MAX = 6

# A small message without a receive stays in NVIDIA's buffers, and the next receive takes it: no
# rank waits, and the program itself finds wrong numbers. With small buffers it does not fit.
VARIABLES = {None: {}, "network-stall": nccl_demo.VARIABLES,
             "p2p-unmatched": {"NCCL_BUFFSIZE": "512", "NCCL_P2P_NET_CHUNKSIZE": "64",
                               "NCCL_P2P_LL_THRESHOLD": "0"}}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build", metavar="BUILD-DIRECTORY")
    parser.add_argument("--at-once", type=int, default=2, metavar="N", help="default: %(default)s")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="default: all")
    args = parser.parse_intermixed_args()
    unknown = set(args.scenarios) - set(EXPECTED)
    if unknown:
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    args.build = os.path.realpath(args.build)
    return args


ARGS = parse()
RNG_SEED = seeded("real_nccl_scenarios").getrandbits(64)
nccl = Tool("real-nccl", ARGS.build, BUILD_TIMEOUT_S)

state = {}


def tree(variables):
    return Tree(nccl_place.default_cache(), ARGS.build, RANKS_MAX, variables)



def build():
    nccl.build(BUILD_TIMEOUT_S)
    state["trees"] = {s: tree(v) for s, v in VARIABLES.items()}
    state["pool"] = concurrent.futures.ThreadPoolExecutor(ARGS.at_once)
    for scenario in SCENARIOS:
        scenario.start(state["pool"])


class Scenario:
    """Runs beside others; the test is to look at what came of it."""

    def __init__(self, name):
        self.scenario, self.__name__ = name, name.replace("-", "_") + "_on_real_nccl"
        self.draw = Draw.random(random.Random(f"{RNG_SEED} {name}"), name, max_ranks=max(
            RANKS_MAX, EXPECTED[name].min_ranks))
        if EXPECTED[name].is_link:  # ranks of one node need no connection
            self.draw.nodes = self.draw.ranks
        self.done = None

    def start(self, pool):
        if not self.why_not():
            self.done = pool.submit(self.run)

    def why_not(self):
        return nccl_demo.SIMULATED_ONLY.get(self.scenario) or why_not(self.scenario)

    def run(self):
        own = state["trees"].get(self.scenario) or state["trees"][None]
        with Demo(os.path.join(own.dir, "cli/collwatch")) as demo:
            return demo.run(self.draw, *([] if EXPECTED[self.scenario].verdict
                                         else ["--seconds", "15"]))

    def __call__(self):
        if self.why_not():
            raise tap.Skip(self.why_not())
        nccl.needed()
        result = self.done.result()
        delay = f" after {result.delay_s} s" if result.delay_s else ""
        print(f"# {self.draw}: {result.verdict}{delay}: {result.document.get('summary', '')}",
              flush=True)
        if not result.is_right:
            raise tap.Failure(result.explain())


SCENARIOS = [Scenario(name) for name in ARGS.scenarios or EXPECTED]


def finish():
    if "trees" in state:
        state["pool"].shutdown()
        for each in state["trees"].values():
            each.close()


tap.run([build] + SCENARIOS + [finish])
