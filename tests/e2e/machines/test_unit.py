# SPDX-License-Identifier: Apache-2.0
"""The unit without a service manager: the verdict of systemd-analyze on it, and the places where
the installation puts its files."""

import fnmatch
import functools
import json
import os
import re
import shutil
import subprocess
import tempfile

import pytest
from built import BUILD, SOURCE
from waiting import call, expect

OTHER = 23777  # a user without other processes
# The result of `meson install`, for each layout of the system's directories. Links are not listed.
INSTALLED = """
bin/collwatch
bin/collwatch-lab
sbin/collwatchd
include/collwatch.h
lib/collwatch/libcollwatch.so
lib/pkgconfig/collwatch.pc
*-packages/collwatch/*.py
libexec/collwatch/programs/*
libexec/collwatch/sim/libcuda.so.1
libexec/collwatch/sim/libnccl.so.2
share/bash-completion/completions/collwatch.bash
share/bash-completion/completions/collwatch-lab.bash
share/collwatch/schemas/baseline_check.json
share/collwatch/schemas/doctor.json
share/collwatch/schemas/evidence.json
share/collwatch/schemas/folded.json
share/collwatch/schemas/healthy.json
share/collwatch/schemas/incident.json
share/collwatch/schemas/incidents.json
share/collwatch/schemas/modules.json
share/collwatch/schemas/mute.json
share/collwatch/schemas/numerics.json
share/collwatch/schemas/ops.json
share/collwatch/schemas/record.json
share/collwatch/schemas/snapshot.json
share/collwatch/schemas/stacks.json
share/collwatch/schemas/status.json
share/collwatch/schemas/tensors.json
share/collwatch/slurm/Makefile
share/collwatch/slurm/spank_collwatch.c
share/collwatch/slurm/task-prolog
share/doc/collwatch/examples/collwatchd.conf
share/fish/vendor_completions.d/collwatch.fish
share/fish/vendor_completions.d/collwatch-lab.fish
share/man/man[1578]/collwatch*
share/zsh/site-functions/_collwatch
share/zsh/site-functions/_collwatch-lab
systemd/system/collwatchd-control.socket
systemd/system/collwatchd.service
systemd/system/collwatchd.socket
sysusers.d/collwatch.conf
tmpfiles.d/collwatch.conf
""".split()
# Slurm's own, and only where there was one to build against.
PLUGIN = "lib/slurm*/spank_collwatch.so"


IMAGES = []


@pytest.fixture(scope="module", autouse=True)
def one_image():
    yield
    while IMAGES:
        shutil.rmtree(IMAGES.pop())
    image.cache_clear()


@functools.cache
def image():
    """The installed files, in a directory of their own."""
    top = tempfile.mkdtemp(prefix="cw-image-")
    IMAGES.append(top)
    call("meson", "install", "--no-rebuild", "-C", BUILD, "--destdir", top)
    return top


def files():
    return sorted(os.path.join(directory, name)[len(image()):]
                  for directory, _, names in os.walk(image()) for name in names
                  if not os.path.islink(os.path.join(directory, name)))


def unit_files():
    return [path for path in files() if "/systemd/system/" in path]


def test_installs_the_listed_files_only():
    def short(path):
        """From the part that does not depend on where the system has its directories."""
        for wanted in INSTALLED:
            if fnmatch.fnmatch(path, "*/" + wanted):
                return wanted
        return re.sub("^.*/lib/[^/]*-linux-[^/]*/", "lib/", path)  # Debian's libdir
    found = {short(path) for path in files()}
    if not any("/man/" in path for path in found):
        found.add("share/man/man[1578]/collwatch*")  # scdoc was not there
    found -= set(fnmatch.filter(found, PLUGIN))
    expect(found == set(INSTALLED), "\n".join(files()))


def test_leaves_no_core_dump():
    """One would hold what jobs of all users show, and the webhook's headers."""
    for path in unit_files():
        if path.endswith("/collwatchd.service"):
            with open(image() + path, encoding="utf-8") as f:
                expect("\nLimitCORE=0\n" in f.read(), path)


def test_keeps_the_simulated_device_from_the_loader():
    directories = {os.path.dirname(path) for path in files()
                   if re.search(r"\.so\b", path) and not fnmatch.fnmatch(path, "*/" + PLUGIN.split("/", 1)[1])}
    expect(len(directories) == 2, directories)
    for directory in directories:
        expect(directory.endswith(("/libexec/collwatch/sim", "/collwatch")), directory)


def analyze(*arguments):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed (Debian: systemd)")
    return call("systemd-analyze", *arguments,
                env={**os.environ, "SYSTEMD_UNIT_PATH": image() + "/units:"})


def copy_units():
    """Without what this machine lacks: the program itself is not installed here."""
    os.makedirs(image() + "/units", exist_ok=True)
    for path in unit_files():
        with open(image() + path, encoding="utf-8") as f:
            text = f.read()
        text = re.sub("^ExecStart=.*$", "ExecStart=/bin/true", text, flags=re.MULTILINE)
        with open(f"{image()}/units/{os.path.basename(path)}", "w", encoding="utf-8") as f:
            f.write(text)
    return [f"{image()}/units/{os.path.basename(path)}" for path in unit_files()]


def test_is_a_valid_unit():
    said = analyze("verify", "--man=no", *copy_units())
    expect(not said.strip(), said)


def test_runs_the_installed_daemon():
    with open(image() + next(p for p in unit_files() if p.endswith(".service")),
              encoding="utf-8") as f:
        program = re.search("^ExecStart=(.*)$", f.read(), re.MULTILINE)[1]
    expect(program in files(), program)


def explained():
    """{what: exposure} of the table."""
    with open(SOURCE + "/docs/hardening.md", encoding="utf-8") as f:
        rows = re.findall(r"^\| `(.*?)` \| ([0-9.]+) \| .+ \|$", f.read(), re.MULTILINE)
    return {what.replace("\\|", "|"): exposure for what, exposure in rows}


def test_explains_every_line_that_is_less_strict():
    unit = next(path for path in copy_units() if path.endswith(".service"))
    said = analyze("security", "--offline=true", "--json=short", unit)
    found = {row["name"]: row["exposure"] for row in json.loads(said)
             if float(row["exposure"] or 0) > 0}
    expect(found, said)
    expect(found == explained(), sorted(set(found.items()) ^ set(explained().items())))


def of_the_unit(key):
    with open(image() + next(p for p in unit_files() if p.endswith(".service")),
              encoding="utf-8") as f:
        return re.search(f"^{key}=(.*)$", f.read(), re.MULTILINE)[1]


def rights_of_the_unit():
    """setpriv's arguments: another user with the capabilities of the unit and no others."""
    line = of_the_unit("AmbientCapabilities")
    names = ",".join("+" + name.removeprefix("CAP_").lower() for name in line.split())
    return ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "--no-new-privs",
            *(f"--{kind}=-all,{names}" for kind in ("bounding-set", "inh-caps", "ambient-caps"))]


def passed(program, tests, *before):
    out = call(*before, f"{program}", "--tap", cwd="/", check=False)
    return [name for name in tests
            if re.search(rf"^ok - \S+::{name} (?!.*# SKIP)", out, re.MULTILINE)], out


def test_has_the_kernels_evidence_with_the_rights_of_the_unit():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv")
    wanted = {"kernel_events": ["who_stopped_a_rank", "table_of_deaths"],
              "kernel_threads": ["shows_where_a_sleeping_thread_is_and_since_when"],
              "kernel_programs": ["others_leave_no_trace"]}
    with tempfile.TemporaryDirectory(prefix="cw-rights-") as directory:
        os.chmod(directory, 0o755)  # the build may lie where that user cannot look
        for name, tests in wanted.items():
            if not os.path.exists(f"{BUILD}/tests/unit/test_{name}"):
                pytest.skip("the unit tests are not built")
            path = shutil.copy(f"{BUILD}/tests/unit/test_{name}", directory)
            theirs, out = passed(path, tests, *rights_of_the_unit())
            if theirs != tests and passed(path, tests)[0] != tests:
                pytest.skip("not even root has it here")
            expect(theirs == tests, out)


def test_lets_who_holds_a_thread_go_first():
    """Without a capability; that the filter lets it through is in the table above."""
    nice = 20 - int(of_the_unit("LimitNICE"))
    limit = ["prlimit", f"--nice={nice}:{nice}"]
    if (os.geteuid() != 0 or not shutil.which("setpriv") or
            subprocess.run([*limit, "true"], stderr=subprocess.DEVNULL, check=False).returncode != 0):
        pytest.skip("needs root, setpriv, and the right to raise limits")
    with tempfile.TemporaryDirectory(prefix="cw-rights-") as directory:
        os.chmod(directory, 0o755)
        path = shutil.copy(f"{BUILD}/tests/unit/test_stack_limit", directory)
        wanted = ["who_holds_a_thread_goes_first"]
        theirs, out = passed(path, wanted, *limit, *rights_of_the_unit())
        expect(theirs == wanted, out)
