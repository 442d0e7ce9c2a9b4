#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own NCCL on the simulated device: every collective, data type and operator gives the
right result, over shared memory and over sockets, and the same bits with the agent preloaded; the
agent as a plugin of its profiler interface records the same as the wrappers; the daemon alerts on
hangs. Fails where the source of NCCL is missing, unless the caller says that there is no network.
Prints TAP.

Arguments: the build directory, the sweep program; tests, if not all."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from lab_lib import PATIENCE, Tool, must_be_equal  # noqa: E402 pylint: disable=wrong-import-position
import tap  # noqa: E402 pylint: disable=wrong-import-position
from built import COLLWATCH, TRAIN_LOOP_PY  # noqa: E402 pylint: disable=wrong-import-position
from agent_lib import check, wait_until  # noqa: E402 pylint: disable=wrong-import-position
from daemon import Daemon  # noqa: E402 pylint: disable=wrong-import-position
from job import labels  # noqa: E402 pylint: disable=wrong-import-position
import nccl_place  # noqa: E402 pylint: disable=wrong-import-position
import nccl_run  # noqa: E402 pylint: disable=wrong-import-position
from two_ways import (must_tell_of_replays,  # noqa: E402 pylint: disable=wrong-import-position
                      must_tell_the_same, must_tell_the_same_sends, replayed, sent, trained)

BUILD, SWEEP, *CHOSEN = sys.argv[1:]
AGENT = os.environ["CW_AGENT"]
RUN_TIMEOUT_S = 600
DEMO_CULPRIT = 3
BUILD_TIMEOUT_S = 3000
# A part of a slice, and more than a chunk of the small buffer below.
SIZES = ["7", "20000"]
SMALL_BUFFER = {"NCCL_BUFFSIZE": "65536"}

nccl = Tool("real-nccl", BUILD, RUN_TIMEOUT_S)


def build_real_nccl():
    nccl.build(BUILD_TIMEOUT_S)


def computes_right(ranks, net):
    alone = nccl.sweep(SWEEP, ranks, net, SIZES)
    must_be_equal(alone, nccl.sweep(SWEEP, ranks, net, SIZES, AGENT), "with the agent")


def two_ranks_compute_right_over_shared_memory():
    computes_right(2, "shm")


def two_ranks_compute_right_over_sockets():
    computes_right(2, "socket")


def four_ranks_compute_right_over_shared_memory():
    computes_right(4, "shm")


def four_ranks_compute_right_over_sockets():
    computes_right(4, "socket")


def ranks_compute_right_through_each_others_memory():
    """NCCL's P2P transport: its own log says that it was taken."""
    with tempfile.TemporaryDirectory() as at:
        log = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": at + "/%p"}
        first = nccl.sweep(SWEEP, 2, "p2p", SIZES, AGENT, log)
        said = "".join(pathlib.Path(at, name).read_text() for name in os.listdir(at))
        check(" via P2P/IPC" in said and " via SHM" not in said, said[-2000:])
        must_be_equal(nccl.sweep(SWEEP, 2, "shm", SIZES), first, "through shared memory")


def small_buffers_go_round():
    """Data that are many times the buffer: each slot is used again and again."""
    for net in "shm", "socket":
        nccl.sweep(SWEEP, 2, net, SIZES, env=SMALL_BUFFER)


def job_variables(ranks, net):
    """The variables that all ranks share, and each rank's own."""
    job = nccl_run.job_environment(nccl_place.default_cache(), BUILD, nccl_place.DEFAULT_VERSION,
                                   ranks, net)
    ours = {k: v for k, v in job.items() if k.startswith("NCCL_") or k == "LD_LIBRARY_PATH"}
    return ours, lambda rank: {"NCCL_HOSTID": f"lab-node-{rank}"} if net == "socket" else {}


def plugins():
    """By version of the interface, the variables by which NCCL loads the agent. Its own newest is
    6."""
    yield 6, {"preload": None, "NCCL_PROFILER_PLUGIN": AGENT}
    for version in 5, 4:
        yield version, {"preload": None, "LAB_PROFILER": AGENT,
                        "NCCL_PROFILER_PLUGIN": f"{BUILD}/lab/nccl/libolder_profiler_v{version}.so"}


def the_plugin_tells_what_the_wrappers_tell(program, compare, ranks):
    nccl.needed()
    for net in "shm", "socket":
        def run(how, net=net):
            ours, each = job_variables(ranks, net)
            return program(each=each, **{**ours, **how})
        wrapped = run({})
        for version, how in plugins():
            compare(wrapped, run(how), version)


def the_plugin_tells_of_collectives_what_the_wrappers_tell():
    """NCCL 2.29 forgets the profiler's wishes for a broadcast: ncclPrepareTasks() of src/enqueue.cc
    makes a task of it without them. So it reports a broadcast only to a plugin that gets the user's
    calls. Those are versions 5 and newer, which it prefers."""
    def compare(wrapped, plugged, version):
        must_tell_the_same(wrapped, plugged, version, ["broadcast"] if version == 4 else [])
    the_plugin_tells_what_the_wrappers_tell(trained, compare, 4)


def the_plugin_tells_of_sends_what_the_wrappers_tell():
    the_plugin_tells_what_the_wrappers_tell(sent, must_tell_the_same_sends, 2)


def the_plugin_tells_of_replays_what_it_is_told():
    the_plugin_tells_what_the_wrappers_tell(replayed, must_tell_of_replays, 2)


# Faults of train_loop, and the right verdicts.
FAULTS = {"block-in-data-loader": "never_entered", "wrong-count": "mismatch",
          "kill-self": "process_dead"}
CULPRIT, ALERT_S = 2, 120


def go_wrong(net, fault):
    """The first incident of a job whose rank CULPRIT does that."""
    ours, each = job_variables(4, net)
    with Daemon(patience=PATIENCE) as daemon:
        daemon.start()
        ranks = [{**own, **each(rank)} for rank, own in enumerate(labels(4, COLLWATCH_JOB=fault))]
        daemon.train(fault, ranks, [
            "--steps", "0", "--step-ms", "20", "--elements", "256", "--tp", "2", "--fault", fault,
            "--fault-rank", str(CULPRIT), "--fault-step", "30"], variables=ours)
        return wait_until(lambda: daemon.incident_of(fault), "an incident", ALERT_S)


def hangs_are_told(net):
    nccl.needed()
    for fault, verdict in FAULTS.items():
        incident = go_wrong(net, fault)
        check(incident["class"] == verdict, f"{fault}: {incident['summary']}")
        check([c["rank"] for c in incident["culprits"]] == [CULPRIT], incident["summary"])


def hangs_over_shared_memory_are_told():
    hangs_are_told("shm")


def hangs_over_sockets_are_told():
    hangs_are_told("socket")


# Why NCCL cannot make a communicator on one rank: its transport, variables, and words before the program.
TINY_SHM = ["unshare", "--mount", "sh", "-c",
            'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec "$@"', "sh"]
REFUSALS = {"interface": ("socket", {"NCCL_SOCKET_IFNAME": "nosuch0"}, []),
            "memory": ("shm", {}, TINY_SHM)}
FAILING_INIT = str(pathlib.Path(__file__).parents[1] / "e2e/programs/failing_init.py")


def refuse(cause, way):
    """The first incident of a job where NCCL refuses one rank the communicator."""
    net, variables, before = REFUSALS[cause]
    name = f"{cause}-{way}"
    ours, each = job_variables(4, net)
    ranks = [{**ours, **own, **each(rank)}
             for rank, own in enumerate(labels(4, COLLWATCH_JOB=name))]
    ranks[CULPRIT].update(INIT_WAY=way, **variables)
    with Daemon(patience=PATIENCE) as daemon:
        daemon.start()
        daemon.train(name, ranks, ["--steps", "0", "--step-ms", "20", "--elements", "256"],
                     program=lambda rank: [*(before if rank == CULPRIT else []), sys.executable,
                                           FAILING_INIT, TRAIN_LOOP_PY])
        return wait_until(lambda: daemon.incident_of(name), lambda: "a page: " + daemon.log(),
                          ALERT_S)


def refused_ranks_are_named():
    """In a process that ends, in another that lives on, and of a communicator that
    does not block."""
    nccl.needed()
    for cause in REFUSALS:
        if cause == "memory" and os.geteuid() != 0:
            continue  # a /dev/shm of its own is root's to make
        for way, verdict in ("raise", "process_dead"), ("catch", "init_stuck"), ("poll", "init_stuck"):
            incident = refuse(cause, way)
            summary = incident["summary"]
            check((incident["class"], incident["hang"]) == (verdict, "proven"), f"{way}: {summary}")
            check([c["rank"] for c in incident["culprits"]] == [CULPRIT], f"{way}: {summary}")
            check("failed in ncclCommInitRank" in summary and "with nccl" in summary, summary)
            print(f"# {cause} {way}: {summary}")


def a_stalled_connection_is_named_by_the_demo():
    """NVIDIA's proxies, through the agent as their plugin: the first sentence names the connection."""
    nccl.needed()
    done = subprocess.run([COLLWATCH, "demo", "--real-nccl", "network-stall", "--json", "--check"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          timeout=RUN_TIMEOUT_S)
    check(done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}")
    document = json.loads(done.stdout)
    link = document["where"]["link"]
    check(link["sender"] == DEMO_CULPRIT, str(link))
    name = (f"rank {link['sender']} on {link['sender_host']} → rank {link['receiver']} on "
            f"{link['receiver_host']}, channel {link['channel']}")
    check(name in document["summary"].split(". ")[0], document["summary"])
    print(f"# {document['summary']}")


def say_how_many_ran():
    """For the summary of a run, and for CI, which asks for it."""
    nccl.needed()
    print("# note: %d version%s of NVIDIA's NCCL ran: %s" %
          (len(nccl.versions), "" if len(nccl.versions) == 1 else "s",
           ", ".join(sorted(nccl.versions))))
    check(nccl.versions, "none has run")


TESTS = [build_real_nccl, two_ranks_compute_right_over_shared_memory,
         two_ranks_compute_right_over_sockets, four_ranks_compute_right_over_shared_memory,
         four_ranks_compute_right_over_sockets,
         ranks_compute_right_through_each_others_memory, small_buffers_go_round,
         the_plugin_tells_of_collectives_what_the_wrappers_tell,
         the_plugin_tells_of_sends_what_the_wrappers_tell,
         the_plugin_tells_of_replays_what_it_is_told,
         a_stalled_connection_is_named_by_the_demo,
         hangs_over_shared_memory_are_told, hangs_over_sockets_are_told, refused_ranks_are_named,
         say_how_many_ran]
tap.run([t for t in TESTS if not CHOSEN or t is build_real_nccl or t.__name__ in CHOSEN])
