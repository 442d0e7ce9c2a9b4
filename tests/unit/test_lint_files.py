#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which files tools/lint gives to its linters: tools/lib/compile_commands.py. Prints TAP.

usage: test_lint_files.py COMPILE_COMMANDS.PY TAP-DIRECTORY
"""

import json
import os
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
sys.path.insert(0, sys.argv[2])
import tap  # noqa: E402

FILES = ("lib/common/parse.c", "tests/unit/common/test_parse.c", "tests/support/node/node_fixture.c")


def lint_files(*chosen):
    """(status, lines on stdout, text on stderr, files in the compile_commands.json it writes)"""
    with tempfile.TemporaryDirectory() as source:
        source = os.path.realpath(source)
        build = source + "/build"
        for path in FILES:
            os.makedirs(os.path.dirname(f"{source}/{path}"), exist_ok=True)
            with open(f"{source}/{path}", "w", encoding="ascii") as f:
                f.write("int x;\n" if path.startswith("common") else "int y = z;\n")
        os.mkdir(build)
        # A file that goes into two libraries has two entries.
        entries = [{"directory": build, "file": "../" + path, "command": f"cc -o {i}.o -c ../{path}"}
                   for i, path in enumerate((*FILES, FILES[0]))]
        with open(build + "/compile_commands.json", "w", encoding="ascii") as f:
            json.dump(entries, f)
        done = subprocess.run([sys.executable, PROGRAM, build, build + "/lint",
                               *(f"{source}/{path}" for path in chosen)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        written = []
        if os.path.exists(build + "/lint"):
            with open(build + "/lint/compile_commands.json", encoding="ascii") as f:
                written = [os.path.relpath(entry["file"], source) for entry in json.load(f)]
        lines = [os.path.relpath(line, source) if line else "" for line in done.stdout.split("\n")[:-1]]
        return done.returncode, lines, done.stderr.replace(source + "/", ""), written


def expect(condition, what):
    if not condition:
        raise tap.Failure(str(what))


def each_file_of_the_product_once():
    said = lint_files()
    expect(said == (0, [FILES[0]], "", [FILES[0]]), said)


def no_file_where_only_tests_are_named():
    said = lint_files(*FILES[1:])
    expect(said == (0, [], "", []), said)


def names_what_the_build_does_not_compile():
    said = lint_files("lib/common/prase.c", "lib/common/parse.h", FILES[0])
    expect(said == (0, [FILES[0]], "lib/common/prase.c: not compiled by build, not looked at\n", [FILES[0]]), said)


tap.run([each_file_of_the_product_once, no_file_where_only_tests_are_named, names_what_the_build_does_not_compile])
