# SPDX-License-Identifier: Apache-2.0
"""Names the tests of a build that a run leaves out.

usage: omitted.py BUILD SUITE…        lines for people: tests that are in none of these suites, by suite
       omitted.py --names BUILD LOG   their names, one a line: tests that meson's log of an earlier run lacks
"""

import json
import sys
import textwrap


def tests_of(build):
    with open(f"{build}/meson-info/intro-tests.json", encoding="utf-8") as f:
        return [(t["name"], {s.split(":")[-1] for s in t["suite"]}) for t in json.load(f)]


def names_in(log):
    with open(log, encoding="utf-8") as f:
        return {json.loads(line)["name"].rsplit(" / ", 1)[-1] for line in f}  # "collwatch:unit / rooms"


def say(build, suites):
    """Prints each test under the first of its suites by name: a test of "e2e" alone is an end-to-end test."""
    by_suite = {}
    for name, its in tests_of(build):
        if not its & set(suites):
            by_suite.setdefault(min(its, default="others"), []).append(name)
    for suite, names in sorted(by_suite.items()):
        print(textwrap.fill(f"left out, {suite}: {', '.join(names)}", 110, subsequent_indent="  ",
                            break_on_hyphens=False))
    n = sum(len(names) for names in by_suite.values())
    if n:
        print(f"left out: {n} test programs; \"tools/test --all\" runs them, too")


def main():
    if sys.argv[1] == "--names":
        ran = names_in(sys.argv[3])
        print("\n".join(dict.fromkeys(name for name, _ in tests_of(sys.argv[2]) if name not in ran)))
    else:
        say(sys.argv[1], sys.argv[2:])


if __name__ == "__main__":
    main()
