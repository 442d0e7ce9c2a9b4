# SPDX-License-Identifier: Apache-2.0
"""`collwatch run --peers` above `run --standalone` on two hosts of one user without rights: each
with a network, a name and processes of its own. This test starts the ranks there in srun's place:
it takes the environment of the program that `run --peers` started, and hands it on."""

import contextlib
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import pytest
from built import COLLWATCH, TRAIN_LOOP
from open_copy import directory, open_copy
from waiting import call, expect, wait_until

HOSTS = {"gpu1": "10.98.7.1", "gpu2": "10.98.7.2"}
USER, STRANGER = 4321, 4322
# Two ranks a host; the program ends on command, or with its ranks.
RANKS = ("for l in 0 1; do r=$((2 * $host + l)); RANK=$r LOCAL_RANK=$l WORLD_SIZE=4 $loop & p=\"$p $!\"; done; "
         "trap 'kill $p; wait; exit 5' TERM; wait $p")
# A process's view of the others, and of files of theirs.
LOOK = """import glob, sys
key = sys.argv[1].encode()
for name in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ") + glob.glob(sys.argv[2] + "/**", recursive=True):
    try:
        with open(name, "rb") as f:
            found = key in f.read()
    except OSError:
        continue
    if found:
        print(name)
"""

pytestmark = [pytest.mark.namespaces]


class Host:
    """Its `run --standalone`, in namespaces that end with it."""

    def __init__(self, job, number, name):
        self.job, self.name, self.netns, self.number = job, name, f"cw{os.getpid()}{name}", number
        self.tmp = f"{job.tmp}/{name}"
        os.mkdir(self.tmp)
        os.chown(self.tmp, USER, USER)
        self.process = None

    def start(self, env, words):
        enter = (f'hostname {self.name} && mount --bind {self.job.tmp}/hosts /etc/hosts && '
                 f'exec setpriv --reuid {USER} --regid {USER} --clear-groups -- "$@"')
        with open(self.tmp + "/err", "wb") as err:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", self.netns, "unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child",
                 "--mount-proc", "sh", "-c", enter, "sh", COLLWATCH, "run", "--standalone", *words, "--", "sh", "-c",
                 RANKS], env=dict(env, TMPDIR=self.tmp, host=str(self.number)), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=err)

    def err(self):
        with open(self.tmp + "/err", encoding="utf-8") as f:
            return f.read()

    def run(self):
        """The process id, as this test sees it, of its `collwatch run`: the first one in there."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as f:
            return int(f.read())


class Job:
    """fault: further arguments of the ranks."""

    def __init__(self, stack, fault):
        self.tmp = tempfile.mkdtemp(prefix="cw-peers-")
        stack.callback(shutil.rmtree, self.tmp)
        os.chmod(self.tmp, 0o755)
        with open(self.tmp + "/hosts", "w", encoding="ascii") as f:
            f.write("127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for n, a in HOSTS.items()))
        self.hosts = [Host(self, i, name) for i, name in enumerate(HOSTS)]
        self.link(stack)
        loop = (f"{open_copy(TRAIN_LOOP)} --step-ms 5 --elements 64 --log-every 0 "
                f"--uid-file {self.tmp}/gpu1/uid {fault}")
        env = {k: v for k, v in os.environ.items() if not k.startswith("COLLWATCH")}
        env.update(LD_LIBRARY_PATH=directory(), loop=loop, COLLWATCH_JOB="pair", NCCL_SOCKET_IFNAME="eth0")
        # As srun does: it hands on what it has, and waits.
        ours, theirs = socket.socketpair()
        self.launcher = subprocess.Popen(
            [COLLWATCH, "run", "--peers", "gpu[1-2]", "--", sys.executable, "-c",
             "import json, os, sys\nos.write(1, json.dumps(dict(os.environ)).encode() + b'\\n')\nsys.stdin.read()"],
            env=env, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, user=USER, group=USER,
            extra_groups=[])
        theirs.close()
        stack.callback(self.launcher.communicate)
        stack.callback(ours.close)
        self.env = json.loads(self.launcher.stdout.readline())
        self.env.pop("LD_PRELOAD", None)  # of the launcher itself
        self.key = self.env["COLLWATCH_PEER_KEY"]

    def link(self, stack):
        for host in self.hosts:
            call("ip", "netns", "add", host.netns)
            stack.callback(call, "ip", "netns", "del", host.netns, check=False)
        a, b = self.hosts
        call("ip", "-n", a.netns, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", b.netns)
        for host in self.hosts:
            call("ip", "-n", host.netns, "address", "add", HOSTS[host.name] + "/24", "dev", "eth0")
            for link in ("lo", "eth0"):
                call("ip", "-n", host.netns, "link", "set", link, "up")

    def start(self, stack, *words):
        for host in self.hosts:
            host.start(self.env, words)
            stack.callback(host.process.wait)
            stack.callback(host.process.kill)

    def shows_key(self):
        """Command lines that do, of all processes there are."""
        shown = []
        for name in glob.glob("/proc/[0-9]*/cmdline"):
            with contextlib.suppress(OSError), open(name, "rb") as f:
                line = f.read()
                if self.key.encode() in line:
                    shown.append(line)
        return shown

    def seen_by(self, uid):
        """The places where a user finds the key."""
        done = subprocess.run([sys.executable, "-c", LOOK, self.key, self.tmp], stdout=subprocess.PIPE, text=True,
                              user=uid, group=uid, extra_groups=[], check=True)
        # Of that program's own command line, too.
        return {name for name in done.stdout.split() if not name.endswith("/cmdline")}


def files_kept(job):
    return {host.name: glob.glob(host.tmp + "/collwatch-*") for host in job.hosts}


def test_a_hang_is_found_across_two_hosts_and_its_key_stays_with_the_user():
    with contextlib.ExitStack() as stack:
        job = Job(stack, "--steps 0 --fault wrong-count --fault-rank 2 --fault-step 30")
        job.start(stack, "--set", "stall_min=2s")
        told = []

        def is_told():
            expect(not job.shows_key(), job.shows_key())
            told[:] = [h for h in job.hosts if "collwatch: more: collwatch report " in h.err()]
            return told
        wait_until(is_told, lambda: [h.err() for h in job.hosts])
        host = told[0]
        bundle = re.search(r"more: collwatch report (\S+)", host.err()).group(1)
        with open(bundle + "/incident.json", encoding="utf-8") as f:
            doc = json.load(f)
        expect([(c["rank"], c["host"]) for c in doc["culprits"]] == [(2, "gpu2")], doc["culprits"])
        expect(doc["coverage"]["ranks_seen"] == 4 and doc["class"] == "mismatch", doc)
        # Both know the other one, by the port that is the key's.
        for h in job.hosts:
            own = os.path.dirname(glob.glob(h.tmp + "/collwatch-*/key")[0])
            # Queried from outside of the namespace, so the daemon cannot see the client's process.
            done = subprocess.run([COLLWATCH, "status", "--json", "--control", own + "/control.sock"],
                                  stdout=subprocess.PIPE, check=False)
            status = json.loads(done.stdout)
            expect(done.returncode == 2, f"the leader's answer is that it hangs: {done}")
            expect([(p["node"], p["state"]) for p in status["peers"]] ==
                   [(o.name, "connected") for o in job.hosts if o is not h], status["peers"])
        mine, others = job.seen_by(USER), job.seen_by(STRANGER)
        expect(not others, others)
        expect(sum(name.endswith("/key") for name in mine) == 2 and
               any(name.endswith("/environ") for name in mine), f"what looks can find it: {mine}")
        for h in job.hosts:
            os.kill(h.run(), 15)
        for h in job.hosts:
            # unshare ends as the first process in there does.
            expect(h.process.wait(120) == 5, h.err())
        expect(sum(len(re.findall("hang found, kept in ", h.err())) for h in job.hosts) == 1,
               [h.err() for h in job.hosts])
        kept = files_kept(job)
        expect([name for name, those in kept.items() if those] == [host.name], kept)


def test_a_job_on_two_hosts_that_ends_well_leaves_nothing():
    with contextlib.ExitStack() as stack:
        job = Job(stack, "--steps 60")
        job.start(stack)
        for host in job.hosts:
            expect(host.process.wait(120) == 0, host.err())
            expect("daemon reached" in host.err() and "hang" not in host.err(), host.err())
        expect(not any(files_kept(job).values()), files_kept(job))
