#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No format says "%u nodes": for 1 it would print "1 nodes". A number before a noun in the plural
comes with a part for the singular ("%u node%s"). A number that is never 1 stands in NEVER_ONE with
the reason. Prints TAP.

usage: counts.py --root DIR
       counts.py --self-test
"""

import argparse
import glob
import os
import re
import sys

ROOMS = ("agent", "cli", "daemon", "lab/cli", "lab/demo", "lab/suite", "lab/vjob", "lab/vnet", "lib", "numerics", "proto")
NOUNS = ("alerts", "addresses", "attempts", "branches", "bundles", "calls", "collectives", "communicators",
         "days", "descriptors", "dumps", "entries", "frames", "groups", "hangs", "incidents", "jobs",
         "lines", "looks", "members", "messages", "nodes", "ops", "others", "pauses", "peers", "processes",
         "ranks", "receives", "records", "rows", "scenarios", "sends", "stacks", "threads", "times", "writes")
COUNT = re.compile(r"%%[0-9.*]*(?:hh|h|ll|l|z|j)?[du] (?:(?:more|other|rank|process|Flight Recorder) )?(?:%s)\b"
                   % "|".join(NOUNS))
LIMIT = "a limit of ours, above one"
# {(file, text of its format): the reason why it is never one}
NEVER_ONE = {
    ("lab/demo/demo_job.c", "%d ranks"): LIMIT,
    ("lab/demo/demo_net.c", "%d nodes"): LIMIT,
    ("lab/demo/demo_nodes.c", "%d nodes"): "one needs no network, and says nothing",
    ("lab/cli/verb_demo.c", "%d ranks"): LIMIT,
    ("lab/cli/verb_demo.c", "%d nodes"): "more nodes than ranks, of which there are two",
    ("lab/cli/verb_suite.c", "%u scenarios"): "of many that were generated",
    ("numerics/cli/numerics_modules.c", "%u ranks"): "more than are here, and one is",
    ("numerics/cli/numerics_coverage.c", "%d ranks"): "more than are here, and one is",
    ("numerics/node/tensor_stats.c", "%d ranks"): "more than are here, and one is",
    ("cli/verbs/verb_init_cluster.c", "%u nodes"): LIMIT,
    ("lib/transport/discovery.c", "%u addresses"): "of a whole look-up: a limit, or those that were not met of all",
    ("daemon/alerts/alerts.c", "%zu alerts"): "one goes out as itself",
    ("daemon/alerts/mutes.c", "%u lines"): LIMIT,
    ("daemon/evidence/core/core_take.c", "%u threads"): "more than the limit",
    ("daemon/evidence/stack.c", "%u threads"): "more than what could be looked at",
    ("daemon/process/fdstore_restore.c", "%zu rank processes"): "so many of all",
    ("daemon/service.c", "%llu descriptors"): LIMIT,
    ("daemon/service.c", "%u rank processes"): LIMIT,
    ("daemon/store/sent_ids.c", "%u lines"): LIMIT,
    ("lib/import/fr_dump.c", "%u process groups"): "too many of them",
    ("lib/import/fr_dump.c", "%u entries"): "too many of them",
    ("numerics/read/numerics_files.c", "%u records"): "none, or too many of them",
    ("lib/import/record_files.c", "%u records"): "none, or too many of them",
    ("lib/leader/job_evaluation.c", "%u ranks"): "so many of all that a job of several has",
    ("lib/say/english.c", "%u ranks"): "one has words of its own",
    ("lib/report/doc/slow_doc.c", "%u collectives"): "so many are looked at before anybody is slow",
    ("lib/report/doc/snapshot_doc.c", "%u communicators"): "of so many some are kept",
    ("lib/report/doc/snapshot_doc.c", "%u members"): "more than are described",
    ("lib/report/shared_comms.c", "%u ranks"): "several jobs have ranks in it",
    ("lib/report/shared_comms.c", "%zu jobs"): "several jobs share it",
    ("lib/report/html/html_drawing.c", "%u ranks"): "a list that had to be cut",
    ("lib/report/html/html_stacks.c", "%zu frames"): "more than are shown",
    ("lib/report/html/html_stacks.c", "%u peers"): "a rank differs from several",
    ("lib/report/text/render_stack_tree.c", "%u peers"): "a rank differs from several",
    ("lib/report/html/html_stacks.c", "%u stacks"): "a list that had to be cut",
    ("lib/report/html/html_timeline.c", "%u communicators"): "asked before",
    ("lib/report/text/render_stack_tree.c", "%u stacks"): "a list that had to be cut",
    ("lib/report/text/render_stack_tree.c", "%zu frames"): "of a long chain",
    ("lab/vjob/cluster.c", "%u ranks"): "one rank is cut into anything",
}


def formats(text):
    """Its string literals, pieces joined, with every kind of number as %u."""
    text = re.sub(r'"\s*(?:PRI[dux]\d+|JSON_INTEGER_FORMAT)\s*"', "u", text)
    text = re.sub(r'"\s*(?:PRI[dux]\d+|JSON_INTEGER_FORMAT)(?=\s*[,)])', 'u"', text)
    text = re.sub(r'(?<!\\)"\s*"', "", text)
    text = re.sub(r'== 1\s*\?\s*"(?:[^"\\]|\\.)*"\s*:\s*"(?:[^"\\]|\\.)*"', '""', text)  # both are there
    return re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)


def counts_in(text):
    return [found[0] for literal in formats(text) for found in COUNT.finditer(literal)]


def check(root):
    """One sentence for each finding."""
    wrong, used = [], set()
    for room in ROOMS:
        for path in sorted(glob.glob(f"{root}/{room}/**/*.[ch]", recursive=True)):
            name = os.path.relpath(path, root)
            with open(path, encoding="utf-8") as f:
                for count in counts_in(f.read()):
                    if (name, count) in NEVER_ONE:
                        used.add((name, count))
                    else:
                        wrong.append(f'{name}: "{count}", and of one?')
    return wrong + [f'{name}: nobody says "{count}" any more' for name, count in sorted(set(NEVER_ONE) - used)]


def self_test():
    bad = ['f("%u nodes")', 'f("%u "\n  "nodes")', 'f("%" PRIu32 " more ranks")', 'f("%zu of %zu processes")',
           'f("all %llu others wait")', 'f("%" JSON_INTEGER_FORMAT " jobs")']
    good = ['f(n == 1 ? "one node" : "all %u nodes", n)', 'f("%u node%s", n, n == 1 ? "" : "s")', 'f("%s nodes")', 'f("%d bytes")', 'f("nodes: %u")']
    return ([f"not seen: {text}" for text in bad if not counts_in(text)] +
            [f"is right: {text}" for text in good if counts_in(text)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    wrong = self_test() if args.self_test else check(args.root)
    print("1..1\n%s 1 - %s" % ("not ok" if wrong else "ok", "counts"))
    for line in wrong:
        print("# " + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
