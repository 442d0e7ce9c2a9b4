# SPDX-License-Identifier: Apache-2.0
"""Installations of a build with other options: nothing of the laboratory without it, and the whole
of it without the tests; Slurm's plugin only where Slurm's header is. We build the product without
the laboratory, and every verb of it works."""

import glob
import json
import os
import re
import subprocess
import tempfile

import pytest
from built import MESON, SOURCE
from daemon import Daemon
from waiting import expect

OF_THE_LAB = {"bin/collwatch-lab", "libexec/collwatch/sim/libnccl.so.2",
              "libexec/collwatch/sim/libcuda.so.1", "libexec/collwatch/programs/train_loop",
              "libexec/collwatch/programs/train_loop.py"}
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
    paths, targets = installed("-Dlab=disabled", "-Dtests=false", "-Dspank=disabled")
    assert paths >= OF_THE_PRODUCT, paths
    of_it = [p for p in paths if "lab" in os.path.basename(p) or "libexec" in p]
    assert not of_it, of_it
    assert not targets & {"collwatch-lab", "suite", "cuda", "nccl", "train_loop"}, targets
    assert "spank_collwatch" not in targets, targets


def test_without_the_tests_the_laboratory_is_whole():
    paths, _ = installed("-Dtests=false", "-Dspank_dir=lib/of-slurm")
    assert paths >= OF_THE_PRODUCT | OF_THE_LAB, OF_THE_LAB - paths
    # Unasked, where there is a Slurm to build against.
    assert ("lib/of-slurm/spank_collwatch.so" in paths) == os.path.exists("/usr/include/slurm/spank.h"), paths


def test_tests_without_the_laboratory_are_refused_by_name():
    with pytest.raises(AssertionError, match="the tests need the laboratory"):
        installed("-Dlab=disabled")


@pytest.fixture(scope="module", name="product")
def product_without_the_laboratory():
    """Installed in a directory, as for a package. No test measures it: the compiler need not try
    hard."""
    with tempfile.TemporaryDirectory(prefix="cw-") as at:
        for command in ([MESON, "setup", "--prefix=/usr", "--libexecdir=libexec", "-Dlab=disabled", "-Dtests=false",
                         "-Doptimization=0", "-Ddebug=false",
                         "-Dc_args=-ftrivial-auto-var-init=pattern", at + "/build", SOURCE],
                        ["ninja", "-C", at + "/build"],
                        [MESON, "install", "-C", at + "/build", "--destdir", at + "/root"]):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=1200, check=False)
            assert done.returncode == 0, done.stdout[-3000:]
        yield at + "/root"


def ran(product, *words):
    """(exit status, output)"""
    done = subprocess.run([product + "/usr/bin/collwatch", *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


def verbs_of(product):
    return re.findall(r"^  ([a-z][\w-]*)  ", ran(product, "--help")[1], re.M)


def test_a_product_without_the_laboratory_names_it_nowhere(product):
    paths = {os.path.relpath(p, product) for p in glob.glob(product + "/**", recursive=True) if os.path.isfile(p)}
    assert paths >= {"usr/bin/collwatch", "usr/sbin/collwatchd", "usr/share/man/man1/collwatch.1"}, paths
    for path in sorted(paths):
        assert not re.search(r"lab|sim/|libexec|programs|demo|suite", path.replace("/collwatch/slurm/", "/")), path
        if "/man/" in path or "completion" in path or "site-functions" in path:
            with open(f"{product}/{path}", encoding="utf-8") as f:
                found = re.search(r"collwatch-lab|\bdemo\b|\bsuite\b|@LAB@|@END@", f.read())
            assert not found, f"{path}: {found}"
    completed = [line.split("\t")[1] for line in ran(product, "--complete", "")[1].splitlines()]
    assert [v for v in completed if not v.startswith("-")] == verbs_of(product), completed
    for verb in "demo", "suite":
        status, said = ran(product, verb)
        assert (status, said.splitlines()[0]) == (1, f'collwatch: there is no verb "{verb}"'), said


def test_every_verb_of_a_product_without_the_laboratory_works(product):
    """Of a job that trains, and ends as the daemon does."""
    (agent,) = glob.glob(product + "/usr/lib/**/libcollwatch.so", recursive=True)
    tried = {}

    def works(verb, *words, status=0, says=""):
        tried[verb] = ran(product, verb, *words)
        expect(tried[verb][0] == status and says in tried[verb][1], f"{verb}: {tried[verb]}")

    with Daemon(program=product + "/usr/sbin/collwatchd") as daemon:
        daemon.start()
        control, records = ["--control", daemon.control], daemon.dir + "/records"
        os.mkdir(records)
        daemon.wait_for(daemon.train("quiet", variables={"LD_PRELOAD": agent}))
        works("status", *control, says="quiet")
        works("top", "--once", *control, says="op/s")
        works("report", *control)
        works("stacks", *control, says="train")
        works("mute", "quiet", *control)
        works("run", "--agent", agent, "--socket", daemon.path, "--", "true", says="loaded")
        works("doctor", "--config", daemon.conf, "--socket", daemon.path, *control, "--json",
              status=ran(product, "doctor", "--config", daemon.conf, "--socket", daemon.path, *control)[0],
              says="collwatch.doctor/1")
        works("record", "show", str(daemon.jobs[0].ranks[0].pid), says="quiet")
        works("init-cluster", daemon.dir + "/cluster", "--node", "a=10.0.0.1:7411", "--node", "b=10.0.0.2:7411",
              says="peer.key")
        works("completion", "bash", says="complete -F")
        works("help", says="Usage: collwatch")
        works("version", says="collwatch")
        short = daemon.train("short", arguments=["--steps", "30", "--elements", "64"],
                             variables={"LD_PRELOAD": agent, "COLLWATCH_RECORD": records})
        expect([s for s, _, _ in short.wait(120)] == [0, 0], short.ended())
        left = sorted(glob.glob(records + "/*"))
        works("analyze", *left)
        works("numerics", *left, status=3)
        works("baseline", "record", "-o", daemon.dir + "/baseline", *left, status=3, says="no tensor was examined")
    missing = set(verbs_of(product)) - set(tried)
    assert not missing, f"{missing}: never tried"
