# SPDX-License-Identifier: Apache-2.0
"""Reads meson's testlog.json and prints the skipped tests with their reasons, the failed tests with all their
diagnostics (TAP; seeds above all), and notes that tests always want to show ("# note: …"). The last line is
"N passed, N failed". Subtests (TAP) count one by one.

usage: summary.py TESTLOG.json…
"""

import json
import re
import sys

TAP_LINE = re.compile(r"^(not )?ok\b\s*\d*\s*-?\s*([^#]*)(#\s*(\w+)\s*(.*))?$")
TAP_PLAN = re.compile(r"^1\.\.\d+", re.MULTILINE)
NOTE = re.compile(r"^# note: (.*)$", re.MULTILINE)
GOOD = {"OK", "EXPECTEDFAIL"}
# Most diagnostics that we print of one test.
MAX_LINES = 400


def subtests(stdout):
    """(name, outcome, reason) of each TAP line; outcome is passed, failed or skipped."""
    if not TAP_PLAN.search(stdout):
        return
    for line in stdout.splitlines():
        match = TAP_LINE.match(line)
        if not match:
            continue
        failed, name, _, directive, reason = match.groups()
        if (directive or "").upper().startswith("SKIP"):
            yield name.strip(), "skipped", reason
        else:
            yield name.strip(), "failed" if failed else "passed", ""


def outcomes(test):
    """As subtests(), for one entry of the log, with or without TAP."""
    found = list(subtests(test.get("stdout") or ""))
    name, result = test["name"], test["result"]
    if result == "SKIP" and not found:
        words = (test.get("stdout") or test.get("stderr") or "").strip().splitlines()
        return [(name, "skipped", words[-1] if words else "no reason given")]
    if not found:
        return [(name, "passed" if result in GOOD else "failed", result.lower())]
    if result not in GOOD | {"SKIP"} and not any(o == "failed" for _, o, _ in found):
        found.append((f"{name} (the program itself)", "failed", result.lower()))
    return [(f"{name}: {sub}", outcome, reason) for sub, outcome, reason in found]


def diagnostics(test):
    """Output of a failed test beside its results: lines that begin with "#", and lines that TAP indents below
    a result (a failed assertion of Criterion's)."""
    if test["result"] in GOOD | {"SKIP"}:
        return []
    stdout = test.get("stdout") or ""
    lines = [line for line in stdout.splitlines() if line.startswith(("#", "  "))]
    if len(lines) > MAX_LINES:  # the first lines name the seed, the last ones the failure
        half = MAX_LINES // 2
        lines[half:-half] = [f"# [… {len(lines) - 2 * half} lines …]"]
    return lines


def main():
    totals = {"passed": 0, "failed": 0, "skipped": 0}
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as log:
            for line in log:
                test = json.loads(line)
                for name, outcome, reason in outcomes(test):
                    totals[outcome] += 1
                    if outcome != "passed":
                        print(f"{outcome}: {name}" + (f" ({reason})" if reason else ""))
                for said in diagnostics(test):
                    print(f"  {test['name']}: {said}")
                for note in NOTE.findall(test.get("stdout") or ""):
                    print(f"note: {test['name']}: {note}")
    if totals["passed"] + totals["failed"] == 0:
        print("failed: no test ran")
        totals["failed"] = 1
    print(f"{totals['passed']} passed, {totals['failed']} failed")
    return 1 if totals["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
