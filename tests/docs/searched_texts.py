#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rejects decisions of the product by its own sentences.

A sentence that a program searches can never be improved. tests/docs/searched_texts lists each function
that searches in a text or compares its beginning: the number of such calls, and who wrote the text. A
call that is not listed is a finding, and so is an entry without its calls. Prints TAP.

usage: searched_texts.py --root DIR
       searched_texts.py --self-test
"""

import argparse
import collections
import os
import re
import sys

PRODUCT = ("agent", "bpf", "cli", "daemon", "deploy", "lib", "numerics", "proto")
LIST = "tests/docs/searched_texts"
SOURCES = ("kernel", "program", "user", "token")
CALL = re.compile(r"\b(?:strstr|strcasestr|strncmp|strncasecmp|memmem|regexec|fnmatch|wcsstr)\s*\(")
# To compare with a whole sentence is a decision by it, too.
COMPARISON = re.compile(r"\b(?:strcmp|strcasecmp|memcmp)\s*\(")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
SENTENCE = re.compile(r"\w,? \w")
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
NAME = re.compile(r"(\w+)\s*\(")


def has_sentence(source, at):
    """Of the arguments that begin there."""
    depth, end = 1, at
    while depth and end < len(source):
        literal = LITERAL.match(source, end)
        if literal and SENTENCE.search(literal.group(1)):
            return True
        depth += {"(": 1, ")": -1}.get(source[end], 0)
        end = literal.end() if literal else end + 1
    return False


def calls_in(source):
    """(function, number of its line) of each call; the function of a macro is its name."""
    source = NOT_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), source)
    starts = []
    for m in re.finditer(r"^(?:#define\s+(\w+)|[A-Za-z_][^\n;]*)", source, re.M):
        name = m.group(1) or ("(" in m.group() and NAME.search(m.group()) and NAME.search(m.group()).group(1))
        if name and not m.group().startswith("#include"):
            starts.append((m.start(), name))
    at_calls = [m.start() for m in CALL.finditer(source)]
    at_calls += [m.start() for m in COMPARISON.finditer(source) if has_sentence(source, m.end())]
    for at in sorted(at_calls):
        before = [name for start, name in starts if start <= at]
        yield before[-1] if before else "-", source.count("\n", 0, at) + 1


def sources_of(root):
    for top in PRODUCT:
        for directory, _, files in os.walk(os.path.join(root, top)):
            for name in sorted(files):
                if name.endswith((".c", ".h")):
                    path = os.path.join(directory, name)
                    with open(path, encoding="utf-8") as f:
                        yield os.path.relpath(path, root), f.read()


def listed(text):
    """{(path, function): (calls, source)}; and the findings."""
    entries, found = {}, []
    for n, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        words = line.split()
        if len(words) != 4 or not words[2].isdigit():
            found.append(f"{LIST}:{n}: not \"PATH FUNCTION CALLS SOURCE\"")
            continue
        path, function, calls, source = words
        if source not in SOURCES:
            found.append(f"{LIST}:{n}: {source}: a text is searched only if one of these wrote it: "
                         f"{', '.join(SOURCES)}")
        entries[path, function] = int(calls)
    return entries, found


def findings(text, sources):
    entries, found = listed(text)
    yield from found
    calls = collections.defaultdict(list)
    for path, source in sources:
        for function, line in calls_in(source):
            calls[path, function].append(line)
    for (path, function), lines in sorted(calls.items()):
        known = entries.pop((path, function), 0)
        if known != len(lines):
            yield (f"{path}:{lines[-1]}: {function}() searches in {len(lines)} places, {known} of them listed: "
                   f"decide by an enum, or say in {LIST} who wrote the text")
    for path, function in entries:
        yield f"{path}: {function}() searches in no text, and {LIST} lists it"


def self_test():
    code = ('/* strstr(a, b) */\nstatic bool\tf(const char *t)\n{\n\treturn strstr(t, "x") ||\n'
            '\t       strncmp(t, "y", 1) == 0;\n}\n\nint g(int a,\n      int b)\n{\n\treturn memmem(p, n, "z", 1);\n}\n'
            '#define M(t) strstr(t, "q")\nint h(void)\n{\n\treturn strcmp(t, "it is late") ||\n\t\tstrcmp(f(t, "a"), "late") || puts("it is");\n}\n')
    assert list(calls_in(code)) == [("f", 4), ("f", 5), ("g", 11), ("M", 13), ("h", 16)], list(calls_in(code))
    right = "# why\na.c f 2 kernel\na.c g 1 user\na.c M 1 token\na.c h 1 program\n"
    assert not list(findings(right, [("a.c", code)]))
    assert "of them listed" in list(findings(right.replace("f 2", "f 1"), [("a.c", code)]))[0]
    assert "searches in no text" in list(findings(right + "b.c f 1 user\n", [("a.c", code)]))[0]
    assert "ours: a text" in list(findings(right.replace("kernel", "ours"), [("a.c", code)]))[0]
    assert "not \"PATH" in list(findings(right + "a.c\n", [("a.c", code)]))[0]
    assert len(list(findings("", [("a.c", code)]))) == 4


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    parser.add_argument("--root")
    parser.add_argument("--self-test", action="store_true")
    arg = parser.parse_args()
    print("1..1")
    if arg.self_test:
        self_test()
        print("ok 1 - searched_texts: finds searches and sentences that are not listed")
        return 0
    with open(os.path.join(arg.root, LIST), encoding="utf-8") as f:
        found = list(findings(f.read(), sources_of(arg.root)))
    for line in found:
        print("# " + line)
    print(("not ok" if found else "ok") + " 1 - searched_texts: no decision depends on a sentence of ours")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
