#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cancelled jobs, and ranks that alone are asked to end.

Usage: cancels.py COLLWATCH_LAB HOW_MANY SEED

A cancel reaches the nodes of a job 0 to 30 s apart, and pages never. In a quarter of the jobs one
rank alone gets SIGTERM or SIGINT: it has a page by 65 s, and a job that ends before has none.
"""
import json
import random
import subprocess
import sys
import tempfile

CALLS = ("all_reduce world fp32 256", "broadcast world 4096", "reduce_scatter world fp32 64",
         "all_gather world fp32 64", "send world 8 to ring-next\nrecv world 8 from ring-prev")
SIGNALS = (15, 2)  # SIGTERM, SIGINT


def program(draw):
    call = draw.choice(CALLS)
    if call.startswith("send"):
        call = "group\n%s\nend" % call
    return "program\nloop\nwork %dms\n%s\nsync\nend\nend\n" % (draw.randint(20, 900), call)


def job(draw, n):
    nodes, per_node = draw.randint(2, 4), draw.choice((1, 2, 4))
    ranks, at_s = nodes * per_node, draw.randint(5, 40)
    text = 'scenario "job %d"\nranks %d per-node %d\ncomm world all\nseed %d\n%s' % (
        n, ranks, per_node, draw.randint(1, 1 << 30), program(draw))
    if draw.random() < 0.25:
        rank, lives_s = draw.randrange(ranks), draw.choice((25, 65, 65, 65))
        text += "fault %d at %ds kill %d\nrun %ds\n" % (rank, at_s, draw.choice(SIGNALS),
                                                       at_s + lives_s + 5)
        return text + ("expect process_dead killed %d\nend\n" % rank if lives_s > 60
                       else "expect notice process_dead killed %d\nend\n" % rank)
    first, last_s = draw.randrange(nodes), draw.choice((0, draw.uniform(0, 30), 30))
    for node in range(nodes):
        after_s = 0 if node == first else draw.uniform(0, last_s)
        for rank in range(node * per_node, (node + 1) * per_node):
            text += "fault %d at %dms kill 15\n" % (rank, 1000 * (at_s + after_s))
    return text + "run %ds\nexpect silence\nend\n" % (at_s + 170)


def main():
    lab, how_many, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    draw = random.Random(seed)
    with tempfile.NamedTemporaryFile("w", suffix=".scn", encoding="utf-8") as f:
        f.writelines(job(draw, n) for n in range(how_many))
        f.flush()
        done = subprocess.run([lab, "suite", "--json", "--jobs", "2", f.name],
                              capture_output=True, text=True, check=False)
    if done.returncode not in (0, 2):
        sys.exit(done.stderr.strip() or "exit status %d" % done.returncode)
    told = json.loads(done.stdout)
    print("%d jobs, %d not as expected" % (told["n"], told["missed"]))
    for miss in told["misses"][:20]:
        print("%s: %s" % (miss["scenario"], miss["reason"]))
    return 1 if told["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
