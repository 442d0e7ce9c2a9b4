# SPDX-License-Identifier: Apache-2.0
"""The header that programs tell their steps with: C and C++, with the agent, without it, and with
something else of that name."""
import os
import shutil
import subprocess
import tempfile

import pytest
from built import AGENT, SOURCE

HEADER = SOURCE + "/agent/collwatch.h"
PROGRAM = """
#include <errno.h>
#include <stdio.h>

#include "collwatch.h"

int main(void)
{
	errno = 42;
	for (int64_t step = 0; step < 3; step++)
		collwatch_mark_step(step);
	printf("errno %d\\n", errno);
	return 7;
}
"""
# Stands in for the agent: prints each call with its arguments.
STAND_IN = """
#include <inttypes.h>
#include <stdio.h>

void collwatch_mark_step(int64_t step);

void collwatch_mark_step(int64_t step)
{
	printf("step %" PRId64 "\\n", step);
}
"""
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2"]


@pytest.fixture(name="directory", scope="module")
def built_directory():
    with tempfile.TemporaryDirectory(prefix="cw-") as directory:
        shutil.copy(HEADER, directory)
        for name, text in ("program.c", PROGRAM), ("program.cc", PROGRAM), ("stand_in.c", STAND_IN):
            with open(f"{directory}/{name}", "w", encoding="ascii") as f:
                f.write(text)
        build(directory, "stand_in.c", "stand_in.so", "cc", "-shared", "-fPIC")
        yield directory


def build(directory, source, output, compiler, *options):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    subprocess.run([compiler, *STRICT, *options, "-o", output, source, "-ldl"], cwd=directory,
                   check=True, timeout=120)


def run(directory, program, preload=None):
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    done = subprocess.run([f"{directory}/{program}"], env={**env, **({"LD_PRELOAD": preload} if preload else {})},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60)
    assert done.returncode == 7, done
    return done.stdout.decode()


@pytest.mark.parametrize("compiler, source, options", [
    ("cc", "program.c", ["-std=c99"]),
    ("cc", "program.c", ["-std=c99", "-no-pie", "-fno-pie"]),
    ("cc", "program.c", ["-std=gnu2x", "-fsanitize=undefined"]),
    ("c++", "program.cc", ["-std=c++11"]),
], ids=["c99", "no-pie", "gnu2x", "c++11"])
def test_steps_reach_the_agent_where_there_is_one(directory, compiler, source, options):
    build(directory, source, "program", compiler, *options)
    alone = run(directory, "program")
    assert alone == "errno 42\n", alone
    assert run(directory, "program", AGENT) == alone
    assert run(directory, "program", directory + "/stand_in.so") == "step 0\nstep 1\nstep 2\n" + alone
