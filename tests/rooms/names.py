#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the meaning of "cw_": the prefix stands before the name of every function and object that
leaves its top-level directory. arrows.py finds each symbol that one room uses of another across
such a directory; each must begin with the prefix. Prints TAP.

usage: names.py [--nm NM] --object ROOM=FILE…
"""

import argparse
import sys

sys.dont_write_bytecode = True
from arrows import linked  # pylint: disable=wrong-import-position

PREFIX = "cw_"
# protoc-c takes these from the package's name in proto/collwatch.proto.
GENERATED = "collwatch__"


def top(room):
    """The directory that a name leaves: a room of lib/ counts as one of its own."""
    words = room.split("/")
    return "/".join(words[:2]) if words[0] == "lib" else words[0]


def problems(used):
    homeless = {}
    for room, others in used.items():
        for other, names in others.items():
            for name in names:
                if top(room) != top(other) and not name.startswith((PREFIX, GENERATED)):
                    homeless.setdefault((name, top(other)), []).append(room)
    for (name, home), rooms in sorted(homeless.items()):
        yield f"{name} leaves {home}/ without {PREFIX}: {', '.join(sorted(rooms))}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--object", action="append", required=True)
    arg = parser.parse_args()
    used = linked(arg.nm, [each.split("=", 1) for each in arg.object])
    found = list(problems(used)) if used else ["no room uses another: are these its objects?"]
    print("1..1")
    for problem in found:
        print(f"# {problem}")
    print(("not ok" if found else "ok") + f" 1 - what leaves its directory begins with {PREFIX}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
