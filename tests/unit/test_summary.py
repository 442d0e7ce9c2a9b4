#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The summary of meson's test log by tools/lib/summary.py. Prints TAP.

usage: test_summary.py SUMMARY.PY TAP-DIRECTORY
"""

import json
import subprocess
import sys
import tempfile

SUMMARY = sys.argv[1]
sys.path.insert(0, sys.argv[2])
import tap  # noqa: E402


def summarize(*tests):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
        for test in tests:
            log.write(json.dumps({"stdout": "", "stderr": "", **test}) + "\n")
        log.flush()
        done = subprocess.run([sys.executable, SUMMARY, log.name], stdout=subprocess.PIPE,
                              text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def expect(condition, what):
    if not condition:
        raise tap.Failure(str(what))


def counts_subtests_one_by_one():
    status, lines = summarize({"name": "a", "result": "OK", "stdout": "1..2\nok 1 - x\nok 2 - y\n"},
                              {"name": "b", "result": "OK"})
    expect(status == 0 and lines == ["3 passed, 0 failed"], lines)


def says_what_was_skipped_and_why():
    status, lines = summarize({"name": "a", "result": "OK",
                               "stdout": "1..2\nok 1 - x\nok 2 - y # SKIP no GPU\n"})
    expect(status == 0 and lines == ["skipped: a: y (no GPU)", "1 passed, 0 failed"], lines)


def repeats_what_a_failing_test_said():
    stdout = "# seed 7\n1..2\nok 1 - x\n# wrong verdict\n# of rank 3\nnot ok 2 - y\n"
    status, lines = summarize({"name": "a", "result": "FAIL", "stdout": stdout})
    expect(status == 1, status)
    expect(lines == ["failed: a: y", "  a: # seed 7", "  a: # wrong verdict", "  a: # of rank 3",
                     "1 passed, 1 failed"], lines)


def is_quiet_about_what_a_good_test_said():
    _, lines = summarize({"name": "a", "result": "OK", "stdout": "# seed 7\n1..1\nok 1 - x\n"})
    expect(lines == ["1 passed, 0 failed"], lines)


def tells_notes_in_any_case():
    for result in "OK", "FAIL":
        _, lines = summarize({"name": "a", "result": result,
                              "stdout": "1..1\n# note: one version ran\nok 1 - x\n"})
        expect("note: a: one version ran" in lines, lines)


def keeps_the_first_and_the_last_of_many_words():
    words = "".join(f"# {i}\n" for i in range(1000))
    _, lines = summarize({"name": "a", "result": "FAIL", "stdout": words + "1..1\nnot ok 1 - x\n"})
    expect(len(lines) < 500 and "  a: # 0" in lines and "  a: # 999" in lines, len(lines))


def fails_when_a_program_broke_off_or_nothing_ran():
    status, lines = summarize({"name": "a", "result": "TIMEOUT", "stdout": "1..2\nok 1 - x\n"})
    expect(status == 1 and "failed: a: a (the program itself) (timeout)" in lines, lines)
    expect(summarize()[0] == 1, "no test at all is no success")


if __name__ == "__main__":
    tap.run([counts_subtests_one_by_one, says_what_was_skipped_and_why,
             repeats_what_a_failing_test_said, is_quiet_about_what_a_good_test_said,
             tells_notes_in_any_case, keeps_the_first_and_the_last_of_many_words,
             fails_when_a_program_broke_off_or_nothing_ran])
