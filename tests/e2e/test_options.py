# SPDX-License-Identifier: Apache-2.0
"""What a build with other options would install: nothing of the laboratory without it, and the
whole of it without the tests. Configures, does not compile."""

import json
import os
import subprocess
import tempfile

import pytest
from built import MESON, SOURCE

OF_THE_LAB = {"bin/collwatch-lab", "libexec/collwatch/sim/libnccl.so.2",
              "libexec/collwatch/sim/libcuda.so.1", "libexec/collwatch/programs/train_loop",
              "libexec/collwatch/programs/train_loop.py",
              "libexec/collwatch/programs/scenario_rank"}
OF_THE_PRODUCT = {"bin/collwatch", "sbin/collwatchd"}


def installed(*options):
    """{path below the prefix}; names of all targets"""
    with tempfile.TemporaryDirectory(prefix="cw-") as build:
        done = subprocess.run([MESON, "setup", "--prefix=/usr", "--libexecdir=libexec", *options,
                               build, SOURCE], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout
        ask = lambda what: json.loads(subprocess.run(
            [MESON, "introspect", what, build], stdout=subprocess.PIPE, check=True).stdout)
        return ({os.path.relpath(path, "/usr") for path in ask("--installed").values()},
                {t["name"] for t in ask("--targets")})


def test_without_the_laboratory_nothing_of_it_is_made():
    paths, targets = installed("-Dlab=disabled", "-Dtests=false")
    assert paths >= OF_THE_PRODUCT, paths
    of_it = [p for p in paths if "lab" in os.path.basename(p) or "libexec" in p]
    assert not of_it, of_it
    assert not targets & {"collwatch-lab", "suite", "cuda", "nccl", "train_loop"}, targets


def test_without_the_tests_the_laboratory_is_whole():
    paths, _ = installed("-Dtests=false")
    assert paths >= OF_THE_PRODUCT | OF_THE_LAB, OF_THE_LAB - paths


def test_tests_without_the_laboratory_are_refused_by_name():
    with pytest.raises(AssertionError, match="the tests need the laboratory"):
        installed("-Dlab=disabled")
