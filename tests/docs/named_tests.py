#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: named_tests.py --root SOURCE --build BUILD [--not-built TEST: WHAT IT NEEDS]… PAGE…

A page names tests that hold a sentence, and each must be a test of this build, or a fuzzer: in the
last column of a table whose heading says "tests" or "held by", and in parentheses that hold nothing
but names (with words after them, perhaps) at the end of a sentence. A test that needs a package
which only packaging needs may be missing in this build: the result then names it. Prints TAP.
"""
import argparse
import json
import os
import re
import subprocess
import sys

NAME = re.compile(r"`([a-z][a-z0-9_]*)`")
HEADINGS = ("tests", "held by")
# "(`hostile`, `storm_quota` at full size)."
IN_TEXT = re.compile(r"\(((?:`[a-z][a-z0-9_]*`[^`()]*)+)\)[.:]")


def cells(line):
    return [c.strip() for c in line.strip().strip("|").split(" | ")]


def named(text):
    """(name, line number) of each."""
    held, found = False, []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("|"):
            held = False
        elif cells(line)[-1] in HEADINGS:
            held = True
        elif held:
            found += [(n, number) for n in NAME.findall(cells(line)[-1])]
    plain = "\n".join("" if line.startswith("|") else line for line in text.splitlines())
    for match in IN_TEXT.finditer(plain):
        number = plain.count("\n", 0, match.start()) + 1
        found += [(n, number) for n in NAME.findall(match.group(1))]
    return found


def known(root, build):
    introspect = os.environ.get("MESONINTROSPECT", "meson introspect").split()
    tests = json.loads(subprocess.run(introspect + ["--tests", build], check=True,
                                      stdout=subprocess.PIPE).stdout)
    fuzzers = [os.path.splitext(f)[0] for f in os.listdir(root + "/tests/fuzz")
               if f.startswith("fuzz_") and f.endswith(".c")]
    return {t["name"] for t in tests} | set(fuzzers)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--not-built", action="append", default=[])
    parser.add_argument("pages", nargs="+")
    args = parser.parse_args()
    tests, failed = known(args.root, args.build), 0
    not_built = dict(text.split(": ", 1) for text in args.not_built)
    print(f"1..{len(args.pages)}")
    for i, page in enumerate(args.pages, 1):
        with open(f"{args.root}/{page}", encoding="utf-8") as f:
            names = named(f.read())
        missing = [f"{page}:{line}: no test {name}" for name, line in names if name not in tests and name not in not_built]
        bad = missing or not names  # a page that names none is not read rightly
        failed += bool(bad)
        print(f"{'not ' if bad else ''}ok {i} - {page} names {len(names)} tests")
        for text in missing:
            print("# " + text)
        for name in sorted({name for name, _ in names} & set(not_built)):
            print(f"# note: the test {name} of {page} is left out: it needs {not_built[name]}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
