#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws faults of connections and GPUs in jobs on NVIDIA's NCCL, and counts how often the alert names
the right connection, node and GPU. Each draw has its own daemons, one per emulated node. Two ways
break a connection: a shim below NCCL's sockets, and lost packets between network namespaces. Prints
TAP, with a line per draw.

usage: tests/real/real_nccl_links.py BUILD-DIRECTORY [--draws N] [--seed S] [--results FILE]

With --results, each draw goes to a file, and a repeated run skips the draws that the file holds."""
import argparse
import concurrent.futures
import contextlib
import dataclasses
import datetime
import json
import os
import random
import re
import shutil
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True

BUILD_TIMEOUT_S = 3000
RUNNING_S, ALERT_S = 180, 60
# The least that the daemon allows, and less than its default.
PATIENCE = 'stall_min = "2s"\nno_progress_after = "2s"\nfirst_op_after = "30s"\n'

OF_LINKS = ("stall", "deaf", "one-way", "cut", "slow")
OF_GPUS = ("unlaunched", "stops")
FAULTS = OF_LINKS + OF_GPUS
SHIM, PACKETS = "shim", "packets"
WAYS = {"stall": [SHIM], "deaf": [SHIM], "one-way": [SHIM, PACKETS], "cut": [SHIM, PACKETS],
        "slow": [SHIM], "unlaunched": ["device"], "stops": ["device"]}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("build", metavar="BUILD-DIRECTORY")
    parser.add_argument("--draws", type=int, default=60, metavar="N", help="default: %(default)s")
    parser.add_argument("--first", type=int, default=0, metavar="I", help="number of the first draw")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="default: %(default)s")
    parser.add_argument("--at-once", type=int, default=2, metavar="N", help="default: %(default)s")
    parser.add_argument("--fault", choices=FAULTS, help="only this one (default: all in turn)")
    parser.add_argument("--algo", choices=("Ring", "Tree"), help="of all_reduce (default: drawn)")
    parser.add_argument("--results", metavar="FILE", help="a line per draw; resumes what it holds")
    parser.add_argument("--keep", metavar="DIRECTORY", help="keep the bundles of all draws")
    args = parser.parse_args()
    args.build = os.path.realpath(args.build)
    return args


ARGS = parse()
BUILT = ARGS.build + "/tests/e2e"  # built.py there has the paths of programs
if not os.path.exists(BUILT + "/built.py"):
    sys.exit(f"{ARGS.build}: not a build directory of collwatch")
sys.path.insert(0, BUILT)

# pylint: disable=wrong-import-position
from lab_lib import Tool  # noqa: E402
import tap  # noqa: E402
from built import AGENT, TRAIN_LOOP  # noqa: E402
from cluster import Cluster, name_of  # noqa: E402
from job import Job, labels  # noqa: E402
from nccl_faults import (RECEIVES_NOTHING, SENDS_NOTHING, SENDS_SLOWLY,  # noqa: E402
                         STARTS_NO_KERNEL, STOPS, Faults)
from nccl_networks import Networks  # noqa: E402
from waiting import wait_until  # noqa: E402
import nccl_place  # noqa: E402
import nccl_run  # noqa: E402


@dataclasses.dataclass
class Draw:
    number: int
    fault: str
    way: str
    ranks: int
    per_node: int
    channels: int
    elements: int
    buffer: int
    proto: str
    culprit: int  # the rank, or the place of the connection in the list of all
    amount: int  # bytes or slices that still move
    after_s: float
    algo: str = "Ring"

    @classmethod
    def of(cls, number):
        rng = random.Random(f"{ARGS.seed} {number}")
        fault = ARGS.fault or FAULTS[number % len(FAULTS)]
        way = rng.choice(WAYS[fault])
        ranks = rng.choice((4, 4, 4, 5, 6, 8))
        per_node = 1 if way == PACKETS or ranks % 2 else rng.choice((1, 1, 2))
        return cls(number, fault, way, ranks, per_node, rng.randint(1, 4),
                   rng.choice((1 << 14, 1 << 16, 1 << 18)), rng.choice((1 << 16, 1 << 18, 1 << 22)),
                   rng.choice(("Simple", "^LL128")), rng.randrange(1 << 16),
                   rng.choice((0, rng.randrange(1 << 12), rng.randrange(1 << 20))), rng.random(),
                   ARGS.algo or rng.choice(("Ring", "Tree")))

    @property
    def nodes(self):
        return self.ranks // self.per_node

    def node_of(self, rank):
        return name_of(rank // self.per_node)


# "Channel 00/0 : 3[3] -> 0[0] [send] via NET/Socket/0" in the log of rank 3
SENDS = re.compile(r"Channel (\d+)/\d+ : (\d+)\[\w+\] -> (\d+)\[\w+\] \[send\] via NET")


class Run:
    """One draw."""

    def __init__(self, draw, stack):
        self.draw = draw
        self.cluster = stack.enter_context(Cluster(draw.nodes))
        for node in self.cluster.nodes:
            node.patience = PATIENCE
            node.configure(self.config())
        self.faults = Faults(self.cluster.nodes[0].dir)
        self.networks = stack.enter_context(Networks(draw.ranks)) if draw.way == PACKETS else None
        self.truth = {}
        self.job = None

    def config(self):
        """The configuration that the cluster made, once more with our times."""
        with open(self.cluster.nodes[0].conf, encoding="ascii") as f:
            return "".join(line for line in f if line.startswith(("peers", "webhook_url")))

    def start(self):
        draw = self.draw
        self.cluster.start()
        job = nccl_run.job_environment(nccl_place.default_cache(), ARGS.build,
                                       nccl_place.DEFAULT_VERSION, draw.ranks, "socket")
        variables = {k: v for k, v in job.items() if k.startswith("NCCL_") or k == "LD_LIBRARY_PATH"}
        variables.update(
            self.faults.variables(), NCCL_PROFILER_PLUGIN=AGENT,
            NCCL_ALGO=f"allreduce:{draw.algo};broadcast:Ring;reducescatter:Ring;allgather:Ring",
            NCCL_PROTO=draw.proto, NCCL_BUFFSIZE=str(draw.buffer),
            NCCL_MIN_NCHANNELS=str(draw.channels), NCCL_MAX_NCHANNELS=str(draw.channels),
            NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET")
        if self.networks:
            variables["NCCL_SOCKET_IFNAME"] = self.networks.device
            del variables["NCCL_RAS_ADDR"]
            variables["NCCL_RAS_ENABLE"] = "0"
        ranks = labels(draw.ranks, COLLWATCH_JOB="links")
        directory = self.cluster.nodes[0].dir
        for rank, own in enumerate(ranks):
            own.update(NCCL_HOSTID=draw.node_of(rank), NCCL_DEBUG_FILE=f"{directory}/nccl.{rank}")
        self.job = self.cluster.enter_context(contextlib.closing(self.make_job(ranks, variables)))
        wait_until(self.is_running, lambda: f"all ranks run: {self.job.ended()}", RUNNING_S)

    def make_job(self, ranks, variables):
        before = self.networks.words if self.networks else lambda rank: []
        return Job("links", ranks, ["--steps", "0", "--step-ms", "20", "--elements",
                                    str(self.draw.elements), "--log-every", "1"],
                   self.cluster.nodes, program=lambda rank: [*before(rank), TRAIN_LOOP],
                   variables=variables)

    def is_running(self):
        if self.job.ended():
            raise AssertionError(f"ranks have ended: {self.job.ended()}")
        return all(self.job.steps(rank) > 4 for rank in range(self.draw.ranks))

    def links(self):
        """[(sender, receiver, channel, address)]: the sender makes its connections to a receiver in
        the order in which its log names their channels."""
        channels = {}
        for rank in range(self.draw.ranks):
            with open(f"{self.cluster.nodes[0].dir}/nccl.{rank}", encoding="utf-8") as f:
                for channel, sender, receiver in SENDS.findall(f.read()):
                    channels.setdefault((int(sender), int(receiver)), []).append(int(channel))
        found = self.faults.connections()
        for c in found:
            if c.number >= len(channels.get((c.sender, c.receiver), [])):
                raise AssertionError(f"the log names no channel of {c}")
        return [(c.sender, c.receiver, channels[c.sender, c.receiver][c.number], c.address)
                for c in found]

    def strike(self):
        """Injects the fault. Returns what is right to name."""
        draw, faults = self.draw, self.faults
        if draw.fault in OF_GPUS:
            rank = draw.culprit % draw.ranks
            faults.break_gpu(rank, STARTS_NO_KERNEL if draw.fault == "unlaunched" else STOPS,
                             draw.amount % 64)
            self.truth = {"rank": rank, "nodes": [draw.node_of(rank)]}
            return
        links = self.links()
        one = links[draw.culprit % len(links)]
        sender, receiver = one[:2]
        there = [l for l in links if l[:2] == (sender, receiver)]
        both = [l for l in links if l[:2] in ((sender, receiver), (receiver, sender))]
        # Packets of one direction carry the confirmations of the other.
        broken = {"one-way": both if draw.way == PACKETS else there,
                  "cut": both}.get(draw.fault, [one])
        addresses = [l[3] for l in broken]
        if draw.way == PACKETS:
            self.networks.lose(sender, receiver)
            if draw.fault == "cut":
                self.networks.lose(receiver, sender)
        elif draw.fault == "slow":
            faults.break_sockets(addresses, SENDS_SLOWLY, max(draw.elements * 4 // 40, 2000))
        else:
            faults.break_sockets(addresses, RECEIVES_NOTHING if draw.fault == "deaf" else SENDS_NOTHING,
                                 draw.amount)
        self.truth = {"links": [l[:3] for l in broken],
                      "nodes": sorted({draw.node_of(r) for l in broken for r in l[:2]})}

    def alert(self):
        posts = [document for _, document in self.cluster.receiver.posts]
        return next((d for d in posts if d.get("severity") == "page"), None)

    def result(self):
        self.start()
        steps = self.job.steps() + int(self.draw.after_s * 20)
        wait_until(lambda: self.job.steps() >= steps, "some more steps", RUNNING_S)
        self.strike()  # draw.amount makes the place within an op random
        struck, steps = time.monotonic(), self.job.steps()
        with contextlib.suppress(AssertionError):
            wait_until(lambda: self.alert() or self.job.ended(), "an alert", ALERT_S)
        waited, now = time.monotonic() - struck, datetime.datetime.now(datetime.timezone.utc)
        result = self.judge(self.alert(), waited)
        if self.alert():
            confirmed = datetime.datetime.fromisoformat(
                self.alert()["times"]["confirmed"].replace("Z", "+00:00"))
            result["after_confirmed"] = round((now - confirmed).total_seconds(), 1)
        # A slow connection may not hold up the job for long enough.
        result["harmless"] = not self.alert() and self.job.steps() > steps + 1
        return result

    def judge(self, alert, waited):
        alert = alert or {}
        link = (alert.get("where") or {}).get("link")
        culprits = [c["rank"] for c in alert.get("culprits", [])]
        named = link and [link["sender"], link["receiver"], link["channel"]]
        if "links" in self.truth:
            is_right = named is not None and tuple(named) in self.truth["links"]
        else:
            is_right = not named and self.truth["rank"] in culprits and all(
                self.draw.node_of(r) in self.truth["nodes"] for r in culprits)
        return {"number": self.draw.number, "draw": dataclasses.asdict(self.draw),
                "truth": self.truth, "class": alert.get("class"), "detail": alert.get("detail"),
                "confidence": alert.get("confidence"), "named": named, "culprits": culprits,
                "right": is_right, "alone": is_right and len(culprits) == 1,
                "node": bool(culprits) and all(self.draw.node_of(r) in self.truth["nodes"]
                                               for r in culprits),
                "seconds": round(waited, 1) if alert else None, "summary": alert.get("summary"),
                "ended": [e[0] for e in self.job.ended()]}


def keep(one, number):
    for node in one.cluster.nodes:
        if node.bundles():
            shutil.copytree(node.state + "/incidents", f"{ARGS.keep}/{number}", dirs_exist_ok=True)


def run(number):
    draw = Draw.of(number)
    with contextlib.ExitStack() as stack:
        one = Run(draw, stack)
        result = one.result()
        if ARGS.keep:
            keep(one, number)
        return result


def percent(results, key):
    return 100 * sum(bool(r[key]) for r in results) / len(results) if results else None


def known():
    """The results that the file holds, by number."""
    if not ARGS.results or not os.path.exists(ARGS.results):
        return {}
    with open(ARGS.results, encoding="utf-8") as f:
        return {r["number"]: r for r in map(json.loads, f)}


NUMBERS = range(ARGS.first, ARGS.first + ARGS.draws)
nccl = Tool("real-nccl", ARGS.build, BUILD_TIMEOUT_S)
results, lock = known(), threading.Lock()


def say(result):
    print(f"# {result['number']:3} {result['draw']['fault']:10} {result['draw']['way']:7} "
          f"{result['draw'].get('algo', 'Ring')} "
          f"{'right' if result['right'] else 'harmless' if result.get('harmless') else 'WRONG'} "
          f"{result['seconds']} s: {result['truth']} "
          f"{result['class']}/{result['detail']} {result['confidence']}: {result['summary']}",
          flush=True)


def try_one(number):
    try:
        result = run(number)
    except (AssertionError, OSError) as e:
        print(f"# {number:3} did not run: {e}", flush=True)
        return
    with lock:
        results[number] = result
        say(result)
        if ARGS.results:
            with open(ARGS.results, "a", encoding="utf-8") as f:
                f.write(json.dumps(result) + "\n")


def drawn():
    return [results[n] for n in NUMBERS if n in results and not results[n].get("harmless")]


def of_faults(*faults):
    return [r for r in drawn() if r["draw"]["fault"] in faults]


# ---- tests ----

def all_draws_run():
    nccl.build(BUILD_TIMEOUT_S)
    with concurrent.futures.ThreadPoolExecutor(ARGS.at_once) as pool:
        try:
            list(pool.map(try_one, [n for n in NUMBERS if n not in results]))
        except KeyboardInterrupt:  # the draws that run clean up first
            pool.shutdown(cancel_futures=True)
            raise
    for fault in FAULTS:
        of = of_faults(fault)
        seconds = sorted(r["seconds"] for r in of if r["seconds"] is not None)
        if of:
            print(f"# {fault:10} {len(of)} draws, right {percent(of, 'right'):.1f} %, node "
                  f"{percent(of, 'node'):.1f} %, certain "
                  f"{sum(r['confidence'] == 'certain' for r in of)}, alert after "
                  f"{seconds[len(seconds) // 2] if seconds else '-'} s (median)")
    late = [r["after_confirmed"] for r in drawn() if "after_confirmed" in r]
    if late:
        print(f"# the alert comes at most {max(late)} s after the hang is confirmed")
    missing = [n for n in NUMBERS if n not in results]
    print(f"# {ARGS.draws - len(missing) - len(drawn())} faults did no harm")
    if missing:
        raise tap.Failure(f"{len(missing)} of {ARGS.draws} draws did not run")


def reach(of, key, goal):
    if not of:
        raise tap.Skip("none was drawn")
    print(f"# {percent(of, key):.1f} % of {len(of)}, at least {goal} %")
    if percent(of, key) < goal:
        raise tap.Failure("wrong: " + ", ".join(str(r["number"]) for r in of if not r[key]))


def the_connection_is_right():
    reach(of_faults(*OF_LINKS), "right", 95)


def the_gpu_is_right():
    reach(of_faults(*OF_GPUS), "right", 95)


def the_node_is_right():
    reach(drawn(), "node", 99)


def no_wrong_verdict_is_certain():
    wrong = [r["number"] for r in drawn() if r["confidence"] == "certain" and not r["right"]]
    if wrong:
        raise tap.Failure(f"wrongly certain: {wrong}")


signal.signal(signal.SIGTERM, signal.default_int_handler)
tap.run([all_draws_run, the_connection_is_right, the_gpu_is_right, the_node_is_right,
         no_wrong_verdict_is_certain])
