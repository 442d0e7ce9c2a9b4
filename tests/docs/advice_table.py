#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the table of docs/design/advice.md against the code: each advice line, each finding of `doctor` and
each cause that reports rule out has one row, with its condition and tests that exist. The table of
tests/unit/report/doc/test_advice_lines.c has each line of advice, so a row of advice names further tests
only, in its condition. Prints TAP.

usage: advice_table.py --root DIR
       advice_table.py --self-test    breaks the table and the code in each way, and looks
"""

import argparse
import glob
import os
import re
import sys

TABLE = "docs/design/advice.md"
CASES = "tests/unit/report/doc/test_advice_lines.c"
ROW = re.compile(r"^\| (?:(advice) `([^`]+)` \| ([^|]*)|(doctor|ruled out) `([^`]+)` \| ([^|]*) \| ([^|]*)) \|$", re.M)
FURTHER = re.compile(r"`([^`]*/[^`]*)`")
TEST = re.compile(r"`([^`]+)`")


def literal(pattern, text):
    return {m[1] for m in re.finditer(pattern, text, re.S)}


def lines_of(read):
    """(kind, id) of each line that the code has; read: the text of the files that a pattern names."""
    findings = literal(r'\bdoctor_find\(\s*\w+,\s*"([a-z0-9-]+)"', read("cli/doctor/*.c"))
    findings |= literal(r'\.name = "([a-z0-9-]+)"', read("daemon/self_check.c"))
    return ({("advice", i) for i in literal(r'\n\t\{ "([a-z0-9-]+)", (?:CW_CLASS_|ANY_CLASS)', read("lib/report/doc/advice.c"))}
            | {("doctor", i) for i in findings}
            | {("ruled out", i) for i in literal(r'\n\tX\([a-z_]+, "[A-Z]*", "(no [a-z ]+): ', read("lib/model/saying_list.h"))})


def rows_of(table):
    return [((m[1], m[2]), m[3].strip(), FURTHER.findall(m[3])) if m[1] else
            ((m[4], m[5]), m[6].strip(), TEST.findall(m[7])) for m in ROW.finditer(table)]


def has_test(name, read):
    """"lab/suite/name" of a unit test, or "PATH.py::function"."""
    if "::" in name:
        path, function = name.split("::", 1)
        return re.search(rf"^def {re.escape(function)}\(", read(path), re.M) is not None
    if name.count("/") != 1:
        return False
    suite, test = map(re.escape, name.split("/"))
    return re.search(rf"\bTest\({suite},\s*{test}\b", read("tests/unit/**/*.c")) is not None


def tried(read):
    """The lines of advice that the unit test tries where they are true and where they are not."""
    return literal(r'\n\t(?:\{ |OF_[A-Z]+\()"([a-z0-9-]+)",', read(CASES))


def complaints(lines, rows, has, cases):
    seen = [line for line, _, _ in rows]
    for kind, i in sorted(lines - set(seen)):
        yield f"{kind} \"{i}\" has no row in {TABLE}"
    for kind, i in sorted(set(seen) - lines):
        yield f"{TABLE} has a row of {kind} \"{i}\", which the code has not"
    for i in sorted({i for kind, i in lines if kind == "advice"} ^ cases):
        yield f"advice \"{i}\" is in only one of lib/report/doc/advice.c and {CASES}"
    for line in sorted({line for line in seen if seen.count(line) > 1}):
        yield f"{TABLE} has {line} twice"
    for (kind, i), condition, tests in rows:
        if not condition:
            yield f"the row of {kind} \"{i}\" has no condition"
        if not tests and kind != "advice":
            yield f"the row of {kind} \"{i}\" names no test"
        for test in tests:
            if not has(test):
                yield f"the row of {kind} \"{i}\" names the test {test}, which does not exist"


def reader(root):
    kept = {}

    def read(pattern):
        if pattern not in kept:
            paths = sorted(glob.glob(os.path.join(root, pattern), recursive=True))
            kept[pattern] = "\n".join(open(path, encoding="utf-8").read() for path in paths)
        return kept[pattern]

    return read


def self_test():
    lines = {("advice", "a"), ("doctor", "b")}
    whole = [(("advice", "a"), "always", ["t/one"]), (("doctor", "b"), "now", ["x.py::test_two"])]
    has = {"t/one", "x.py::test_two"}.__contains__
    tables = {
        "a whole table": (lines, whole, 0),
        "a line of the code without a row": (lines | {("ruled out", "no c")}, whole, 1),
        "a row without a line": (lines, whole + [(("doctor", "c"), "now", ["t/one"])], 1),
        "a row twice": (lines, whole + whole[:1], 1),
        "no condition": (lines, [(("advice", "a"), "", ["t/one"]), whole[1]], 1),
        "no test of a finding": (lines, [whole[0], (("doctor", "b"), "now", [])], 1),
        "no further test of advice": (lines, [(("advice", "a"), "always", []), whole[1]], 0),
        "a test that does not exist": (lines, [(("advice", "a"), "always", ["t/three"]), whole[1]], 1),
    }
    for name, (code, rows, n) in tables.items():
        found = list(complaints(code, rows, has, {"a"}))
        yield name, [] if len(found) == n else [f"{len(found)} complaints, not {n}: {found}"]
    texts = {"lib/report/doc/advice.c": 'x[] = {\n\t{ "a-b", CW_CLASS_SLOW,\n\t{ "c", ANY_CLASS,',
             "cli/doctor/*.c": 'doctor_find(d, "e-f", NULL,\n doctor_find(\n\td, "g", fix,',
             "daemon/self_check.c": '.name = "h"', "lib/model/saying_list.h": '\n\tX(no_i_j, "R", "no i j: all %1")',
             "tests/unit/**/*.c": "Test(s, name,\n\t.timeout = 1)", "x.py": "def test_it():"}
    wanted = {("advice", "a-b"), ("advice", "c"), ("doctor", "e-f"), ("doctor", "g"), ("doctor", "h"), ("ruled out", "no i j")}
    found = lines_of(texts.get)
    yield "lines of the code", [] if found == wanted else [str(found)]
    right = {"s/name": True, "s/nam": False, "x.py::test_it": True, "x.py::test_i": False, "name": False}
    wrong = [t for t, is_there in right.items() if has_test(t, texts.get) != is_there]
    yield "names of tests", wrong
    found = rows_of("| advice `a` | `x`; also `t/one` |\n| doctor `b` | now | `x.py::test_two` |\n")
    wanted = [(("advice", "a"), "`x`; also `t/one`", ["t/one"]), whole[1]]
    yield "rows of a table", [] if found == wanted else [str(found)]
    yield "advice that no test tries", [] if len(list(complaints(lines, whole, has, set()))) == 1 else ["is not seen"]
    found = tried({CASES: '\n\t{ "a-b", "x", "y",\n\tOF_CLASS("c", "d"),\n\tOF_DETAIL("e", "f", "g"),'}.get)
    yield "cases of the test", [] if found == {"a-b", "c", "e"} else [str(found)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        results = list(self_test())
    else:
        read = reader(args.root)
        lines, rows = lines_of(read), rows_of(read(TABLE))
        found = list(complaints(lines, rows, lambda test: has_test(test, read), tried(read)))
        results = [(f"{len(lines)} lines of the code, {len(rows)} rows", found)]
    print(f"1..{len(results)}")
    for n, (name, found) in enumerate(results, 1):
        print(f"{'not ok' if found else 'ok'} {n} - {name}")
        for text in found:
            print(f"# {text}")
    return 1 if any(found for _, found in results) else 0


if __name__ == "__main__":
    sys.exit(main())
