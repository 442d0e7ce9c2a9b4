# SPDX-License-Identifier: Apache-2.0
"""Runs `collwatch demo` and checks its output and the files it leaves behind."""

import dataclasses
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time



@dataclasses.dataclass(frozen=True)
class Expected:
    """The required outcome of a scenario. No class: no alert at all."""

    verdict: str | None = None
    detail: str | None = None  # None: any
    min_ranks: int = 2
    min_nodes: int = 1
    alert_within_s: float | None = None
    is_in_pairs: bool = False  # an even number of ranks
    needs_cgroup: bool = False  # of version 1 with the memory controller, and root
    is_link: bool = False  # the culprit, and the rank at the other end of its connection
    is_cycle: bool = False  # of two ranks, both are named
    is_node: bool = False  # all ranks of the culprit's node are named
    needs_freezing: bool = False  # of a file system
    lasts_s: int = 0  # duration of the seeming hang, if longer than usual
    is_postmortem: bool = False  # the job fails, and its post-mortem has the verdict
    needs_looking: bool = False  # a daemon must see in what a rank sleeps


EXPECTED = {
    "never-entered": Expected("never_entered", "outside_nccl", 2, 1, 55),
    "wrong-op": Expected("mismatch", "kind", 3, 1, 8),
    "wrong-count": Expected("mismatch", "count", 3, 1, 8),
    "wrong-dtype": Expected("mismatch", "dtype", 3, 1, 8),
    "wrong-root": Expected("mismatch", "root", 3, 1, 8),
    "wrong-redop": Expected("mismatch", "redop", 3, 1, 8),
    "skipped-op": Expected("mismatch", "missing", 3, 1, 25),
    "extra-op": Expected("mismatch", "extra", 3, 1, 25),
    "p2p-unmatched": Expected("p2p_unmatched", "not_posted", 3, 1, 55),
    "two-comm-deadlock": Expected("deadlock", "order", 2, 1, 25, is_cycle=True),
    "chain": Expected("never_entered", "outside_nccl", 8, 2, 55, is_in_pairs=True),
    "killed-rank": Expected("process_dead", "killed", 2, 1, 8),
    "oom-killed": Expected("process_dead", "oom_killed", 2, 1, 8, needs_cgroup=True),
    "stopped-rank": Expected("never_entered", "stopped", 2, 1, 25),
    "gil-held": Expected("never_entered", "outside_nccl", 2, 1, 25),
    "stuck-init": Expected("init_stuck", None, 3, 1, 45),
    "busy-device": Expected("device_stalled", None, 2, 1, 25),
    "dead-node": Expected("node_unreachable", None, 4, 2, 25, is_node=True),
    "network-stall": Expected("in_collective", "connection", 3, 2, 30, is_link=True),
    "gpu-dies": Expected("in_collective", "unfinished", 2, 1, 25),
    "cascade": Expected("process_dead", "exited", 2, 1, 12, is_postmortem=True),
    "watchdog-abort": Expected("never_entered", "outside_nccl", 2, 1, 30, is_postmortem=True),
    "healthy": Expected(),
    "idle-root": Expected(needs_looking=True),
    "slow-checkpoint": Expected(needs_freezing=True, lasts_s=40),
    "daemon-restart": Expected(lasts_s=40),
    "long-kernel": Expected(lasts_s=60),
    **{name: Expected() for name in (
        "evaluation", "compile", "debugger", "pipeline-bubbles", "idle-experts", "premulsum",
        "alltoallv", "big-broadcast", "staggered-destroy", "clean-exit", "cancelled",
        "elastic-restart")},
}
EXIT_HEALTHY, EXIT_HANG = 0, 2
HAS_CGROUP = os.geteuid() == 0 and os.access("/sys/fs/cgroup/memory/cgroup.procs", os.W_OK)
# Found out as the demo does: by trying.
HAS_NAMESPACES = subprocess.run(
    ["unshare", "--net", "--uts", "sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; hostname node && "
     "ip link add bridge type bridge && ip link add one type veth peer name two"],
    check=False, stderr=subprocess.DEVNULL).returncode == 0
HAS_FREEZING = (os.geteuid() == 0 and os.path.exists("/dev/loop-control") and
                shutil.which("mkfs.ext4", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"))


def may_look():
    """Whether a process may see the call where another one of the same user sleeps."""
    with subprocess.Popen(["sleep", "120"]) as other:
        try:
            return subprocess.run(["cat", f"/proc/{other.pid}/syscall"], check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout != b""
        finally:
            other.kill()


def why_not(scenario):
    """Why it cannot be run here; None when it can."""
    expected = EXPECTED[scenario]
    if expected.needs_cgroup and not HAS_CGROUP:
        return "needs root and version 1 of the memory controller"
    if expected.needs_freezing and not HAS_FREEZING:
        return "needs root, mkfs.ext4 and loop devices"
    if expected.needs_looking and not may_look():
        return "needs the right to see in what a process sleeps"
    return None


NODE_NAME = re.compile(r"node-[a-z]+$")
DELAY = re.compile(r"(?:alert received|post-mortem written) after ([0-9.]+) s")


@dataclasses.dataclass
class Draw:
    """The randomly chosen run, repeatable by its seed."""

    scenario: str
    ranks: int
    nodes: int
    culprit: int

    @classmethod
    def random(cls, rng, scenario, max_ranks=16, max_nodes=3):
        expected = EXPECTED[scenario]
        ranks = rng.randint(expected.min_ranks, max_ranks)
        if expected.is_in_pairs:
            ranks -= ranks % 2
        nodes = rng.randint(expected.min_nodes, min(max_nodes, ranks))
        return cls(scenario, ranks, nodes, rng.randrange(ranks))

    def blamed(self):
        """The ranks that are to be named."""
        if EXPECTED[self.scenario].is_node:
            return [r for r in range(self.ranks) if self.node(r) == self.node(self.culprit)]
        if EXPECTED[self.scenario].is_cycle and self.ranks == 2:
            return [0, 1]
        if EXPECTED[self.scenario].is_cycle and self.ranks == 4:  # data-parallel in pairs
            return [self.culprit % 2, self.culprit % 2 + 2]
        return [self.culprit]

    def node(self, rank):
        return rank * self.nodes // self.ranks

    def arguments(self):
        return [self.scenario, "--ranks", str(self.ranks), "--nodes", str(self.nodes),
                "--culprit", str(self.culprit)]

    def __str__(self):
        return " ".join(self.arguments())


class Result:
    def __init__(self, draw, status, stdout, stderr):
        self.draw, self.status, self.stdout, self.stderr = draw, status, stdout, stderr
        try:
            self.document = json.loads(stdout)
        except ValueError:
            self.document = {}

    @property
    def culprits(self):
        """Their ranks: a post-mortem lists these, an incident more about each."""
        return [c.get("rank") if isinstance(c, dict) else c
                for c in self.document.get("culprits", [])]

    @property
    def verdict(self):
        if self.document.get("schema") == "collwatch.healthy/1":
            return "healthy"
        culprits = self.culprits
        what = self.document.get("class", "none")
        if self.document.get("detail"):
            what += "/" + self.document["detail"]
        return f"{what} {culprits}"

    @property
    def is_right(self):
        expected = EXPECTED[self.draw.scenario]
        if expected.verdict is None:
            return self.status == EXIT_HEALTHY and self.verdict == "healthy"
        is_postmortem = "ends" in self.document
        return (self.status == EXIT_HANG and is_postmortem == expected.is_postmortem
                and self.document.get("class") == expected.verdict
                and expected.detail in (None, self.document.get("detail"))
                and (self.names_the_link() if expected.is_link else
                     sorted(self.culprits) == self.draw.blamed()))

    def names_the_link(self):
        """The two ends of a connection, and the culprit is one of them."""
        return len(set(self.culprits)) == len(self.culprits) == 2 and self.draw.culprit in self.culprits

    @property
    def delay_s(self):
        """From the fault to the alert, as the demo saw it; None when there was none."""
        match = DELAY.search(self.stderr)
        return float(match.group(1)) if match else None

    def explain(self):
        return f"{self.draw}: exit status {self.status}, {self.verdict}\n{self.stderr}"


class Demo:
    """`collwatch demo` with a temporary directory of its own; the demo must leave it empty."""

    def __init__(self, collwatch):
        self.collwatch = collwatch
        # Short: the names of UNIX sockets have 107 bytes.
        self.tmp = tempfile.mkdtemp(prefix="cw-")
        self.environment = dict(os.environ, TMPDIR=self.tmp)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.tmp, ignore_errors=True)

    def start(self, draw, *options, json_output=True, prefix=()):
        command = [*prefix, self.collwatch, "demo", *draw.arguments(), *options]
        if json_output:
            command.append("--json")
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=self.environment)

    def run(self, draw, *options, timeout=900, prefix=()):
        process = self.start(draw, *options, prefix=prefix)
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            stdout, stderr = process.communicate(timeout=120)
            stderr += f"\nnot done after {timeout} s"
        return Result(draw, process.returncode, stdout, stderr)

    def processes(self):
        """Living processes of this demo: its directory is in their environment."""
        marker = self.tmp.encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if marker in f.read() and int(pid) != os.getpid():
                        found.append(int(pid))
            except OSError:
                continue  # ended meanwhile, or not ours to read
        return found

    def namespaces(self, kind):
        """{namespace: path} of those ("net", "uts") its processes live in, but for ours."""
        found = {}
        for pid in self.processes():
            try:
                found[os.readlink(f"/proc/{pid}/ns/{kind}")] = f"/proc/{pid}/ns/{kind}"
            except OSError:
                continue  # ended meanwhile
        found.pop(os.readlink(f"/proc/self/ns/{kind}"), None)
        return found

    @staticmethod
    def traces_of_nodes():
        """Interfaces and namespaces with a node's name at the demo's start: no demo makes any
        there."""
        names = os.listdir("/sys/class/net")
        names += os.listdir("/run/netns") if os.path.isdir("/run/netns") else []
        return [name for name in names if NODE_NAME.match(name)]

    def leftovers(self, within_s=120):
        """The remains after the demo has ended; [] as soon as there are none."""
        deadline = time.monotonic() + within_s
        while True:
            left = self.processes() + os.listdir(self.tmp) + self.traces_of_nodes()
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.05)


def seeded(name):
    """A generator whose seed is printed, and taken from E2E_SEED when set."""
    seed = int(os.environ.get("E2E_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"# {name}: seed {seed} (E2E_SEED={seed} repeats it)", flush=True)
    return random.Random(seed)
