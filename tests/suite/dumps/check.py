#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What collwatch says of Flight Recorder dumps, against who is known to hold up the job.

Usage: check.py COLLWATCH [-v] [NAME ...]

Each case is tried with the times PyTorch writes, with none, and as dumps of active entries only.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from cases import CASES  # noqa: E402

VARIANTS = {"times": {}, "zero": {"times": False}, "active": {"active": True}}
CONFIDENCE = ("possible", "likely", "certain")


def ask(collwatch, make, how):
    """(exit status, document)"""
    with tempfile.TemporaryDirectory() as path:
        make().run().write(path, **how)
        p = subprocess.run([collwatch, "analyze", "--json", "--flight-recorder", path],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return p.returncode, json.loads(p.stdout) if p.stdout else {}


def judge(expect, status, doc):
    """What is wrong, or nothing."""
    wrong = []
    culprits = {c["rank"] for c in doc.get("culprits", ())}
    if status not in expect.exits:
        wrong.append("exit %d" % status)
    if culprits != expect.culprits:
        wrong.append("culprits %s, not %s" % (sorted(culprits), sorted(expect.culprits)))
    said = doc.get("confidence")
    if expect.most and said in CONFIDENCE and (
            CONFIDENCE.index(said) > CONFIDENCE.index(expect.most)):
        wrong.append(said)
    if expect.classes and doc.get("class") not in expect.classes:
        wrong.append("class %s" % doc.get("class"))
    return wrong


def main():
    args = sys.argv[1:]
    verbose = "-v" in args
    args = [a for a in args if a != "-v"]
    collwatch, names = args[0], args[1:]
    chosen = [c for c in CASES if not names or c[0] in names]
    n = 0
    print("1..%d" % (len(chosen) * len(VARIANTS)))
    failed = dict.fromkeys(VARIANTS, 0)
    for name, make, expect, variants, _ in chosen:
        for variant, how in VARIANTS.items():
            status, doc = ask(collwatch, make, how)
            wrong = judge(variants.get(variant, expect), status, doc)
            n += 1
            print("%s %d - %s, %s" % ("not ok" if wrong else "ok", n, name, variant))
            if wrong:
                print("# %s; %s" % ("; ".join(wrong), doc.get("summary", "")))
            elif verbose:
                print("# %s" % doc.get("summary", ""))
            failed[variant] += bool(wrong)
    print("# %d cases; wrong: %s" % (len(chosen), failed))
    return any(failed.values())


if __name__ == "__main__":
    sys.exit(main())
