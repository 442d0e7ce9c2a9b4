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
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True

from lab_lib import SOURCE, Tool  # noqa: E402 pylint: disable=wrong-import-position
import tap  # noqa: E402 pylint: disable=wrong-import-position
from demo_driver import (EXPECTED, Demo, Draw, seeded,  # noqa: E402 pylint: disable=wrong-import-position
                         why_not)
import nccl_place  # noqa: E402 pylint: disable=wrong-import-position
import nccl_run  # noqa: E402 pylint: disable=wrong-import-position

BUILD_TIMEOUT_S = 3000
# Each rank has a thread for each channel, and proxy threads: fewer than the simulated NCCL takes.
RANKS_MAX = 6

# Faults that only the simulated NCCL can inject.
SIMULATED_ONLY = {
    "network-stall": "the simulated NCCL stalls its own network",
    "gpu-dies": "the simulated NCCL lets a collective end on all ranks but one",
    "cascade": "the simulated NCCL tells of an error of another rank",
    "watchdog-abort": "the simulated NCCL tells of an error of another rank",
}

# A small message without a receive stays in NVIDIA's buffers, and the next receive takes it: no
# rank waits, and the program itself finds wrong numbers. With small buffers it does not fit.
VARIABLES = {"p2p-unmatched": {"NCCL_BUFFSIZE": "512", "NCCL_P2P_NET_CHUNKSIZE": "64",
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

# The demo keeps variables of NCCL from its ranks: a script in the program's place sets them.
PROGRAM = """#!/bin/sh
{exports}
exec {program} "$@"
"""
PROGRAM_PY = """import os, runpy, sys
for name, value in {variables!r}.items():
    os.environ.setdefault(name, value)
sys.path[0] = os.path.dirname({program!r})
sys.argv[0] = {program!r}
runpy.run_path({program!r}, run_name="__main__")
"""


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o755)


class Tree:
    """A build directory as the demo finds its parts in one."""

    def __init__(self, variables):
        self.dir = tempfile.mkdtemp(prefix="cw-real-")
        for name in "cli", "lab/sim", "lab/programs":
            os.makedirs(os.path.join(self.dir, name))
        for name in "cli/collwatch", "lab/collwatch-lab":
            shutil.copy2(os.path.join(ARGS.build, name), os.path.join(self.dir, name))
        for name in "agent", "daemon":
            os.symlink(os.path.join(ARGS.build, name), os.path.join(self.dir, name))
        job = nccl_run.job_environment(nccl_place.default_cache(), ARGS.build,
                                       nccl_place.DEFAULT_VERSION, RANKS_MAX, "shm")
        for directory in reversed(job["LD_LIBRARY_PATH"].split(":")):
            for name in os.listdir(directory):
                if ".so." in name and not name.endswith(".p"):
                    link = os.path.join(self.dir, "lab/sim", name)
                    if os.path.lexists(link):
                        os.unlink(link)  # NVIDIA's takes the place of ours
                    os.symlink(os.path.join(directory, name), link)
        self.variables = {k: v for k, v in job.items()
                          if k.startswith("NCCL_") and k != "NCCL_RAS_ADDR"}
        self.variables["NCCL_RAS_ENABLE"] = "0"  # its port would be one for several jobs
        self.variables.update(variables)
        self.add_programs()

    def add_programs(self):
        programs = os.path.join(self.dir, "lab/programs")
        exports = "".join(f": \"${{{k}={v}}}\"; export {k}\n" for k, v in self.variables.items())
        write(os.path.join(programs, "train_loop"), PROGRAM.format(
            exports=exports, program=os.path.join(ARGS.build, "lab/programs/train_loop")))
        write(os.path.join(programs, "train_loop.py"), PROGRAM_PY.format(
            variables=self.variables,
            program=os.path.join(SOURCE, "lab/programs/train_loop.py")))

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)


state = {}


def build():
    nccl.build(BUILD_TIMEOUT_S)
    state["trees"] = {None: Tree({}), **{s: Tree(v) for s, v in VARIABLES.items()}}
    state["pool"] = concurrent.futures.ThreadPoolExecutor(ARGS.at_once)
    for scenario in SCENARIOS:
        scenario.start(state["pool"])


class Scenario:
    """Runs beside others; the test is to look at what came of it."""

    def __init__(self, name):
        self.scenario, self.__name__ = name, name.replace("-", "_") + "_on_real_nccl"
        self.draw = Draw.random(random.Random(f"{RNG_SEED} {name}"), name, max_ranks=max(
            RANKS_MAX, EXPECTED[name].min_ranks))
        self.done = None

    def start(self, pool):
        if not self.why_not():
            self.done = pool.submit(self.run)

    def why_not(self):
        return SIMULATED_ONLY.get(self.scenario) or why_not(self.scenario)

    def run(self):
        tree = state["trees"].get(self.scenario) or state["trees"][None]
        with Demo(os.path.join(tree.dir, "cli/collwatch")) as demo:
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
        for tree in state["trees"].values():
            tree.close()


tap.run([build] + SCENARIOS + [finish])
