# SPDX-License-Identifier: Apache-2.0
"""The effect of Debian's scripts on the account and the directory of the configuration, in an /etc
of their own: nothing of this machine changes."""

import subprocess
import tempfile

import pytest
from built import SOURCE
from waiting import expect

pytestmark = pytest.mark.root
# A copy of /etc, and /var/lib and /run that are empty. The user is made as systemd-sysusers makes it.
OWN_ETC = """
set -eu
mkdir "$1/etc"
cp -a /etc/passwd /etc/group /etc/shadow /etc/gshadow /etc/login.defs /etc/nsswitch.conf "$1/etc/"
mount --bind "$1/etc" /etc
mount -t tmpfs none /run
mount -t tmpfs none /var/lib
getent passwd collwatch >/dev/null && userdel collwatch
groupadd --system collwatch
useradd --system --gid collwatch --home-dir /var/lib/collwatch --no-create-home --shell /usr/sbin/nologin collwatch
mkdir /etc/collwatch
"""
PURGE = f'sh "{SOURCE}/debian/collwatch-daemon.postrm" purge\n'
ACCOUNT = "getent passwd collwatch || echo no user; getent group collwatch || echo no group\n"


def run(script):
    with tempfile.TemporaryDirectory(prefix="cw-etc-") as directory:
        done = subprocess.run(["unshare", "--mount", "sh", "-c", OWN_ETC + script, "sh", directory],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    expect(done.returncode == 0, done.stdout)
    return done.stdout


def test_a_purge_keeps_the_group_of_a_key_that_stays():
    said = run("""
echo secret >/etc/collwatch/peer.key
chmod 0640 /etc/collwatch/peer.key
chgrp collwatch /etc/collwatch/peer.key
""" + PURGE + ACCOUNT + "stat -c '%G %a' /etc/collwatch/peer.key")
    expect("no group" not in said and "collwatch 640" in said, said)


def test_a_purge_takes_the_account_where_nothing_of_it_stays():
    said = run("echo >/etc/collwatch/collwatchd.conf\n" + PURGE + ACCOUNT + "ls /etc/collwatch")
    expect("no user" in said and "no group" in said and "collwatchd.conf" in said, said)


def test_the_packages_ship_the_directory():
    with open(SOURCE + "/debian/collwatch-daemon.dirs", encoding="ascii") as f:
        expect(f.read().split() == ["etc/collwatch"], "Debian's package")
    with open(SOURCE + "/deploy/rpm/collwatch.spec", encoding="utf-8") as f:
        expect("\n%dir %attr(0755,root,root) /etc/collwatch\n" in f.read(), "the RPM package")
    with open(SOURCE + "/systemd/collwatchd.service", encoding="utf-8") as f:
        expect("\nConfigurationDirectory=" not in f.read(), "systemd would give it to the daemon's user")
