#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The output of tests/gpu/run, on a simulated device and on none. Prints TAP.

usage: test_gpu_run.py BUILD-DIRECTORY SIMULATED-DRIVER'S-DIRECTORY TAP-DIRECTORY
"""

import json
import os
import subprocess
import sys
import tempfile

BUILD, SIM = sys.argv[1:3]
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, sys.argv[3])
import sums  # noqa: E402
import tap  # noqa: E402

RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run")
# Every fixed case; the device has no room for larger tensors.
OPTIONS = ["--seconds", "0", "--seed", "1", "--most", str(2**24)]


def run(libraries, build=BUILD):
    env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    done = subprocess.run([sys.executable, RUN, *OPTIONS, build], env={**env, "LD_LIBRARY_PATH": libraries},
                          stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


def expect(condition, what):
    if not condition:
        raise tap.Failure(str(what))


def is_without_kernel():
    done = subprocess.run([os.path.join(BUILD, "tests/gpu/sums_device"), "--about"],
                          env={**os.environ, "LD_LIBRARY_PATH": SIM}, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False)
    return "there is no kernel" in done.stderr


def a_simulated_device_passes_and_proves_nothing():
    if is_without_kernel():
        raise tap.Skip("built without nvcc and clang: there is no kernel")
    status, doc = run(SIM)
    expect(status == 0 and doc["passed"], doc)
    expect(doc["simulated"] and not doc["proven"], doc)
    expect(doc["checked"] > 400 and len(doc["not_collected"]) == 7, doc)


# In the place of the program that asks the device: it knows how long cases and answers are.
STUB = """#!{python}
import sys
if sys.argv[1] == "--about":
    print('{{"device": "x", "driver": 1}}')
    sys.exit(0)
for n in range({answers}):
    head = sys.stdin.buffer.read({case})
    sys.stdin.buffer.read(int.from_bytes(head[24:32], sys.byteorder))
    sys.stdout.buffer.write(bytes({answer}) if head else b"")
    sys.stdout.buffer.flush()
sys.exit({status})
"""


def run_with_stub(answers, status):
    with tempfile.TemporaryDirectory() as build:
        os.makedirs(os.path.join(build, "tests/gpu"))
        path = os.path.join(build, "tests/gpu/sums_device")
        with open(path, "w", encoding="ascii") as f:
            f.write(STUB.format(python=sys.executable, answers=answers, status=status,
                                case=sums.CASE.size, answer=sums.RESULT_BYTES))
        os.chmod(path, 0o755)
        return run("", build)


def wrong_numbers_fail_it():
    status, doc = run_with_stub(answers=2000, status=0)
    expect(status == 1 and not doc["passed"] and not doc["proven"], doc)
    expect(doc["n_faults"] > 400 and len(doc["faults"]) == 50, doc["n_faults"])


def a_program_that_ends_early_fails_it():
    status, doc = run_with_stub(answers=0, status=1)
    expect(status == 1 and doc["checked"] == 0 and not doc["proven"], doc)
    expect(doc["n_faults"] == 1 and "ended with 1" in doc["faults"][0], doc)


if __name__ == "__main__":
    tap.run([a_simulated_device_passes_and_proves_nothing, wrong_numbers_fail_it,
             a_program_that_ends_early_fails_it])
