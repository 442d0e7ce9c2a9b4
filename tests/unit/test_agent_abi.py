#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""agent/check-abi.sh against libraries that need a planted version of a symbol. Prints TAP.

usage: test_agent_abi.py CHECK-ABI.SH READELF TAP-DIRECTORY CC...
"""

import os
import subprocess
import sys
import tempfile

CHECK, READELF = sys.argv[1:3]
sys.path.insert(0, sys.argv[3])
CC = sys.argv[4:]
import tap  # noqa: E402  pylint: disable=wrong-import-position


def compile_library(to, source, *options):
    with open(to + ".c", "w", encoding="ascii") as f:
        f.write(source)
    subprocess.run([*CC, "-shared", "-fPIC", "-nostdlib", "-fno-builtin", to + ".c", "-o", to,
                    *options], check=True)


def check_library(*needs, relocations=False):
    """(exit status, words, whether there is a stamp) for a library that calls SYMBOL@VERSION."""
    with tempfile.TemporaryDirectory() as at:
        stub, script = os.path.join(at, "libstub.so"), os.path.join(at, "stub.map")
        library, stamp = os.path.join(at, "library.so"), os.path.join(at, "stamp")
        names = [need.split("@") for need in needs]
        with open(script, "w", encoding="ascii") as f:
            for version in sorted({v for _, v in names}):
                own = "".join(f"{n}; " for n, v in names if v == version)
                f.write(f"{version} {{ global: {own}}};\n")
            if relocations:
                f.write("GLIBC_ABI_DT_RELR { };\n")
        compile_library(stub, "".join(f"void {n}(void) {{}}\n" for n, _ in names),
                        f"-Wl,--version-script={script}", "-Wl,-soname,libc.so.6")
        calls = "".join(f"extern void {n}(void);\n" for n, _ in names)
        uses = "".join(f"\t{n}();\n" for n, _ in names)
        packed = ["-Wl,-z,pack-relative-relocs"] if relocations else []
        source = f"{calls}void library(void)\n{{\n{uses}}}\nvoid *own = &own;\n"
        compile_library(library, source, stub, *packed)
        done = subprocess.run(["sh", CHECK, READELF, library, stamp], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout, os.path.exists(stamp)


def expect(condition, what):
    if not condition:
        raise tap.Failure(str(what))


def expect_refused(found, *names):
    status, words, stamped = found
    expect(status != 0 and not stamped, found)
    for name in names:
        expect(f"needs {name}: above GLIBC_2.28" in words, f"{name} is not named: {words}")
    expect(len(words.splitlines()) == len(names), words)


def takes_the_floor_and_what_is_below():
    found = check_library("old@GLIBC_2.2.5", "new@GLIBC_2.28", "arm@GLIBC_2.17")
    expect(found == (0, "", True), found)


def names_what_a_newer_glibc_renamed():
    found = check_library("memcpy@GLIBC_2.14", "__isoc23_strtol@GLIBC_2.38",
                          "__isoc23_sscanf@GLIBC_2.38")
    expect_refused(found, "__isoc23_strtol@GLIBC_2.38", "__isoc23_sscanf@GLIBC_2.38")


def compares_numbers_not_letters():
    expect(check_library("a@GLIBC_2.4", "b@GLIBC_2.9")[0] == 0, "2.4 and 2.9 are below 2.28")
    expect_refused(check_library("c@GLIBC_2.29"), "c@GLIBC_2.29")
    expect_refused(check_library("c@GLIBC_2.100"), "c@GLIBC_2.100")
    expect_refused(check_library("d@GLIBC_3.0"), "d@GLIBC_3.0")


def refuses_versions_that_are_no_release():
    expect_refused(check_library("a@GLIBC_PRIVATE"), "a@GLIBC_PRIVATE")
    expect_refused(check_library("b@GCC_3.0"), "b@GCC_3.0")


def names_a_version_that_no_symbol_needs():
    try:
        found = check_library("a@GLIBC_2.36", relocations=True)
    except subprocess.CalledProcessError:
        raise tap.Skip("the linker packs no relocations") from None
    if "DT_RELR" not in found[1]:
        raise tap.Skip("the linker packs no relocations")
    expect_refused(found, "a@GLIBC_2.36", "GLIBC_ABI_DT_RELR")


def refuses_what_has_no_versions():
    with tempfile.TemporaryDirectory() as at:
        library = os.path.join(at, "library.so")
        compile_library(library, "int one(void) { return 1; }\n")
        for path in library, os.path.abspath(__file__), os.path.join(at, "nothing"):
            done = subprocess.run(["sh", CHECK, READELF, path, at + "/stamp"], check=False,
                                  stderr=subprocess.DEVNULL)
            expect(done.returncode != 0 and not os.path.exists(at + "/stamp"), path)


tap.run([takes_the_floor_and_what_is_below, names_what_a_newer_glibc_renamed,
         compares_numbers_not_letters, refuses_versions_that_are_no_release,
         names_a_version_that_no_symbol_needs, refuses_what_has_no_versions])
