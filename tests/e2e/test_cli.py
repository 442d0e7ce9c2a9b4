#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""collwatch run, status and report against a daemon of their own. Prints TAP.

usage: test_cli.py COLLWATCH COLLWATCHD
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

import tap
from tap import Skip

COLLWATCH, COLLWATCHD = (os.path.abspath(path) for path in sys.argv[1:3])
TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Daemon:
    """collwatchd with private sockets and state, ready when the block begins."""

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="cw-")
        self.socket, self.control = self.dir + "/agent.sock", self.dir + "/control.sock"
        config = self.dir + "/collwatchd.conf"
        with open(config, "w", encoding="ascii") as f:
            f.write(f'node_name = "here"\nagent_socket = "{self.socket}"\n'
                    f'control_socket = "{self.control}"\nstate_dir = "{self.dir}/state"\n')
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify.bind(self.dir + "/notify.sock")
        notify.settimeout(30)
        self.log = open(self.dir + "/log", "wb")
        self.process = subprocess.Popen(
            [COLLWATCHD, "--config", config], stderr=self.log,
            env=dict(os.environ, NOTIFY_SOCKET=self.dir + "/notify.sock"))
        try:
            while b"READY=1" not in notify.recv(4096):
                pass
        except BaseException:
            self.__exit__()
            raise
        finally:
            notify.close()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.log.close()
        shutil.rmtree(self.dir)


def run(*arguments, **env):
    outer = {k: v for k, v in os.environ.items()
             if k != "LD_PRELOAD" and not k.startswith("COLLWATCH_")}
    return subprocess.run([COLLWATCH, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env={**outer, **env}, timeout=60, check=False)


def expect(done, status, out=None, err=None):
    text = f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == status, text
    assert out is None or out in done.stdout, f"no {out!r}: {text}"
    assert err is None or err in done.stderr, f"no {err!r}: {text}"


@test
def run_loads_the_agent_and_reaches_the_daemon():
    with Daemon() as daemon:
        done = run("run", "--socket", daemon.socket, "--", "sh", "-c",
                   "echo $LD_PRELOAD $COLLWATCH_SOCKET; grep -c libcollwatch /proc/self/maps; exit 7")
        expect(done, 7, f"libcollwatch.so {daemon.socket}\n", "loaded, daemon reached")
        assert int(done.stdout.split()[-1]) > 0, done.stdout
        assert done.stderr.count("\n") == 1, done.stderr


@test
def run_says_why_no_daemon_is_reached_and_runs_anyway():
    done = run("run", "--socket", "/nowhere/agent.sock", "--", "echo", "done")
    expect(done, 0, "done\n", "no daemon on /nowhere/agent.sock (No such file or directory)")


@test
def run_without_an_agent_runs_the_program_all_the_same():
    done = run("run", "--agent", "/nowhere/libcollwatch.so", "--", "sh", "-c", "echo $LD_PRELOAD.")
    expect(done, 0, ".\n", "agent /nowhere/libcollwatch.so: No such file or directory")


@test
def run_keeps_what_is_preloaded_already():
    other = next((p for p in ("/lib/x86_64-linux-gnu/libdl.so.2", "/lib/aarch64-linux-gnu/libdl.so.2")
                  if os.path.exists(p)), None)
    if not other:
        raise Skip("no libdl.so.2 to preload")
    done = run("run", "--", "sh", "-c", "echo $LD_PRELOAD", LD_PRELOAD=other)
    expect(done, 0)
    first, second = done.stdout.strip().split(":")
    assert first == other and second.endswith("/libcollwatch.so"), done.stdout


@test
def run_puts_the_address_sanitizer_first_where_it_is_needed():
    with tempfile.TemporaryDirectory(prefix="cw-") as tmp:
        source, program = tmp + "/main.c", tmp + "/main"
        with open(source, "w", encoding="ascii") as f:
            f.write("#include <stdlib.h>\n#include <stdio.h>\n"
                    'int main(void) { puts(getenv("LD_PRELOAD")); return 0; }\n')
        if subprocess.run(["gcc", "-fsanitize=address", "-o", program, source],
                          stderr=subprocess.DEVNULL, check=False).returncode != 0:
            raise Skip("gcc cannot link with AddressSanitizer")
        done = run("run", "--", program)
        expect(done, 0, "libasan.so.")
        assert done.stdout.index("libasan.so") < done.stdout.index("libcollwatch.so"), done.stdout


@test
def run_of_nothing_and_of_what_is_not_there_fails():
    expect(run("run"), 1, err="what shall be run?")
    expect(run("run", "--", "/nowhere/program"), 1, err="cannot run /nowhere/program")


@test
def status_of_an_idle_daemon():
    with Daemon() as daemon:
        expect(run("status", "--control", daemon.control), 0, "here: collwatchd")
        done = run("status", "--json", COLLWATCH_CONTROL_SOCKET=daemon.control)
        expect(done, 0)
        document = json.loads(done.stdout)
        assert document["schema"] == "collwatch.status/1" and document["jobs"] == [], document
        expect(run("report", "--control", daemon.control), 0, "no incidents\n")
        expect(run("report", "0123456789abcdef", "--control", daemon.control), 3, "")


@test
def without_a_daemon_it_says_so():
    for verb in (["status"], ["report"], ["report", "0123456789abcdef"]):
        expect(run(*verb, "--control", "/nowhere/control.sock"), 1, "",
               "no daemon answers on /nowhere/control.sock")
    expect(run("report", "/nowhere/bundle"), 1, "", "cannot open /nowhere/bundle")


@test
def usage_errors_are_errors():
    expect(run(), 1, err="Usage")
    expect(run("no-such-verb"), 1, err='no verb "no-such-verb"')
    expect(run("status", "--no-such-option"), 1, "")
    expect(run("--version"), 0, "collwatch ")
    expect(run("--help"), 0, "Usage")
    for verb in ("run", "status", "report", "init-cluster", "demo"):
        expect(run(verb, "--help"), 0, f"Usage: collwatch {verb}")


if __name__ == "__main__":
    tap.run(TESTS)
