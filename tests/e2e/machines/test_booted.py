#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The unit under a real service manager: boots systemd in a container over a throw-away copy of
this machine's root (or, with --root, of another: one made by mmdebstrap), and runs booted_inside.py
in it. With --packages, it installs Debian packages from DIRECTORY, and later ones from
NEXT-DIRECTORY (tests/packages/run makes them). Prints TAP.

Needs root, systemd-nspawn and overlayfs, else says so. Nothing of the machine changes: the
container writes to memory, which goes with it.

usage: test_booted.py [--root DIRECTORY] [--until TEST] BUILD-DIRECTORY NEXT-COLLWATCHD
       test_booted.py [--root DIRECTORY] [--until TEST] --packages DIRECTORY NEXT-DIRECTORY

--until: that test is the last one; each begins where the one before it has ended.

A root by Debian's tools, and the tests on it:

mmdebstrap --variant=minbase --include=systemd,systemd-sysv,dbus,python3,libevent-core-2.1-7,\
libevent-openssl-2.1-7,libevent-extra-2.1-7,libjansson4,libconfuse2,libprotobuf-c1,libbpf1,\
libcap-ng0,libcurl4,libdw1,libseccomp2,libssl3 bookworm ROOT \
  "deb http://deb.debian.org/debian bookworm main" \
  "deb http://deb.debian.org/debian-security bookworm-security main"
tests/e2e/machines/test_booted.py --root ROOT build build/tests/e2e/collwatchd_next
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Boots in 3 s and is done in 40 s on an idle machine; dpkg takes a while longer.
DEADLINE_S, PACKAGES_DEADLINE_S = 900, 1800
UNIT = """[Unit]
Description=Tests of collwatchd
Wants=dbus.socket systemd-journald.socket
After=basic.target dbus.socket
Requires=basic.target
SuccessAction=exit-force
FailureAction=exit-force

[Service]
Type=oneshot
StandardOutput=file:{out}
StandardError=file:{err}
ExecStart={command}
"""


def skip(reason):
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


def mount(*arguments):
    return subprocess.run(["mount", *arguments], stderr=subprocess.PIPE, text=True, check=False)


class Root:
    """An overlay over a root directory, in memory."""

    def __init__(self, lower):
        self.top = tempfile.mkdtemp(prefix="cw-booted-", dir="/var/tmp")
        self.path = os.path.join(self.top, "root")
        self.lower = lower
        self.mounted = []

    def __enter__(self):
        try:
            self.mount()
        except BaseException:
            self.__exit__()
            raise
        return self

    def mount(self):
        layers = os.path.join(self.top, "layers")
        os.mkdir(layers)
        os.mkdir(self.path)
        if mount("-t", "tmpfs", "-o", "size=1g", "tmpfs", layers).returncode != 0:
            skip("no tmpfs can be mounted")
        self.mounted.append(layers)
        for name in "upper", "work":
            os.mkdir(os.path.join(layers, name))
        done = mount("-t", "overlay", "overlay", "-o",
                     f"lowerdir={self.lower},upperdir={layers}/upper,workdir={layers}/work",
                     self.path)
        if done.returncode != 0:
            skip("no overlay can be mounted: " + done.stderr.strip())
        self.mounted.append(self.path)

    def write(self, path, text):
        with open(self.path + path, "w", encoding="ascii") as f:
            f.write(text)

    def __exit__(self, *exc):
        for path in reversed(self.mounted):
            subprocess.run(["umount", path], check=False)
        shutil.rmtree(self.top)


def install(build, image):
    """Makes the content of a package."""
    done = subprocess.run(["meson", "install", "--no-rebuild", "-C", build, "--destdir", image],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        print(f"1..1\n# {done.stdout}\nnot ok 1 - installs")
        sys.exit(1)


def bring(results, arguments):
    """Copies the files that booted_inside.py needs, and writes its command."""
    image = results + "/image"
    if arguments.packages:
        shutil.copytree(arguments.build, image)
        shutil.copytree(arguments.next_daemon, results + "/next")
    else:
        install(os.path.abspath(arguments.build), image)
        shutil.copy(arguments.next_daemon, results + "/next")
    for name in "booted_inside.py", "../../lib/tap.py", "../../lib/waiting.py":
        shutil.copy(os.path.join(HERE, name), results)
    return f"/usr/bin/python3 -B {results}/booted_inside.py {image} {results}/next {arguments.until}"


def boot(root, results, command, deadline_s):
    """Boots it and runs the command there, as a service: its output lies in results/tap and
    results/err. Returns 0, or the container's exit status."""
    try:
        os.unlink(root.path + "/usr/sbin/policy-rc.d")  # images for build machines start nothing
    except FileNotFoundError:
        pass
    root.write("/etc/systemd/system/cw-booted.service",
               UNIT.format(out=results + "/tap", err=results + "/err", command=command))
    nspawn = ["systemd-nspawn", "--quiet", "--directory", root.path, "--boot", "--register=no",
              "--keep-unit", "--private-network", "--machine=cw-booted-%d" % os.getpid(),
              # A node's service manager may give its units these rights, so this one may, too.
              "--capability=all", "--system-call-filter=@debug bpf perf_event_open",
              "--console=read-only", f"--bind={results}",
              "--", "--unit=cw-booted.service", "--log-target=journal"]
    with open(results + "/console", "wb") as console:
        manager = subprocess.Popen(nspawn, stdin=subprocess.DEVNULL, stdout=console,
                                   stderr=subprocess.STDOUT)
        try:
            return manager.wait(deadline_s)
        except subprocess.TimeoutExpired:
            manager.terminate()  # powers off in there
            try:
                manager.wait(120)
            except subprocess.TimeoutExpired:
                manager.kill()
                manager.wait()
            return -1


def show(path, prefix=""):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            for line in f:
                print(prefix + line.rstrip("\n"))
    except OSError as e:
        print(f"# {path}: {e}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default="/")
    parser.add_argument("--packages", action="store_true")
    parser.add_argument("--until", default="")
    parser.add_argument("build")
    parser.add_argument("next_daemon")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        skip("booting a container needs root")
    if not shutil.which("systemd-nspawn"):
        skip("systemd-nspawn is not installed (Debian: systemd-container)")
    with Root(arguments.root) as root, tempfile.TemporaryDirectory(prefix="cw-results-",
                                                                   dir="/var/tmp") as results:
        os.chmod(results, 0o755)
        status = boot(root, results, bring(results, arguments),
                      PACKAGES_DEADLINE_S if arguments.packages else DEADLINE_S)
        if not os.path.exists(results + "/tap"):
            show(results + "/console", "# ")
            print("1..1\nnot ok 1 - boots")
            sys.exit(1)
        show(results + "/tap")
        show(results + "/err", "# ")
        if status != 0:
            print(f"# the container ended with {status}")
        sys.exit(status != 0)


if __name__ == "__main__":
    main()
