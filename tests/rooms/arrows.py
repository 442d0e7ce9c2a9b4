#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks each room's use of other rooms against tests/rooms/arrows. An arrow is an include in any
form. With --object, a symbol is one too: a room may declare a function anew instead of including
its header, and a library that links may get it through another.

We fail on an arrow that the file does not list, a listed arrow without a use, a circle, a room that
is not listed or too large, and an include from outside a room of one of its private headers
(*_private.h). Prints TAP.

usage: arrows.py [--root DIRECTORY] [--nm NM] [--object ROOM=FILE]…
       arrows.py --print …             the arrows as they are, for that file
       arrows.py --self-test --cc CC…  builds walls with a hole in a directory of its own, and looks
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
# No rooms: everything there may use anything.
OUTSIDE = ("build", "docs", "lab/nccl", "lab/programs", "lab/sim", "lab/torch", "tests", "tools", "systemd", ".git", ".ci")
# As root_inc in meson.build: a room of lib/ is included by its own name.
INCLUDE_PATH = ("", "lib")
# Rooms are large enough to be needed, and small enough to be known.
MAX_FILES = 30


def sources_below(root, top):
    for directory, _, files in os.walk(os.path.join(root, top)):
        room = os.path.relpath(directory, root)
        yield from ((room, os.path.join(directory, f)) for f in sorted(files)
                    if f.endswith((".c", ".h", ".cu")))


def is_outside(path):
    """True of a path from the root that lies in no room: OUTSIDE has beginnings of names at the top, and
    whole directories of lab/."""
    return path.startswith(tuple(o for o in OUTSIDE if "/" not in o)) or any(
        path == o or path.startswith(o + "/") for o in OUTSIDE if "/" in o)


def sources(root):
    """(room, path) of each C file of the product."""
    for top in sorted(os.listdir(root)):
        if not top.startswith(OUTSIDE) and os.path.isdir(os.path.join(root, top)):
            yield from (each for each in sources_below(root, top) if not is_outside(each[0]))


def has_sources(directory):
    return os.path.isdir(directory) and any(f.endswith((".c", ".h")) for f in os.listdir(directory))


def included(root, path, quoted, angled):
    """The file that an include names, from the root; "" = none of ours. We search as a compiler
    does: beside the file first, then from the root, then from lib/. The build generates some
    headers, which stand in no tree; their rooms do."""
    name = quoted or angled
    if quoted:
        beside = os.path.relpath(os.path.join(os.path.dirname(path), name), root)
        if os.path.exists(os.path.join(root, beside)):
            return beside
    other = os.path.dirname(name)
    if not other or other.startswith((".", "/")):
        return ""
    for place in INCLUDE_PATH:
        if has_sources(os.path.join(root, place, other)):
            return os.path.join(place, name)
    return ""


def look(root):
    """{room: {other room: [who uses it]}}, {room or directory of tests: number of files}, private includes"""
    arrows, sizes, intruders = {}, {}, []
    for room, path in sources(root):
        sizes[room] = sizes.get(room, 0) + 1
        mine = arrows.setdefault(room, {})
        name = os.path.relpath(path, root)
        with open(path, encoding="utf-8") as f:
            headers = [included(root, path, *each) for each in INCLUDE.findall(f.read())]
        for header in headers:
            other = os.path.dirname(header)
            if not header or other == room:
                continue
            mine.setdefault(other, []).append(name)
            if header.endswith("_private.h"):
                intruders.append(f"{name} includes {header}")
    # Tests may use anything, and are to be found like anything else.
    for top in [t for t in OUTSIDE if t.startswith(("lab/", "tests"))]:
        for directory, _ in sources_below(root, top):
            sizes[directory] = sizes.get(directory, 0) + 1
    return arrows, sizes, intruders


def symbols(nm, objects):
    """{room: (defined, wanted)} of [(room, object file or archive)]"""
    found = {}
    for room, path in objects:
        defined, wanted = found.setdefault(room, (set(), set()))
        listing = subprocess.run([nm, "-P", "-g", path], check=True, capture_output=True, text=True)
        for words in map(str.split, listing.stdout.splitlines()):
            if len(words) >= 2 and len(words[1]) == 1 and words[1] not in "wv":
                (wanted if words[1] == "U" else defined).add(words[0])
    return found


def linked(nm, objects):
    """{room: {other room: [symbol]}}: the uses that includes do not show"""
    found, arrows = symbols(nm, objects), {}
    for room, (defined, wanted) in found.items():
        for symbol in sorted(wanted - defined):
            owners = [other for other in sorted(found) if symbol in found[other][0]]
            if len(owners) == 1:  # a room that has its own version of it is the agent's business
                arrows.setdefault(room, {}).setdefault(owners[0], []).append(symbol)
    return arrows


def read_allowed(path):
    allowed = {}
    with open(path, encoding="ascii") as f:
        for line in f:
            words = line.split("#", 1)[0].split()
            if words:
                allowed[words[0].rstrip(":")] = set(words[1:])
    return allowed


def is_upward(room, other):
    """A room of lib/ stands on lib/ and proto/ alone, and nothing outside of lab/ stands on lab/."""
    return (room.startswith("lib/") and not other.startswith(("lib/", "proto"))
            or other.startswith("lab/") and not room.startswith("lab/"))


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


def problems(root, allowed, used=None):
    """used: uses by symbol, from linked(); None = symbols were not checked, so unused arrows are
    unknown"""
    arrows, sizes, intruders = look(root)
    for room in sorted(arrows):
        if room not in allowed:
            yield f"{room}: no such room in tests/rooms/arrows"
            continue
        for other in sorted(set(arrows[room]) - allowed[room]):
            yield f"{room} -> {other} is not allowed: {', '.join(arrows[room][other])}"
        in_use = allowed[room] if used is None else set(arrows[room]) | set(used.get(room, ()))
        for other in sorted(allowed[room] - in_use):
            yield f"{room} -> {other} is allowed, but no file uses it any more"
    for room, others in sorted((used or {}).items()):
        for other in sorted(set(others) - allowed.get(room, set())):
            yield f"{room} -> {other} is not allowed: {room} uses {', '.join(others[other])}"
        for other in others:
            arrows.setdefault(room, {}).setdefault(other, [])
    for room in sorted(allowed):
        for other in sorted(o for o in allowed[room] if is_upward(room, o)):
            yield f"{room} -> {other} goes up, out of its house"
    for room in sorted(set(allowed) - set(arrows)):
        yield f"{room} stands in tests/rooms/arrows and is not there"
    for circle in circles(arrows):
        yield "a circle: " + " -> ".join(circle)
    for room, n in sorted(sizes.items()):
        if n > MAX_FILES:
            yield f"{room} has {n} files, more than {MAX_FILES}"
    yield from intruders


# ---- whether the walls hold ----

HOUSE = {
    "tests/rooms/arrows": "common:\nmodel: common\nleader: model\n",
    "common/text.h": "int text(void);\n",
    "common/text.c": '#include "common/text.h"\nint text(void) { return 1; }\n',
    "model/op.h": "int op(void);\n",
    "model/op.c": '#include "common/text.h"\n#include "model/op.h"\nint op(void) { return text(); }\n',
    "leader/leader.c": '#include <stdio.h>\n#include "model/op.h"\nint leader(void) { return op(); }\n',
    "docs/example.c": '#include "leader/leader.h"\n',
}
# The change to the house and the message it must cause; "" changes only the objects.
HOLES = [
    ("the house as it is", {}, []),
    ("an include that is not allowed", {"leader/look.c": '#include "common/text.h"\n'},
     ["leader -> common is not allowed: leader/look.c"]),
    ("the same from beside", {"leader/look.c": '  # include "../common/text.h"\n'},
     ["leader -> common is not allowed: leader/look.c"]),
    ("the same in angle brackets", {"leader/look.c": "#include <common/text.h>\n"},
     ["leader -> common is not allowed: leader/look.c"]),
    ("a room in a room, by its short name",
     {"leader/incident/id.h": "", "leader/look.c": '#include "incident/id.h"\n',
      "tests/rooms/arrows": HOUSE["tests/rooms/arrows"] + "leader/incident:\n"},
     ["leader -> leader/incident is not allowed: leader/look.c"]),
    ("a generated header", {"leader/look.c": '#include "common/made.h"\n'},
     ["leader -> common is not allowed: leader/look.c"]),
    ("what belongs to tests", {"tests/rooms/fake.h": "", "leader/look.c": '#include "tests/rooms/fake.h"\n'},
     ["leader -> tests/rooms is not allowed: leader/look.c"]),
    ("a symbol that no header was asked for",
     {"leader/leader.c": '#include "model/op.h"\nint text(void);\n'
                         'int leader(void) { return op() + text(); }\n'},
     ["leader -> common is not allowed: leader uses text"]),
    ("a circle of symbols",
     {"common/text.c": "int leader(void);\nint text(void) { return leader(); }\n"},
     ["common -> leader is not allowed: common uses leader",
      "a circle: common -> leader -> model -> common"]),
    ("a circle that is allowed",
     {"common/log.c": '#include "leader/leader.h"\n',
      "tests/rooms/arrows": "common: leader\nmodel: common\nleader: model\n"},
     ["a circle: common -> leader -> model -> common"]),
    ("an unused arrow", {"leader/leader.c": "int leader(void) { return 0; }\n"},
     ["leader -> model is allowed, but no file uses it any more"]),
    ("a room that is not listed", {"cellar/wine.c": ""}, ["cellar: no such room in tests/rooms/arrows"]),
    ("a room that is gone",
     {"tests/rooms/arrows": HOUSE["tests/rooms/arrows"] + "cellar:\n"},
     ["cellar stands in tests/rooms/arrows and is not there"]),
    ("a room that is too large", {f"leader/part{i}.c": "" for i in range(MAX_FILES)},
     [f"leader has {MAX_FILES + 1} files, more than {MAX_FILES}"]),
    ("tests that share too large a directory", {f"tests/support/part{i}.h": "" for i in range(MAX_FILES + 1)},
     [f"tests/support has {MAX_FILES + 1} files, more than {MAX_FILES}"]),
    ("a room of lib/, by its own name",
     {"lib/say/say.h": "", "leader/look.c": '#include "say/say.h"\n',
      "tests/rooms/arrows": HOUSE["tests/rooms/arrows"] + "lib/say:\n"},
     ["leader -> lib/say is not allowed: leader/look.c"]),
    ("a room of lib/ that looks upwards",
     {"lib/say/say.c": '#include "model/op.h"\n', "tests/rooms/arrows": HOUSE["tests/rooms/arrows"] + "lib/say:\n"},
     ["lib/say -> model is not allowed: lib/say/say.c"]),
    ("an arrow that is listed and goes up",
     {"lib/say/say.c": '#include "model/op.h"\n',
      "tests/rooms/arrows": HOUSE["tests/rooms/arrows"] + "lib/say: model\n"},
     ["lib/say -> model goes up, out of its house"]),
    ("a room of the laboratory", {"lab/suite/suite.h": "", "leader/look.c": '#include "lab/suite/suite.h"\n',
                                  "tests/rooms/arrows": HOUSE["tests/rooms/arrows"] + "lab/suite:\n"},
     ["leader -> lab/suite is not allowed: leader/look.c"]),
    ("a simulator, which is no room", {"lab/sim/sim.h": "", "leader/look.c": '#include "lab/sim/sim.h"\n'},
     ["leader -> lab/sim is not allowed: leader/look.c"]),
    ("a header of its own", {"model/op_private.h": "", "leader/look.c": '#include "model/op_private.h"\n'},
     ["leader/look.c includes model/op_private.h"]),
]


def build(root, cc):
    """[(room, object file)] of the files that compile. Files that name missing headers are only
    scanned."""
    objects = []
    for i, (room, path) in enumerate(sources(root)):
        made = os.path.join(root, f"build-{i}.o")
        done = path.endswith(".c") and subprocess.run(
            [*cc, "-c", "-I", root, "-I", root + "/lib", "-o", made, path], check=False, capture_output=True)
        if done and done.returncode == 0:
            objects.append((room, made))
    return objects


def said_of(changes, nm, cc):
    with tempfile.TemporaryDirectory() as root:
        for path, text in {**HOUSE, **changes}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="ascii") as f:
                f.write(text)
        used = linked(nm, build(root, cc))
        if not changes and used != {"model": {"common": ["text"]}, "leader": {"model": ["op"]}}:
            return [f"the house's own symbols are not seen: {used}"]
        return list(problems(root, read_allowed(os.path.join(root, "tests/rooms/arrows")), used))


def self_test(nm, cc):
    status = 0
    print(f"1..{len(HOLES)}")
    for i, (name, changes, wanted) in enumerate(HOLES, 1):
        said = said_of(changes, nm, cc)
        if said != wanted:
            status = 1
            print(f"# wanted {wanted}, said {said}")
        print(("ok" if said == wanted else "not ok") + f" {i} - {name}")
    return status


def options():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(HERE)))
    parser.add_argument("--print", action="store_true")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--object", action="append", default=[])
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--cc", nargs="+", default=["cc"])
    return parser.parse_args()


def main():
    arg = options()
    if arg.self_test:
        return self_test(arg.nm, arg.cc)
    used = linked(arg.nm, [each.split("=", 1) for each in arg.object]) if arg.object else None
    if arg.print:
        for room, others in sorted(look(arg.root)[0].items()):
            print(f"{room}: {' '.join(sorted({*others, *(used or {}).get(room, ())}))}".rstrip())
        return 0
    allowed = read_allowed(os.path.join(arg.root, "tests/rooms/arrows"))
    found = list(problems(arg.root, allowed, used))
    print("1..1")
    for problem in found:
        print(f"# {problem}")
    print(("not ok" if found else "ok") + " 1 - rooms use only what they may")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
