# SPDX-License-Identifier: Apache-2.0
"""Programs with AddressSanitizer, which the build has not: its runtime comes before the agent."""

import os
import shutil
import subprocess

import pytest
from built import SIM_DIR, SOURCE


def build_sanitized(compiler, at):
    """agent_program built with AddressSanitizer, and a program that writes where it must not."""
    if not shutil.which(compiler):
        pytest.skip("no " + compiler)
    for name, file in (("libnccl.so", "libnccl.so.2"), ("libcuda.so", "libcuda.so.1")):
        os.symlink(os.path.join(SIM_DIR, file), os.path.join(at, name))
    program, wrong = os.path.join(at, "program"), os.path.join(at, "wrong")
    sources = [os.path.join(SOURCE, "tests/e2e/agent", f)
               for f in ("agent_program.c", "agent_habits.c", "agent_children.c")]
    with open(wrong + ".c", "w") as f:
        f.write("#include <stdlib.h>\nint main(int n, char **v) { char *p = malloc(8); free(p); "
                "p[n] = 1; return p[n]; }\n")
    def build(*argv):
        p = subprocess.run([compiler, "-g", "-w", "-fsanitize=address", *argv],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return "" if p.returncode == 0 else p.stdout.decode().split("\n")[0] or "no word"

    said = build(wrong + ".c", "-o", wrong)
    if said:
        pytest.skip("%s builds nothing with AddressSanitizer: %s" % (compiler, said))
    # The compiler can build, so a failure here is ours.
    said = build(*sources, "-I" + SOURCE, "-I" + os.path.join(SOURCE, "lib"), "-I" + os.path.join(SOURCE, "lab/sim/include"),
                 "-L" + at, "-lnccl", "-lcuda", "-ldl", "-lpthread", "-D_GNU_SOURCE", "-o", program)
    if said:
        pytest.fail("%s does not build agent_program: %s" % (compiler, said))
    return program, wrong
