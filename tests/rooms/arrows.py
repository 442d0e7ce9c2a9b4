#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the includes between rooms against tests/rooms/arrows. Fails on an arrow that is not there, one
that nobody uses any more, a circle, a room that is not listed, and an include from outside a room of
a header that is the room's own (*_private.h). Prints TAP.

usage: arrows.py [--root DIRECTORY] [--print]    --print: the arrows as they are, for that file
"""

import argparse
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# No rooms: everything there may use anything.
OUTSIDE = ("build", "docs", "tests", "tools", "systemd", ".git", ".ci")
# Rooms are large enough to be needed, and small enough to be known.
MAX_FILES = 30


def sources(root):
    """(room, path) of each C file of the product."""
    for top in sorted(os.listdir(root)):
        if top.startswith(OUTSIDE) or not os.path.isdir(os.path.join(root, top)):
            continue
        for directory, _, files in os.walk(os.path.join(root, top)):
            room = os.path.relpath(directory, root)
            yield from ((room, os.path.join(directory, f)) for f in sorted(files)
                        if f.endswith((".c", ".h", ".cu")))


def look(root):
    """{room: {other room: [file that includes it]}}, {room: number of files}, private includes"""
    arrows, sizes, intruders = {}, {}, []
    for room, path in sources(root):
        sizes[room] = sizes.get(room, 0) + 1
        mine = arrows.setdefault(room, {})
        with open(path, encoding="utf-8") as f:
            for header in INCLUDE.findall(f.read()):
                other = os.path.dirname(header)
                if not other or other == room or not os.path.exists(os.path.join(root, header)):
                    continue
                mine.setdefault(other, []).append(os.path.relpath(path, root))
                if header.endswith("_private.h"):
                    intruders.append(f"{os.path.relpath(path, root)} includes {header}")
    return arrows, sizes, intruders


def read_allowed(path):
    allowed = {}
    with open(path, encoding="ascii") as f:
        for line in f:
            words = line.split("#", 1)[0].split()
            if words:
                allowed[words[0].rstrip(":")] = set(words[1:])
    return allowed


def circles(arrows):
    """Each circle once, as the list of its rooms."""
    done, path = set(), []

    def walk(room):
        if room in path:
            yield path[path.index(room):] + [room]
            return
        if room in done:
            return
        path.append(room)
        for other in sorted(arrows.get(room, ())):
            yield from walk(other)
        path.pop()
        done.add(room)

    for room in sorted(arrows):
        yield from walk(room)


def problems(root, allowed):
    arrows, sizes, intruders = look(root)
    for room in sorted(arrows):
        if room not in allowed:
            yield f"{room}: no such room in tests/rooms/arrows"
            continue
        for other in sorted(set(arrows[room]) - allowed[room]):
            yield f"{room} -> {other} is not allowed: {', '.join(arrows[room][other])}"
        for other in sorted(allowed[room] - set(arrows[room])):
            yield f"{room} -> {other} is allowed, and nobody uses it any more"
    for room in sorted(set(allowed) - set(arrows)):
        yield f"{room} stands in tests/rooms/arrows and is not there"
    for circle in circles(arrows):
        yield "a circle: " + " -> ".join(circle)
    for room, n in sorted(sizes.items()):
        if n > MAX_FILES:
            yield f"{room} has {n} files, more than {MAX_FILES}"
    yield from intruders


def options():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(HERE)))
    parser.add_argument("--print", action="store_true")
    return parser.parse_args()


def main():
    arg = options()
    if arg.print:
        for room, others in sorted(look(arg.root)[0].items()):
            print(f"{room}: {' '.join(sorted(others))}".rstrip())
        return 0
    found = list(problems(arg.root, read_allowed(os.path.join(arg.root, "tests/rooms/arrows"))))
    print("1..1")
    for problem in found:
        print(f"# {problem}")
    print(("not ok" if found else "ok") + " 1 - rooms use only what they may")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
