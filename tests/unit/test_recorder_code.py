#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""For each recorded call, lab/recorder runs the agent library's own machine code: the same
instructions that refer to the same things, except for the function that tells the time. Prints TAP.

usage: test_recorder_code.py OBJDUMP RECORDER_OBJECT ARCHIVE…"""

import re
import subprocess
import sys

FUNCTIONS = ("cw_op_enter", "cw_op_leave", "cw_ops_commit", "cw_ops_finish", "cw_group_finish",
             "cw_p2p_count", "cw_progress_at", "cw_progress_reached", "cw_comm_reserve")
INSTRUCTION = re.compile(r"^\s+[0-9a-f]+:\t(.*)$")
RELOCATION = re.compile(r"^\s+[0-9a-f]+: R_\S+\t(\S+)$")
PADDING = re.compile(r"^(data16 |cs )*(nop|xchg %ax,%ax)")
FUNCTION = re.compile(r"^[0-9a-f]+ <(\S+)>:$")


def functions(objdump, path):
    """By name: its instructions, without addresses, and the functions and data of others that they
    refer to. We drop the name and offset of a section, because each link changes them."""
    text = subprocess.run([objdump, "-dr", "--no-show-raw-insn", path], stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    found, lines = {}, None
    for line in text.splitlines():
        begins, instruction, relocation = FUNCTION.match(line), INSTRUCTION.match(line), \
            RELOCATION.match(line)
        if begins:
            lines = found.setdefault(begins.group(1), [])
        elif relocation and lines is not None:
            lines.append("-> " + clean(relocation.group(1)))
        elif instruction and lines is not None:
            code = re.sub(r"\s*(#.*|<[^>]*>)", "", instruction.group(1))
            code = re.sub(r"\b(j\w+|call\w*|b\.?\w*|bl|adrp|cbn?z|tbn?z)\s.*", r"\1", code)
            code = re.sub(r"-?0x[0-9a-f]+\(%rip\)", "(%rip)", code)
            lines.append(" ".join(code.split()))
    for lines in found.values():
        while lines and PADDING.match(lines[-1]):
            lines.pop()
    return found


def clean(symbol):
    symbol = re.sub(r"[+-]0x[0-9a-f]+$", "", symbol).replace("recorder_clock_gettime", "clock_gettime")
    return "a section" if symbol.startswith(".") or symbol == "cw_hot" else symbol


def main():
    objdump, recorder, archives = sys.argv[1], sys.argv[2], sys.argv[3:]
    here, there = functions(objdump, recorder), {}
    for archive in archives:
        there.update(functions(objdump, archive))
    failed = 0
    print(f"1..{len(FUNCTIONS)}")
    for i, name in enumerate(FUNCTIONS, 1):
        good = len(here.get(name, [])) > 5 and here[name] == there.get(name)
        failed += not good
        print(f"{'' if good else 'not '}ok {i} - {name} is the library's")
        if not good:
            for a, b in zip(here.get(name, []), there.get(name, [])):
                if a != b:
                    print(f"# recorder: {a}\n#  library: {b}")
                    break
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
