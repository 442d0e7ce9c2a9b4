#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The library as a file, and the table of NCCL functions against nccl.h: the simulator's, and an
installed one if there is one."""
import glob
import os
import re
import subprocess

from agent_lib import *

SOURCE = os.environ["CW_SOURCE"]
CC = os.environ.get("CW_CC", "cc").split()
NEWEST_GLIBC = (2, 28)


def run(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout.decode()


def needs_only_glibc():
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-dW", AGENT))
    extra = set(needed) - {"libc.so.6", "libdl.so.2", "libpthread.so.0"}
    check(not extra, "NEEDED %r" % extra)


def runs_on_old_glibc():
    versions = {tuple(map(int, v.split("."))) for v in
                re.findall(r"GLIBC_(\d+\.\d+(?:\.\d+)?)", run("readelf", "-VW", AGENT))}
    check(versions and max(versions) <= NEWEST_GLIBC, "needs glibc %r" % (max(versions),))


def is_pinned_and_bound():
    flags = run("readelf", "-dW", AGENT)
    check("NODELETE" in flags and "NOW" in flags, flags)


def exports_only_what_it_means_to():
    symbols = run("nm", "-D", "--defined-only", AGENT)
    names = {line.split()[-1] for line in symbols.splitlines()}
    check(not any("@" in n for n in names), "unversioned: a named version would disable dlsym")
    check(names == {"dlsym", "collwatch_mark_step"} | set(table()), "exported: %r" % names)


def words(text):
    return re.findall(r"\w+|\*|\.\.\.", text)


def kind_of(parameter):
    """Its type without its name, in one spelling."""
    tokens = [t for t in words(parameter) if t not in ("struct", "enum")]
    names = [t for t in tokens if t not in ("*", "const", "unsigned")]
    if len(names) > 1 and tokens[-1] == names[-1]:
        tokens = tokens[:-1]
    stars = tokens.count("*")
    base = next(t for t in tokens if t not in ("*", "const"))
    base = {"CUstream": "cudaStream_t"}.get(base, base)
    # const of a value parameter says nothing; of what is pointed to it does.
    return ("const " if "const" in tokens and stars else "") + base + "*" * stars


def signature(result, parameters):
    inner = parameters.strip()
    kinds = [] if inner in ("", "void") else [kind_of(p) for p in inner.split(",")]
    return kind_of(result), kinds


def table():
    text = open(os.path.join(SOURCE, "agent/nccl_functions.h")).read()
    rows = {}
    for m in re.finditer(r"^\tF\(([^,]+), (nccl\w+), \d+, \w+, \(([^)]*)\)", text, re.M):
        rows[m[2]] = signature(m[1], m[3])
    for m in re.finditer(r"^\tF0\(([^,]+), (nccl\w+),", text, re.M):
        rows[m[2]] = signature(m[1], "")
    check(len(rows) == len(re.findall(r"^\tF0?\(", text, re.M)), "every row was read")
    return rows


def declared(header, *includes):
    text = run(*CC, "-E", "-P", *("-I" + i for i in includes), header)
    found = {}
    for m in re.finditer(r"([\w\s*]+?)\b(nccl[A-Z]\w*)\s*\(([^()]*)\)\s*(?:__attribute__[^;]*)?;", text):
        result = re.sub(r"\b(extern|__host__|inline)\b", "", m[1]).strip().split(";")[-1]
        if result and "typedef" not in result and "return" not in result:
            found[m[2]] = signature(result, m[3])
    check(len(found) > 10, "%s: only %d functions were read" % (header, len(found)))
    return found


def compare(found, must_cover):
    rows = table()
    for name, (result, kinds) in sorted(found.items()):
        check(name in rows or not must_cover, "%s is not in the table" % name)
        if name in rows:
            check(rows[name] == (result, kinds),
                  "%s: table %r, header %r" % (name, rows[name], (result, kinds)))


def table_matches_the_simulators_header():
    include = os.path.join(SOURCE, "tests/sim/include")
    compare(declared(include + "/nccl.h", include), True)


def table_matches_an_installed_header():
    headers = [h for h in glob.glob("/usr/local/cuda*/include/nccl.h") + ["/usr/include/nccl.h"]
               if os.path.exists(h)]
    if not headers:
        raise Skip("no nccl.h is installed")
    for header in headers:
        text = open(header).read()
        version = int(re.search(r"NCCL_MAJOR (\d+)", text)[1]) * 10000 + \
            int(re.search(r"NCCL_MINOR (\d+)", text)[1]) * 100
        found = declared(header, os.path.dirname(header))
        # A newer NCCL has functions this table does not know yet; older ones it knows all of.
        compare(found, version <= 22899)
        print("# %s: %d functions" % (header, len(found)))


if __name__ == "__main__":
    main([needs_only_glibc, runs_on_old_glibc, is_pinned_and_bound, exports_only_what_it_means_to,
          table_matches_the_simulators_header, table_matches_an_installed_header])
