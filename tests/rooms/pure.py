#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the rooms of tests/rooms/pure pure: they only compute. We fail when one of them uses a
symbol that neither another such room has nor that list names. json_dump_file() would reach the C
library's files through a library, so we refuse such names regardless of the list. Prints TAP.

usage: pure.py [--nm NM] --object ROOM=FILE…
       pure.py --self-test --cc CC…    builds a room with a clock in it, and looks
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from arrows import symbols  # pylint: disable=wrong-import-position

HERE = os.path.dirname(os.path.abspath(__file__))
# Refused, although the patterns of the list would allow them.
FILES = re.compile(r"json_(dump|load)(f|fd|_file|_callback)$")
# Symbols that compilers insert, and their variants of functions: __snprintf_chk is snprintf.
INSTRUMENTS = re.compile(r"__(asan|ubsan|tsan|sanitizer|gcov|llvm|sancov|stack_chk)_|_GLOBAL_OFFSET_TABLE_$|bcmp$")
CHECKED = re.compile(r"__(\w+)_chk$")


def read_pure(text):
    """{room: one expression of the symbols it may use}"""
    names = {}
    for line in text.splitlines():
        rooms, _, allowed = line.split("#", 1)[0].partition(":")
        for room in rooms.split():
            names.setdefault(room, []).extend(allowed.split())
    return {room: re.compile("|".join(re.escape(n).replace(r"\*", ".*") for n in allowed) + "$")
            for room, allowed in names.items()}


def problems(pure, found):
    """found: as symbols() says"""
    own = set().union(*(found[room][0] for room in pure if room in found))
    for room in sorted(set(pure) - set(found)):
        yield f"{room} stands in tests/rooms/pure and is not there"
    for room in sorted(set(pure) & set(found)):
        for symbol in sorted({CHECKED.sub(r"\1", each) for each in found[room][1] - own}):
            if INSTRUMENTS.match(symbol):
                continue
            if not pure[room].match(symbol) or FILES.match(symbol):
                yield f"{room} uses {symbol}"


# The source to build and the message it must cause.
CASES = [
    ("a room that computes", "#include <string.h>\nint f(char *s) { return (int)strlen(s); }\n", []),
    ("a clock", "#include <time.h>\nint f(void) { return (int)time(NULL); }\n", ["leader uses time"]),
    ("a log that is declared anew", "void cw_log(int, const char *, ...);\nvoid f(void) { cw_log(3, \"\"); }\n",
     ["leader uses cw_log"]),
    ("a file by way of a library", "int json_dump_file(void);\nint f(void) { return json_dump_file(); }\n",
     ["leader uses json_dump_file"]),
    ("what another pure room has", "int model(void);\nint f(void) { return model(); }\n", []),
]


def self_test(nm, cc):
    status = 0
    pure = read_pure("leader: str* json_*\nmodel: memcpy # and no more\n")
    print(f"1..{len(CASES)}")
    for i, (name, source, wanted) in enumerate(CASES, 1):
        with tempfile.TemporaryDirectory() as root:
            objects = []
            for room, text in (("leader", source), ("model", "int model(void) { return 1; }\n")):
                made = os.path.join(root, room + ".o")
                subprocess.run([*cc, "-fno-builtin", "-fno-stack-protector", "-x", "c", "-c", "-o", made, "-"],
                               check=True, input=text, text=True)
                objects.append((room, made))
            said = list(problems(pure, symbols(nm, objects)))
        if said != wanted:
            status = 1
            print(f"# wanted {wanted}, said {said}")
        print(("ok" if said == wanted else "not ok") + f" {i} - {name}")
    return status


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--object", action="append", default=[])
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--cc", nargs="+", default=["cc"])
    arg = parser.parse_args()
    if arg.self_test:
        return self_test(arg.nm, arg.cc)
    with open(os.path.join(HERE, "pure"), encoding="ascii") as f:
        pure = read_pure(f.read())
    found = list(problems(pure, symbols(arg.nm, [each.split("=", 1) for each in arg.object])))
    print("1..1")
    for problem in found:
        print(f"# {problem}")
    print(("not ok" if found else "ok") + " 1 - rooms that compute do nothing else")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
