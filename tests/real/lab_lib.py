# SPDX-License-Identifier: Apache-2.0
"""The common parts of the tests of NVIDIA's NCCL and of PyTorch on the simulated device: they build
these, run the sweep, and give the reason when a fetch fails."""

import os
import re
import signal
import socket
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
# The first import finds the common parts of all end-to-end tests, and the laboratory.
sys.path[1:1] = (os.path.join(SOURCE, *p) for p in (("tests", "lib"), ("lab", "nccl"), ("lab", "torch")))

import tap  # noqa: E402 pylint: disable=wrong-import-position

# Short where the defaults make a test wait, as in the demo.
PATIENCE = 'no_progress_after = "5s"\nfirst_op_after = "30s"\n'
OFFLINE = 3
# tools/test --offline sets this: we fetch nothing, and skip the missing parts.
IS_OFFLINE = bool(os.environ.get("COLLWATCH_TESTS_OFFLINE"))
# 3 reductions and 7 moves with 12 types, 6 operators; graph, split, abort, non_blocking, shrink, end.
LINES_PER_RANK = 3 * 12 * 6 + 7 * 12 + 6


class Tool:
    """lab/real-nccl or lab/real-torch on a build of collwatch."""

    def __init__(self, name, build, timeout_s):
        self.name, self.directory, self.timeout_s = name, build, timeout_s
        self.absent = "it could not be built"
        self.versions = set()  # of NCCL, as it says itself, that have run

    def run(self, verb, *args, env=None, timeout_s=None):
        """On exit it ends its children, which hold its output, too. ninja ends its compilers."""
        with subprocess.Popen([os.path.join(SOURCE, "lab", self.name), verb, "--build",
                               self.directory, *args], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=dict(os.environ, **(env or {})),
                              start_new_session=True) as p:
            try:
                out = p.communicate(timeout=timeout_s or self.timeout_s)[0]
            except BaseException:
                os.killpg(p.pid, signal.SIGTERM)
                raise
        return subprocess.CompletedProcess(p.args, p.returncode, out)

    def build(self, timeout_s, is_needed=not IS_OFFLINE, options=()):
        """If a fetch fails, or a build takes longer than that, the caller fails, or is skipped if
        the part is not needed."""
        try:
            p = self.run("build", "--jobs", "2", *(["--offline"] if IS_OFFLINE else []), *options,
                         timeout_s=timeout_s)
        except subprocess.TimeoutExpired:
            self.absent = f"{self.name} was not built within {timeout_s} s; the next run goes on from there"
            if is_needed:
                raise tap.Failure(self.absent) from None
            raise tap.Skip(self.absent) from None
        if p.returncode == OFFLINE:
            said = [line for line in p.stdout.splitlines() if line.startswith(self.name + ": ")]
            self.absent = said[-1] if said else "it could not be fetched"
            if self.absent.endswith(":"):  # the last that pip or apt has to say
                self.absent += " " + p.stdout.strip().splitlines()[-1].strip()
            if is_needed:
                raise tap.Failure(self.absent + "\nNothing of it was run; --offline leaves it out.")
            raise tap.Skip(self.absent)
        if p.returncode != 0:
            raise tap.Failure(p.stdout[-3000:])
        self.absent = None

    def needed(self):
        if self.absent:
            raise tap.Skip(self.absent)

    def sweep(self, program, ranks, net, sizes, preload=None, env=None):
        """The lines of all ranks, sorted."""
        self.needed()
        extra = ["--preload", preload] if preload else []
        p = self.run("run", "--ranks", str(ranks), "--net", net, "--timeout",
                     str(self.timeout_s - 20), *extra, "--", program, *sizes, env=env)
        lines = sorted(line for line in p.stdout.splitlines() if re.match(r"rank \d+ \w+", line))
        if p.returncode != 0:
            raise tap.Failure("%d: %s" % (p.returncode, p.stdout[-3000:]))
        results = [line for line in lines if " NCCL " not in line]
        self.versions |= set(re.findall(r"^rank \d+ NCCL (\d+)$", p.stdout, re.M))
        if len(results) != ranks * LINES_PER_RANK:
            raise tap.Failure("%d results: %s" % (len(results), p.stdout[-2000:]))
        return lines


def ask_ras(address, timeout_s):
    """NCCL's own status of a job, requested as its own ncclras does."""
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), timeout_s) as s:
            s.sendall(b"VERBOSE STATUS\n")
            text = b""
            while part := s.recv(65536):
                text += part
            return text.decode(errors="replace")
    except OSError as e:
        return str(e)


def must_be_equal(expected, got, what):
    if got != expected:
        different = set(got) ^ set(expected)
        raise tap.Failure("different %s: %s" % (what, ", ".join(sorted(different)[:6])))
