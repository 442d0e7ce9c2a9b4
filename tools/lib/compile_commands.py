# SPDX-License-Identifier: Apache-2.0
"""Writes a compile_commands.json for linters. It has each C file of ours once (a build compiles some twice,
for two libraries) and no options that only gcc knows. It has no unit tests, because their assertions expand
to pages of code each. Prints the files' absolute paths, one a line. Prints nothing if no file is left, so
that the caller does not run a linter without files. A C file that is unknown to the build is named on stderr.

usage: compile_commands.py BUILD OUT [FILE…]
       compile_commands.py --clang BUILD [FILE…]    instead, lets clang read each file, unit tests too, and
                                                    fails where that makes it warn
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# Options that only gcc understands.
GCC_ONLY = ("ccache ", " -Wimplicit-fallthrough=5", " -fdiagnostics-color=always")
TESTS = ("tests/unit/", "tests/support/")
# We want only clang's remarks about the source: gcc's "noclone" is unknown to clang, which makes no clones.
CLANG = ["-fsyntax-only", "-Werror", "-Wno-unknown-attributes"]


def of_build(build, chosen):
    """The entry of each C file of ours, by its path in the source."""
    source = os.path.dirname(build)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    ours = {}
    for entry in commands:
        path = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
        name = os.path.relpath(path, source)
        if not path.endswith(".c") or path.startswith(build + "/") or name.startswith(".."):
            continue
        if chosen and path not in chosen:
            continue
        for words in GCC_ONLY:
            entry["command"] = entry["command"].replace(words, "")
        ours.setdefault(name, entry | {"file": path})
    return ours


def clang_reads(entry):
    """Returns clang's messages; empty if the file is fine."""
    command = re.sub(r" -M[QF] \S+| -MD| -o \S+", "", entry["command"]).split(" ", 1)[1]
    command = " ".join(["clang", command, *CLANG])
    done = subprocess.run(
        command, shell=True, cwd=entry["directory"], capture_output=True, text=True, check=False
    )
    return done.stderr + done.stdout if done.returncode or done.stderr else ""


def main():
    args = sys.argv[1:]
    is_clang = args[0] == "--clang"
    if is_clang:
        args.insert(1, args.pop(0))
    build = os.path.realpath(args[0])
    chosen = {os.path.realpath(path) for path in args[2:]}
    ours = of_build(build, chosen)
    for path in sorted(chosen - {entry["file"] for entry in ours.values()}):
        if not path.endswith(".h"):  # clang reads a header through the files that include it
            print(f"{path}: not compiled by {build}, not looked at", file=sys.stderr)
    if is_clang:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            said = [text for text in pool.map(clang_reads, ours.values()) if text]
        print("".join(said), end="")
        sys.exit(1 if said else 0)
    ours = {name: entry for name, entry in ours.items() if not name.startswith(TESTS)}
    os.makedirs(args[1], exist_ok=True)
    with open(os.path.join(args[1], "compile_commands.json"), "w", encoding="utf-8") as file:
        json.dump(list(ours.values()), file)
    for entry in ours.values():
        print(entry["file"])


if __name__ == "__main__":
    main()
