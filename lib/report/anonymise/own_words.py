#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the words of our own sentences, documents and names as a sorted array in C. They come from the
string literals of the rooms that write text, and from the names of facts. Any other word may be the name
of a user or a machine (anonymise.c).

usage: own_words.py SOURCE OUTPUT DEPFILE
"""

import pathlib
import re
import sys

ROOMS = ["daemon", "lib/analysis", "lib/common", "lib/identity", "lib/import", "lib/leader", "lib/loop",
         "lib/model", "lib/record", "lib/report", "lib/say"]
# In these files every identifier is the name of a field.
FIELDS = ["lib/model/fact_list.h"]
# Of a row of this file, documents have the key, and reports show the words before the last text, which
# is for the documentation.
INCIDENTS = "lib/model/incident_list.h"
ROW = re.compile(r'X\(\w+, \w+, \w+, "(\w+)", \w+, \w+, "([^"]*)"')
# In this file a text of capital letters names the kinds of arguments.
SAYINGS = "lib/model/saying_list.h"
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
OMITTED = re.compile(r"^[ \t]*#[ \t]*include[^\n]*|/\*.*?\*/", re.MULTILINE | re.DOTALL)
SPEC = re.compile(r"%[-+ #0]*[\d*]*(?:\.[\d*]*)?(?:hh|h|ll|l|j|z|t)?[a-zA-Z%]|\\(?:x[0-9a-fA-F]+|.)")
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")  # like letter() in anonymise.c, but only ASCII


def words_of(text):
    for word in WORD.findall(text):
        word = word.rstrip(".-").lower()
        if re.search("[a-z]", word):
            yield word


def main():
    source, output, depfile = map(pathlib.Path, sys.argv[1:])
    files = sorted(f for room in ROOMS for f in (source / room).rglob("*.[ch]"))
    words = set()
    for path in files:
        text = path.read_text(encoding="utf-8")
        if str(path.relative_to(source)) == INCIDENTS:
            words.update(words_of(SPEC.sub(" ", " ".join(sum(ROW.findall(text), ())))))
            continue
        if str(path.relative_to(source)) in FIELDS:
            words.update(words_of(text))
        for literal in LITERAL.findall(OMITTED.sub("", text)):
            if str(path.relative_to(source)) != SAYINGS:
                words.update(words_of(SPEC.sub(" ", literal)))
            elif not literal.isupper():
                words.update(words_of(literal.replace("%", " ")))
    output.write_text("/* Made by own_words.py. */\nstatic const char *const own_words[] = {\n" +
                      "".join(f'\t"{word}",\n' for word in sorted(words)) + "};\n", encoding="ascii")
    depfile.write_text(f"{output}: " + " ".join(str(f).replace(" ", "\\ ") for f in files) + "\n",
                       encoding="utf-8")


main()
