#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Healthy waits of every length, and what is told of them.

Usage: waits.py COLLWATCH_LAB HOW_MANY SEED

Of a thousand waits one may have a page, whatever is known of the job's own time-out, and of each
wait there is one notice at most.
"""
import json
import subprocess
import sys


def main():
    lab, how_many, seed = sys.argv[1:]
    done = subprocess.run([lab, "suite", "--waits", how_many, "--seed", seed, "--jobs", "2", "--json"],
                          capture_output=True, text=True, check=False)
    if done.returncode not in (0, 2):
        sys.exit(done.stderr.strip() or f"exit status {done.returncode}")
    told = json.loads(done.stdout)
    failed = []

    for name, waits in told["waits"].items():
        print(f"{name}: {waits['n']} waits, {waits['false_pages']} false pages")
        if waits["more_than_one_notice"]:
            failed.append(f"{name}: {waits['more_than_one_notice']} waits had more than one notice")
        paged = sum(row["paged"] for row in waits["by_length"])
        if 1000 * paged > waits["n"]:
            failed.append(f"{name}: {paged} of {waits['n']} had a page")
    if told["healthy_waits"] < int(how_many) / 2:
        failed.append(f"there were {told['healthy_waits']} waits only")
    for why in failed:
        print(f"failed: {why}")
    for miss in told["misses"] if failed else []:
        print(f"{miss['where']}: {miss['scenario']}: {miss['reason']}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
