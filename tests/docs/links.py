#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what the project cites of itself: each link of a page leads to a file and to a heading in it,
and so does each "docs/PAGE.md#heading" in any source, script or unit; each file that a comment or a
page names by its path is there. Prints TAP.

usage: links.py --root DIR
       links.py --self-test    builds a tree with every fault, and looks
"""

import argparse
import os
import re
import sys
import tempfile

# Texts of others, made by fuzzers, or these faults: they cite nothing of ours.
NOT_OURS = ("tests/data", "tests/fuzz", "tests/docs")
SOURCES = (".c", ".h")
SCRIPTS = (".py", ".sh", ".build", ".service", ".socket", ".conf", ".in", ".scd", ".proto", ".scn", ".cu")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
LINK = re.compile(r"\]\(([^()\s]+)\)")
CITATION = re.compile(r"(?<![\w/.-])(docs/[\w./-]+\.(?:md|scd))(?:#([\w-]+))?")
PATH = re.compile(r"(?<![\w/.<-])((?:[\w-]+/)+[\w.-]+\.(?:c|h|py|proto|build|scd|md))\b")


def slug(heading):
    """As forges make anchors: lower case, no punctuation, hyphens for spaces."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.strip().lower()))


def anchors(text):
    seen = {}
    for heading in re.findall(r"^#{1,6} +(.+?)\s*#*$", FENCE.sub("", text), re.M):
        name = slug(heading)
        again = seen.get(name, 0)
        seen[name] = again + 1
        yield f"{name}-{again}" if again else name


def texts(root):
    """(path, text) of the files that may cite; builds of any name lie beside the sources."""
    for folder, below, names in os.walk(root):
        inside = os.path.relpath(folder, root)
        below[:] = sorted(b for b in below
                          if (not b.startswith(".") or b in (".github", ".ci"))
                          and os.path.normpath(os.path.join(inside, b)) not in NOT_OURS
                          and not os.path.isdir(os.path.join(folder, b, "meson-private")))
        for name in sorted(names):
            path = os.path.normpath(os.path.join(inside, name))
            try:
                with open(os.path.join(root, path), encoding="utf-8") as f:
                    script = "." not in name and f.read(2) == "#!"
                    f.seek(0)
                    if script or name.endswith((".md", *SOURCES, *SCRIPTS)):
                        yield path, f.read()
            except UnicodeDecodeError:
                continue


class Tree:
    def __init__(self, root):
        self.root = root
        self.pages = {}
        self.tops = {t for t in os.listdir(root) if os.path.isdir(os.path.join(root, t))}

    def exists(self, path):
        return os.path.exists(os.path.join(self.root, path))

    def has(self, page, anchor):
        if page not in self.pages:
            with open(os.path.join(self.root, page), encoding="utf-8") as f:
                self.pages[page] = set(anchors(f.read()))
        return anchor in self.pages[page]

    def target(self, page, anchor):
        """The defect of a target, or None."""
        if not self.exists(page):
            return f"{page} does not exist"
        if anchor and page.endswith(".md") and not self.has(page, anchor):
            return f"{page} has no heading #{anchor}"
        return None

    def links(self, path, text):
        for link in LINK.findall(FENCE.sub("", text)):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            page = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            yield self.target(page, anchor)

    def citations(self, text):
        for page, anchor in CITATION.findall(text):
            if page.endswith(".scd") and self.exists(page + ".in"):
                continue
            yield self.target(page, anchor)

    def paths(self, path, text):
        for name in PATH.findall(text):
            here = os.path.join(os.path.dirname(path), name)
            if name.split("/")[0] in self.tops and not self.exists(name) and not self.exists(here):
                yield f"{name} does not exist"

    def problems(self):
        for path, text in texts(self.root):
            found = list(self.citations(text))
            if path.endswith(".md"):
                found += self.links(path, text)
                found += self.paths(path, text)
            elif path.endswith(SOURCES):
                for comment in COMMENT.findall(text):
                    found += self.paths(path, comment)
            for what in sorted({f for f in found if f}):
                yield f"{path}: {what}"


FAULTY = {
    "docs/a.md": "# A page\n\n## Two words, once\n\n[ok](#two-words-once) [gone](b.md) [none](#three)\n"
                 "```\n# not a heading\n[not a link](nowhere.md)\n```\n[fenced](#not-a-heading)\n"
                 "see room/gone.c and room/there.c\n",
    "room/there.c": "/* docs/a.md#two-words-once, docs/a.md#other; room/away.h */\n#include \"room/made.h\"\n",
    "script": "#!/bin/sh\n# docs/away.md\n",
    "build/meson-private/x": "",
    "build/y.md": "[gone](z.md)\n",
}
FOUND = [
    "docs/a.md: docs/a.md has no heading #not-a-heading",
    "docs/a.md: docs/a.md has no heading #three",
    "docs/a.md: docs/b.md does not exist",
    "docs/a.md: room/gone.c does not exist",
    "room/there.c: docs/a.md has no heading #other",
    "room/there.c: room/away.h does not exist",
    "script: docs/away.md does not exist",
]


def self_test():
    with tempfile.TemporaryDirectory(prefix="links-") as root:
        for path, text in FAULTY.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
        found = sorted(Tree(root).problems())
    return sorted(set(found) ^ set(FOUND))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
    parser.add_argument("--root")
    parser.add_argument("--self-test", action="store_true")
    arg = parser.parse_args()
    found = self_test() if arg.self_test else list(Tree(arg.root).problems())
    print("1..1")
    for problem in found:
        print(f"# {problem}")
    name = "faults are seen" if arg.self_test else "what is cited is there"
    print(("not ok" if found else "ok") + f" 1 - {name}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
