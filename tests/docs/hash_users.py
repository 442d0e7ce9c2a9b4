#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: hash_users.py --root SOURCE | --self-test

lib/model/signature.h has a reason for each user of its quick hash why a collision does no harm
there. A file that calls the hash without an entry in that comment is a finding, and so is an entry
without such a call. A directory ("lab/suite/") stands for all its files. Prints TAP.
"""
import argparse
import os
import re
import sys

HASH = re.compile(r"\bcw_hash_(step|mix64|commit)\s*\(")
# A path of at least one directory, or a directory.
NAMED = re.compile(r"\b(?:[a-z_0-9]+/)+(?:[a-z_0-9]+\.c\b)?(?![a-z_0-9])")
# Tests compute it to compare it with the program's value.
NO_USERS = ("tests",)


def named_in(header):
    """Of the comment above cw_hash_step()."""
    comment = header[:header.index("static inline uint64_t cw_hash_step(")].rsplit("/*", 1)[1]
    return set(NAMED.findall(comment))


def users_in(root):
    found = set()
    for directory, below, files in os.walk(root):
        if directory == root:
            below[:] = [b for b in below if b not in NO_USERS and not b.startswith((".", "build"))]
        for name in files:
            path = os.path.join(directory, name)
            if not name.endswith(".c"):
                continue
            with open(path, encoding="utf-8") as f:
                if HASH.search(f.read()):
                    # Comments name a room of lib/ as includes do.
                    found.add(os.path.relpath(path, root).removeprefix("lib/"))
    return found


def findings(named, users):
    directories = tuple(n for n in named if n.endswith("/"))
    for user in sorted(users - named):
        if not user.startswith(directories):
            yield f"{user} uses the hash and is not named"
    for name in sorted(named - users):
        if not name.endswith("/") or not any(u.startswith(name) for u in users):
            yield f"{name} is named and does not use the hash"


def self_test():
    header = ("/* cw_hash_commit() in x/y.c */\n/*\n * (a/b.c, a/c/d.c), drawing (lab/suite/), by\n"
              " * (lib/model/job_key.h, x/y/z.h)\n */\nstatic inline uint64_t cw_hash_step(")
    assert named_in(header) == {"a/b.c", "a/c/d.c", "lab/suite/"}, named_in(header)
    assert not list(findings({"a/b.c", "lab/suite/"}, {"a/b.c", "lab/suite/x/y.c"}))
    assert list(findings({"a/b.c", "lab/suite/"}, {"a/e.c"})) == [
        "a/e.c uses the hash and is not named", "a/b.c is named and does not use the hash",
        "lab/suite/ is named and does not use the hash"]
    assert HASH.search("h = cw_hash_step(h, 1)") and not HASH.search("cw_hash_stepped(h)")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--root")
    parser.add_argument("--self-test", action="store_true")
    arg = parser.parse_args()
    print("1..1")
    if arg.self_test:
        self_test()
        print("ok 1 - hash_users: notices what is missing and what is too much")
        return 0
    with open(os.path.join(arg.root, "lib/model/signature.h"), encoding="utf-8") as f:
        found = list(findings(named_in(f.read()), users_in(arg.root)))
    for line in found:
        print("# " + line)
    print(("not ok" if found else "ok") + " 1 - hash_users: lib/model/signature.h names them all")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
