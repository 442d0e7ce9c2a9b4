#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rejects names that the project has given up: a second name for a thing costs each reader a search.

CHANGELOG.md names them to say so, and tests/against.list names tests of older commits. Recordings in
tests/data hold what older versions wrote. Prints TAP.

usage: old_names.py --root DIR
       old_names.py --self-test
"""

import argparse
import re
import subprocess
import sys
import tempfile

# Old name, and the name to use.
NAMES = {
    "epitaph": "postmortem (in prose: post-mortem)",
    "headway": "host_activity",
    "left_out": "untracked, omitted, over_limit or not_collected",
    "half_look": "pending_evaluation",
}
OLD = re.compile("|".join(NAMES), re.I)
# They say which names are old, or hold what an older version wrote.
EXEMPT = ("CHANGELOG.md", "tests/against.list", "tests/data/", "tests/docs/old_names.py")


def findings(texts):
    for path, text in texts:
        if path.startswith(EXEMPT):
            continue
        for old in OLD.findall(path):
            yield f"{path}: its name has {old}: say {NAMES[old.lower()]}"
        for n, line in enumerate(text.splitlines(), 1):
            for old in OLD.findall(line):
                yield f"{path}:{n}: {old}: say {NAMES[old.lower()]}"


def tracked(root):
    """Git's files; of a source archive without Git, none."""
    listing = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, text=True, check=False)
    for path in listing.stdout.split("\0")[:-1]:
        try:
            with open(f"{root}/{path}", encoding="utf-8") as f:
                yield path, f.read()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue


def self_test():
    found = list(findings([
        ("lib/leader/epitaph.c", "fine\n"),
        ("lib/a.c", "one\nint half_look; /* Headway */\n"),
        ("CHANGELOG.md", "`left_out` is `omitted` now\n"),
        ("tests/data/x.json", '{"left_out": 1}\n'),
        ("lib/b.c", "left out, half a look, postmortem\n"),
    ]))
    assert [f.split(":")[0] for f in found] == ["lib/leader/epitaph.c", "lib/a.c", "lib/a.c"], found
    assert "lib/a.c:2: half_look" in found[1] and "host_activity" in found[2], found
    with tempfile.TemporaryDirectory() as no_repository:
        assert not list(tracked(no_repository))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    parser.add_argument("--root")
    parser.add_argument("--self-test", action="store_true")
    arg = parser.parse_args()
    print("1..1")
    if arg.self_test:
        self_test()
        print("ok 1 - old_names: finds old names in paths and lines")
        return 0
    texts = list(tracked(arg.root))
    if not texts:
        print("ok 1 - old_names # SKIP not a Git checkout")
        return 0
    found = list(findings(texts))
    for line in found:
        print("# " + line)
    print(("not ok" if found else "ok") + " 1 - old_names: each thing has its new name")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
