#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the table of rooms in HACKING.md with the tree. Prints TAP.

Each room that tests/rooms/arrows knows has a row, or the row of a directory above it names it. Each
directory that a row begins with exists, and so does each file that a row names. Each visible directory
at the top stands in HACKING.md.

usage: layout.py --root DIR
       layout.py --self-test
"""

import argparse
import os
import re
import sys
import tempfile

ROW = re.compile(r"^\| (`[^|]*`) \| (.*) \|$", re.M)
DIRECTORY = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/)`")
FILE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:c|h|py))`")
NAMED = re.compile(r"`([\w.-]+(?:/[\w.-]+)*)/?`")


def rows(page):
    """(directories, meaning) of each row of the table of rooms, the only one that begins so."""
    table = page[page.index("| room |"):]
    for names, meaning in ROW.findall(table.split("\n\n", 1)[0]):
        yield [d.rstrip("/") for d in DIRECTORY.findall(names)], meaning


def exists(root, room, name):
    """A file of the room, or of a directory directly below it; tests are sorted deeper."""
    if os.path.exists(os.path.join(root, room, name)):
        return True
    for folder, _, files in os.walk(os.path.join(root, room)):
        if os.path.basename(name) in files:
            return True
    return False


def findings(root):
    with open(os.path.join(root, "HACKING.md"), encoding="utf-8") as f:
        page = f.read()
    with open(os.path.join(root, "tests/rooms/arrows"), encoding="utf-8") as f:
        rooms = [line.split(":")[0] for line in f if ":" in line and not line.startswith("#")]
    table = list(rows(page))
    described = {room: meaning for names, meaning in table for room in names}
    for room in rooms:
        above, name = os.path.split(room)
        parts = NAMED.findall(described.get(above, ""))
        if room not in described and name not in parts:
            yield f"{room} has no row in HACKING.md"
    for room, meaning in described.items():
        if not os.path.isdir(os.path.join(root, room)):
            yield f"HACKING.md has a row for {room}/, which does not exist"
            continue
        for name in FILE.findall(meaning):
            if not exists(root, room, name):
                yield f"HACKING.md names {name} in {room}/, which does not exist"
    for top in sorted(os.listdir(root)):
        hidden = top.startswith(".") or not os.path.isdir(os.path.join(root, top))
        if not hidden and not is_build(os.path.join(root, top)) and f"{top}/" not in page:
            yield f"{top}/ does not stand in HACKING.md"


def is_build(path):
    return os.path.isdir(os.path.join(path, "meson-private")) or not any(files for _, _, files in os.walk(path))


def self_test():
    with tempfile.TemporaryDirectory() as root:
        for path in ("lib/model/op.c", "lib/model/json/out.c", "lib/loop/loop.c", "extra/x.c", "tests/rooms/x.c"):
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8"):
                pass
        with open(os.path.join(root, "tests/rooms/arrows"), "w", encoding="utf-8") as f:
            f.write("# arrows\nlib/model: proto\nlib/model/json:\nlib/loop:\n")
        with open(os.path.join(root, "HACKING.md"), "w", encoding="utf-8") as f:
            f.write("| room | what happens there |\n|---|---|\n"
                    "| `lib/model/` | types (`op.c`, `gone.c`), `json/` writes |\n"
                    "| `lib/away/` | nothing |\n| `tests/` | tests |\n\n| other | table |\n")
        found = list(findings(root))
        assert found == [
            "lib/loop has no row in HACKING.md",
            "HACKING.md names gone.c in lib/model/, which does not exist",
            "HACKING.md has a row for lib/away/, which does not exist",
            "extra/ does not stand in HACKING.md",
        ], found


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    parser.add_argument("--root")
    parser.add_argument("--self-test", action="store_true")
    arg = parser.parse_args()
    print("1..1")
    if arg.self_test:
        self_test()
        print("ok 1 - layout: finds rooms without a row, and rows without a room or a file")
        return 0
    found = list(findings(arg.root))
    for line in found:
        print("# " + line)
    print(("not ok" if found else "ok") + " 1 - layout: HACKING.md and the tree agree")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
